"""Checks of mending: a corrected run is the run that was told right at once, with the actions as they were played.

What it is held against is a second run driven step by step, whose draws are replaced by what the first one played.
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

ERROR = 2.5  # what a wrong reward is off by
EARLY, SEEN, LATE = 1, 4, 9  # trials whose rewards are mended: told, observed elsewhere, told late


class Deed(NamedTuple):
    """One step of a run; the trial it is about, and for an ask how many come with it and what they choose from."""

    what: Literal["ask", "tell", "observe", "abandon"]
    trial: int
    n: int = 1
    available: IntArray | None = None


def deeds(setting: Setting) -> list[Deed]:
    """A run with plates, late rewards in other orders, pending, observed and abandoned trials."""

    def told(*trials: int) -> Iterator[Deed]:
        return (Deed("tell", trial) for trial in trials)

    def asked(trial: int, n: int = 1) -> Deed:
        return Deed("ask", trial, n, setting.available(trial))

    return [
        asked(0), asked(1, 2), *told(2, 1), asked(3), Deed("observe", SEEN), *told(0), asked(5, 3), Deed("abandon", 6),
        *told(7, 3), asked(8), asked(9), *told(9), asked(10), *told(8, 10), asked(11, 2), *told(12),
    ]  # fmt: skip


def follow(
    subject: Algorithm, run: list[Deed], wrong: Mapping[int, float], played: list[Trial] | None = None
) -> list[Trial]:
    """Do these deeds, with the actions of another run if it is given, and return the trials.

    Rewards are the suite's, plus what `wrong` says; a trial with NaN there gets none, and is given up instead.
    """
    if played is not None:
        force(subject, played)
    for deed in run:
        number, off = deed.trial, wrong.get(deed.trial, 0.0)
        if deed.what == "ask":
            subject.ask(deed.n, available=deed.available)
        elif deed.what == "abandon" or (np.isnan(off) and deed.what == "tell"):
            subject.abandon(number)
        elif deed.what == "tell":
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
    """Let every ask end in the action of the trial of the same number, whatever is drawn, until `release`."""

    def forced(round_: Round) -> Decision:
        trial = played[subject.n_asked]
        decision = type(subject)._decision(subject, round_)
        position = int(np.flatnonzero(round_.choices.indices == trial.index)[0])
        proposal = Proposal(position, trial.model, trial.explored, trial.propensity)
        object.__setattr__(decision.play, "draw", lambda rng: proposal)
        return decision

    subject._decision = forced  # type: ignore[method-assign]


def release(subject: Algorithm) -> None:
    """Let chance decide again."""
    vars(subject).pop("_decision", None)
    subject._known.clear()  # decisions whose draw was replaced


def text_of(algorithm: Algorithm, part: str | None = None) -> str:
    """The whole algorithm, or its state, as text in which every bit shows."""
    data = algorithm.to_dict(problem=False)
    return json.dumps(data if part is None else data[part])


def _same_future(one: Algorithm, two: Algorithm) -> None:
    for late in one.pending():
        for algorithm in (one, two):
            algorithm.tell(late.id, 0.25)
    assert one.ask(2) == two.ask(2), "the next trials differ"
    assert text_of(one, "state") == text_of(two, "state"), "what the next trials leave behind differs"


def check_amend_at_once(kind: Kind, setting: Setting = PLAIN) -> None:
    """A wrong reward that is corrected at once leaves nothing behind."""
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
    """A reward corrected long after, with a state saved in between, and one corrected in two steps."""
    run = deeds(setting)
    for number in (EARLY, SEEN, LATE):
        mended, right = make(kind, setting), make(kind, setting)
        played = follow(mended, run, {number: ERROR})
        mended = kind.from_dict(json.loads(json.dumps(mended.to_dict(problem=False))), setting.models, setting.domain)
        value = reward(mended.trial(number).index)
        mended.amend(number, value - ERROR)
        mended.amend(number, value)
        follow(right, run, {}, played)
        assert text_of(right) == text_of(mended), f"amending trial {number} left a trace"
        _same_future(right, mended)


def check_amend_and_back(kind: Kind, setting: Setting = PLAIN) -> None:
    """A correction that is taken back, and a reward withdrawn and given again, change nothing."""
    run = deeds(setting)
    mended = make(kind, setting)
    follow(mended, run, {})
    before = text_of(mended)
    for number in (EARLY, SEEN):
        value = mended.log.reward[number]
        mended.amend(number, value + ERROR)
        assert text_of(mended) != before
        mended.amend(number, value)
        assert text_of(mended) == before
        mended.retract(number)
        mended = kind.from_dict(json.loads(json.dumps(mended.to_dict(problem=False))), setting.models, setting.domain)
        assert np.isnan(mended.log.reward[number])
        mended.amend(number, value)
        assert text_of(mended) == before


def check_retract(kind: Kind, setting: Setting = PLAIN) -> None:
    """A reward that was withdrawn is as good as never told."""
    run = deeds(setting)
    for number in (EARLY, SEEN, LATE):
        mended, without = make(kind, setting), make(kind, setting)
        played = follow(mended, run, {number: ERROR})
        mended.retract(number)
        follow(without, run, {number: float("nan")}, played)
        assert text_of(without, "state") == text_of(mended, "state"), f"retracting trial {number} left a trace"
        assert mended.n_told == without.n_told
        _same_future(without, mended)
