"""Checks of contextual runs that are amended, interrupted, or keep no features."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.testing.amending import force, release, text_of
from alexp.testing.contextual.problems import ContextualProblem, reward
from alexp.testing.settings import Kind

_WRONG = 2  # the trial whose reward is told wrong, or not at all


def check_amend(kind: Kind, problem: ContextualProblem) -> None:
    """An amended run equals a run that was told the right rewards at once, with the same actions; so does a retracted.

    Rewards come late and in other orders, trials are pending and abandoned, and the run is saved and loaded.
    """
    for off in (2.5, None):
        amended, right = problem.make(kind), problem.make(kind)
        _play(amended, problem, 2.5)
        amended = problem.again(amended)
        played = [amended.trial(k) for k in range(amended.n_asked)]
        if off is None:
            amended.retract(_WRONG)
        else:
            amended.amend(_WRONG, reward(_WRONG, amended.trial(_WRONG).index))
        force(right, played)
        _play(right, problem, 0.0 if off is not None else None)
        release(right)
        assert text_of(right, "state") == text_of(amended, "state"), "the correction left a trace"
        assert right.n_told == amended.n_told
        round_ = problem.round(40)
        assert right.ask(2, **round_) == amended.ask(2, **round_)


def _play(algorithm: Algorithm, problem: ContextualProblem, off: float | None) -> None:
    for step in range(9):
        trial = algorithm.ask(available=[0, 1] if step == 4 else None, **problem.round(step))
        if step == _WRONG and off is None:
            algorithm.abandon(trial.id)
        elif step not in (1, 3, 5):
            algorithm.tell(trial.id, reward(step, trial.index) + (off or 0.0) * (step == _WRONG))
        if step == 6:
            algorithm.tell(3, reward(3, algorithm.trial(3).index))
            algorithm.abandon(5)


def check_repair(kind: Kind, problem: ContextualProblem) -> None:
    """An interrupted state is computed again from the log, with its offers."""
    whole, torn = problem.make(kind), problem.make(kind)
    for algorithm in (whole, torn):
        _play(algorithm, problem, 0.0)
    torn._torn = True
    round_ = problem.round(30)
    assert whole.ask(**round_) == torn.ask(**round_)
    assert text_of(whole) == text_of(torn)
    torn._changing = True
    assert text_of(whole) == text_of(torn)


def check_none_kept(kind: Kind, problem: ContextualProblem) -> None:
    """With log_features="none" decisions are the same, rows are dropped with the reward, and amendments are refused."""
    plain, bare = problem.make(kind), problem.make(kind, log_features="none")
    for step in range(8):
        round_ = problem.round(step)
        a, b = plain.ask(**round_), bare.ask(**round_)
        assert a == b
        bare = problem.again(bare)
        if step % 3:
            plain.tell(a.id, reward(step, a.index))
            bare.tell(b.id, reward(step, b.index))
    assert json.dumps(plain.state()) == json.dumps(bare.state())
    assert len(json.dumps(bare.to_dict())) < len(json.dumps(plain.to_dict()))
    frame = bare.log_frame()
    assert frame["context"][frame["reward"].notna()].isna().all()
    for action in (lambda: bare.amend(1, 0.5), lambda: bare.retract(1)):
        _raises(action)
    assert np.array_equal(plain.policy(**round_), bare.policy(**round_))


def _raises(action: Callable[[], None]) -> None:
    message = None
    try:
        action()
    except ValueError as error:
        message = str(error)
    assert message is not None, "a correction needs what was not kept"
    assert "log_features" in message
