"""Online group Lasso with its certificate, and the refit of the released code."""
