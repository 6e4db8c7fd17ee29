"""Checking databases of studies, and copying what is intact of a damaged one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.common.codec import Packable, unpack
from alexp.common.memory import is_lack_of_memory
from alexp.common.progress import Listener, listening, steps
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.study import logbook, records
from alexp.study.errors import StorageError, StorageWarning, StudyError, StudyExistsError, StudyNotFoundError, damaged
from alexp.study.events import Event, follows
from alexp.study.logbook import StoredSnapshot
from alexp.study.opening import Location, find_row, load_study, storage_at
from alexp.study.records import StudyRow, row_checksum
from alexp.study.storage import DEFAULT, Storage, arrays, events, snapshots, stored_version, studies
from alexp.study.study import Study

_TOLERANCE = 1e-6  # of numbers that another processor or version of the library may compute differently


@dataclass
class CheckReport:
    """Result of `check`: number of events of a study, how many from the first on are intact, and problems.

    `taken` counts, by device, decisions that this process cannot repeat and that were taken from the log, and
    `between` those between the first and the last correction, which are not made again either.
    """

    name: str
    events: int = 0
    intact: int = 0
    snapshots: int = 0
    problems: list[str] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)
    between: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.problems

    def __str__(self) -> str:
        if self.ok:
            made = {f"made on {device}": n for device, n in sorted(self.taken.items())}
            made |= {"between corrections": self.between} if self.between else {}
            taken = "".join(
                f"; {n} decision{'s' * (n != 1)} {where}, taken from the log and not made again"
                for where, n in made.items()
            )
            return (
                f"{self.name}: {self.events} events and {self.snapshots} snapshots verified, replayed and compared: "
                f"all is well{taken}"
            )
        found = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.name}: damaged; {self.intact} of {self.events} events are intact{found}"


def check(
    name: str,
    storage: Location = DEFAULT,
    models: ModelClass | None = None,
    domain: Domain | None = None,
    *,
    progress: bool | Listener = False,
) -> CheckReport:
    """Verify all checksums of a study, replay its log from the first event, and compare with the newest snapshot.

    Opening a study verifies only the events after the newest snapshot, and counts the others. `models` and `domain` are
    needed if they hold code or objects of your own. Nothing is written. `progress` as for `Study.view`.
    """
    where, report = storage_at(storage), CheckReport(name)
    row = find_row(where, name)
    with listening(progress):
        _check(where, row, report, models, domain)
    return report


def _check(
    where: Storage, row: StudyRow, report: CheckReport, models: ModelClass | None, domain: Domain | None
) -> None:
    with where.reading() as connection:
        for step in (_check_file, _check_log, _check_snapshots):
            with _recorded_in(report):
                step(connection, row, report)
    with _recorded_in(report), warnings.catch_warnings():
        warnings.simplefilter("ignore", StorageWarning)  # reported above
        _replay(load_study(report.name, where, models, domain), report)


@contextmanager
def _recorded_in(report: CheckReport) -> Iterator[None]:
    try:
        yield
    except StudyError as error:
        if isinstance(error, StorageError) and error.intact is not None:
            report.intact = min(error.intact, report.events)
        if str(error) not in report.problems:
            report.problems.append(str(error))


def _check_file(connection: Connection, row: StudyRow, report: CheckReport) -> None:
    """Run the integrity check of SQLite; servers have their own."""
    if connection.dialect.name == "sqlite":
        said = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        report.problems += [f"SQLite says: {text}" for text in said if text != "ok"]


def _check_log(connection: Connection, row: StudyRow, report: CheckReport) -> None:
    head, newest = logbook.head(connection, row.id, lock=False), row_checksum(row)
    report.events = head.n_events
    stored = logbook.read_all(connection, row.id, head.n_events, newest)
    for event in steps("verifying the log", stored, head.n_events):
        newest, report.intact = event.chain, event.seq + 1
    logbook.check_length(connection, row.id, head.n_events)
    if newest != head.chain:
        raise damaged("the last event is not the one that the study records", max(head.n_events - 1, 0))


def _check_snapshots(connection: Connection, row: StudyRow, report: CheckReport) -> None:
    head, kept = logbook.head(connection, row.id, lock=False), logbook.snapshots_of(connection, row.id)
    report.snapshots, spoiled = len(kept), set[int]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StorageWarning)
        for _ in logbook.intact_snapshots(connection, row.id, head.n_events, spoiled):
            pass
    report.problems += [f"the snapshot after {number} events is damaged; it is not needed" for number in spoiled]
    if head.snapshot_at not in (0, *kept):
        report.problems.append(f"the snapshot after {head.snapshot_at} events is missing; it is not needed")


def _replay(study: Study, report: CheckReport) -> None:
    replayed = study.replayed()
    opened = study.refresh()
    if opened.n_events != replayed.n_events:  # another process has acted meanwhile
        replayed = study.replayed()
    report.taken, report.between = dict(replayed.taken), replayed.n_noted
    old, new = opened.snapshot(), replayed.snapshot()
    alike = {"log": _alike(old["log"], new["log"], 0.0)}
    if not (replayed.taken and replayed.algorithm.asks_matter()):  # asks on another device changed the state
        alike["state"] = _alike(unpack(old["state"]), unpack(new["state"]), _TOLERANCE)
    for part in (part for part, is_alike in alike.items() if not is_alike):
        report.problems.append(f"replaying the log gives another {part} than the newest snapshot and what followed")


def _alike(old: Packable, new: Packable, tolerance: float) -> bool:
    """Whether two states are equal, numbers up to `tolerance`."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_alike(old[key], new[key], tolerance) for key in old)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(_alike(one, other, tolerance) for one, other in zip(old, new, strict=True))
    if isinstance(old, np.ndarray | float) and isinstance(new, np.ndarray | float):
        one, other = np.asarray(old), np.asarray(new)
        if one.shape != other.shape or one.dtype.kind not in "fc":
            return np.array_equal(one, other)
        return np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    return bool(old == new)


# -- salvage ---------------------------------------------------------------------------------------------------

_ILLEGIBLE = (sa.exc.DBAPIError, TypeError, ValueError, OverflowError, LookupError)
_MOST_FAILURES = 100  # unreadable rows of a table, after which the rest is skipped


@dataclass
class SalvageReport:
    """Result of `salvage` for one study: its first `saved` of `events` events, and what was lost."""

    name: str
    events: int
    saved: int = 0
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = f"{self.name}: {self.saved} of {self.events} events saved"
        return said + "".join(f"\n  lost: {what}" for what in self.lost)


@dataclass(frozen=True)
class _Rescue:
    """The intact parts of one study."""

    row: StudyRow
    log: list[Event]
    snapshots: list[StoredSnapshot]
    arrays: list[dict[str, Any]]


def salvage(source: Location, target: Location) -> list[SalvageReport]:
    """Copy the intact parts of all studies into a new storage; the source is not changed.

    Of every log, the events before the first damaged one are copied, with the intact snapshots and matrices.
    """
    old, new = storage_at(source), storage_at(target)
    if old.url == new.url:
        raise ValueError("target must be another storage than source")
    if old.path is not None and not old.path.exists():
        raise StudyNotFoundError(f"there is no database {old.describe()}")
    if new.exists():
        raise StudyExistsError(f"{new.describe()} holds studies already; target must be a new storage")
    reports: list[SalvageReport] = []
    old.check_version(_version_of(old))
    with old.reading() as connection:
        rescues = list(_rescued(connection, reports))
    is_there = new.path is None or new.path.exists()
    try:
        new.prepare()
        with new.writing() as connection:
            for rescue in rescues:
                _store(connection, rescue)
    except BaseException:
        if not is_there:  # leave no empty database behind
            new.close()
            for suffix in ("", "-wal", "-shm"):
                Path(f"{new.path}{suffix}").unlink(missing_ok=True)
        raise
    return reports


def _version_of(storage: Storage) -> int | None:
    with suppress(StorageError), storage.reading() as connection:  # the record of the version may be damaged, too
        return stored_version(connection)
    return None


def _rescued(connection: Connection, reports: list[SalvageReport]) -> Iterator[_Rescue]:
    for number, values in enumerate(_rows(connection, studies)):
        name, said = str(values["name"]), values["n_events"]
        report = SalvageReport(name, said if isinstance(said, int) else 0)
        reports.append(report)
        row = StudyRow(**{entry.name: values[entry.name] for entry in fields(StudyRow)})
        log = _by_number(_rows(connection, events, row.id))
        try:
            first = row_checksum(row)
        except (TypeError, ValueError):
            first = b""
        if first != values["checksum"] and not (0 in log and follows(first, log[0])):
            report.lost.append(f"the study itself, row {number} of {studies.name}: its checksum is wrong")
            continue
        yield _rescue(connection, row, log, report)
    known = [values["id"] for values in _rows(connection, studies)]
    orphans = sa.select(sa.func.count()).select_from(events).where(events.c.study_id.not_in(known))
    if lost := connection.execute(orphans).scalar():
        reports.append(SalvageReport("(unknown)", int(lost), 0, ["the study itself: its row is missing"]))


def _rescue(connection: Connection, row: StudyRow, log: dict[int, Event], report: SalvageReport) -> _Rescue:
    intact: list[Event] = []
    after = {0: row_checksum(row)}
    while (event := log.get(len(intact))) is not None and follows(after[len(intact)], event):
        intact.append(event)
        after[len(intact)] = event.chain
    report.saved = len(intact)
    if report.saved < report.events:
        why = "is missing" if report.saved not in log else "is damaged"
        report.lost.append(f"event {report.saved}, which {why}, and all after it")
    kept = []
    for values in _rows(connection, snapshots, row.id):
        shot = StoredSnapshot(**{entry.name: values[entry.name] for entry in fields(StoredSnapshot)})
        if shot.is_intact and after.get(shot.n_events) == shot.chain:
            kept.append(shot)
        else:
            report.lost.append(f"the snapshot after {shot.n_events} events, which is not needed")
    return _Rescue(row, intact, kept, list(_matrices(connection, row, report)))


def _matrices(connection: Connection, row: StudyRow, report: SalvageReport) -> Iterator[dict[str, Any]]:
    """The rows of the intact matrices that the problem of a study refers to."""
    found = list(_rows(connection, arrays, row.id))
    for key in _array_hashes(json.loads(row.problem), json.loads(row.probe)):
        try:
            records.get_array(connection, row.id, key)
        except (StorageError, sa.exc.DBAPIError) as error:
            if is_lack_of_memory(error):
                raise
            report.lost.append(f"the matrix {key[:12]}..., without which the study cannot be opened")
            continue
        yield from (values for values in found if values["hash"] == key)


def _array_hashes(*texts: object) -> set[str]:
    """Hashes of all arrays that JSON data refer to."""
    keys: set[str] = set()
    for item in texts:
        if isinstance(item, dict):
            keys |= {str(item["__array__"])} if "__array__" in item else _array_hashes(*item.values())
        elif isinstance(item, list):
            keys |= _array_hashes(*item)
    return keys


# -- reading damaged tables ------------------------------------------------------------------------------------


def _by_number(rows: Iterable[dict[str, Any]]) -> dict[int, Event]:
    names = [entry.name for entry in fields(Event)]
    return {values["seq"]: Event(**{name: values[name] for name in names}) for values in rows}


def _rows(connection: Connection, table: sa.Table, study: int | None = None) -> Iterator[dict[str, Any]]:
    """The readable rows of a table, read by its index and, in SQLite, also without it; lost columns are None."""
    try:
        there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    except (*_ILLEGIBLE, sa.exc.NoSuchTableError) as error:
        if is_lack_of_memory(error):
            raise
        raise damaged(f"the table {table.name} is lost, and nothing can be salvaged from it") from None
    columns = [column if column.name in there else sa.null().label(column.name) for column in table.columns]
    keys = [column for column in table.primary_key.columns if column.name in there]
    query = sa.select(*columns).order_by(*keys)
    if study is not None:
        query = query.where(table.c.study_id == study)
    seen = set()
    for attempt in (query, query.order_by(None).with_hint(table, "NOT INDEXED", "sqlite")):
        for row in _as_far_as_possible(connection, attempt):
            key = tuple(row[column.name] for column in keys)
            if key not in seen:
                seen.add(key)
                yield row
        if connection.dialect.name != "sqlite":
            return


def _as_far_as_possible(connection: Connection, query: sa.Select[Any]) -> Iterator[dict[str, Any]]:
    """The rows of a query, without unreadable ones."""
    number = failures = 0
    while failures < _MOST_FAILURES:
        try:
            for row in connection.execute(query.offset(number)):
                yield dict(row._mapping)
                number += 1
            return
        except _ILLEGIBLE as error:
            if connection.dialect.name != "sqlite" or is_lack_of_memory(error):
                raise
            number, failures = number + 1, failures + 1


def _store(connection: Connection, rescue: _Rescue) -> None:
    """Write a study under a new number."""
    log, row = rescue.log, rescue.row
    newest = log[-1].chain if log else row_checksum(row)
    facts = {key: value for key, value in vars(row).items() if key != "id"}
    at = max((shot.n_events for shot in rescue.snapshots), default=0)
    head = {"n_events": len(log), "snapshot_at": at, "checksum": row_checksum(row), "chain": newest}
    result = connection.execute(studies.insert().values(**facts, **head))
    assert result.inserted_primary_key is not None
    number = {"study_id": int(result.inserted_primary_key[0])}
    for table, rows in (
        (events, [vars(event) for event in log]),
        (snapshots, [vars(shot) for shot in rescue.snapshots]),
        (arrays, rescue.arrays),
    ):
        if rows:
            connection.execute(table.insert(), [row | number for row in rows])
