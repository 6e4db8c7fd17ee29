"""Amending: a run is repeated with the amended rewards, and with the actions as they were played."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.algorithms.assumptions import quietly
from alexp.algorithms.log import Entry, Failure, LogEvent, unpack_restriction
from alexp.decision.plays import Proposal
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.problem.offers import Offer

if TYPE_CHECKING:
    from alexp.algorithms.base import Algorithm


class Rerun:
    """A second run with the same problem, settings and seed, which is told the rewards as they should be.

    Everything happens in it in the order of the first run: every ask is decided on, committed to and noted, and then
    ends in the action that was played; every reward comes in its place. Where asking leaves nothing behind, only the
    rewards are repeated. With a larger `problem` there are further arms, whose columns are behind those there were and
    zero in rows of the log, or further candidates, from which no ask chooses that came before them, or further models.
    """

    def __init__(
        self, run: Algorithm, changes: Mapping[int, Entry], problem: tuple[ModelClass, Domain] | None = None
    ) -> None:
        self._log, self._changes = run._log, dict(changes)
        kind, seed = type(run), run._streams.entropy
        with quietly():  # what there is to say about the problem was said when the first run began
            make = partial(kind, *(problem or (run.models, run.domain)))
            newer = {name: getattr(run, name) for name in run.settings_absent}  # also where they do not matter so far
            self._again = again = make(random_state=seed, **(newer | run.arguments()))
        if problem is None:
            again._candidates, again._fingerprint = run._candidates, run._fingerprint  # large, and the same
        again._log.arrivals = list(run._log.arrivals)
        if problem is not None and not run.is_contextual and again.domain.n_candidates > run.domain.n_candidates:
            again._log.arrivals.append((len(run._log), run.domain.n_candidates))
        again._monitor = run._monitor
        again._lock = run._lock
        self._is_whole = True
        self._catch_up()

    def fits(self, run: Algorithm, changes: Mapping[int, Entry]) -> bool:
        """Whether it is about these changes, and no other correction came in between."""
        return run._log is self._log and self._changes == changes

    def outcome(self, run: Algorithm) -> dict[str, Any]:
        """All attributes of the amended run, with what was added to the first one meanwhile."""
        if run._log is not self._log:
            raise RuntimeError("another correction was made in the meantime; prepare this one again")
        if not self._is_whole:
            raise RuntimeError("the amendment was interrupted; prepare it again")
        self._catch_up()
        return vars(self._again)

    def _catch_up(self) -> None:
        done = self._again._log
        self._is_whole = False
        with quietly():  # these warnings were shown when the rewards came
            for event in self._log.events.since(len(done.events), len(done)):
                self._repeat(event)
        self._is_whole = True

    def _repeat(self, event: LogEvent) -> None:
        again, log = self._again, self._log
        entry = self._changes[event.trial] if event.trial in self._changes else log.entry(event.trial)
        if event.step == "ask":
            self._repeat_ask(event)
        elif isinstance(entry, Failure):
            again.take_failure(again.check_fail(event.trial, entry.reason))
        elif event.step == "abandon" and event.trial not in log.failed and event.trial not in self._changes:
            again.abandon(event.trial)
        elif entry is None:
            self._leave_out(event)
        elif event.step == "observe":
            index, offer = log.index[event.trial], self._offer(event.trial)
            again.take_observation(index, entry, offer, log.propensity[event.trial], self._head(event.trial))
        else:
            again.take_in(again.check_tell(event.trial, entry))
        if event.trial in log.remarks and event.step == "tell" and not isinstance(entry, Failure):
            again._log.remark(event.trial, log.remarks[event.trial])

    def _repeat_ask(self, event: LogEvent) -> None:
        again, log, trial = self._again, self._log, event.trial
        index, explored, propensity = log.index[trial], bool(log.explored[trial]), log.propensity[trial]
        model = None if log.model[trial] < 0 else log.model[trial]
        offer, packed = self._offer(trial), event.restriction
        if not again.asks_matter():
            again._log.append(index, model, explored, propensity, offer=offer)
            again._log.commit()
            return
        if offer is not None:
            round_ = again._open_offer(offer)
        else:
            now = again.domain.n_candidates
            n = again._log.n_candidates_at(trial, now)
            everything = None if n == now else np.arange(n)
            round_ = again._open(everything if packed is None else unpack_restriction(packed, n))
            if round_.position_of(index) is None:  # free when it was played: another reward had been withdrawn
                round_ = again._listed.round(np.append(round_.indices, index), round_.pending)
        position = round_.position_of(index)
        assert position is not None
        again._propose(round_, packed, Proposal(position, model, explored, propensity), offer)
        again._end()

    def _offer(self, trial: int) -> Offer | None:
        """What a trial of a contextual run was chosen from; where asks leave nothing behind, its own row will do."""
        offers = self._log.offers
        if offers is None:
            return None
        return offers.offer(trial, self._log.index[trial], self._again.models.n_columns)

    def _head(self, trial: int) -> int | None:
        """The trial whose experiment an observation measured again, if it did."""
        head = self._log.head_of(trial) if self._log.replicates else trial
        return None if head == trial else head

    def _leave_out(self, event: LogEvent) -> None:
        """A reward or a failure that was withdrawn keeps its place, so that a reward can come in it."""
        again = self._again
        if event.step != "observe":
            again._given_up(event.trial)
            again._log.record(event.trial, nan)
            again._notes.pop(event.trial, None)
        else:
            index, chance = self._log.index[event.trial], self._log.propensity[event.trial]
            again._log.observe(index, nan, chance, self._offer(event.trial), self._head(event.trial))
        again._log.commit()
