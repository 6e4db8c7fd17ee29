"""Where studies live: the tables, their rows, transactions and migrations."""
