"""Posteriors of models with coefficients of their own for every arm: one small bank per arm."""
