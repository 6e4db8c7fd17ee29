"""Replica: the copy of the algorithm in one process, kept up to date by applying the log.

Also: replaying asks, and contextual rounds as the log stores them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isclose, nan
from time import perf_counter
from typing import Any, NotRequired, TypedDict

import numpy as np

from alexp.algorithms.assumptions import quietly
from alexp.algorithms.base import Algorithm, CheckedFail, CheckedTell, IfTold
from alexp.algorithms.log import Entry, Failure, Trial, pack_restriction
from alexp.algorithms.naming import Name
from alexp.algorithms.offer_log import check_packed, pack_rows, plain, unpack_rows, unplain
from alexp.algorithms.rerun import Rerun
from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.codec import Packable, State, pack, unpack
from alexp.problem.domains import Arms, Available, not_withheld
from alexp.problem.objectives import Measurements, Value, first_of
from alexp.problem.offers import Offer
from alexp.problem.plates import PlateLimits
from alexp.study.errors import ReplayError
from alexp.study.events import (
    AMENDS,
    GROWS,
    RERUNS,
    Detail,
    Event,
    Kind,
    StoredOffer,
    belief,
    belief_is_due,
    compress,
    describe_restriction,
    detail_of,
    noted,
    restriction,
    reward_of,
    rewarded,
)
from alexp.table.encoding import Arrivals
from alexp.table.table import Table

MOST_TEXT = 2**20  # bytes that context and ids of a round, or an action, may take as JSON
MOST_FEATURES = 2**24  # bytes of features that one ask may store
REPLAY_SECONDS = 0.3  # a snapshot is due when replaying what came after the last one would take longer
REPLAY_EVENTS = 10_000  # or when so many events came after it, however fast they are
_SMOOTHING = 0.9  # weight of the earlier pace in the moving average
_LEAST_PACE = 1e-4  # seconds per event before any was applied


class Snapshot(TypedDict):
    """The trial log, the state of the algorithm, all arms of a study of arms, and candidates that were added."""

    log: dict[str, AnyArray]
    state: State
    arms: NotRequired[list[str]]  # all there are, added ones last
    added: NotRequired[list[Arrivals]]  # candidates, in the order in which they came


class Replica:
    """The algorithm after the first `n_events` events of the log, the last of which has the checksum `chain`.

    Methods that act return the events to append. They change the replica at once, so it must be discarded if the
    events do not reach the log.
    """

    def __init__(self, algorithm: Algorithm, chain: bytes = b"") -> None:
        self.algorithm, self.chain = algorithm, chain
        self.added: list[Arrivals] = []  # candidates that were added, in their order
        self.taken = Counter[str]()  # decisions taken from the log, by the device they were made on
        self.n_events = self.snapshot_at = 0
        self._seconds = 0.0  # spent on events since the newest snapshot
        self._pace = _LEAST_PACE  # seconds per event, a moving average
        self._attempted = 0  # events at the last attempt to save a snapshot
        self._snapshot_seconds = 0.0  # for the last snapshot of this process
        self._prepared: Rerun | None = None
        self._corrections: dict[int, Entry] = {}  # gathered, by trial, and their notes
        self._notes: dict[int, str] = {}
        self.n_noted = 0  # asks between corrections, which were not decided again

    # -- following the log -------------------------------------------------------------------------------------

    def follow(self, events: Iterable[Event], last_correction: int = -1) -> None:
        """Apply events of other processes, in order.

        Every correction repeats the whole run, so they are gathered until the last, event `last_correction`. What comes
        in between is only written into the algorithm's log: asks there are not decided again.
        """
        for event in events:
            start, fails = perf_counter(), event.kind == "fail" and event.trial not in self.algorithm.log.pending
            corrects = event.kind in AMENDS or (fails and not self.is_whole)
            with quietly():  # the process that told these rewards was warned
                if event.kind in GROWS:
                    self._correct()
                if corrects:
                    self._gather(event)
                elif self.is_whole:
                    self._apply(event)
                else:
                    self._note(event)
                if event.seq >= last_correction:
                    self._correct()
            (self._count_rerun if corrects or event.kind in RERUNS else self._next)(event, start)

    @property
    def is_whole(self) -> bool:
        """Whether no corrections wait for the last one; the algorithm is not to be used otherwise."""
        return not self._corrections

    def _gather(self, event: Event) -> None:
        log, note = self.algorithm.log, detail_of(event).get("note", "")
        log.check_told(event.trial, or_abandoned=event.kind == "amend" or event.trial in self._corrections)
        self._corrections[event.trial] = Failure(note) if event.kind == "fail" else reward_of(event)
        if note and event.kind != "fail":
            self._notes[event.trial] = note
        elif event.kind == "fail":
            self._notes.pop(event.trial, None)

    def _correct(self) -> None:
        """Repeat the run with all corrections gathered."""
        if self.is_whole:
            return
        self.algorithm.amend_all(self._corrections)
        for trial, note in self._notes.items():
            self.algorithm.log.remark(trial, note)
        self._corrections, self._notes = {}, {}

    def _note(self, event: Event) -> None:
        """Write an event into the log of the algorithm, which repeats the run later."""
        algorithm, log, detail = self.algorithm, self.algorithm.log, detail_of(event)
        note, index, propensity = detail.get("note", ""), event.candidate, event.propensity
        offer = None
        if algorithm.is_contextual and index is not None:
            offer = offer_from(detail, index, algorithm.models.n_columns)
        if event.kind == "ask":
            assert index is not None
            assert propensity is not None
            self._check_next(event)
            if not algorithm.is_contextual and (on := _decided_on(detail)) != algorithm.decides_on:
                self.taken[on or "the CPU"] += 1
            packed = None
            if offer is None and algorithm.asks_matter():
                n = algorithm.domain.n_candidates
                packed = None if (allowed := restriction(detail, n)) is None else pack_restriction(allowed, n)
            log.append(index, event.model, bool(event.explored), propensity, packed, offer)
            self.n_noted += 1
        elif event.kind == "tell":
            reward = reward_of(event)
            assert reward is not None
            log.record(algorithm.check_tell(event.trial, reward).trial, reward)
            if note:
                log.remark(event.trial, note)
        elif event.kind == "observe":
            reward = reward_of(event)
            assert reward is not None
            assert index is not None
            head = None if algorithm.is_contextual else detail.get("replicate")
            log.observe(index, reward, nan if propensity is None else propensity, offer, head)
        elif event.kind == "abandon":
            log.abandon(log.check_pending(event.trial))
        elif event.kind == "fail":
            log.fail(event.trial, note)
        else:
            raise ReplayError(f"event {event.seq} is of unknown kind {event.kind!r}; install a newer version")
        log.commit()

    def _check_next(self, event: Event) -> None:
        if event.trial != self.algorithm.n_asked:
            raise ReplayError(f"event {event.seq}: trial {event.trial} came after {self.algorithm.n_asked} trials")

    def seconds_for(self, n_events: int) -> float:
        """Estimated seconds to apply `n_events` events."""
        return n_events * self._pace

    def is_far_behind(self, snapshot_at: int) -> bool:
        """Whether to start again from a newer snapshot, rather than apply the events before it."""
        return self.seconds_for(snapshot_at - self.n_events) > REPLAY_SECONDS

    def _apply(self, event: Event) -> None:
        algorithm = self.algorithm
        if event.kind == "ask":
            if (device := replay_ask(event, algorithm, bool(self.taken))) is not None:
                self.taken[device] += 1
        elif event.kind == "tell":
            reward, note = reward_of(event), detail_of(event).get("note", "")
            assert reward is not None
            algorithm.take_in(algorithm.check_tell(event.trial, reward, note=note))
        elif event.kind == "observe":
            assert event.candidate is not None
            reward = reward_of(event)
            assert reward is not None
            offer = None
            if algorithm.is_contextual:
                offer = offer_from(detail_of(event), event.candidate, algorithm.models.n_columns)
            propensity = nan if event.propensity is None else event.propensity
            head = None if algorithm.is_contextual else detail_of(event).get("replicate")
            algorithm.take_observation(event.candidate, reward, offer, propensity, head)
        elif event.kind == "abandon":
            algorithm.abandon(event.trial)
        elif event.kind == "fail":
            algorithm.take_failure(algorithm.check_fail(event.trial, detail_of(event).get("note", ""), "amend"))
        elif event.kind == "arm":
            algorithm.add_arm(algorithm.check_arm(detail_of(event)["arm"]))
        elif event.kind in ("add", "learn"):
            self._take_candidates(detail_of(event)["added"])
        else:
            raise ReplayError(f"event {event.seq} is of unknown kind {event.kind!r}; install a newer version")

    # -- acting ------------------------------------------------------------------------------------------------

    def ask(
        self,
        wanted: int,
        available: IntArray | None,
        distinct: bool,
        held: Sequence[int] = (),
        limits: PlateLimits | None = None,
    ) -> list[Event]:
        """Propose `wanted` trials among the `available` candidates; none twice, and none `held`, if `distinct`."""
        events: list[Event] = []
        taken = list(held)
        for k in range(wanted):
            if limits is not None:
                free = self.algorithm.choosable(available)
                left = limits.choices(free, taken[len(held) :], wanted - k)
                available = left if left.size < free.size else available
            allowed, choosable = available, self.algorithm.choosable(available) if distinct and taken else None
            if choosable is not None and np.isin(taken, choosable).any():
                # all candidates are pending, or the algorithm ignores pending trials
                named = not_withheld(self.algorithm.domain) if available is None else available
                everything = np.arange(self.algorithm.domain.n_candidates) if named is None else named
                allowed = np.setdiff1d(everything, taken)
            event = self._ask_once(allowed)
            events.append(event)
            assert event.candidate is not None
            taken.append(event.candidate)
        return events

    def ask_offers(self, offers: Sequence[Offer]) -> list[Event]:
        """Propose one trial per contextual round; distinct candidates for a round that occurs several times."""
        events: list[Event] = []
        taken: dict[int, list[int]] = {}
        for offer in offers:
            own = taken.setdefault(id(offer), [])
            event = self._ask_offer(offer.least(own))
            events.append(event)
            assert event.candidate is not None
            own.append(event.candidate)
        return events

    def _ask_once(self, allowed: IntArray | None) -> Event:
        start = perf_counter()
        detail = describe_restriction(allowed, self.algorithm.domain.n_candidates)
        return self._asked(self.algorithm.ask(available=allowed), detail, start)

    def _ask_offer(self, offer: Offer) -> Event:
        start = perf_counter()
        offer = self.algorithm.narrowed(offer)  # to a point, on a ball: the log stores that
        (trial,) = self.algorithm.ask_offers([offer])
        return self._asked(trial, offer_detail(offer, trial.index, stores_all(self.algorithm)), start)

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

    def tell(self, trial_id: int, reward: Value, more: Sequence[Value] = (), note: str = "") -> list[Event]:
        """Learn a reward that `check_tell` has accepted, and further measurements of the same experiment."""
        start = perf_counter()
        self.algorithm.take_in(CheckedTell(trial_id, reward, "tell", note=note))
        told = Event(self.n_events, "tell", trial_id, reward=first_of(reward), detail=noted(note, reward))
        event = self._next(told, start)
        return [event, *self.replicates(trial_id, more)]

    def replicates(self, trial_id: int, more: Sequence[Value]) -> list[Event]:
        """Learn further measurements of the experiment of a trial."""
        index = self.algorithm.log.index[trial_id]
        return [self.observe(index, reward, replicate_of=trial_id) for reward in more]

    def observe(
        self,
        candidate: int,
        reward: Value,
        offer: Offer | None = None,
        propensity: float = nan,
        replicate_of: int | None = None,
    ) -> Event:
        """Learn a reward that was measured without an ask; in a contextual round with its offer and propensity.

        For a further measurement of a trial, too.
        """
        start, algorithm = perf_counter(), self.algorithm
        trial = algorithm.take_observation(candidate, reward, offer, propensity, replicate_of)
        detail: Detail = {} if offer is None else offer_detail(offer, candidate, stores_all(algorithm))
        detail |= rewarded(reward)
        if replicate_of is not None:
            detail["replicate"] = replicate_of
        event = Event(
            self.n_events,
            "observe",
            trial.id,
            candidate=candidate,
            explored=False,
            propensity=None if propensity != propensity else propensity,
            reward=first_of(reward),
            detail=compress(detail) if detail else None,
        )
        return self._next(event, start)

    def abandon(self, trial_id: int) -> Event:
        """Abandon a trial that `check_pending` has accepted."""
        start = perf_counter()
        self.algorithm.abandon(trial_id)
        return self._next(Event(self.n_events, "abandon", trial_id), start)

    def fail(self, trial_id: int, reason: str) -> Event:
        """Take in the failure of a pending trial, which `check_fail` has accepted."""
        start = perf_counter()
        self.algorithm.take_failure(CheckedFail(trial_id, reason, "fail"))
        return self._next(Event(self.n_events, "fail", trial_id, detail=noted(reason)), start)

    def add_arm(self, name: str) -> Event:
        """Add an arm that `check_arm` has accepted."""
        start, number = perf_counter(), self.algorithm.add_arm(name)
        return self._count_rerun(
            Event(self.n_events, "arm", -1, candidate=number, detail=compress({"arm": name})), start
        )

    def add_candidates(self, arrivals: Arrivals) -> Event:
        """Add candidates that `check_candidates` has accepted, or learn what `check_campaigns` has."""
        start, detail = perf_counter(), compress({"added": arrivals})
        kind: Kind = "learn" if "learned" in arrivals else "add"
        first = self._take_candidates(detail_of(Event(0, kind, -1, detail=detail))["added"])  # as other processes do
        return self._count_rerun(Event(self.n_events, kind, -1, candidate=first, detail=detail), start)

    def _take_candidates(self, arrivals: Arrivals) -> int | None:
        """Add candidates as the log has them; the number of the first, None where campaigns were learned from."""
        self.added.append(arrivals)
        return next(iter(self.algorithm.take_candidates(arrivals)), None)

    def amend(self, changes: Mapping[int, Entry], notes: Mapping[int, str] | None = None) -> list[Event]:
        """Amend rewards by checked trial ids, retract those with None; uses what `prepare_amend` has computed.

        A `Failure` takes the place of a reward; `notes` are kept by trial.
        """
        if not changes:
            return []
        algorithm, start, events = self.algorithm, perf_counter(), []
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared.fits(algorithm, changes):
            algorithm.adopt(prepared)
        else:
            algorithm.amend_all(changes)
        for trial, entry in changes.items():
            note = (notes or {}).get(trial, "")
            if note:
                self.algorithm.log.remark(trial, note)
            events.append(self._count_rerun(_amending(self.n_events, trial, entry, note), start))
            start = perf_counter()
        return events

    def prepare_amend(self, changes: Mapping[int, Entry]) -> None:
        """Compute in advance what `amend` needs; it applies the events that came in between."""
        self._prepared = self.algorithm.amended(changes) if changes else None

    def _count_rerun(self, event: Event, start: float) -> Event:
        """Count an event that repeats the run; its time does not enter the pace."""
        self._seconds += perf_counter() - start
        self.n_events += 1
        return event

    def _next(self, event: Event, start: float) -> Event:
        """Count an applied event and its time."""
        seconds = perf_counter() - start
        self.n_events += 1
        self._seconds += seconds
        self._pace += (1.0 - _SMOOTHING) * (seconds - self._pace)
        return event

    # -- checking before acting --------------------------------------------------------------------------------

    def check_tell(
        self,
        trial: Trial | int | str | None,
        reward: Measurements,
        if_told: IfTold = "raise",
        candidate: Name | None = None,
        note: str = "",
    ) -> CheckedTell:
        """What `tell` would do; raises if it is invalid. Changes nothing."""
        return _without_sign_of_zero(self.algorithm.check_tell(trial, reward, if_told, candidate, note))

    def check_amend(self, trial: Trial | int | str, reward: Measurements) -> CheckedTell:
        """What `amend` would do; raises if it is invalid. Changes nothing."""
        return _without_sign_of_zero(self.algorithm.check_amend(trial, reward))

    def check_candidates(self, table: Table) -> Arrivals:
        """What `add_candidates` would add; raises if it does not fit, or is too large to be stored. Changes nothing."""
        arrivals = self.algorithm.check_candidates(table)
        if (size := sum(block.nbytes for block in arrivals["features"].values())) > MOST_FEATURES:
            raise ValueError(
                f"the features of {table.n_candidates} new candidates take {_megabytes(size)}, and a study stores at "
                f"most {_megabytes(MOST_FEATURES)} at once; add them in several calls"
            )
        return arrivals

    def check_campaigns(self, campaigns: Mapping[str, Any], reward: str) -> Arrivals:
        """What `learn_from` would learn; raises if it does not fit. Changes nothing."""
        return self.algorithm.check_campaigns(campaigns, reward)

    def check_pending(self, trial: Trial | int | str) -> int:
        """Id of a pending trial; raises if it is not pending. Changes nothing."""
        return self.algorithm.log.check_pending(trial)

    def check_ask(
        self,
        n: int | None,
        available: Available,
        distinct: bool,
        where: str | None = None,
        limits: PlateLimits | None = None,
    ) -> tuple[int, IntArray | None]:
        """Number of trials and allowed candidates for `ask`; raises if they are not valid. Changes nothing."""
        wanted, allowed = self.algorithm.check_ask(n, available, where, limits)
        room = self.algorithm.domain.n_candidates if allowed is None else allowed.size
        if wanted > room and distinct:
            raise ValueError(f"n must be at most the {room} candidates to choose from when distinct, got {wanted}")
        return wanted, allowed

    def still_offers(self, offers: Sequence[Offer]) -> bool:
        """Whether these rounds have all present arms: one may have been added since they were built."""
        arms = self.algorithm.domain.n_candidates
        return not arms or all(len(offer) == arms for offer in offers)

    def check_offers(self, offers: Sequence[Offer], distinct: bool) -> list[Offer]:
        """Contextual rounds for `ask_offers`; raises if they are not valid. Changes nothing."""
        left = self.algorithm.fresh(offers)
        room, is_one = left[0].choosable.size, all(offer is left[0] for offer in left)
        if distinct and is_one and len(left) > room and not left[0].is_whole:
            raise ValueError(f"n must be at most the {room} candidates to choose from when distinct, got {len(left)}")
        stored = {id(offer): recordable(self.algorithm, offer) for offer in left}
        return [stored[id(offer)] for offer in left]

    # -- snapshots ---------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The state that `resume` takes."""
        out: Snapshot = {"log": self.algorithm.log.state(), "state": self.algorithm.state()}
        if isinstance(domain := self.algorithm.domain, Arms):
            out["arms"] = list(domain.names)
        if self.added:
            out["added"] = self.added
        return out

    def resume(self, n_events: int, snapshot: Snapshot) -> None:
        """Continue from a snapshot taken after `n_events` events; for a new replica only."""
        for name in snapshot.get("arms", [])[self.algorithm.domain.n_candidates :]:
            self.algorithm.add_arm(self.algorithm.check_arm(name))
        for arrivals in snapshot.get("added", []):
            self._take_candidates(arrivals)
        self.algorithm.resume(snapshot["log"], snapshot["state"])
        self.n_events = self.snapshot_at = n_events

    def note_snapshot(self, snapshot_at: int) -> None:
        """Record a snapshot that another process has written."""
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
        """Whether opening the study would take noticeably long. Snapshots take at most a quarter of the time."""
        if self.n_events - max(self.snapshot_at, self._attempted) >= REPLAY_EVENTS:
            return True
        return self._seconds > max(REPLAY_SECONDS, 4.0 * self._snapshot_seconds)

    def note_attempt(self, seconds: float, kept: bool) -> None:
        """Record an attempt to save a snapshot: how long it took, and whether the storage kept it.

        After a failure the next attempt waits as long as after a success.
        """
        self._attempted, self._seconds, self._snapshot_seconds = self.n_events, 0.0, seconds
        if kept:
            self.snapshot_at = self.n_events


def _amending(seq: int, trial: int, entry: Entry, note: str) -> Event:
    if isinstance(entry, Failure):
        return Event(seq, "fail", trial, detail=noted(entry.reason))
    if entry is None:
        return Event(seq, "retract", trial, detail=noted(note))
    return Event(seq, "amend", trial, reward=first_of(entry), detail=noted(note, entry))


def _without_sign_of_zero(told: CheckedTell) -> CheckedTell:
    return told._replace(reward=as_stored(told.reward), more=tuple(map(as_stored, told.more)))


def as_stored(reward: Value) -> Value:
    """A reward as databases keep it: without the sign of zero, which those of several objectives do not have either."""
    return reward if isinstance(reward, dict) else reward + 0.0


# -- replaying asks --------------------------------------------------------------------------------------------


def replay_ask(event: Event, algorithm: Algorithm, moved: bool = False) -> str | None:
    """Ask again and compare the trial with the log, or take the trial from the log.

    Contextual rounds that stored only the chosen row cannot be decided again: the trial is taken from the log. So are
    decisions that were computed on another device than the one of this process; the name of that device is returned,
    "the CPU" for none, and None for decisions that were repeated. Where asks change the state, a decision of another
    device may have changed it slightly differently: once a run has `moved` (has had such an ask), all later asks are
    taken from the log.
    """
    assert event.propensity is not None
    detail, taken = detail_of(event), None
    on = _decided_on(detail)
    allowed = None if algorithm.is_contextual else restriction(detail, algorithm.domain.n_candidates)
    if not algorithm.is_contextual and (on != algorithm.decides_on or (moved and algorithm.asks_matter())):
        taken = on or "the CPU"
        _append_logged(event, algorithm, None, allowed)
    elif not algorithm.is_contextual:
        _check_same(event, algorithm.ask(available=allowed))
    else:
        assert event.candidate is not None
        offer = offer_from(detail, event.candidate, algorithm.models.n_columns)
        if "rows" in detail["offer"]:
            _check_same(event, *algorithm.ask_offers([offer]))
        else:
            _append_logged(event, algorithm, offer)
    algorithm.log.propensity[event.trial] = event.propensity
    return taken


def _decided_on(detail: Detail) -> str | None:
    return detail["decided"]["on"] if "decided" in detail else None


def _append_logged(event: Event, algorithm: Algorithm, offer: Offer | None, allowed: IntArray | None = None) -> None:
    """Take a trial from the log without deciding again."""
    assert event.propensity is not None
    assert event.candidate is not None
    if event.trial != algorithm.n_asked:
        raise ReplayError(f"event {event.seq}: trial {event.trial} came after {algorithm.n_asked} trials")
    algorithm.take_trial(offer, event.candidate, event.model, bool(event.explored), event.propensity, allowed)


def _check_same(event: Event, trial: Trial) -> None:
    """Raise unless a replayed trial is that of the log; propensities may differ by the tolerance of a solver."""
    assert event.propensity is not None
    logged = (event.trial, event.candidate, event.model, event.explored)
    replayed = (trial.id, trial.index, trial.model, trial.explored)
    if logged == replayed and isclose(event.propensity, trial.propensity, rel_tol=1e-3):
        return
    raise ReplayError(
        f"event {event.seq}: the log says that trial {event.trial} was candidate {event.candidate} of model "
        f"{event.model} with propensity {event.propensity:.6g}, but replaying gives trial {trial.id}: candidate "
        f"{trial.index} of model {trial.model} with propensity {trial.propensity:.6g}. The study was written by "
        "another version of alexp or of a numerical library; use the one that wrote it"
    )


# -- contextual rounds in the log ------------------------------------------------------------------------------
# The process that asks keeps the stored form in memory, too: all processes have the same data, and later changes of the
# caller's objects have no effect.


def stores_all(algorithm: Algorithm) -> bool:
    """Whether asks store the features of all candidates: by `log_features`, or because a replay needs them."""
    return algorithm.log_features == "all" or algorithm.asks_matter()


def recordable(algorithm: Algorithm, offer: Offer) -> Offer:
    """An offer as it comes back from the log; raises if it is too large to be stored."""
    rows, everything = offer.rows, stores_all(algorithm)
    size = rows.nbytes if everything else rows[:1].nbytes
    if size > MOST_FEATURES:
        n, p = rows.shape
        if everything and algorithm.log_features == "all":
            why = 'log_features="all" stores all of them: use "chosen", which stores one row, or pass fewer candidates'
        elif everything:
            why = f"a replay of {type(algorithm).__name__} needs all of them: pass fewer candidates"
        else:
            why = "one row is too large"
        raise ValueError(
            f"the features of this round, {n} candidates x {p} columns, take {_megabytes(size)}, and a study stores at "
            f"most {_megabytes(MOST_FEATURES)} per ask; {why}"
        )
    if algorithm.log_features == "none":  # contexts and ids are not stored
        return replace(offer, context=None, ids=None, actions=_Recorded(offer.actions))
    context, ids = _recorded("context and ids", (offer.context, offer.ids))
    return replace(offer, context=context, ids=ids, actions=_Recorded(offer.actions))


class _Recorded(Sequence[Action]):
    """Actions as they come back from the log, converted one by one when they are played."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = actions

    def __len__(self) -> int:
        return len(self._actions)

    def __getitem__(self, index: int | slice) -> Action:
        return _recorded("the candidate", self._actions[index])


def _recorded(name: str, value: object) -> Packable:
    """A value as it comes back from the log."""
    try:
        text = json.dumps(pack(plain(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} cannot be stored as JSON: {error}") from error
    if len(text) > MOST_TEXT:
        raise ValueError(
            f"{name} of this round: {_megabytes(len(text))} as JSON, and a study stores at most "
            f"{_megabytes(MOST_TEXT)}; pass only what the models need, or create the study with "
            'log_features="none", which stores neither contexts nor ids'
        )
    return unplain(unpack(json.loads(text)))


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.3g} MB"


def offer_detail(offer: Offer, index: int, everything: bool) -> Detail:
    """What an event stores of the round in which candidate `index` was played."""
    stored: StoredOffer = {"n": len(offer), "action": plain(offer.actions[index])}
    if everything:
        stored["rows"] = _bytes(offer.rows)
    else:
        stored["row"] = _bytes(offer.rows[index : index + 1])
    if offer.context is not None:
        stored["context"] = plain(offer.context)
    if offer.ids is not None:
        stored["ids"] = [plain(one) for one in offer.ids]
    return describe_restriction(offer.allowed, len(offer)) | {"offer": stored}


def _bytes(rows: FloatArray) -> AnyArray:
    return np.frombuffer(pack_rows(rows), dtype=np.uint8)


def offer_from(detail: Detail, index: int, n_columns: int) -> Offer:
    """The round of an event. Rows that were not stored are zero, actions that were not played are None."""
    stored = detail.get("offer")
    if stored is None:
        raise ValueError("the event of a contextual round has no features")
    n, everything = int(stored["n"]), "rows" in stored
    if not 0 <= index < n:
        raise ValueError(f"candidate {index} is none of the {n} of its round")
    packed = np.asarray(stored["rows"] if everything else stored["row"], dtype=np.uint8).tobytes()
    check_packed("the features", packed, n if everything else 1, n_columns)
    if everything:
        rows = unpack_rows(packed, n, n_columns)
    else:
        rows = np.zeros((n, n_columns))
        rows[index] = unpack_rows(packed, 1, n_columns)[0]
    actions: list[Action] = [None] * n
    actions[index] = unplain(stored["action"])
    ids = stored.get("ids")
    keys = None if ids is None else tuple(unplain(one) for one in ids)
    return Offer(rows, actions, keys, unplain(stored.get("context")), restriction(detail, n))
