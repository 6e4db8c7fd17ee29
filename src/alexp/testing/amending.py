"""Checks of amending: an amended run equals a run that was told the right rewards at once, with the same actions.

The run to compare with is driven step by step, and its draws are replaced by the actions of the first run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from alexp.algorithms.base import Algorithm, Decision
from alexp.algorithms.log import Trial
from alexp.common.arrays import IntArray
from alexp.decision.plays import Proposal
from alexp.problem.candidates import Round
from alexp.testing.settings import PLAIN, Kind, Setting, make, reward

ERROR = 2.5  # of a wrong reward
EARLY, SEEN, LATE = 1, 4, 9  # trials with amended rewards: told, observed, told late


class Step(NamedTuple):
    """One step of a run: the trial, and for an ask the number of trials and the available candidates."""

    what: Literal["ask", "tell", "observe", "abandon"]
    trial: int
    n: int = 1
    available: IntArray | None = None


def steps_of(setting: Setting) -> list[Step]:
    """A run with plates, late rewards in other orders, pending, observed and abandoned trials."""

    def told(*trials: int) -> Iterator[Step]:
        return (Step("tell", trial) for trial in trials)

    def asked(trial: int, n: int = 1) -> Step:
        return Step("ask", trial, n, setting.available(trial))

    return [
        asked(0), asked(1, 2), *told(2, 1), asked(3), Step("observe", SEEN), *told(0), asked(5, 3), Step("abandon", 6),
        *told(7, 3), asked(8), asked(9), *told(9), asked(10), *told(8, 10), asked(11, 2), *told(12),
    ]  # fmt: skip


def follow(
    subject: Algorithm, run: list[Step], wrong: Mapping[int, float], played: list[Trial] | None = None
) -> list[Trial]:
    """Do these steps, with the actions of another run if it is given, and return the trials.

    Rewards are the suite's, plus the errors in `wrong`; a trial with NaN there is abandoned instead.
    """
    if played is not None:
        force(subject, played)
    for step in run:
        number, off = step.trial, wrong.get(step.trial, 0.0)
        if step.what == "ask":
            subject.ask(step.n, available=step.available)
        elif step.what == "abandon" or (np.isnan(off) and step.what == "tell"):
            subject.abandon(number)
        elif step.what == "tell":
            subject.tell(number, reward(subject.trial(number).index) + off)
        elif np.isnan(off):
            subject._log.append(number, None, False, float("nan"))
            subject._log.abandon(number)
            subject._log.commit()
        else:
            subject.observe(number, reward(number) + off)
    release(subject)
    return [subject.trial(number) for number in range(subject.n_asked)]


def force(subject: Algorithm, played: Sequence[Trial]) -> None:
    """Make every ask return the action of the trial of the same number, until `release`."""

    def forced(round_: Round) -> Decision:
        trial = played[subject.n_asked]
        decision = type(subject)._decision(subject, round_)
        position = int(np.flatnonzero(round_.choices.indices == trial.index)[0])
        proposal = Proposal(position, trial.model, trial.explored, trial.propensity)
        object.__setattr__(decision.play, "draw", lambda rng: proposal)
        return decision

    subject._decision = forced  # type: ignore[method-assign]


def release(subject: Algorithm) -> None:
    """Undo `force`."""
    vars(subject).pop("_decision", None)
    subject._known.clear()  # decisions whose draw was replaced


def text_of(algorithm: Algorithm, part: str | None = None) -> str:
    """The whole algorithm, or its state, as JSON text, exact to the last bit."""
    data = algorithm.to_dict(problem=False)
    return json.dumps(data if part is None else data[part])


def _same_future(one: Algorithm, two: Algorithm) -> None:
    for late in one.pending():
        for algorithm in (one, two):
            algorithm.tell(late.id, 0.25)
    assert one.ask(2) == two.ask(2), "the next trials differ"
    assert text_of(one, "state") == text_of(two, "state"), "what the next trials leave behind differs"


def check_amend_at_once(kind: Kind, setting: Setting = PLAIN) -> None:
    """A wrong reward that is amended at once leaves no trace."""
    right, wrong = make(kind, setting), make(kind, setting)
    for step in range(6):
        a, b = right.ask(available=setting.available(step)), wrong.ask(available=setting.available(step))
        assert a == b
        right.tell(a, reward(a.index))
        wrong.tell(b, reward(b.index) + ERROR * (step in (0, 4)))
        if step in (0, 4):
            wrong.amend(b, reward(b.index))
        assert text_of(right) == text_of(wrong)
    _same_future(right, wrong)


def check_amend_later(kind: Kind, setting: Setting = PLAIN) -> None:
    """A reward amended much later and in two steps, with the run saved in between, leaves no trace."""
    run = steps_of(setting)
    for number in (EARLY, SEEN, LATE):
        amended, right = make(kind, setting), make(kind, setting)
        played = follow(amended, run, {number: ERROR})
        amended = kind.from_dict(json.loads(json.dumps(amended.to_dict(problem=False))), setting.models, setting.domain)
        value = reward(amended.trial(number).index)
        amended.amend(number, value - ERROR)
        amended.amend(number, value)
        follow(right, run, {}, played)
        assert text_of(right) == text_of(amended), f"amending trial {number} left a trace"
        _same_future(right, amended)


def check_amend_and_back(kind: Kind, setting: Setting = PLAIN) -> None:
    """An amendment that is undone, and a reward retracted and given again, change nothing."""
    run = steps_of(setting)
    amended = make(kind, setting)
    follow(amended, run, {})
    before = text_of(amended)
    for number in (EARLY, SEEN):
        value = amended.log.reward[number]
        amended.amend(number, value + ERROR)
        assert text_of(amended) != before
        amended.amend(number, value)
        assert text_of(amended) == before
        amended.retract(number)
        amended = kind.from_dict(json.loads(json.dumps(amended.to_dict(problem=False))), setting.models, setting.domain)
        assert np.isnan(amended.log.reward[number])
        amended.amend(number, value)
        assert text_of(amended) == before


def check_retract(kind: Kind, setting: Setting = PLAIN) -> None:
    """After `retract`, the state is that of a run in which the reward was never told."""
    run = steps_of(setting)
    for number in (EARLY, SEEN, LATE):
        amended, without = make(kind, setting), make(kind, setting)
        played = follow(amended, run, {number: ERROR})
        amended.retract(number)
        follow(without, run, {number: float("nan")}, played)
        assert text_of(without, "state") == text_of(amended, "state"), f"retracting trial {number} left a trace"
        assert amended.n_told == without.n_told
        _same_future(without, amended)
