"""What can go wrong with a durable study, each with its own name."""

from __future__ import annotations


class StudyError(RuntimeError):
    """Base of everything that can go wrong with a durable study."""


class StorageError(StudyError):
    """The database cannot be read or written, or is damaged; the message says what became of the data.

    `intact` is the number of events before the first damaged one, where that is known.
    """

    intact: int | None = None


class UnknownOutcomeError(StorageError):
    """The connection was lost during a commit and did not come back: nobody can say whether the call was stored.

    Repeating the call with the same `key` is safe: if it was stored, it returns what happened then.
    """

    key: str | None = None


class HistoryReplacedError(StorageError):
    """The log of a study lacks events that this process has seen: an older or another copy of the database is there.

    Nothing was changed by the call that raises it. The next call goes on from the log as it is stored now.
    """


class StorageWarning(UserWarning):
    """Something in the database is damaged that can be done without."""


class StudyNotFoundError(StudyError, KeyError):
    """There is no study of that name."""

    __str__ = Exception.__str__


class StudyExistsError(StudyError, ValueError):
    """A study of that name exists already, or it exists with other settings."""


class ProblemMismatchError(StudyError, ValueError):
    """Models or domain are missing, or are not those the study was created with."""


class ReplayError(StudyError):
    """Applying the log did not give the trials that the log says were asked."""


class SuspiciousRewardError(StudyError, ValueError):
    """A reward looks like a typing error, and nobody has said that it is right."""


class NotOfferedError(StudyError, AttributeError):
    """The algorithm of the study does not have what was asked for."""


class LeaseError(StudyError, ValueError):
    """A trial is held by another worker, or has no lease that could be prolonged."""
