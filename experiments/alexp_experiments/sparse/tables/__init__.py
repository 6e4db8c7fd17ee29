"""Tables 1 and 2 of the paper, with a measured column."""
