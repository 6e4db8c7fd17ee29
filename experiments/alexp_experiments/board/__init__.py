"""The board: every representation against every rival, under three protocols, on tables that nothing was tuned on."""
