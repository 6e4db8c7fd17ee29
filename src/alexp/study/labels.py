"""Candidates as short text and as columns of a table, and trials by their state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from math import isnan

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.log import Trial, TrialLog
from alexp.common.codec import Packable, jsonable
from alexp.problem.domains import Domain
from alexp.study.view import TrialState

TrialLine = dict[str, Packable]  # a trial as JSON data, with `reward`, `state` and `label`


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


def trial_columns(algorithm: Algorithm, trial: int) -> dict[str, object]:
    """What a trial proposed as named values: its candidate, or `x` and `context` of a contextual one, as text."""
    offers = algorithm.log.offers
    if offers is None:
        return candidate_columns(algorithm.domain, algorithm.log.index[trial])
    return {"x": _text(offers.actions[trial]), "context": _text(offers.contexts[trial])}


def column_names(algorithm: Algorithm) -> list[str]:
    """Names of `trial_columns`, also before the first trial."""
    return ["x", "context"] if algorithm.is_contextual else list(candidate_columns(algorithm.domain, 0))


def _text(value: object) -> str:
    """Anything as one cell of a table: texts as they are, nothing for None, the rest as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(jsonable(value))


def label(domain: Domain, index: int) -> str:
    """A candidate in one short line.

    >>> from alexp.problem import FiniteSet, Interval
    >>> label(Interval(resolution=3), 2), label(FiniteSet(["water", "ethanol"]), 1)
    ('1', 'ethanol')
    """
    values = candidate_columns(domain, index)
    parts = [f"{value:.4g}" if isinstance(value, float | np.floating) else str(value) for value in values.values()]
    return _short(", ".join(parts))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def labeller(algorithm: Algorithm) -> Callable[[int], str]:
    """What trials proposed, by their ids, each in one short line; every candidate of a table is described once."""
    offers, index = algorithm.log.offers, algorithm.log.index
    if offers is not None:
        return lambda trial: _short(_text(offers.actions[trial]))
    named = cache(lambda candidate: label(algorithm.domain, candidate))
    return lambda trial: named(index[trial])


def trial_label(trial: Trial, domain: Domain) -> str:
    """What a trial proposed, in one short line."""
    return _short(_text(trial.x)) if trial.n_candidates is not None else label(domain, trial.index)


def trial_lines(algorithm: Algorithm, trials: Iterable[int]) -> list[TrialLine]:
    """Trials with what became of them, as JSON data."""
    ids, what, log = list(trials), labeller(algorithm), algorithm.log
    return [
        algorithm.trial(trial).to_dict()
        | {"reward": None if isnan(log.reward[trial]) else log.reward[trial], "state": state, "label": what(trial)}
        for trial, state in zip(ids, trial_states(log, ids), strict=True)
    ]


def trial_states(log: TrialLog, trials: Iterable[int]) -> list[TrialState]:
    """State of some trials."""
    elsewhere: set[int] = set()
    if log.offers is not None:  # observations of contextual rounds may have a propensity
        steps, which = log.happened.as_arrays()
        elsewhere.update(which[steps == "observe"].tolist())

    def state(trial: int) -> TrialState:
        if trial in log.retracted:
            return "retracted"
        if trial in log.abandoned:
            return "abandoned"
        if isnan(log.propensity[trial]) or trial in elsewhere:
            return "observed"
        return "pending" if isnan(log.reward[trial]) else "told"

    return [state(trial) for trial in trials]
