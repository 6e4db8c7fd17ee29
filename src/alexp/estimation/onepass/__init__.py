"""Posteriors of few wide models: values at all candidates are kept, and one pass over the table updates them."""
