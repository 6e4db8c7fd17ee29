"""Reading and writing the rows of a study. Every function works inside its caller's transaction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, cast

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.algorithms.protocol.saving import FORMAT, READABLE
from alexp.common.arrays import AnyArray
from alexp.common.codec import fingerprint
from alexp.study.database import chain
from alexp.study.database.events import MENDS, Belief, Detail, Event, EventDict, belief_is_due, decompress
from alexp.study.database.schema import arrays, events, leases, snapshots, studies
from alexp.study.errors import StorageError, StudyNotFoundError
from alexp.study.replay import Snapshot

PART = 10_000  # events read at a time
_PIECE = 32 * 1024 * 1024  # bytes of an array per row; databases limit the size of one value
_KEPT = 2  # snapshots, in case the newest cannot be read
_EVENT_COLUMNS = [events.c[field.name] for field in fields(Event)]
_PUBLIC = list(EventDict.__annotations__)

# Built once: these run at every ask and tell.
_HEAD = sa.select(studies.c.n_events, studies.c.snapshot_at, studies.c.chain).where(
    studies.c.id == sa.bindparam("study")
)
_LOCK = _HEAD.with_for_update()
_SINCE = (
    sa.select(*_EVENT_COLUMNS)
    .where(
        events.c.study_id == sa.bindparam("study"),
        events.c.seq >= sa.bindparam("start"),
        events.c.seq < sa.bindparam("stop"),
    )
    .order_by(events.c.seq)
)
_ADVANCE = (
    studies.update()
    .where(studies.c.id == sa.bindparam("study"))
    .values(n_events=sa.bindparam("total"), chain=sa.bindparam("newest"))
)

_INSERT = events.insert().values({column.name: sa.bindparam(column.name) for column in events.columns})
_ADVANCE_AND_INSERT = _ADVANCE.add_cte(_INSERT.cte("appended"))


# -- studies ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyRow:
    """What the table of studies says about one: see `schema.studies`."""

    id: int
    name: str
    algorithm: str
    settings: str
    entropy: str
    problem: str
    probe: str
    library: str
    created_at: float
    when_expired: str | None = None


class Head(NamedTuple):
    """Where a log ends: its number of events, those in the newest snapshot, and the checksum of the last one."""

    n_events: int
    snapshot_at: int
    chain: bytes


@dataclass(frozen=True)
class StudySummary:
    """One line of the list of studies."""

    name: str
    algorithm: str
    created_at: float
    trials: int
    told: int
    pending: int
    abandoned: int
    latest: float | None


_ROW_COLUMNS = [studies.c[field.name] for field in fields(StudyRow)]


def insert_study(
    connection: Connection,
    name: str,
    algorithm: str,
    settings: str,
    entropy: str,
    library: str,
    created_at: float,
    when_expired: str | None = None,
) -> int:
    """Create a study's row, as yet without its problem, and return its number."""
    values = {"name": name, "algorithm": algorithm, "settings": settings, "entropy": entropy, "library": library}
    empty = {"problem": "", "probe": "", "n_events": 0, "snapshot_at": 0, "when_expired": when_expired}
    result = connection.execute(studies.insert().values(created_at=created_at, **values, **empty))
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def set_problem(connection: Connection, study: int, problem: str, probe: str) -> StudyRow:
    """Fill in the problem of a new study, and the checksum of its row, which is then complete."""
    this = studies.c.id == study
    connection.execute(studies.update().where(this).values(problem=problem, probe=probe))
    row = StudyRow(*connection.execute(sa.select(*_ROW_COLUMNS).where(this)).one())
    first = chain.beginning(row)
    connection.execute(studies.update().where(this).values(checksum=first, chain=first))
    return row


def find_study(connection: Connection, name: str) -> StudyRow | None:
    """The row of the study with this name."""
    found = connection.execute(sa.select(*_ROW_COLUMNS, studies.c.checksum).where(studies.c.name == name)).first()
    if found is None:
        return None
    row = StudyRow(*found[:-1])
    if chain.beginning(row) != found.checksum:
        raise chain.damaged(f"what is stored about study {name!r} itself has a wrong checksum")
    return row


def all_studies(connection: Connection) -> list[StudySummary]:
    """All studies by name, with their numbers of trials and the time of their latest event."""
    asked, told, observed, abandoned = (
        sa.func.count(sa.case((events.c.kind == kind, 1))) for kind in ("ask", "tell", "observe", "abandon")
    )
    own = (studies.c.name, studies.c.algorithm, studies.c.created_at)
    counts = (asked + observed, told + observed, asked - told - abandoned, abandoned)
    joined = studies.outerjoin(events, events.c.study_id == studies.c.id)
    query = sa.select(studies.c.id, *own, *counts, sa.func.max(events.c.at)).select_from(joined)
    withdrawn = _withdrawn(connection)
    found = []
    for study, *row in connection.execute(query.group_by(studies.c.id, *own).order_by(studies.c.name)):
        summary, gone = StudySummary(*row), withdrawn.get(study, 0)
        found.append(replace(summary, told=summary.told - gone, abandoned=summary.abandoned + gone))
    return found


def _withdrawn(connection: Connection) -> dict[int, int]:
    """Number of trials whose reward was withdrawn and has not come back, by study."""
    key, kind = (events.c.study_id, events.c.trial), events.c.kind
    retracted, amended = (sa.func.max(sa.case((kind == name, events.c.seq))) for name in ("retract", "amend"))
    last = sa.select(*key).where(kind.in_(MENDS)).group_by(*key).having(retracted > sa.func.coalesce(amended, -1))
    gone = last.subquery()
    query = sa.select(gone.c.study_id, sa.func.count()).group_by(gone.c.study_id)
    return {int(study): int(n) for study, n in connection.execute(query)}


def delete_study(connection: Connection, study: int) -> None:
    """Remove everything a study consists of."""
    for table in (leases, arrays, snapshots, events):
        connection.execute(table.delete().where(table.c.study_id == study))
    connection.execute(studies.delete().where(studies.c.id == study))


def head(connection: Connection, study: int, lock: bool) -> Head:
    """Where the log ends; with `lock`, nobody else may append until we commit."""
    row = connection.execute(_LOCK if lock else _HEAD, {"study": study}).first()
    if row is None:
        raise StudyNotFoundError("the study has been deleted")
    return Head(int(row[0]), int(row[1]), bytes(row[2] or b""))


# -- events ----------------------------------------------------------------------------------------------------


def append(connection: Connection, study: int, new: Sequence[Event], before: bytes) -> bytes:
    """Add events at the end of the log, whose checksum is `before`; returns the new one. The caller holds the lock."""
    sealed = list(chain.linked(before, new))
    rows, newest = [{"study_id": study} | vars(event) for event in sealed], sealed[-1].chain
    total = {"study": study, "total": new[-1].seq + 1, "newest": newest}
    if connection.dialect.name == "postgresql" and len(rows) == 1:  # one round trip to the server instead of two
        connection.execute(_ADVANCE_AND_INSERT, rows[0] | total)
        return newest
    connection.execute(events.insert(), rows)
    connection.execute(_ADVANCE, total)
    return newest


def since(connection: Connection, study: int, start: int, stop: int, before: bytes) -> list[Event]:
    """Events number `start` to `stop` - 1, in order, verified: they follow the checksum `before`."""
    rows = connection.execute(_SINCE, {"study": study, "start": start, "stop": stop})
    found = [Event(*row) for row in rows]
    chain.verify(before, found, start, stop)
    return found


def all_before(connection: Connection, study: int, n_events: int, before: bytes) -> Iterator[Event]:
    """The first `n_events` events, verified, read in parts; `before` is the checksum of the study's row."""
    for start in range(0, n_events, PART):
        for event in since(connection, study, start, min(start + PART, n_events), before):
            before = event.chain
            yield event


def public_events(connection: Connection, study: int, start: int, limit: int | None) -> list[EventDict]:
    """Events number `start` and later as JSON data, at most `limit` of them, found by the key of the table."""
    columns = [events.c[name] for name in _PUBLIC]
    query = sa.select(*columns).where(events.c.study_id == study, events.c.seq >= start)
    rows = connection.execute(query.order_by(events.c.seq).limit(limit))
    return [cast("EventDict", dict(zip(_PUBLIC, row, strict=True))) for row in rows]


def asked(connection: Connection, study: int, trials: set[int], stop: int) -> dict[int, tuple[float, str]]:
    """When and by whom these trials were asked for, among the first `stop` events.

    Trial k cannot have been asked for before event k, so that of a long log only the end is read for late trials.
    """
    if not trials:
        return {}
    first, last = min(trials), max(trials)
    query = sa.select(events.c.trial, events.c.at, events.c.worker).where(
        events.c.study_id == study,
        events.c.seq >= first,
        events.c.seq < stop,
        events.c.kind == "ask",
        events.c.trial.between(first, last),
    )
    return {trial: (at, worker) for trial, at, worker in connection.execute(query) if trial in trials}


def moments(connection: Connection, study: int) -> list[tuple[str, int, float, str]]:
    """Kind, trial, time and worker of every event."""
    query = sa.select(events.c.kind, events.c.trial, events.c.at, events.c.worker).where(events.c.study_id == study)
    return [tuple(row) for row in connection.execute(query.order_by(events.c.seq))]


def beliefs(connection: Connection, study: int, start: int, stop: int) -> list[tuple[int, Belief]]:
    """(trial, beliefs in force) for the asks among events `start` to `stop` - 1 at which they were recorded."""
    query = sa.select(events.c.trial, events.c.detail).where(
        events.c.study_id == study,
        events.c.seq >= start,
        events.c.seq < stop,
        events.c.kind == "ask",
        events.c.detail.is_not(None),
    )
    found: list[tuple[int, Belief]] = []
    for trial, data in connection.execute(query.order_by(events.c.seq)):
        if belief_is_due(trial):  # the others store a restriction only
            detail: Detail = decompress(data)
            if "belief" in detail:
                found.append((trial, detail["belief"]))
    return found


# -- snapshots -------------------------------------------------------------------------------------------------


def write_snapshot(connection: Connection, study: int, n_events: int, library: str, data: bytes, newest: bytes) -> None:
    """Keep a compressed state after `n_events` events, the last with checksum `newest`; drop those nobody needs."""
    if head(connection, study, lock=True).snapshot_at >= n_events:
        return  # another process was faster
    checksum = chain.seal(n_events, FORMAT, library, newest, data)
    values = {"format": FORMAT, "library": library, "data": data, "chain": newest, "checksum": checksum}
    connection.execute(snapshots.insert().values(study_id=study, n_events=n_events, **values))
    connection.execute(studies.update().where(studies.c.id == study).values(snapshot_at=n_events))
    kept = sa.select(snapshots.c.n_events).where(snapshots.c.study_id == study)
    latest = [row[0] for row in connection.execute(kept.order_by(snapshots.c.n_events.desc()).limit(_KEPT))]
    connection.execute(snapshots.delete().where(snapshots.c.study_id == study, snapshots.c.n_events.not_in(latest)))


def read_snapshots(connection: Connection, study: int) -> Iterator[tuple[int, Snapshot, bytes]]:
    """(number of events, state, checksum of the last event) of the snapshots this version can read, newest first."""
    query = sa.select(snapshots).where(snapshots.c.study_id == study, snapshots.c.format.in_(READABLE))
    for row in connection.execute(query.order_by(snapshots.c.n_events.desc())).all():
        try:
            state = decompress(row.data)
        except (zlib.error, ValueError):  # an unreadable snapshot costs time only: the log is the truth
            continue
        yield int(row.n_events), state, row.chain


# -- arrays ----------------------------------------------------------------------------------------------------


def put_array(connection: Connection, study: int, array: AnyArray) -> str:
    """Store an array under its content hash and return the hash."""
    contiguous = np.ascontiguousarray(array)
    key = fingerprint(contiguous)
    seen = sa.select(arrays.c.part).where(arrays.c.study_id == study, arrays.c.hash == key)
    if connection.execute(seen).first() is None:
        raw = contiguous.tobytes()
        for part, start in enumerate(range(0, max(len(raw), 1), _PIECE)):
            connection.execute(
                arrays.insert().values(
                    study_id=study,
                    hash=key,
                    part=part,
                    dtype=contiguous.dtype.str,
                    shape=json.dumps(list(contiguous.shape)),
                    data=zlib.compress(raw[start : start + _PIECE], 6),
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
