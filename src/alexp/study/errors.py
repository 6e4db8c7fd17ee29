"""What can go wrong with a durable study, each with its own name."""

from __future__ import annotations


class StudyError(RuntimeError):
    """Base of everything that can go wrong with a durable study."""


class StorageError(StudyError):
    """The database cannot be read or written; nothing was changed."""


class StudyNotFoundError(StudyError, KeyError):
    """There is no study of that name."""

    __str__ = Exception.__str__


class StudyExistsError(StudyError, ValueError):
    """A study of that name exists already, or it exists with other settings."""


class ProblemMismatchError(StudyError, ValueError):
    """Models or domain are missing, or are not those the study was created with."""


class ReplayError(StudyError):
    """Applying the log did not give the trials that the log says were asked."""


class LeaseError(StudyError, ValueError):
    """A trial is held by another worker, or has no lease that could be prolonged."""
