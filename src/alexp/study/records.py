"""Tables of a study database, and functions that read and write their rows in their caller's transaction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Connection

from alexp.common.arrays import AnyArray
from alexp.common.codec import fingerprint, inflate
from alexp.common.memory import is_lack_of_memory
from alexp.study.errors import StudyNotFoundError, damaged
from alexp.study.events import digest
from alexp.study.view import StudySummary

VERSION = 1  # of the tables below; when they change, add 1 and a step to `storage.UPGRADES`
VERSION_TABLE = "alexp_version"

metadata = MetaData()

versions = Table(VERSION_TABLE, metadata, Column("version", Integer, primary_key=True))  # one row

studies = Table(
    "alexp_studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("algorithm", String(100), nullable=False),
    Column("settings", Text, nullable=False),  # JSON
    Column("entropy", Text, nullable=False),  # seed of all randomness, a whole number of up to 128 bits
    Column("problem", Text, nullable=False),  # JSON; arrays are references to alexp_arrays
    Column("probe", Text, nullable=False),  # JSON: fingerprint and sketch of the features
    Column("library", String(50), nullable=False),
    Column("created_at", Double, nullable=False),  # seconds since 1970, UTC
    Column("n_events", Integer, nullable=False),
    Column("snapshot_at", Integer, nullable=False),  # events in the newest snapshot; 0 if there is none
    Column("when_expired", String(10), nullable=False),  # "offer" or "abandon": see `create_study`
    Column("checksum", LargeBinary, nullable=False),  # of the columns above except the two counts; see `events`
    Column("chain", LargeBinary, nullable=False),  # checksum of the last event
    UniqueConstraint("name", name="alexp_studies_name"),
    sqlite_autoincrement=True,  # the id of a deleted study is never used again
)

events = Table(
    "alexp_events",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),  # 0, 1, 2, ...: the total order
    Column("kind", String(10), nullable=False),  # see `events.Kind`
    Column("trial", Integer, nullable=False),
    Column("candidate", Integer),
    Column("model", Integer),
    Column("explored", Boolean),
    Column("propensity", Double),
    Column("reward", Double),
    Column("at", Double, nullable=False),
    Column("worker", String(200), nullable=False),
    Column("detail", LargeBinary),  # compressed JSON: the round (see `events.Detail`), q and returns in force
    Column("key", String(120), nullable=False),  # of the call, and the position of the event in it
    Column("chain", LargeBinary, nullable=False),  # checksum of the event and all before it
    Index("alexp_events_key", "study_id", "key", unique=True),
)

snapshots = Table(
    "alexp_snapshots",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("n_events", Integer, primary_key=True),
    Column("format", Integer, nullable=False),
    Column("library", String(50), nullable=False),
    Column("data", LargeBinary, nullable=False),  # compressed JSON
    Column("chain", LargeBinary, nullable=False),  # checksum of the last event in it
    Column("checksum", LargeBinary, nullable=False),
)

arrays = Table(
    "alexp_arrays",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("hash", String(64), primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("dtype", String(20), nullable=False),
    Column("shape", Text, nullable=False),  # JSON
    Column("data", LargeBinary, nullable=False),  # compressed bytes of one part
)

# Which worker measures a pending trial, and until when it is reserved. Not part of the log: leases expire by the clock,
# and decisions of a study must not depend on that.
leases = Table(
    "alexp_leases",
    metadata,
    Column("study_id", Integer, ForeignKey("alexp_studies.id"), primary_key=True),
    Column("trial", Integer, primary_key=True),
    Column("worker", String(200), nullable=False),
    Column("seconds", Double, nullable=False),  # by which a heartbeat prolongs it
    Column("taken_at", Double, nullable=False),  # seconds since 1970, UTC
    Column("heartbeat_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)


# -- damage ----------------------------------------------------------------------------------------------------

_ILLEGIBLE = ("decode", "utf-8", "string or blob too big", "datatype mismatch")


def is_unreadable(error: Exception, connection: Connection) -> bool:
    """Whether the error concerns single values of a SQLite file, so that other rows can be read."""
    is_about_values = "no such" not in str(error) and "locked" not in str(error) and not is_lack_of_memory(error)
    return connection.dialect.name == "sqlite" and is_about_values


@contextmanager
def damage_errors(what: str, intact: int | None = None) -> Iterator[None]:
    """Turn errors about values of a wrong type into `StorageError`; a lack of memory is raised unchanged."""
    try:
        yield
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        if is_lack_of_memory(error):
            raise
        raise damaged(f"{what} cannot be read ({type(error).__name__})", intact) from error
    except sa.exc.DBAPIError as error:
        if any(word in str(error.orig).lower() for word in _ILLEGIBLE):
            raise damaged(f"{what} cannot be read (it is not text)", intact) from error
        raise


_PIECE = 32 * 1024 * 1024  # bytes of an array per row; databases limit the size of one value

# Built once: these run at every ask and tell.
_HEAD = sa.select(studies.c.n_events, studies.c.snapshot_at, studies.c.chain).where(
    studies.c.id == sa.bindparam("study")
)
_LOCK = _HEAD.with_for_update()


# -- studies ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyRow:
    """The constant columns of a row of the table `studies`."""

    id: int
    name: str
    algorithm: str
    settings: str
    entropy: str
    problem: str
    probe: str
    library: str
    created_at: float
    when_expired: str


def row_checksum(row: StudyRow) -> bytes:
    """c_0, the checksum of the row of a study. The row refers to the arrays of the problem by their hashes."""
    facts = (row.name, row.algorithm, row.settings, row.entropy, row.problem, row.probe, row.library, row.created_at)
    return digest(b"", ("alexp study", *facts, row.when_expired))


class Head(NamedTuple):
    """The end of a log: number of events, number of events in the newest snapshot, checksum of the last event."""

    n_events: int
    snapshot_at: int
    chain: bytes


_ROW_COLUMNS = [studies.c[field.name] for field in fields(StudyRow)]
_ROWS = sa.select(*_ROW_COLUMNS, studies.c.checksum)


def insert_study(
    connection: Connection,
    name: str,
    algorithm: str,
    settings: str,
    entropy: str,
    library: str,
    created_at: float,
    when_expired: str,
) -> int:
    """Create the row of a study, without its problem and checksums, and return its number."""
    values = {"name": name, "algorithm": algorithm, "settings": settings, "entropy": entropy, "library": library}
    empty = {"problem": "", "probe": "", "n_events": 0, "snapshot_at": 0, "checksum": b"", "chain": b""}
    row = values | empty | {"created_at": created_at, "when_expired": when_expired}
    result = connection.execute(studies.insert().values(**row))
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def set_problem(connection: Connection, study: int, problem: str, probe: str) -> StudyRow:
    """Complete the row of a new study: its problem, and the checksum of the row."""
    this = studies.c.id == study
    connection.execute(studies.update().where(this).values(problem=problem, probe=probe))
    row = StudyRow(*connection.execute(sa.select(*_ROW_COLUMNS).where(this)).one())
    first = row_checksum(row)
    connection.execute(studies.update().where(this).values(checksum=first, chain=first))
    return row


def find_study(connection: Connection, name: str) -> StudyRow | None:
    """The row of the study with this name, verified."""
    with damage_errors(f"what is stored about study {name!r} itself"):
        found = connection.execute(_ROWS.where(studies.c.name == name)).first()
    if found is None:
        _check_not_lost(connection, name)
        return None
    return _verified(*found)


def _verified(*values: Any) -> StudyRow:
    row = StudyRow(*values[:-1])
    with damage_errors(f"what is stored about study {row.name!r} itself"):
        if row_checksum(row) == values[-1]:
            return row
    raise damaged(f"what is stored about study {row.name!r} itself has a wrong checksum")


def _check_not_lost(connection: Connection, name: str) -> None:
    """Raise if the study may be missing only because its row or the index is damaged."""
    with damage_errors("the table of studies"):
        rows = connection.execute(_ROWS).all()
    for row in rows:
        if _verified(*row).name == name:
            raise damaged(f"study {name!r} exists, but is missing in the index of the table of studies")
    for table in (events, snapshots, arrays):
        lost = sa.select(table.c.study_id).where(table.c.study_id.not_in([row.id for row in rows])).limit(1)
        with damage_errors(f"the table {table.name}"):
            if connection.execute(lost).first() is not None:
                raise damaged(f"the table {table.name} holds rows of a study that is missing in the table of studies")


def all_studies(connection: Connection) -> list[StudySummary]:
    """All studies by name, with their numbers of trials and the time of their latest event."""
    own = (studies.c.name, studies.c.algorithm, studies.c.created_at)
    trials = sa.func.count(sa.case((events.c.kind.in_(("ask", "observe")), 1)))
    joined = studies.outerjoin(events, events.c.study_id == studies.c.id)
    query = sa.select(studies.c.id, *own, trials, sa.func.max(events.c.at)).select_from(joined)
    with damage_errors("the table of studies"):
        for values in connection.execute(_ROWS).all():
            _verified(*values)
    ends = _ends(connection)
    found = []
    rows = connection.execute(query.group_by(studies.c.id, *own).order_by(studies.c.name))
    for study, name, algorithm, created_at, total, latest in rows:
        told, abandoned, failed = (sum(ends.get((study, kind), 0) for kind in kinds) for kinds in _STATES)
        counts = (total, told, total - told - abandoned - failed, abandoned, failed)
        found.append(StudySummary(name, algorithm, created_at, *counts, latest))
    return found


_STATES = (("tell", "observe", "amend"), ("abandon", "retract"), ("fail",))  # told, abandoned, failed


def _ends(connection: Connection) -> dict[tuple[int, str], int]:
    """Number of trials by study and kind of their last event, for trials with an event after their ask."""
    key = (events.c.study_id, events.c.trial)
    after = sa.select(*key, sa.func.max(events.c.seq).label("seq")).where(events.c.kind.not_in(("ask", "arm", "add")))
    last = after.group_by(*key).subquery()
    same = sa.and_(events.c.study_id == last.c.study_id, events.c.seq == last.c.seq)
    group = (events.c.study_id, events.c.kind)
    query = sa.select(*group, sa.func.count()).select_from(events.join(last, same)).group_by(*group)
    return {(int(study), str(kind)): int(n) for study, kind, n in connection.execute(query)}


def delete_study(connection: Connection, study: int) -> None:
    """Remove a study with its log, snapshots, arrays and leases."""
    for table in (leases, arrays, snapshots, events):
        connection.execute(table.delete().where(table.c.study_id == study))
    connection.execute(studies.delete().where(studies.c.id == study))


def head(connection: Connection, study: int, lock: bool) -> Head:
    """The end of the log; with `lock`, no other process can append until the commit."""
    with damage_errors("the end of the log of the study"):
        row = connection.execute(_LOCK if lock else _HEAD, {"study": study}).first()
        if row is not None:
            return Head(int(row[0]), int(row[1]), bytes(row[2] or b""))
    raise StudyNotFoundError("the study has been deleted")


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
    with damage_errors(f"a stored matrix ({key[:12]}...)"):
        rows = connection.execute(query).all()
        if not rows:
            raise damaged(f"a stored matrix ({key[:12]}...) is missing")
        raw = b"".join(inflate(row.data, _PIECE) for row in rows)
        array = np.frombuffer(raw, dtype=np.dtype(rows[0].dtype)).reshape(json.loads(rows[0].shape)).copy()
    if fingerprint(array) != key:
        raise damaged(f"a stored matrix ({key[:12]}...) has a wrong checksum")
    return array
