"""Reading and writing the rows of a study. Every function works inside its caller's transaction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from alexp.algorithms.saving import FORMAT, READABLE
from alexp.common.arrays import AnyArray
from alexp.common.codec import fingerprint
from alexp.study.errors import StorageError, StudyNotFoundError
from alexp.study.events import Event, compress, decompress
from alexp.study.schema import arrays, events, snapshots, studies

_PART = 32 * 1024 * 1024  # bytes of an array per row; databases limit the size of one value
_KEPT = 2  # snapshots, in case the newest cannot be read
_EVENT_COLUMNS = [events.c[field.name] for field in fields(Event)]

# Built once: these run at every ask and tell.
_LOCK = (
    sa.select(studies.c.n_events, studies.c.snapshot_at).where(studies.c.id == sa.bindparam("study")).with_for_update()
)
_HEAD = sa.select(studies.c.n_events, studies.c.snapshot_at).where(studies.c.id == sa.bindparam("study"))
_SINCE = (
    sa.select(*_EVENT_COLUMNS)
    .where(events.c.study_id == sa.bindparam("study"), events.c.seq >= sa.bindparam("start"))
    .order_by(events.c.seq)
)
_ADVANCE = studies.update().where(studies.c.id == sa.bindparam("study")).values(n_events=sa.bindparam("total"))

_INSERT = events.insert().values({column.name: sa.bindparam(column.name) for column in events.columns})
_ADVANCE_AND_INSERT = _ADVANCE.add_cte(_INSERT.cte("appended"))


# -- studies ---------------------------------------------------------------------------------------------------


def insert_study(connection: Connection, **values: Any) -> int:
    """Create a study's row and return its number."""
    result = connection.execute(studies.insert().values(n_events=0, snapshot_at=0, **values))
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def find_study(connection: Connection, name: str) -> Row[Any] | None:
    """The row of the study with this name."""
    return connection.execute(sa.select(studies).where(studies.c.name == name)).first()


def all_studies(connection: Connection) -> Sequence[Row[Any]]:
    """Rows of all studies with the numbers of trials asked, told and observed, and abandoned."""
    kinds = [
        sa.func.count(sa.case((events.c.kind == kind, 1))).label(kind) for kind in ("ask", "tell", "observe", "abandon")
    ]
    columns = (studies.c.name, studies.c.algorithm, studies.c.created_at)
    joined = studies.outerjoin(events, events.c.study_id == studies.c.id)
    latest = sa.func.max(events.c.at).label("latest")
    query = sa.select(*columns, *kinds, latest).select_from(joined).group_by(studies.c.id, *columns)
    return connection.execute(query.order_by(studies.c.name)).all()


def delete_study(connection: Connection, study: int) -> None:
    """Remove everything a study consists of."""
    for table in (arrays, snapshots, events):
        connection.execute(table.delete().where(table.c.study_id == study))
    connection.execute(studies.delete().where(studies.c.id == study))


def head(connection: Connection, study: int, lock: bool) -> tuple[int, int]:
    """Number of events and events in the newest snapshot; with `lock`, nobody else may append until we commit."""
    row = connection.execute(_LOCK if lock else _HEAD, {"study": study}).first()
    if row is None:
        raise StudyNotFoundError("the study has been deleted")
    return int(row[0]), int(row[1])


# -- events ----------------------------------------------------------------------------------------------------


def append(connection: Connection, study: int, new: Sequence[Event]) -> None:
    """Add events at the end of the log; the caller holds the lock."""
    rows = [{"study_id": study} | vars(event) for event in new]
    total = {"study": study, "total": new[-1].seq + 1}
    if connection.dialect.name == "postgresql" and len(rows) == 1:  # one round trip to the server instead of two
        connection.execute(_ADVANCE_AND_INSERT, rows[0] | total)
        return
    connection.execute(events.insert(), rows)
    connection.execute(_ADVANCE, total)


def since(connection: Connection, study: int, start: int) -> list[Event]:
    """Events number `start` and later, in order."""
    found = [Event(*row) for row in connection.execute(_SINCE, {"study": study, "start": start})]
    if [event.seq for event in found] != list(range(start, start + len(found))):
        raise StorageError(f"the log of the study has a gap after event {start}; restore the database from a backup")
    return found


def moments(connection: Connection, study: int) -> list[tuple[str, int, float, str]]:
    """Kind, trial, time and worker of every event."""
    query = sa.select(events.c.kind, events.c.trial, events.c.at, events.c.worker).where(events.c.study_id == study)
    return [tuple(row) for row in connection.execute(query.order_by(events.c.seq))]


def beliefs(connection: Connection, study: int) -> list[tuple[int, dict[str, Any]]]:
    """(trial, q and returns in force) for the asks at which they were recorded."""
    query = sa.select(events.c.trial, events.c.detail).where(
        events.c.study_id == study, events.c.kind == "ask", events.c.detail.is_not(None)
    )
    rows = [(trial, decompress(detail)) for trial, detail in connection.execute(query.order_by(events.c.seq))]
    return [(trial, detail["belief"]) for trial, detail in rows if detail.get("belief")]


# -- snapshots -------------------------------------------------------------------------------------------------


def write_snapshot(connection: Connection, study: int, n_events: int, library: str, state: dict[str, Any]) -> None:
    """Keep a state after `n_events` events, and drop snapshots nobody needs any more."""
    if head(connection, study, lock=True)[1] >= n_events:
        return  # another process was faster
    connection.execute(
        snapshots.insert().values(
            study_id=study, n_events=n_events, format=FORMAT, library=library, data=compress(state)
        )
    )
    connection.execute(studies.update().where(studies.c.id == study).values(snapshot_at=n_events))
    kept = sa.select(snapshots.c.n_events).where(snapshots.c.study_id == study)
    newest = [row[0] for row in connection.execute(kept.order_by(snapshots.c.n_events.desc()).limit(_KEPT))]
    connection.execute(snapshots.delete().where(snapshots.c.study_id == study, snapshots.c.n_events.not_in(newest)))


def read_snapshots(connection: Connection, study: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number of events, state) of the snapshots this version can read, newest first."""
    query = sa.select(snapshots).where(snapshots.c.study_id == study, snapshots.c.format.in_(READABLE))
    for row in connection.execute(query.order_by(snapshots.c.n_events.desc())).all():
        try:
            state = decompress(row.data)
        except (zlib.error, ValueError):  # an unreadable snapshot costs time only: the log is the truth
            continue
        yield int(row.n_events), state


# -- arrays ----------------------------------------------------------------------------------------------------


def put_array(connection: Connection, study: int, array: AnyArray) -> str:
    """Store an array under its content hash and return the hash."""
    contiguous = np.ascontiguousarray(array)
    key = fingerprint(contiguous)
    seen = sa.select(arrays.c.part).where(arrays.c.study_id == study, arrays.c.hash == key)
    if connection.execute(seen).first() is None:
        raw = contiguous.tobytes()
        for part, start in enumerate(range(0, max(len(raw), 1), _PART)):
            connection.execute(
                arrays.insert().values(
                    study_id=study,
                    hash=key,
                    part=part,
                    dtype=contiguous.dtype.str,
                    shape=json.dumps(list(contiguous.shape)),
                    data=zlib.compress(raw[start : start + _PART], 6),
                )
            )
    return key


def get_array(connection: Connection, study: int, key: str) -> AnyArray:
    """The array with this content hash, checked against it."""
    query = sa.select(arrays).where(arrays.c.study_id == study, arrays.c.hash == key).order_by(arrays.c.part)
    rows = connection.execute(query).all()
    try:
        raw = b"".join(zlib.decompress(row.data) for row in rows)
        array = np.frombuffer(raw, dtype=np.dtype(rows[0].dtype)).reshape(json.loads(rows[0].shape)).copy()
    except (IndexError, ValueError, zlib.error):
        array = None
    if array is None or fingerprint(array) != key:
        raise StorageError(f"a stored matrix ({key[:12]}...) is missing or damaged; restore the database from a backup")
    return array
