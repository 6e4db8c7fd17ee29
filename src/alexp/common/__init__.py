"""What every room may use: array types, checks of arguments, the encoding of states, the look of figures."""
