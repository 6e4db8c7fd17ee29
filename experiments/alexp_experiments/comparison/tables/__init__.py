"""Real tables: what every row is worth is known, and algorithms look for the good ones."""
