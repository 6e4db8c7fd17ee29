"""Feature matrices of a fixed list of candidates: as they were handed in, with one copy at most."""
