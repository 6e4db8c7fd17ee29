"""Commands that this package adds to `alexp`."""
