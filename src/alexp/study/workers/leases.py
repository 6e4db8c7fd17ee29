"""Leases: who measures a pending trial, and until when nobody else does.

They are rows beside the log and run out by the clock, so nothing that a study decides may depend on them: a trial that
is taken over stays the trial that it was, and one that is given up is an event like any other. All changes are made
under the study's lock; hence two workers never take over the same trial.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from alexp.study.database.schema import leases

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

WhenExpired = Literal["offer", "abandon"]
CHOICES: tuple[WhenExpired, ...] = ("offer", "abandon")
LONGEST = 10 * 365 * 86_400.0  # seconds


@dataclass(frozen=True)
class Lease:
    """A row of the table: times are in seconds since 1970, UTC; `seconds` is what a heartbeat prolongs it by."""

    trial: int
    worker: str
    seconds: float
    taken_at: float
    heartbeat_at: float
    expires_at: float


_COLUMNS = [leases.c[field.name] for field in fields(Lease)]
_OF_STUDY = sa.select(*_COLUMNS).where(leases.c.study_id == sa.bindparam("study"))


def read(connection: Connection, study: int) -> dict[int, Lease]:
    """All leases of a study by trial, those of trials that await nothing any more included."""
    return {row[0]: Lease(*row) for row in connection.execute(_OF_STUDY, {"study": study})}


def now(connection: Connection) -> float:
    """The time by the clock that all workers share: that of the server, or of the host with the file."""
    if connection.dialect.name != "postgresql":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())


def grant(
    connection: Connection, study: int, trials: Collection[int], worker: str, seconds: float | None, at: float
) -> None:
    """Give trials to a worker from `at` on, for so many seconds or without end."""
    lasts = inf if seconds is None else seconds
    rows = [vars(Lease(trial, worker, lasts, at, at, at + lasts)) | {"study_id": study} for trial in trials]
    if rows:
        drop(connection, study, trials)
        connection.execute(leases.insert(), rows)


def prolong(connection: Connection, study: int, trials: Collection[int], seconds: float | None, at: float) -> None:
    """Let leases run anew from `at` on, each for as long as before, or for so many seconds."""
    lasts = leases.c.seconds if seconds is None else seconds
    these = leases.update().where(leases.c.study_id == study, leases.c.trial.in_(list(trials)))
    connection.execute(these.values(seconds=lasts, heartbeat_at=at, expires_at=at + lasts))


def drop(connection: Connection, study: int, trials: Collection[int]) -> None:
    """Forget the leases of some trials."""
    if trials:
        connection.execute(leases.delete().where(leases.c.study_id == study, leases.c.trial.in_(list(trials))))
