"""Many processes on one study: what a fork must not share, and who measures which trial until when."""
