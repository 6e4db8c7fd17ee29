"""Follower: keeps the replica of one process up to date with the log, acts under the lock, saves snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Generic, TypeVar

from alexp.algorithms.base import Algorithm
from alexp.algorithms.warming import warm_up
from alexp.common.memory import is_lack_of_memory
from alexp.common.progress import announce
from alexp.study import logbook, records
from alexp.study.errors import (
    HistoryReplacedError,
    ReplayError,
    StorageError,
    StudyNotFoundError,
    UnknownOutcomeError,
    damaged,
)
from alexp.study.events import AMENDS, LIBRARY, RERUNS, Event, compress, new_key
from alexp.study.forking import Forked, watch
from alexp.study.leases import LeaseHandler
from alexp.study.logbook import (
    Head,
    check_key,
    check_length,
    describe,
    find_lost_call,
    intact_snapshots,
    unknown_outcome,
    write_snapshot,
)
from alexp.study.records import StudyRow, row_checksum
from alexp.study.replay import Replica
from alexp.study.storage import Storage

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_Checked = TypeVar("_Checked")

_PATIENCE = 0.05  # seconds of catching up that are allowed within a transaction
_ATTEMPTS = 3  # attempts to catch up without the lock, before catching up under it


class _FarBehindError(Exception):
    """Catching up within a transaction would take too long."""


@dataclass
class _Call(Generic[_Checked]):
    """A call that writes: its check and decision, its key, and the events of its last attempt."""

    check: Callable[[Replica], _Checked]
    decide: Callable[[Replica, _Checked], list[Event]]
    key: str
    is_new: bool
    leases: LeaseHandler[_Checked] | None = None
    wrote: list[Event] = field(default_factory=list)


class Follower(Forked):
    """A replica of one study in this process, for any number of threads.

    Slow work is done without the lock of the database: compiling the algorithm, replaying a long log, packing a
    snapshot. Under it, only the last few events of other processes and the call itself are computed.

    Parameters
    ----------
    storage, row
        The database, and the row of the study.
    make
        Builds the algorithm in its state before the first event.
    """

    def __init__(self, storage: Storage, row: StudyRow, make: Callable[[], Algorithm]) -> None:
        self.mutex = threading.RLock()
        self._storage, self._study, self._name, self._make = storage, row.id, row.name, make
        self._beginning = row_checksum(row)
        self._epoch = storage.epoch  # of the file that the replica was read from
        self._seen = (0, self._beginning)  # number of events known to be stored, and the checksum of the last one
        self._replica: Replica | None = None
        self.is_used = False  # whether a replica was needed so far
        self._is_warm = False
        self._spoiled: set[int] = set()  # damaged snapshots, by their numbers of events
        self._is_whole = True  # at the moment of a fork
        watch(self)

    # -- acting ------------------------------------------------------------------------------------------------

    def act(
        self,
        check: Callable[[Replica], _Checked],
        decide: Callable[[Replica, _Checked], list[Event]],
        prepare: Callable[[Replica, _Checked], None] | None = None,
        key: str | None = None,
        leases: LeaseHandler[_Checked] | None = None,
    ) -> tuple[Replica, list[Event]]:
        """One transaction: lock, catch up, check, decide, append. Returns the replica and the events of the call.

        `prepare` does slow work without the lock; `leases` changes leases in the same transaction. If a call with this
        `key` is stored already, its events are returned and nothing is done. If the connection is lost during the
        commit, the events are looked up in the log. After any failure, the replica is discarded and read again.
        """
        call = _Call(check, decide, check_key(key) or new_key(), key is None, leases)
        with self.mutex:
            if prepare is not None:
                replica = self.refresh()
                if not self._was_stored(call):
                    prepare(replica, check(replica))
            try:
                return self._try(call)
            except UnknownOutcomeError as error:
                return self._find_stored(call, error) if call.wrote else self._repeat(call)

    def _repeat(self, call: _Call[_Checked]) -> tuple[Replica, list[Event]]:
        """Repeat a lost call that wrote no events; it can be repeated safely, since it changes only leases."""
        try:
            return self._try(call)
        except StorageError as error:
            raise UnknownOutcomeError(
                f"unknown whether leases were changed; repeat the call when the storage is back: {error}"
            ) from error

    def _was_stored(self, call: _Call[_Checked]) -> bool:
        if call.is_new:
            return False
        with self._storage.reading() as connection:
            return bool(logbook.events_of_call(connection, self._study, call.key))

    def _find_stored(self, call: _Call[_Checked], error: UnknownOutcomeError) -> tuple[Replica, list[Event]]:
        events = find_lost_call(self._storage, self._study, call.key, call.wrote, error)
        try:
            return self.refresh(), events
        except StorageError as again:
            raise unknown_outcome(
                call.key, f"{describe(events)} was stored, but the connection was lost again: {again}"
            ) from again

    def _try(self, call: _Call[_Checked]) -> tuple[Replica, list[Event]]:
        for _ in range(_ATTEMPTS):
            with suppress(_FarBehindError):
                return self._attempt(call, _PATIENCE)
            self.refresh()
        return self._attempt(call, inf)

    def _attempt(self, call: _Call[_Checked], patience: float) -> tuple[Replica, list[Event]]:
        replica = self._opened()
        if not self._is_warm:
            warm_up(replica.algorithm)
            self._is_warm = True
        with self._storage.writing() as connection:
            self._verify_replaced_file(connection)
            head = logbook.head(connection, self._study, lock=True)
            self._catch_up(replica, connection, head, patience)
            self._note_caught_up(replica, head)
            if not call.is_new and (events := logbook.events_of_call(connection, self._study, call.key)):
                return replica, events
            checked = call.check(replica)  # raises without having changed anything
            if call.leases is not None:
                checked = call.leases.before(connection, replica, checked)
            self._replica = None  # until the commit; after a failure the log is read again
            call.wrote = events = call.decide(replica, checked)
            if events:
                replica.chain = logbook.append(connection, self._study, events, replica.chain, call.key)
            if call.leases is not None:
                call.leases.after(connection, events)
        self._replica, self._seen = replica, (replica.n_events, replica.chain)
        if replica.snapshot_is_due:
            self._save(replica)
        return replica, events

    # -- keeping up --------------------------------------------------------------------------------------------

    def known(self) -> Replica:
        """The replica in its present state, without reading new events."""
        with self.mutex:
            return self._opened()

    def refresh(self) -> Replica:
        """Apply the new events of others, or start from a snapshot if that is faster, and return the replica."""
        with self.mutex:
            replica = self._opened()
            while True:  # long logs in parts, each applied after its transaction
                with self._storage.reading() as connection:
                    self._verify_replaced_file(connection)
                    head = logbook.head(connection, self._study, lock=False)
                    if replica.is_far_behind(head.snapshot_at):
                        replica = self._replica = self._rebuild(connection)
                    events, last = self._next_events(replica, connection, head)
                self._advance(replica, events, last)
                announce("reading the log", replica.n_events, head.n_events)
                if replica.n_events >= head.n_events:
                    self._note_caught_up(replica, head)
                    return replica

    @contextmanager
    def moment(self) -> Iterator[tuple[Replica, Connection]]:
        """A read-only transaction in which the replica is up to date with the database."""
        with self.mutex:
            replica = self._opened()
            for patience in (_PATIENCE, inf):
                try:
                    with self._storage.reading() as connection:
                        self._verify_replaced_file(connection)
                        self._catch_up(replica, connection, logbook.head(connection, self._study, lock=False), patience)
                        yield replica, connection
                        return
                except _FarBehindError:
                    replica = self.refresh()

    def _opened(self) -> Replica:
        """The replica; rebuilt from the newest snapshot and the log if there is none."""
        if self._replica is None:
            self.is_used = True
            with self._storage.reading() as connection:
                self._verify_replaced_file(connection)
                self._replica = self._rebuild(connection)
            replica = self.refresh()
            if replica.snapshot_is_due:
                self._save(replica)
            return replica
        return self._replica

    def _note_caught_up(self, replica: Replica, head: Head) -> None:
        """Record that the replica has caught up with what is stored."""
        self._seen = (replica.n_events, replica.chain)
        if head.snapshot_at not in self._spoiled:
            replica.note_snapshot(head.snapshot_at)

    def _rebuild(self, connection: Connection) -> Replica:
        head = logbook.head(connection, self._study, lock=False)  # raises if the study has been deleted
        self._check_seen(connection, head)
        check_length(connection, self._study, head.n_events)
        for shot in intact_snapshots(connection, self._study, head.n_events, self._spoiled):
            replica = Replica(self._make(), shot.chain)
            try:
                replica.resume(shot.n_events, shot.state())
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                if is_lack_of_memory(error):
                    raise
                continue  # a snapshot of another version; the log suffices
            return replica
        return Replica(self._make(), self._beginning)

    def _verify_replaced_file(self, connection: Connection) -> None:
        """After the file was replaced, or changed by another program: verify the log from its first event on."""
        if (epoch := self._storage.epoch) == self._epoch:
            return
        replica, self._replica = self._replica, None  # read again if anything is wrong
        row = records.find_study(connection, self._name)
        if row is None or row.id != self._study or row_checksum(row) != self._beginning:
            raise self._not_found()
        head = logbook.head(connection, self._study, lock=False)
        check_length(connection, self._study, head.n_events)
        for _ in logbook.read_all(connection, self._study, head.n_events, self._beginning):
            pass  # reading verifies
        self._epoch, self._replica = epoch, replica

    def _check_seen(self, connection: Connection, head: Head) -> None:
        """Raise, once, if the log lacks events that are known to be stored."""
        number, newest = self._seen
        if number <= head.n_events and logbook.checksum_after(connection, self._study, number) == newest:
            return
        self._replica, self._seen = None, (0, self._beginning)
        if not number:
            raise self._not_found()
        shorter, other = f"it has {head.n_events} events and had {number}", f"event {number - 1} is another one"
        raise HistoryReplacedError(
            f"the log of study {self._name!r} in {self._storage.describe()} is not the one that this process has read: "
            f"{shorter if head.n_events < number else other}. Was the database replaced by another copy? "
            "Nothing was changed; the next call continues from the stored log"
        )

    def _not_found(self) -> StudyNotFoundError:
        return StudyNotFoundError(
            f"study {self._name!r} is no longer in {self._storage.describe()}: the database was replaced. If the new "
            "one has a study of that name, open it again"
        )

    def replayed(self) -> Replica:
        """A new replica, replayed from the first event on without snapshots."""
        replica = Replica(self._make(), self._beginning)
        while True:
            with self._storage.reading() as connection:
                head = logbook.head(connection, self._study, lock=False)
                events, last = self._next_events(replica, connection, head)
            if not events:
                return replica
            self._apply(replica, events, last)
            announce("replaying the log", replica.n_events, head.n_events)

    def _catch_up(self, replica: Replica, connection: Connection, head: Head, patience: float = inf) -> None:
        if replica.seconds_for(head.n_events - replica.n_events) > patience:
            raise _FarBehindError
        while replica.n_events != head.n_events or head.chain != replica.chain:
            events, last = self._next_events(replica, connection, head)
            if any(event.kind in RERUNS for event in events) and replica.seconds_for(head.n_events) > patience:
                raise _FarBehindError  # they repeat the whole run
            self._advance(replica, events, last)

    def _advance(self, replica: Replica, events: list[Event], last_correction: int) -> None:
        """Apply events; a replica whose corrections are still being gathered is not kept if reading on fails."""
        self._apply(replica, events, last_correction)
        self._replica = replica if replica.is_whole else None

    def _next_events(self, replica: Replica, connection: Connection, head: Head) -> tuple[list[Event], int]:
        """The next events that the replica lacks, verified, and the last correction among all that it lacks."""
        start = replica.n_events
        try:
            if head.n_events < start:
                raise damaged(f"the log ends before event {start}", head.n_events)
            stop = logbook.batch_end(connection, self._study, start, head.n_events)
            events = (
                logbook.verified_events(connection, self._study, start, stop, replica.chain) if start < stop else []
            )
            corrects = not replica.is_whole or any(event.kind in AMENDS for event in events)
            last = logbook.last_correction(connection, self._study, start, head.n_events) if corrects else -1
            newest = events[-1].chain if events else replica.chain
            if stop == head.n_events and newest != head.chain:
                raise damaged(f"event {stop - 1} is not the last event that the study records", max(stop - 1, 0))
        except StorageError:
            self._replica = None
            self._check_seen(connection, head)
            raise
        return events, last

    def _apply(self, replica: Replica, events: list[Event], last_correction: int) -> None:
        try:
            replica.follow(events, last_correction)
            replica.chain = events[-1].chain if events else replica.chain
        except (ValueError, IndexError) as error:
            self._replica = None
            if is_lack_of_memory(error):
                raise
            raise ReplayError(f"the log of study {self._name!r} contradicts itself: {error}") from error
        except BaseException:
            self._replica = None
            raise

    # -- saving ------------------------------------------------------------------------------------------------

    def _save(self, replica: Replica) -> None:
        """Write a snapshot. Failures are ignored: snapshots only save time."""
        start, kept = perf_counter(), False
        with suppress(StorageError, MemoryError):
            data = compress(replica.snapshot())
            with self._storage.writing() as connection:
                write_snapshot(connection, self._study, replica.n_events, LIBRARY, data, replica.chain, self._spoiled)
            kept = True
            self._spoiled.clear()
        replica.note_attempt(perf_counter() - start, kept)

    def close(self) -> None:
        """Save a snapshot if there are events after the newest one, and close the connections."""
        with self.mutex:
            if self._replica is not None and self._replica.is_ahead:
                self._save(self._replica)
            self._storage.close()

    # -- forking -----------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Record whether another thread is using the replica, without waiting for it."""
        self._is_whole = self.mutex.acquire(blocking=False)

    def after_fork(self, in_child: bool) -> None:
        """The child gets its own lock, and reads the log again if another thread was using the replica at the fork."""
        if in_child:
            self.mutex = threading.RLock()
            if not self._is_whole:
                self._replica = None
        elif self._is_whole:
            self.mutex.release()
