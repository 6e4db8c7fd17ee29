"""Keeping one process's replica in step with the log: catching up, acting under the lock, saving snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypeVar

from alexp.algorithms.protocol.base import Algorithm
from alexp.algorithms.warming import warm_up
from alexp.study.database import records
from alexp.study.database.chain import beginning, damaged
from alexp.study.database.events import LIBRARY, MENDS, Event, compress
from alexp.study.database.records import PART, Head, StudyRow
from alexp.study.database.storage import Storage
from alexp.study.errors import ReplayError, StorageError
from alexp.study.replay import Replica, course_of
from alexp.study.workers.forking import Forked, watch

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_Checked = TypeVar("_Checked")

_PATIENCE = 0.05  # seconds for which events of others may be applied while they wait for the lock
_ATTEMPTS = 3  # how often to catch up without the lock before catching up under it after all


class _FarBehindError(Exception):
    """Catching up under the lock would keep others waiting."""


class Beside(Protocol[_Checked]):
    """Tables beside the log, which change in the same transaction as the log."""

    def look(self, connection: Connection, replica: Replica, checked: _Checked, /) -> _Checked:
        """Before acting: what is to be done, given what they say; raises to leave everything as it is."""

    def note(self, connection: Connection, events: Sequence[Event], /) -> None:
        """After acting: what they say now."""


class Follower(Forked):
    """The replica of one study in this process, for any number of threads.

    Everything slow happens before the study is locked: compiling the algorithm, replaying a long log, packing a
    snapshot. Under the lock only the last few events of others and the process's own act are computed.

    Parameters
    ----------
    storage, row
        Where the study is, and what it is.
    make
        Builds the algorithm as it was before the first event.
    first
        What `make` has built already; saves building it twice.
    """

    def __init__(self, storage: Storage, row: StudyRow, make: Callable[[], Algorithm], first: Algorithm) -> None:
        self.mutex = threading.RLock()
        self._storage, self._study, self._name, self._make = storage, row.id, row.name, make
        self._beginning = beginning(row)
        self._fresh: Algorithm | None = first
        self._replica: Replica | None = None
        self._is_warm = False
        self._is_whole = True  # at the moment of a fork
        watch(self)

    # -- acting ------------------------------------------------------------------------------------------------

    def act(
        self,
        check: Callable[[Replica], _Checked],
        decide: Callable[[Replica, _Checked], list[Event]],
        prepare: Callable[[Replica, _Checked], None] | None = None,
        beside: Beside[_Checked] | None = None,
    ) -> tuple[Replica, list[Event]]:
        """One transaction: lock, catch up, check, act, append. The replica counts only once it is committed.

        What takes long can be done by `prepare`, without the lock; what concerns tables beside the log by `beside`.
        """
        with self.mutex:
            if prepare is not None:
                replica = self.refresh()
                prepare(replica, check(replica))
            for _ in range(_ATTEMPTS):
                with suppress(_FarBehindError):
                    return self._attempt(check, decide, beside, _PATIENCE)
                self.refresh()
            return self._attempt(check, decide, beside, inf)

    def _attempt(
        self,
        check: Callable[[Replica], _Checked],
        decide: Callable[[Replica, _Checked], list[Event]],
        beside: Beside[_Checked] | None,
        patience: float,
    ) -> tuple[Replica, list[Event]]:
        replica = self._opened()
        if not self._is_warm:
            warm_up(replica.algorithm)
            self._is_warm = True
        with self._storage.writing() as connection:
            head = records.head(connection, self._study, lock=True)
            if replica.seconds_for(head.n_events - replica.n_events) > patience:
                raise _FarBehindError
            self._catch_up(replica, connection, head, patience)
            replica.noted(head.snapshot_at)
            checked = check(replica)  # raises without having changed anything
            if beside is not None:
                checked = beside.look(connection, replica, checked)
            self._replica = None  # until the commit; if anything fails, the log is read again
            events = decide(replica, checked)
            if events:
                replica.chain = records.append(connection, self._study, events, replica.chain)
            if beside is not None:
                beside.note(connection, events)
        self._replica = replica
        if replica.snapshot_is_due:
            self._save(replica)
        return replica, events

    # -- keeping up --------------------------------------------------------------------------------------------

    def refresh(self) -> Replica:
        """Apply what other processes have done."""
        with self.mutex:
            replica = self._opened()
            while True:  # long logs in parts, each applied after its transaction
                with self._storage.reading() as connection:
                    head = records.head(connection, self._study, lock=False)
                    events = self._behind(replica, connection, head)
                self._apply(replica, events)
                if replica.n_events >= head.n_events:
                    replica.noted(head.snapshot_at)
                    return replica

    @contextmanager
    def moment(self) -> Iterator[tuple[Replica, Connection]]:
        """One transaction in which replica and database show the same moment, for reading."""
        with self.mutex:
            replica = self._opened()
            with self._storage.reading() as connection:
                self._catch_up(replica, connection, records.head(connection, self._study, lock=False))
                yield replica, connection

    def _opened(self) -> Replica:
        """The replica; rebuilt from the newest snapshot and brought up to date if there is none."""
        if self._replica is None:
            with self._storage.reading() as connection:
                self._replica = self._rebuild(connection)
            replica = self.refresh()
            if replica.snapshot_is_due:
                self._save(replica)
            return replica
        return self._replica

    def _rebuild(self, connection: Connection) -> Replica:
        records.head(connection, self._study, lock=False)  # raises if the study has been deleted
        for n_events, snapshot, newest in records.read_snapshots(connection, self._study):
            replica = Replica(self._new_algorithm(), newest)
            try:
                replica.resume(n_events, snapshot)
                if replica.algorithm.log.course is None:
                    self._find_course(replica, connection)
            except (KeyError, TypeError, ValueError, AttributeError):  # of another version: the log is the truth
                continue
            return replica
        return Replica(self._new_algorithm(), self._beginning)

    def _find_course(self, replica: Replica, connection: Connection) -> None:
        """Complete a snapshot of a version that did not keep the order of events."""
        events = records.all_before(connection, self._study, replica.n_events, self._beginning)
        replica.algorithm.log.course = course_of(events, replica.algorithm)

    def _new_algorithm(self) -> Algorithm:
        algorithm, self._fresh = self._fresh or self._make(), None
        return algorithm

    def _catch_up(self, replica: Replica, connection: Connection, head: Head, patience: float = inf) -> None:
        while events := self._behind(replica, connection, head):
            if any(event.kind in MENDS for event in events) and replica.seconds_for(head.n_events) > patience:
                raise _FarBehindError  # a correction repeats everything
            self._apply(replica, events)

    def _behind(self, replica: Replica, connection: Connection, head: Head) -> list[Event]:
        """The next events that the replica lacks, verified."""
        start, stop = replica.n_events, min(head.n_events, replica.n_events + PART)
        try:
            if head.n_events < start:
                raise StorageError("the log of the study has become shorter: was an old copy of the database put back?")
            events = records.since(connection, self._study, start, stop, replica.chain) if start < stop else []
            newest = events[-1].chain if events else replica.chain
            if stop == head.n_events and newest != head.chain:
                raise damaged(f"event {stop - 1} is not the one that the study says was its last", max(stop - 1, 0))
        except StorageError:
            self._replica = None
            raise
        return events

    def _apply(self, replica: Replica, events: list[Event]) -> None:
        try:
            replica.follow(events)
            replica.chain = events[-1].chain if events else replica.chain
        except (ValueError, IndexError) as error:
            self._replica = None
            raise ReplayError(f"the log of study {self._name!r} contradicts itself: {error}") from error
        except BaseException:
            self._replica = None
            raise

    # -- saving ------------------------------------------------------------------------------------------------

    def _save(self, replica: Replica) -> None:
        """Write a snapshot. It only saves time, so a failure must not undo what has been acknowledged."""
        start, kept = perf_counter(), False
        data = compress(replica.snapshot())
        with suppress(StorageError):
            with self._storage.writing() as connection:
                records.write_snapshot(connection, self._study, replica.n_events, LIBRARY, data, replica.chain)
            kept = True
        replica.saved(perf_counter() - start, kept)

    def close(self) -> None:
        """Save what opening would have to replay, and close the connections; they open again when needed."""
        with self.mutex:
            if self._replica is not None and self._replica.is_ahead:
                self._save(self._replica)
            self._storage.close()

    # -- forking -----------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """See whether a thread is at work on the replica; it may be for long, so that nobody waits for it."""
        self._is_whole = self.mutex.acquire(blocking=False)

    def after_fork(self, in_child: bool) -> None:
        """The child has a lock of its own, and reads the log again if a thread of its parent was at work."""
        if in_child:
            self.mutex = threading.RLock()
            if not self._is_whole:
                self._replica = self._fresh = None
        elif self._is_whole:
            self.mutex.release()
