"""Candidates as short text and as columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from alexp.problem.domains import Domain


def candidate_columns(domain: Domain, index: int) -> dict[str, Any]:
    """A candidate as named values: the row of its table, x0, x1, ... of a point, or x.

    >>> from alexp.problem import Box, Interval
    >>> candidate_columns(Interval(resolution=3), 2), list(candidate_columns(Box([0, 0], [1, 1], 4), 0))
    ({'x': 1.0}, ['x0', 'x1'])
    """
    x = domain[index]
    if hasattr(x, "items") and hasattr(x, "index"):  # a row of a data frame
        return {str(key): value for key, value in x.items()}
    if isinstance(x, np.ndarray | list | tuple) and np.ndim(x) == 1:
        return {f"x{k}": value for k, value in enumerate(x)}
    return {"x": x}


def label(domain: Domain, index: int) -> str:
    """A candidate in one short line.

    >>> from alexp.problem import FiniteSet, Interval
    >>> label(Interval(resolution=3), 2), label(FiniteSet(["water", "ethanol"]), 1)
    ('1', 'ethanol')
    """
    values = candidate_columns(domain, index)
    parts = [f"{value:.4g}" if isinstance(value, float | np.floating) else str(value) for value in values.values()]
    text = ", ".join(parts)
    return text if len(text) <= 60 else text[:57] + "..."
