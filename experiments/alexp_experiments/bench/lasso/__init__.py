"""The race of group Lasso solvers."""
