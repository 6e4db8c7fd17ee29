"""Contextual rounds in the ask/tell protocol: how they are asked for, and what is kept of them."""
