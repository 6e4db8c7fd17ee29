"""What a GPU does of the work, and how fast."""
