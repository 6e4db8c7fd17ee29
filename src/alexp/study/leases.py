"""Leases: which worker measures a pending trial, and until when it is reserved for that worker.

Leases are not part of the log and expire by the clock, so no decision of a study may depend on them: a trial that is
taken over stays the same trial, and abandoning one is an event of the log. All changes are made under the lock of the
study, so two workers never take over the same trial.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import sqlalchemy as sa

from alexp.common.arrays import IntArray
from alexp.common.validation import positive
from alexp.problem.offers import Offer
from alexp.problem.plates import PlateLimits
from alexp.study.errors import LeaseError
from alexp.study.events import Event, worker_name
from alexp.study.storage import leases

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from alexp.study.replay import Replica

WhenExpired = Literal["offer", "abandon"]
CHOICES: tuple[WhenExpired, ...] = ("offer", "abandon")
LONGEST = 10 * 365 * 86_400.0  # seconds


def check_lease(lease: float | None) -> float | None:
    """Seconds of a lease, or None for one without end; raises if it is not positive or too long."""
    if lease is None:
        return None
    seconds = positive("lease", lease)
    if seconds > LONGEST:
        raise ValueError(f"lease must be at most {LONGEST:.0f} seconds (ten years), got {seconds:g}; None has no end")
    return seconds


# -- rows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lease:
    """A row of the table. Times are in seconds since 1970, UTC; a heartbeat restarts the lease for `seconds`."""

    trial: int
    worker: str
    seconds: float
    taken_at: float
    heartbeat_at: float
    expires_at: float


_COLUMNS = [leases.c[column.name] for column in fields(Lease)]
_OF_STUDY = sa.select(*_COLUMNS).where(leases.c.study_id == sa.bindparam("study"))


def read(connection: Connection, study: int) -> dict[int, Lease]:
    """All leases of a study by trial, also of trials that are no longer pending."""
    return {row[0]: Lease(*row) for row in connection.execute(_OF_STUDY, {"study": study})}


def now(connection: Connection) -> float:
    """Seconds since 1970 by the clock that all workers share: the server's, or that of the host of the SQLite file."""
    if connection.dialect.name != "postgresql":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())


def grant(
    connection: Connection, study: int, trials: Collection[int], worker: str, seconds: float | None, at: float
) -> None:
    """Lease trials to a worker from `at` on, for `seconds` or without end."""
    lasts = inf if seconds is None else seconds
    rows = [vars(Lease(trial, worker, lasts, at, at, at + lasts)) | {"study_id": study} for trial in trials]
    if rows:
        drop(connection, study, trials)
        connection.execute(leases.insert(), rows)


def prolong(connection: Connection, study: int, trials: Collection[int], seconds: float | None, at: float) -> None:
    """Restart leases at `at`, each for as long as before, or for `seconds`."""
    lasts = leases.c.seconds if seconds is None else seconds
    these = leases.update().where(leases.c.study_id == study, leases.c.trial.in_(list(trials)))
    connection.execute(these.values(seconds=lasts, heartbeat_at=at, expires_at=at + lasts))


def drop(connection: Connection, study: int, trials: Collection[int]) -> None:
    if trials:
        connection.execute(leases.delete().where(leases.c.study_id == study, leases.c.trial.in_(list(trials))))


# -- changing leases within a call -----------------------------------------------------------------------------

_Request = TypeVar("_Request")


class LeaseHandler(ABC, Generic[_Request]):
    """Changes leases in the transaction of a call."""

    @abstractmethod
    def before(self, connection: Connection, replica: Replica, request: _Request) -> _Request:
        """Called before the call acts; returns the request, adapted to the leases, or raises and changes nothing."""

    def after(self, connection: Connection, events: Sequence[Event]) -> None:
        """Called after the call has acted; records leases of the new `events`."""


class AskRequest(NamedTuple):
    """Number of trials and candidates of an ask, and expired trials to hand out (`offered`) or abandon (`given_up`).

    Asks of contextual rounds have one of the `offers` per trial, plates with constraints their `limits`.
    """

    wanted: int
    available: IntArray | None
    offered: tuple[int, ...] = ()
    given_up: tuple[int, ...] = ()
    offers: tuple[Offer, ...] = ()
    limits: PlateLimits | None = None


@dataclass
class AskLeases(LeaseHandler[AskRequest]):
    """Hands out expired trials before new ones are asked for, or abandons them, and records leases of new ones.

    After a lost commit `before` runs again, and treats trials that it granted to this worker as free.
    """

    study: int
    when_expired: WhenExpired
    seconds: float | None
    distinct: bool
    may_offer: bool = True
    offered: tuple[int, ...] = ()
    granted_at: float | None = None

    def before(self, connection: Connection, replica: Replica, request: AskRequest) -> AskRequest:
        """The request with the expired trials."""
        self.offered = ()
        waiting = replica.algorithm.log.pending
        known = read(connection, self.study) if waiting else {}
        if not known:
            return request
        drop(connection, self.study, known.keys() - waiting.keys())  # of trials that are no longer pending
        at = now(connection)
        expired = [trial for trial in waiting if trial in known and _is_free(known[trial], at, self.granted_at)]
        if self.when_expired == "abandon":
            drop(connection, self.study, expired)
            return request._replace(given_up=tuple(expired))
        self.offered = tuple(self._suitable(expired, waiting, request)) if self.may_offer else ()
        return request._replace(offered=self.offered, wanted=request.wanted - len(self.offered))

    def _suitable(self, expired: Sequence[int], waiting: dict[int, int], request: AskRequest) -> list[int]:
        chosen: list[int] = []
        taken: set[int] = set()
        for trial in expired:
            candidate = waiting[trial]
            is_allowed = request.available is None or bool(np.isin(candidate, request.available))
            if is_allowed and len(chosen) < request.wanted and not (self.distinct and candidate in taken):
                chosen.append(trial)
                taken.add(candidate)
        return chosen

    def after(self, connection: Connection, events: Sequence[Event]) -> None:
        """Record the leases of trials that were handed out and asked for."""
        asked = [event.trial for event in events if event.kind == "ask"]
        mine = [*self.offered, *(asked if self.seconds is not None else ())]
        if mine:
            self.granted_at = now(connection)
            grant(connection, self.study, mine, worker_name(), self.seconds, self.granted_at)


def _is_free(lease: Lease, at: float, granted_at: float | None = None) -> bool:
    """Whether a lease has expired, or was granted to this worker at exactly `granted_at`."""
    return lease.expires_at <= at or (lease.worker == worker_name() and lease.taken_at == granted_at)


@dataclass
class HeartbeatLeases(LeaseHandler[list[int]]):
    """Prolongs the leases of this worker."""

    study: int
    seconds: float | None

    def before(self, connection: Connection, replica: Replica, request: list[int]) -> list[int]:
        """Prolong the leases of all these trials, or raise if any is not held by this worker."""
        known, me = read(connection, self.study), worker_name()
        for trial in request:
            _check_own(trial, known.get(trial), me)
        prolong(connection, self.study, request, self.seconds, now(connection))
        return request


def _check_own(trial: int, lease: Lease | None, me: str) -> None:
    if lease is None:
        raise LeaseError(f"trial {trial} has no lease; take_over({trial}, lease=...) gives it one")
    if lease.worker != me:
        raise LeaseError(
            f"trial {trial} is held by worker {lease.worker!r}, and this is {me!r}: it was taken over after its lease "
            "had expired, or this worker's name has changed (set ALEXP_WORKER to keep it)"
        )


@dataclass
class TakeOverLeases(LeaseHandler[list[int] | None]):
    """Takes over trials: those requested, or at most `most` of those that have expired."""

    study: int
    seconds: float | None
    most: int | None
    taken: list[int] = field(default_factory=list)
    granted_at: float | None = None

    def before(self, connection: Connection, replica: Replica, request: list[int] | None) -> list[int] | None:
        """Lease the trials to this worker, or raise if any is held by another."""
        waiting, known, at = replica.algorithm.log.pending, read(connection, self.study), now(connection)
        if request is None:
            expired = [trial for trial in waiting if trial in known and _is_free(known[trial], at, self.granted_at)]
            self.taken = expired[: self.most]
        else:
            self.taken = [_free(trial, known.get(trial), at) for trial in request]
        grant(connection, self.study, self.taken, worker_name(), self.seconds, at)
        self.granted_at = at
        return request


def _free(trial: int, lease: Lease | None, at: float) -> int:
    if lease is not None and lease.expires_at > at and lease.worker != worker_name():
        left = f"for another {lease.expires_at - at:.3g} s" if lease.expires_at < float("inf") else "without end"
        raise LeaseError(f"trial {trial} is held by worker {lease.worker!r} {left}")
    return trial
