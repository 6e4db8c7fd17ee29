"""Rewards of zero and one: the Gaussian mixture held against logistic regressions."""
