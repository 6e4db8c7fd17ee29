"""Reading and writing the rows of a study. Every function works inside its caller's transaction."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.common.arrays import AnyArray
from alexp.common.codec import fingerprint, inflate
from alexp.study.database import chain
from alexp.study.database.damage import damaged, legible
from alexp.study.database.events import MENDS
from alexp.study.database.schema import arrays, events, leases, snapshots, studies
from alexp.study.errors import StudyNotFoundError
from alexp.study.view import StudySummary

_PIECE = 32 * 1024 * 1024  # bytes of an array per row; databases limit the size of one value

# Built once: these run at every ask and tell.
_HEAD = sa.select(studies.c.n_events, studies.c.snapshot_at, studies.c.chain).where(
    studies.c.id == sa.bindparam("study")
)
_LOCK = _HEAD.with_for_update()


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
    """The row of the study with this name, verified."""
    with legible(f"what is stored about study {name!r} itself"):
        found = connection.execute(_ROWS.where(studies.c.name == name)).first()
    if found is None:
        _nothing_is_lost(connection, name)
        return None
    return _verified(*found)


def _verified(*values: Any) -> StudyRow:
    row = StudyRow(*values[:-1])
    with legible(f"what is stored about study {row.name!r} itself"):
        if chain.beginning(row) == values[-1]:
            return row
    raise damaged(f"what is stored about study {row.name!r} itself has a wrong checksum")


def _nothing_is_lost(connection: Connection, name: str) -> None:
    """Whoever finds no study of a name must be sure that there is none, and not one with a damaged row or index."""
    with legible("the table of studies"):
        rows = connection.execute(_ROWS).all()
    for row in rows:
        if _verified(*row).name == name:
            raise damaged(f"study {name!r} is there, but the index of the table of studies does not know it")
    for table in (events, snapshots, arrays):
        lost = sa.select(table.c.study_id).where(table.c.study_id.not_in([row.id for row in rows])).limit(1)
        with legible(f"the table {table.name}"):
            if connection.execute(lost).first() is not None:
                raise damaged(f"the table {table.name} holds rows of a study that the table of studies does not know")


def all_studies(connection: Connection) -> list[StudySummary]:
    """All studies by name, with their numbers of trials and the time of their latest event."""
    asked, told, observed, abandoned = (
        sa.func.count(sa.case((events.c.kind == kind, 1))) for kind in ("ask", "tell", "observe", "abandon")
    )
    own = (studies.c.name, studies.c.algorithm, studies.c.created_at)
    counts = (asked + observed, told + observed, asked - told - abandoned, abandoned)
    joined = studies.outerjoin(events, events.c.study_id == studies.c.id)
    query = sa.select(studies.c.id, *own, *counts, sa.func.max(events.c.at)).select_from(joined)
    with legible("the table of studies"):
        for values in connection.execute(_ROWS).all():
            _verified(*values)
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
    with legible("where the log of the study ends"):
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
    with legible(f"a stored matrix ({key[:12]}...)"):
        rows = connection.execute(query).all()
        if not rows:
            raise damaged(f"a stored matrix ({key[:12]}...) is missing")
        raw = b"".join(inflate(row.data, _PIECE) for row in rows)
        array = np.frombuffer(raw, dtype=np.dtype(rows[0].dtype)).reshape(json.loads(rows[0].shape)).copy()
    if fingerprint(array) != key:
        raise damaged(f"a stored matrix ({key[:12]}...) has a wrong checksum")
    return array
