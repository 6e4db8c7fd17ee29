"""Durable studies: experiments that outlive their processes, with many workers, and nothing lost."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alexp.algorithms.log import AbandonedTrialError
    from alexp.study.database.storage import Storage
    from alexp.study.errors import (
        HistoryReplacedError,
        LeaseError,
        NotOfferedError,
        ProblemMismatchError,
        ReplayError,
        StorageError,
        StorageWarning,
        StudyError,
        StudyExistsError,
        StudyNotFoundError,
        SuspiciousRewardError,
        UnknownOutcomeError,
    )
    from alexp.study.integrity.checking import CheckReport, check
    from alexp.study.integrity.salvaging import SalvageReport, salvage
    from alexp.study.opening import create_study, delete_study, list_studies, load_study
    from alexp.study.study import Study
    from alexp.study.view import StudySummary, StudyView, TellCounts
    from alexp.study.workers.held import HeldTrial

__all__ = [
    "AbandonedTrialError",
    "CheckReport",
    "HeldTrial",
    "HistoryReplacedError",
    "LeaseError",
    "NotOfferedError",
    "ProblemMismatchError",
    "ReplayError",
    "SalvageReport",
    "Storage",
    "StorageError",
    "StorageWarning",
    "Study",
    "StudyError",
    "StudyExistsError",
    "StudyNotFoundError",
    "StudySummary",
    "StudyView",
    "SuspiciousRewardError",
    "TellCounts",
    "UnknownOutcomeError",
    "check",
    "create_study",
    "delete_study",
    "list_studies",
    "load_study",
    "salvage",
]

# Reading tables needs no database, so that the names that do are loaded when they are used.
_HOMES = {
    "alexp.algorithms.log": ("AbandonedTrialError",),
    "alexp.study.database.storage": ("Storage",),
    "alexp.study.errors": tuple(
        name for name in __all__ if name.endswith(("Error", "Warning")) and name != "AbandonedTrialError"
    ),
    "alexp.study.integrity.checking": ("CheckReport", "check"),
    "alexp.study.integrity.salvaging": ("SalvageReport", "salvage"),
    "alexp.study.opening": ("create_study", "delete_study", "list_studies", "load_study"),
    "alexp.study.study": ("Study",),
    "alexp.study.view": ("StudySummary", "StudyView", "TellCounts"),
    "alexp.study.workers.held": ("HeldTrial",),
}
_LIGHT = {"alexp.algorithms.log", "alexp.study.errors", "alexp.study.view", "alexp.study.workers.held"}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'alexp.study' has no attribute {name!r}")
    needs_database = _HOME[name] not in _LIGHT  # the others come from a service as well, see `alexp.Client`
    if needs_database and (find_spec("sqlalchemy") is None or find_spec("alembic") is None):
        raise ModuleNotFoundError("durable studies need SQLAlchemy and Alembic: pip install 'alexp[study]'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
