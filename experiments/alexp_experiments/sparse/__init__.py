"""Sparse rewards: where the rivals of the literature were measured, and their measurements again."""
