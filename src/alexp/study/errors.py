"""Errors of durable studies."""

from __future__ import annotations


class StudyError(RuntimeError):
    """Base of all errors of durable studies."""


class StorageError(StudyError):
    """The database cannot be read or written, or is damaged. The message says whether data were changed.

    `intact` is the number of events before the first damaged one, where that is known.
    """

    intact: int | None = None


class UnknownOutcomeError(StorageError):
    """The connection was lost during a commit: it is unknown whether the call was stored.

    Repeating the call with the same `key` is safe: if it was stored, the stored result is returned.
    """

    key: str | None = None


class HistoryReplacedError(StorageError):
    """The log of a study lacks events that this process has read: the database was replaced by another copy.

    The call that raises it has changed nothing. The next call continues from the log as it is stored now.
    """


class StorageWarning(UserWarning):
    """A part of the database is damaged that is not needed, such as a snapshot."""


class StudyNotFoundError(StudyError, KeyError):
    """There is no study of that name."""

    __str__ = Exception.__str__


class StudyExistsError(StudyError, ValueError):
    """A study of that name exists already, or it exists with other settings."""


class ProblemMismatchError(StudyError, ValueError):
    """Models or domain are missing, or are not those the study was created with."""


class ReplayError(StudyError):
    """Replaying the log gives other trials than the log records."""


class SuspiciousRewardError(StudyError, ValueError):
    """A reward looks like a typing error, and `sure` is False."""


class NotOfferedError(StudyError, AttributeError):
    """The algorithm of the study does not support this method."""


class LeaseError(StudyError, ValueError):
    """A trial is held by another worker, or has no lease that could be prolonged."""


def damaged(what: str, intact: int | None = None) -> StorageError:
    """The error that says what is damaged, and how many events before it are not."""
    left = (
        "" if intact is None else f" The {intact} events before it are intact." if intact else " It is the first one."
    )
    error = StorageError(
        f"the database is damaged: {what}.{left} Restore it from a backup, or copy what is intact into a new one with "
        "`alexp study salvage SOURCE TARGET`"
    )
    error.intact = intact
    return error
