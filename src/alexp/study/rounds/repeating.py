"""Asks of the log, repeated: the same decision as far as it can be made again, and the order of what happened."""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose

from alexp.algorithms.base import Algorithm
from alexp.algorithms.log import Course, Trial, pack_restriction
from alexp.common.arrays import IntArray
from alexp.problem.offers import Offer
from alexp.study.database.events import Event, detail_of, restriction
from alexp.study.errors import ReplayError
from alexp.study.rounds.storing import offer_from


def repeat_ask(event: Event, algorithm: Algorithm, moved: bool = False) -> str | None:
    """Ask again and hold the trial against the log.

    Where a contextual round has stored the chosen row alone, nothing can be decided again, and nothing needs to be:
    asking leaves nothing behind but the trial, which is taken from the log. So are decisions that were computed on
    another device, or on one where this process has none: its name is returned, "the CPU" for none. Where asks leave
    something behind, one that was computed elsewhere may have left it a little otherwise: a run that has `moved`, with
    such asks before, is taken from the log from there on.
    """
    assert event.propensity is not None
    detail, taken = detail_of(event), None
    on = detail["decided"]["on"] if "decided" in detail else None
    allowed = None if algorithm.is_contextual else restriction(detail, algorithm.domain.n_candidates)
    if not algorithm.is_contextual and (on != algorithm.decides_on or (moved and algorithm.asks_matter())):
        taken = on or "the CPU"
        _take(event, algorithm, None, allowed)
    elif not algorithm.is_contextual:
        _same(event, algorithm.ask(available=allowed))
    else:
        assert event.candidate is not None
        made = offer_from(detail, event.candidate, algorithm.models.n_columns)
        if "rows" in detail["offer"]:
            _same(event, *algorithm.ask_offers([made]))
        else:
            _take(event, algorithm, made)
    algorithm.log.propensity[event.trial] = event.propensity
    return taken


def _take(event: Event, algorithm: Algorithm, made: Offer | None, allowed: IntArray | None = None) -> None:
    """Take a trial from the log without deciding again."""
    assert event.propensity is not None
    assert event.candidate is not None
    if event.trial != algorithm.n_asked:
        raise ReplayError(f"event {event.seq}: trial {event.trial} came after {algorithm.n_asked} trials")
    algorithm.take_trial(made, event.candidate, event.model, bool(event.explored), event.propensity, allowed)


def course_of(events: Iterable[Event], algorithm: Algorithm) -> Course:
    """The order of what happened, from a log without corrections, for a snapshot that lacks it."""
    course, n = Course(), algorithm.domain.n_candidates
    for event in events:
        if event.kind == "ask":
            allowed = restriction(detail_of(event), n) if algorithm.asks_matter() else None
            course.asked(None if allowed is None else pack_restriction(allowed, n))
        elif event.kind == "tell":
            course.told(event.trial)
        elif event.kind == "observe":
            course.observed()
        elif event.kind == "abandon":
            course.abandoned(event.trial)
    course.commit()
    return course


def _same(event: Event, trial: Trial) -> None:
    """Hold a replayed trial against the log: the same decision, and the same propensity up to a solver's tolerance."""
    assert event.propensity is not None
    logged = (event.trial, event.candidate, event.model, event.explored)
    replayed = (trial.id, trial.index, trial.model, trial.explored)
    if logged == replayed and isclose(event.propensity, trial.propensity, rel_tol=1e-3):
        return
    raise ReplayError(
        f"event {event.seq}: the log says that trial {event.trial} was candidate {event.candidate} of model "
        f"{event.model} with propensity {event.propensity:.6g}, but replaying gives trial {trial.id}: candidate "
        f"{trial.index} of model {trial.model} with propensity {trial.propensity:.6g}. The study was written by "
        "another version of the library or of its numerics; use the one that wrote it"
    )
