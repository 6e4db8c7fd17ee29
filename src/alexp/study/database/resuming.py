"""Snapshots: written when opening would take long, verified when it happens, and done without if they are damaged."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, fields

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.algorithms.saving import FORMAT
from alexp.common.warning import caution
from alexp.study.database import chain, logbook, records
from alexp.study.database.damage import damaged, is_unreadable, legible
from alexp.study.database.events import decompress
from alexp.study.database.schema import snapshots, studies
from alexp.study.errors import StorageWarning
from alexp.study.replay import Snapshot

_KEPT = 2  # in case the newest cannot be read


@dataclass(frozen=True)
class StoredSnapshot:
    """A compressed state after `n_events` events: see `schema.snapshots`."""

    n_events: int
    format: int
    library: str
    data: bytes
    chain: bytes
    checksum: bytes

    @property
    def is_intact(self) -> bool:
        """Whether it is as it was written."""
        try:
            return chain.seal(self.n_events, self.format, self.library, self.chain, self.data) == self.checksum
        except (TypeError, ValueError):
            return False

    @property
    def is_readable(self) -> bool:
        """Whether this version of the library reads it."""
        return self.format == FORMAT

    def state(self) -> Snapshot:
        """What was compressed."""
        state: Snapshot = decompress(self.data)
        return state


_SNAPSHOT_COLUMNS = [snapshots.c[field.name] for field in fields(StoredSnapshot)]


def write_snapshot(
    connection: Connection, study: int, n_events: int, library: str, data: bytes, newest: bytes, spoiled: Set[int]
) -> None:
    """Keep a compressed state after `n_events` events, the last with checksum `newest`; drop those nobody needs.

    `spoiled` snapshots, by their numbers of events, are damaged and make room.
    """
    latest = records.head(connection, study, lock=True).snapshot_at
    if latest >= n_events and latest not in spoiled:
        return  # another process was faster
    own = snapshots.c.study_id == study
    connection.execute(snapshots.delete().where(own, snapshots.c.n_events.in_(spoiled)))
    checksum = chain.seal(n_events, FORMAT, library, newest, data)
    values = {"format": FORMAT, "library": library, "data": data, "chain": newest, "checksum": checksum}
    connection.execute(snapshots.insert().values(study_id=study, n_events=n_events, **values))
    connection.execute(studies.update().where(studies.c.id == study).values(snapshot_at=n_events))
    kept = snapshots_of(connection, study)[:_KEPT]
    connection.execute(snapshots.delete().where(own, snapshots.c.n_events.not_in(kept)))


def snapshots_of(connection: Connection, study: int) -> list[int]:
    """Numbers of events after which there are snapshots, newest first."""
    query = sa.select(snapshots.c.n_events).where(snapshots.c.study_id == study)
    with legible("the table of snapshots"):
        return sorted((row[0] for row in connection.execute(query) if isinstance(row[0], int)), reverse=True)


def read_snapshot(connection: Connection, study: int, n_events: int) -> StoredSnapshot | None:
    """The snapshot after so many events; None if it cannot be read at all."""
    query = sa.select(*_SNAPSHOT_COLUMNS).where(snapshots.c.study_id == study, snapshots.c.n_events == n_events)
    try:
        row = connection.execute(query).first()
    except (TypeError, ValueError, sa.exc.DBAPIError) as error:
        if not is_unreadable(error, connection):
            raise
        return None
    return None if row is None else StoredSnapshot(*row)


def check_length(connection: Connection, study: int, n_events: int) -> None:
    """Raise unless all events are there, also those that a snapshot has taken in; counting them is cheap."""
    if logbook.how_many(connection, study) != n_events:
        gap = logbook.first_gap(connection, study)
        if gap < n_events:
            raise damaged(f"event {gap} is missing, of {n_events} that the study says it has", gap)
        raise damaged(f"the study says that it has {n_events} events, but there are more", n_events)


def intact_snapshots(connection: Connection, study: int, n_events: int, spoiled: set[int]) -> Iterator[StoredSnapshot]:
    """Snapshots that are as they were written and fit the log, newest first; adds the others to `spoiled`."""
    for number in snapshots_of(connection, study):
        shot = read_snapshot(connection, study, number)
        fits = shot is not None and shot.is_intact and shot.n_events <= n_events
        if shot is not None and fits and logbook.checksum_after(connection, study, number) == shot.chain:
            if shot.is_readable:
                yield shot
            continue
        spoiled.add(number)
        caution(
            f"the snapshot after {number} events is damaged; the log is read in its place, which takes longer",
            StorageWarning,
        )
