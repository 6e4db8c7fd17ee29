"""Candidates as short text and as columns of a table, and trials by their state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from math import isnan

import numpy as np

from alexp.algorithms.protocol.trials import TrialLog
from alexp.problem.domains import Domain
from alexp.study.view import TrialState


def candidate_columns(domain: Domain, index: int) -> dict[str, object]:
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


def labeller(domain: Domain) -> Callable[[int], str]:
    """`label` for many trials: each candidate is described once."""
    return cache(lambda index: label(domain, index))


def trial_states(log: TrialLog, trials: Iterable[int]) -> list[TrialState]:
    """State of some trials."""

    def state(trial: int) -> TrialState:
        if trial in log.retracted:
            return "retracted"
        if trial in log.abandoned:
            return "abandoned"
        if isnan(log.propensity[trial]):
            return "observed"
        return "pending" if isnan(log.reward[trial]) else "told"

    return [state(trial) for trial in trials]
