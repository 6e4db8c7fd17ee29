"""Checks of contextual runs that are saved and loaded, and of external observations."""

from __future__ import annotations

import json

import numpy as np

from alexp.testing.contextual.problems import ContextualProblem, reward
from alexp.testing.settings import Kind


def check_save_and_load(kind: Kind, problem: ContextualProblem) -> None:
    """A run that is saved and loaded at every step, with pending trials, continues unchanged."""
    straight, broken = problem.make(kind), problem.make(kind)
    late: list[tuple[int, int]] = []
    for step in range(14):
        round_ = problem.round(step)
        a, b = straight.ask(**round_), broken.ask(**round_)
        assert a == b
        broken = problem.again(broken)
        assert [t.id for t in broken.pending()] == [t.id for t in straight.pending()]
        if step % 3 == 1:
            late.append((step, a.id))
        else:
            for algorithm in (straight, broken):
                algorithm.tell(a.id, reward(step, a.index))
        if step in (6, 11):
            when, trial = late.pop(0)
            for algorithm in (straight, broken):
                algorithm.tell(trial, reward(when, algorithm.trial(trial).index))
        if step == 8:
            _, trial = late.pop()
            for algorithm in (straight, broken):
                algorithm.abandon(trial)
        broken = problem.again(broken)
    assert json.dumps(straight.to_dict()) == json.dumps(broken.to_dict())
    round_ = problem.round(77)
    assert np.array_equal(straight.policy(**round_), broken.policy(**round_))
    assert straight.ask(2, **round_) == broken.ask(2, **round_)


def check_observed(kind: Kind, problem: ContextualProblem) -> None:
    """Logged data become trials, with their propensity if it is known, and are saved with the others."""
    algorithm = problem.make(kind, log_features="all")
    for step in range(6):
        round_ = problem.round(step)
        propensity = 0.25 if step % 2 else None
        trial = algorithm.observe(1, reward(step, 1), propensity=propensity, **round_)
        assert trial.index == 1
        assert trial.model is None
        assert trial.propensity == propensity or (propensity is None and np.isnan(trial.propensity))
        algorithm.ask(**round_)
        algorithm = problem.again(algorithm)
    assert algorithm.n_told == 6
    algorithm.amend(2, 0.125)
    frame = algorithm.log_frame()
    assert frame["reward"][2] == 0.125
    assert frame["propensity"][2] == 0.25
    assert all(
        rows.shape == (n, problem.models.n_columns) for rows, n in zip(frame["features"], frame["n"], strict=True)
    )
    algorithm.best(**problem.round(0))
