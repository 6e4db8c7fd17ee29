"""Do the rewards look as stated? A test that may be read at every moment, and what to say without statements."""
