"""The desk of a study: what is done about leases in the transaction in which a worker acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alexp.common.arrays import IntArray
from alexp.problem.offers import Offer
from alexp.study.database.events import Event, worker_name
from alexp.study.errors import LeaseError
from alexp.study.workers import leases
from alexp.study.workers.leases import Lease, WhenExpired

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from alexp.study.replay import Replica


class Request(NamedTuple):
    """What an ask wants, and what there is to be dealt with before: expired trials to hand out, or to give up.

    Asks of contextual rounds have one of the `offers` for every trial that is wanted.
    """

    wanted: int
    available: IntArray | None
    offered: tuple[int, ...] = ()
    given_up: tuple[int, ...] = ()
    offers: tuple[Offer, ...] = ()


@dataclass
class AskDesk:
    """Hands out expired trials before new ones are asked for, or gives them up, and notes who has what.

    When the answer to a commit is lost, `look` comes again, and takes what it gave to this worker before for free.
    """

    study: int
    when_expired: WhenExpired
    seconds: float | None
    distinct: bool
    may_offer: bool = True
    offered: tuple[int, ...] = ()
    granted_at: float | None = None

    def look(self, connection: Connection, replica: Replica, request: Request) -> Request:
        """The request with what has expired; without pending trials there is nothing to look for."""
        self.offered = ()
        waiting = replica.algorithm.log.waiting
        known = leases.read(connection, self.study) if waiting else {}
        if not known:
            return request
        leases.drop(connection, self.study, known.keys() - waiting.keys())  # they were told meanwhile
        at = leases.now(connection)
        expired = [trial for trial in waiting if trial in known and _is_free(known[trial], at, self.granted_at)]
        if self.when_expired == "abandon":
            leases.drop(connection, self.study, expired)
            return request._replace(given_up=tuple(expired))
        self.offered = tuple(self._suitable(expired, waiting, request)) if self.may_offer else ()
        return request._replace(offered=self.offered, wanted=request.wanted - len(self.offered))

    def _suitable(self, expired: Sequence[int], waiting: dict[int, int], request: Request) -> list[int]:
        chosen: list[int] = []
        taken: set[int] = set()
        for trial in expired:
            candidate = waiting[trial]
            is_allowed = request.available is None or bool(np.isin(candidate, request.available))
            if is_allowed and len(chosen) < request.wanted and not (self.distinct and candidate in taken):
                chosen.append(trial)
                taken.add(candidate)
        return chosen

    def note(self, connection: Connection, events: Sequence[Event]) -> None:
        """Write down who measures what was handed out and asked for, and until when."""
        asked = [event.trial for event in events if event.kind == "ask"]
        mine = [*self.offered, *(asked if self.seconds is not None else ())]
        if mine:
            self.granted_at = leases.now(connection)
            leases.grant(connection, self.study, mine, worker_name(), self.seconds, self.granted_at)


def _is_free(lease: Lease, at: float, granted_at: float | None = None) -> bool:
    """Whether a lease has expired, or was granted to this worker at that very moment."""
    return lease.expires_at <= at or (lease.worker == worker_name() and lease.taken_at == granted_at)


@dataclass
class HeartbeatDesk:
    """Prolongs the leases of this worker."""

    study: int
    seconds: float | None

    def look(self, connection: Connection, _replica: Replica, trials: list[int]) -> list[int]:
        """Prolong all, or raise if any is not held by this worker."""
        known, me = leases.read(connection, self.study), worker_name()
        for trial in trials:
            _check_own(trial, known.get(trial), me)
        leases.prolong(connection, self.study, trials, self.seconds, leases.now(connection))
        return trials

    def note(self, connection: Connection, events: Sequence[Event]) -> None:
        """Nothing more."""


def _check_own(trial: int, lease: Lease | None, me: str) -> None:
    if lease is None:
        raise LeaseError(f"trial {trial} was asked for without a lease; take_over({trial}, lease=...) gives it one")
    if lease.worker != me:
        raise LeaseError(
            f"trial {trial} is held by worker {lease.worker!r}, and this is {me!r}: it was taken over after its lease "
            "had expired, or this worker goes by another name now (ALEXP_WORKER gives it one)"
        )


@dataclass
class TakeOverDesk:
    """Hands over trials: those that are named, or as many as wanted of those that have expired."""

    study: int
    seconds: float | None
    most: int | None
    taken: list[int] = field(default_factory=list)
    granted_at: float | None = None

    def look(self, connection: Connection, replica: Replica, trials: list[int] | None) -> list[int] | None:
        """Give them to this worker, or raise if any is held by another."""
        waiting, known, at = replica.algorithm.log.waiting, leases.read(connection, self.study), leases.now(connection)
        if trials is None:
            expired = [trial for trial in waiting if trial in known and _is_free(known[trial], at, self.granted_at)]
            self.taken = expired[: self.most]
        else:
            self.taken = [_free(trial, known.get(trial), at) for trial in trials]
        leases.grant(connection, self.study, self.taken, worker_name(), self.seconds, at)
        self.granted_at = at
        return trials

    def note(self, connection: Connection, events: Sequence[Event]) -> None:
        """Nothing more."""


def _free(trial: int, lease: Lease | None, at: float) -> int:
    if lease is not None and lease.expires_at > at and lease.worker != worker_name():
        left = f"for another {lease.expires_at - at:.3g} s" if lease.expires_at < float("inf") else "without end"
        raise LeaseError(f"trial {trial} is held by worker {lease.worker!r} {left}")
    return trial
