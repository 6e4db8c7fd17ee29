"""Rivals that commit, explore or regress on everything: they choose no agent to follow."""
