"""Rounds whose candidates are not known before: domains, what a round offers, and dictionaries of features for it."""
