"""Streams of contexts, who chooses on them, and how they compare."""
