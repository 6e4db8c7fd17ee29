"""Asks of the log, repeated: the same decision as far as it can be made again, and the order of what happened."""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose

from alexp.algorithms.protocol.base import Algorithm
from alexp.algorithms.protocol.course import Course, pack_restriction
from alexp.algorithms.protocol.trials import Trial
from alexp.study.database.events import Event, detail_of, restriction
from alexp.study.errors import ReplayError
from alexp.study.rounds.storing import offer_from


def repeat_ask(event: Event, algorithm: Algorithm) -> None:
    """Ask again and hold the trial against the log.

    Where a contextual round has stored the chosen row alone, nothing can be decided again, and nothing needs to be:
    asking leaves nothing behind but the trial, which is taken from the log.
    """
    assert event.propensity is not None
    detail = detail_of(event)
    if not algorithm.is_contextual:
        _same(event, algorithm.ask(available=restriction(detail, algorithm.domain.n_candidates)))
    else:
        assert event.candidate is not None
        made = offer_from(detail, event.candidate, algorithm.models.n_columns)
        if "rows" in detail["offer"]:
            _same(event, *algorithm.ask_offers([made]))
        else:
            if event.trial != algorithm.n_asked:
                raise ReplayError(f"event {event.seq}: trial {event.trial} came after {algorithm.n_asked} trials")
            algorithm.take_trial(made, event.candidate, event.model, bool(event.explored), event.propensity)
    algorithm.log.propensity[event.trial] = event.propensity


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
