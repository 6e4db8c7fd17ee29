"""Estimators that turn the history into posteriors, one room below the problem description."""
