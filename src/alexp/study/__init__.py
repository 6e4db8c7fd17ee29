"""Durable studies: runs that are stored in a database, for many processes and many workers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from alexp.common.extras import require

if TYPE_CHECKING:
    from alexp.algorithms.log import AbandonedTrialError
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
    from alexp.study.integrity import CheckReport, SalvageReport, check, salvage
    from alexp.study.opening import create_study, delete_study, list_studies, load_study
    from alexp.study.storage import Storage
    from alexp.study.study import Study
    from alexp.study.view import HeldTrial, StudySummary, StudyView, TellCounts

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

# Names are imported when they are first used: reading tables and `alexp.Client` need no database.
_NAMES_BY_MODULE = {
    "alexp.algorithms.log": ("AbandonedTrialError",),
    "alexp.study.errors": tuple(
        name for name in __all__ if name.endswith(("Error", "Warning")) and name != "AbandonedTrialError"
    ),
    "alexp.study.view": ("HeldTrial", "StudySummary", "StudyView", "TellCounts"),
    "alexp.study.storage": ("Storage",),
    "alexp.study.integrity": ("CheckReport", "SalvageReport", "check", "salvage"),
    "alexp.study.opening": ("create_study", "delete_study", "list_studies", "load_study"),
    "alexp.study.study": ("Study",),
}
_WITHOUT_DATABASE = {"alexp.algorithms.log", "alexp.study.errors", "alexp.study.view"}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'alexp.study' has no attribute {name!r}")
    if _MODULE_OF[name] not in _WITHOUT_DATABASE:
        require("sqlalchemy", subject="a study")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value
