"""A replica: one process's copy of the algorithm, brought up to date by applying the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import nan
from time import perf_counter
from typing import NotRequired, TypedDict

import numpy as np

from alexp.algorithms.assumptions import quietly
from alexp.algorithms.base import Algorithm, IfTold, Told
from alexp.algorithms.log import Trial
from alexp.algorithms.rerun import Rerun
from alexp.common.arrays import AnyArray, IntArray
from alexp.common.codec import State
from alexp.problem.domains import Arms, Available
from alexp.problem.offers import Offer
from alexp.study.database.events import (
    MENDS,
    REPEATS,
    Detail,
    Event,
    belief,
    belief_is_due,
    compress,
    describe_restriction,
    detail_of,
)
from alexp.study.errors import ReplayError
from alexp.study.rounds.repeating import repeat_ask
from alexp.study.rounds.storing import offer_detail, offer_from, recordable, stores_all

REPLAY_SECONDS = 0.3  # a snapshot is due when replaying what came after the last one would take longer
REPLAY_EVENTS = 10_000  # or when so many events came after it, however fast they are
_MEMORY = 0.9  # how much of the earlier pace counts beside that of the newest event
_LEAST_PACE = 1e-4  # seconds per event before any was applied


class Snapshot(TypedDict):
    """Everything that opening needs: trials, and the state of the algorithm."""

    log: dict[str, AnyArray]
    state: State
    arms: NotRequired[list[str]]  # all there are, added ones last
    abandoned: NotRequired[AnyArray]  # where 0.1.0 stored them


class Replica:
    """The algorithm after the first `n_events` events of the log, the last of which has the checksum `chain`.

    Methods that act return the events to append; they change the replica at once, so it must be thrown away if
    the events do not reach the log.
    """

    def __init__(self, algorithm: Algorithm, chain: bytes = b"") -> None:
        self.algorithm, self.chain = algorithm, chain
        self.taken = Counter[str]()  # decisions that were not made again here, by the device they were made on
        self.n_events = self.snapshot_at = 0
        self._seconds = 0.0  # spent on events since the newest snapshot
        self._pace = _LEAST_PACE  # seconds per event, of late
        self._attempted = 0  # events at the last attempt to save a snapshot
        self._snapshot_seconds = 0.0  # what the last snapshot of this process cost
        self._prepared: Rerun | None = None

    @property
    def abandoned(self) -> set[int]:
        """Trials given up so far."""
        return self.algorithm.log.abandoned

    # -- following the log -------------------------------------------------------------------------------------

    def follow(self, events: Iterable[Event]) -> None:
        """Apply events of other processes, in order."""
        for mends, group in groupby(events, lambda event: event.kind in MENDS):
            if mends:
                self._follow_mends(list(group))
                continue
            for event in group:
                start = perf_counter()
                with quietly():  # who told these rewards has been warned
                    self._apply(event)
                (self._next_mend if event.kind in REPEATS else self._next)(event, start)

    def _follow_mends(self, events: list[Event]) -> None:
        """Corrections that come together are made together: each would repeat the whole run."""
        algorithm, start = self.algorithm, perf_counter()
        for event in events:
            algorithm.log.check_told(event.trial)
        algorithm.mend({event.trial: event.reward for event in events})
        for event in events:
            self._next_mend(event, start)
            start = perf_counter()

    def seconds_for(self, n_events: int) -> float:
        """About how long applying so many further events will take, or repeating so many."""
        return n_events * self._pace

    def _apply(self, event: Event) -> None:
        algorithm = self.algorithm
        if event.kind == "ask":
            if (device := repeat_ask(event, algorithm, bool(self.taken))) is not None:
                self.taken[device] += 1
        elif event.kind == "tell":
            assert event.reward is not None
            algorithm.take_in(algorithm.check_tell(event.trial, event.reward))
        elif event.kind == "observe":
            assert event.candidate is not None
            assert event.reward is not None
            made = None
            if algorithm.is_contextual:
                made = offer_from(detail_of(event), event.candidate, algorithm.models.n_columns)
            chance = nan if event.propensity is None else event.propensity
            algorithm.take_observation(event.candidate, event.reward, made, chance)
        elif event.kind == "abandon":
            algorithm.abandon(event.trial)
        elif event.kind == "arm":
            algorithm.add_arm(algorithm.check_arm(detail_of(event)["arm"]))
        else:
            raise ReplayError(f"event {event.seq} is of unknown kind {event.kind!r}; install a newer version")

    # -- acting ------------------------------------------------------------------------------------------------

    def ask(self, wanted: int, available: IntArray | None, distinct: bool, held: Sequence[int] = ()) -> list[Event]:
        """Propose `wanted` trials among the `available` candidates; none twice, and none `held`, if `distinct`."""
        events: list[Event] = []
        taken = list(held)
        for _ in range(wanted):
            allowed, choosable = available, self.algorithm.choosable(available) if distinct and taken else None
            if choosable is not None and np.isin(taken, choosable).any():
                # all candidates are pending, or the algorithm does not look
                everything = np.arange(self.algorithm.domain.n_candidates) if available is None else available
                allowed = np.setdiff1d(everything, taken)
            event = self._ask_once(allowed)
            events.append(event)
            assert event.candidate is not None
            taken.append(event.candidate)
        return events

    def ask_offers(self, offers: Sequence[Offer]) -> list[Event]:
        """Propose one trial of each of some contextual rounds; different ones of a round that comes several times."""
        events: list[Event] = []
        taken: dict[int, list[int]] = {}
        for made in offers:
            own = taken.setdefault(id(made), [])
            event = self._ask_offer(made.least(own))
            events.append(event)
            assert event.candidate is not None
            own.append(event.candidate)
        return events

    def _ask_once(self, allowed: IntArray | None) -> Event:
        start = perf_counter()
        detail = describe_restriction(allowed, self.algorithm.domain.n_candidates)
        return self._asked(self.algorithm.ask(available=allowed), detail, start)

    def _ask_offer(self, made: Offer) -> Event:
        start = perf_counter()
        made = self.algorithm.narrowed(made)  # to a point, on a ball: the log stores that
        (trial,) = self.algorithm.ask_offers([made])
        return self._asked(trial, offer_detail(made, trial.index, stores_all(self.algorithm)), start)

    def _asked(self, trial: Trial, detail: Detail, start: float) -> Event:
        if (device := self.algorithm.decides_on) is not None:
            detail["decided"] = {"on": device, "told": self.algorithm.n_told}
        if belief_is_due(trial.id) and (now := belief(self.algorithm)) is not None:
            detail["belief"] = now
        event = Event(
            self.n_events,
            "ask",
            trial.id,
            candidate=trial.index,
            model=trial.model,
            explored=trial.explored,
            propensity=trial.propensity,
            detail=compress(detail) if detail else None,
        )
        return self._next(event, start)

    def tell(self, trial_id: int, reward: float) -> Event:
        """Take in a reward that `check_tell` has let pass."""
        start = perf_counter()
        self.algorithm.take_in(Told(trial_id, reward, "tell"))
        return self._next(Event(self.n_events, "tell", trial_id, reward=reward), start)

    def observe(self, candidate: int, reward: float, made: Offer | None = None, chance: float = nan) -> Event:
        """Take in a reward measured elsewhere; of a contextual round with what it offered, and the propensity."""
        start, algorithm = perf_counter(), self.algorithm
        trial = algorithm.take_observation(candidate, reward, made, chance)
        event = Event(
            self.n_events,
            "observe",
            trial.id,
            candidate=candidate,
            explored=False,
            propensity=None if chance != chance else chance,
            reward=reward,
            detail=None if made is None else compress(offer_detail(made, candidate, stores_all(algorithm))),
        )
        return self._next(event, start)

    def abandon(self, trial_id: int) -> Event:
        """Give up a trial that `check_pending` has let pass."""
        start = perf_counter()
        self.algorithm.abandon(trial_id)
        return self._next(Event(self.n_events, "abandon", trial_id), start)

    def add_arm(self, name: str) -> Event:
        """Add an arm that `check_arm` has let pass."""
        start, number = perf_counter(), self.algorithm.add_arm(name)
        return self._next_mend(Event(self.n_events, "arm", -1, candidate=number, detail=compress({"arm": name})), start)

    def mend(self, changes: Mapping[int, float | None]) -> list[Event]:
        """Correct rewards by checked ids, and withdraw those with None; at once if that was prepared."""
        if not changes:
            return []
        algorithm, start, events = self.algorithm, perf_counter(), []
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared.fits(algorithm, changes):
            algorithm.become(prepared)
        else:
            algorithm.mend(changes)
        for trial, reward in changes.items():
            event = Event(self.n_events, "retract" if reward is None else "amend", trial, reward=reward)
            events.append(self._next_mend(event, start))
            start = perf_counter()
        return events

    def prepare_mend(self, changes: Mapping[int, float | None]) -> None:
        """Compute in advance what `mend` will need; what happens in between is taken up then."""
        self._prepared = self.algorithm.mending(changes) if changes else None

    def _next_mend(self, event: Event, start: float) -> Event:
        """Count an event that repeats the run; what it cost says nothing about others."""
        self._seconds += perf_counter() - start
        self.n_events += 1
        return event

    def _next(self, event: Event, start: float) -> Event:
        """Count an event that has been applied, and what it cost."""
        seconds = perf_counter() - start
        self.n_events += 1
        self._seconds += seconds
        self._pace += (1.0 - _MEMORY) * (seconds - self._pace)
        return event

    # -- checking before acting --------------------------------------------------------------------------------

    def check_tell(self, trial: Trial | int | str, reward: float, if_told: IfTold = "raise") -> Told:
        """What `tell` would do, or the reason why not; changes nothing."""
        return _without_sign_of_zero(self.algorithm.check_tell(trial, reward, if_told))

    def check_amend(self, trial: Trial | int | str, reward: float) -> Told:
        """What `amend` would do, or the reason why not; changes nothing."""
        return _without_sign_of_zero(self.algorithm.check_amend(trial, reward))

    def check_pending(self, trial: Trial | int | str) -> int:
        """Id of a trial that can be abandoned, or the reason why not; changes nothing."""
        return self.algorithm.log.check_pending(trial)

    def check_ask(self, wanted: int, available: Available, distinct: bool) -> tuple[int, IntArray | None]:
        """Number of trials and allowed candidates as `ask` takes them, or the reason why not; changes nothing."""
        wanted, allowed = self.algorithm.check_ask(wanted, available)
        room = self.algorithm.domain.n_candidates if allowed is None else allowed.size
        if wanted > room and distinct:
            raise ValueError(f"n must be at most the {room} candidates to choose from when distinct, got {wanted}")
        return wanted, allowed

    def still_offers(self, offers: Sequence[Offer]) -> bool:
        """Whether rounds that were made before have the arms there are now."""
        arms = self.algorithm.domain.n_candidates
        return not arms or all(len(made) == arms for made in offers)

    def check_offers(self, offers: Sequence[Offer], distinct: bool) -> list[Offer]:
        """Contextual rounds as `ask_offers` takes them, or the reason why not; changes nothing."""
        left = self.algorithm.fresh(offers)
        room, is_one = left[0].choosable.size, all(made is left[0] for made in left)
        if distinct and is_one and len(left) > room and not left[0].is_whole:
            raise ValueError(f"n must be at most the {room} candidates to choose from when distinct, got {len(left)}")
        stored = {id(made): recordable(self.algorithm, made) for made in left}
        return [stored[id(made)] for made in left]

    # -- snapshots ---------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Everything that `resume` needs."""
        out: Snapshot = {"log": self.algorithm.log.state(), "state": self.algorithm.state()}
        if isinstance(domain := self.algorithm.domain, Arms):
            out["arms"] = list(domain.names)
        return out

    def resume(self, n_events: int, snapshot: Snapshot) -> None:
        """Continue from a snapshot taken after `n_events` events; only a fresh replica may."""
        for name in snapshot.get("arms", [])[self.algorithm.domain.n_candidates :]:
            self.algorithm.add_arm(self.algorithm.check_arm(name))
        given_up = {"abandoned": snapshot["abandoned"]} if "abandoned" in snapshot else {}
        self.algorithm.resume(snapshot["log"] | given_up, snapshot["state"])
        self.n_events = self.snapshot_at = n_events

    def noted(self, snapshot_at: int) -> None:
        """Take notice of a snapshot that another process has written."""
        if snapshot_at > self.snapshot_at:
            behind = max(self.n_events - self.snapshot_at, 1)
            self._seconds *= max(self.n_events - snapshot_at, 0) / behind
            self.snapshot_at = snapshot_at

    @property
    def is_ahead(self) -> bool:
        """Whether there are events that the newest snapshot lacks."""
        return self.n_events > self.snapshot_at

    @property
    def snapshot_is_due(self) -> bool:
        """Whether opening the study would take noticeably long; snapshots cost at most a quarter of the work."""
        if self.n_events - max(self.snapshot_at, self._attempted) >= REPLAY_EVENTS:
            return True
        return self._seconds > max(REPLAY_SECONDS, 4.0 * self._snapshot_seconds)

    def saved(self, seconds: float, kept: bool) -> None:
        """Take notice of the replica's own snapshot, whether the storage kept it, and what it cost.

        After a failure the next attempt waits as long as after a success.
        """
        self._attempted, self._seconds, self._snapshot_seconds = self.n_events, 0.0, seconds
        if kept:
            self.snapshot_at = self.n_events


def _without_sign_of_zero(told: Told) -> Told:
    return told._replace(reward=told.reward + 0.0)  # databases do not keep it
