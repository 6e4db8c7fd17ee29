"""Checking a study: everything that is stored of it is verified, replayed and compared."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy.engine import Connection

from alexp.common.codec import Packable
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.study.database import logbook, records, resuming
from alexp.study.database.addresses import DEFAULT
from alexp.study.database.chain import beginning
from alexp.study.database.damage import damaged
from alexp.study.database.records import StudyRow
from alexp.study.errors import StorageError, StorageWarning, StudyError
from alexp.study.opening import Location, find_row, load_study, storage_at
from alexp.study.study import Study

_TOLERANCE = 1e-6  # of numbers that a snapshot of another version may have computed a little differently


@dataclass
class CheckReport:
    """What was found in a study: the events it says it has, how many from the first on are intact, and problems.

    `taken` counts decisions that were made on a device that is not here, and taken from the log, not made again.
    """

    name: str
    events: int = 0
    intact: int = 0
    snapshots: int = 0
    problems: list[str] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.problems

    def __str__(self) -> str:
        if self.ok:
            taken = "".join(
                f"; {n} decision{'s' * (n != 1)} made on {device}, taken from the log and not made again"
                for device, n in sorted(self.taken.items())
            )
            return (
                f"{self.name}: {self.events} events and {self.snapshots} snapshots verified, replayed and compared: "
                f"all is well{taken}"
            )
        found = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.name}: damaged; {self.intact} of {self.events} events are intact{found}"


def check(
    name: str, storage: Location = DEFAULT, models: ModelClass | None = None, domain: Domain | None = None
) -> CheckReport:
    """Verify all checksums of a study, also behind its snapshots, apply its log from the start, and compare.

    Opening a study verifies what came after the newest snapshot, and counts the rest. `models` and `domain` are needed
    if they hold code or objects of your own. Nothing is written, except that an old database is brought up to date.
    """
    where, report = storage_at(storage), CheckReport(name)
    row = find_row(where, name)
    with where.reading() as connection:
        for look in (_look_at_file, _look_at_log, _look_at_snapshots):
            with _noted(report):
                look(connection, row, report)
    with _noted(report), warnings.catch_warnings():
        warnings.simplefilter("ignore", StorageWarning)  # has been reported
        _replay(load_study(name, where, models, domain), report)
    return report


@contextmanager
def _noted(report: CheckReport) -> Iterator[None]:
    try:
        yield
    except StudyError as error:
        if isinstance(error, StorageError) and error.intact is not None:
            report.intact = min(error.intact, report.events)
        if str(error) not in report.problems:
            report.problems.append(str(error))


def _look_at_file(connection: Connection, row: StudyRow, report: CheckReport) -> None:
    """Whether the file is sound: SQLite can tell, a server has its own means."""
    if connection.dialect.name == "sqlite":
        said = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        report.problems += [f"SQLite says: {text}" for text in said if text != "ok"]


def _look_at_log(connection: Connection, row: StudyRow, report: CheckReport) -> None:
    head, newest = records.head(connection, row.id, lock=False), beginning(row)
    report.events = head.n_events
    for event in logbook.all_before(connection, row.id, head.n_events, newest):
        newest, report.intact = event.chain, event.seq + 1
    resuming.check_length(connection, row.id, head.n_events)
    if newest != head.chain:
        raise damaged("the last event is not the one that the study says it is", max(head.n_events - 1, 0))


def _look_at_snapshots(connection: Connection, row: StudyRow, report: CheckReport) -> None:
    head, kept = records.head(connection, row.id, lock=False), resuming.snapshots_of(connection, row.id)
    report.snapshots, spoiled = len(kept), set[int]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StorageWarning)
        for _ in resuming.intact_snapshots(connection, row.id, head.n_events, spoiled):
            pass
    report.problems += [f"the snapshot after {number} events is damaged; it can be done without" for number in spoiled]
    if head.snapshot_at not in (0, *kept):
        report.problems.append(f"the snapshot after {head.snapshot_at} events is missing; it can be done without")


def _replay(study: Study, report: CheckReport) -> None:
    replayed = study.replayed()
    opened = study.refresh()
    if opened.n_events != replayed.n_events:  # somebody has acted meanwhile
        replayed = study.replayed()
    report.taken = dict(replayed.taken)
    old, new = opened.snapshot(), replayed.snapshot()
    alike = {"log": _alike(old["log"], new["log"], 0.0)}
    if not (replayed.taken and replayed.algorithm.asks_matter()):  # what asks on another device left is not here
        alike["state"] = _alike(old["state"], new["state"], _TOLERANCE)
    for part in (part for part, is_alike in alike.items() if not is_alike):
        report.problems.append(f"replaying the log gives another {part} than the newest snapshot and what followed")


def _alike(old: Packable, new: Packable, tolerance: float) -> bool:
    """Equal up to what another version of the library may have computed a little differently."""
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
