"""Durable studies: experiments that outlive their processes, with many workers, and nothing lost."""

from importlib.util import find_spec

if find_spec("sqlalchemy") is None or find_spec("alembic") is None:
    raise ModuleNotFoundError("durable studies need SQLAlchemy and Alembic: pip install alexp[study]")

from alexp.algorithms.protocol.trials import AbandonedTrialError
from alexp.study.database.records import StudySummary
from alexp.study.database.storage import Storage
from alexp.study.errors import (
    ProblemMismatchError,
    ReplayError,
    StorageError,
    StudyError,
    StudyExistsError,
    StudyNotFoundError,
)
from alexp.study.opening import create_study, delete_study, list_studies, load_study
from alexp.study.study import Study
from alexp.study.view import StudyView

__all__ = [
    "AbandonedTrialError",
    "ProblemMismatchError",
    "ReplayError",
    "Storage",
    "StorageError",
    "Study",
    "StudyError",
    "StudyExistsError",
    "StudyNotFoundError",
    "StudySummary",
    "StudyView",
    "create_study",
    "delete_study",
    "list_studies",
    "load_study",
]
