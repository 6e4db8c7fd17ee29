"""Rows of studies and of their arrays. Functions work in their caller's transaction."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.common.arrays import AnyArray
from alexp.common.codec import fingerprint, inflate
from alexp.study.errors import damaged
from alexp.study.events import GROWS, digest
from alexp.study.storage import arrays, damage_errors, events, leases, snapshots, studies
from alexp.study.view import StudySummary

_PIECE = 32 * 1024 * 1024  # bytes of an array per row; databases limit the size of one value

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
    after = sa.select(*key, sa.func.max(events.c.seq).label("seq")).where(events.c.kind.not_in(("ask", *GROWS)))
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
