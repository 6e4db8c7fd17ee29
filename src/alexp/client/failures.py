"""Answers that are errors, as the exceptions that a study beside us would have raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from alexp.algorithms import AbandonedTrialError, AlreadyToldError, NotCertified, NotToldError, UnknownTrialError
from alexp.algorithms.log import NoRewardYetError
from alexp.common.codec import State
from alexp.common.memory import OutOfMemoryError
from alexp.study.errors import (
    HistoryReplacedError,
    LeaseError,
    NotOfferedError,
    ProblemMismatchError,
    ReplayError,
    StorageError,
    StudyError,
    StudyExistsError,
    StudyNotFoundError,
    SuspiciousRewardError,
    UnknownOutcomeError,
)

if TYPE_CHECKING:
    import httpx

# By the last part of the problem's type, `urn:alexp:already-told`.
_NAMED: Mapping[str, type[Exception]] = {
    "study-not-found": StudyNotFoundError,
    "trial-not-found": UnknownTrialError,
    "already-told": AlreadyToldError,
    "abandoned": AbandonedTrialError,
    "not-told": NotToldError,
    "suspicious-reward": SuspiciousRewardError,
    "study-exists": StudyExistsError,
    "problem-mismatch": ProblemMismatchError,
    "held-by-another": LeaseError,
    "not-offered": NotOfferedError,
    "not-certified": NotCertified,
    "no-reward-yet": NoRewardYetError,
    "unknown-outcome": UnknownOutcomeError,
    "history-replaced": HistoryReplacedError,
    "out-of-memory": OutOfMemoryError,
    "log-contradicts-itself": ReplayError,
}
_BY_STATUS: Mapping[int, type[Exception]] = {
    401: PermissionError,
    403: PermissionError,
    404: LookupError,
    409: StudyError,
    **dict.fromkeys((400, 405, 408, 413, 415, 422), ValueError),
}


def failure(response: httpx.Response, key: str | None) -> Exception:
    """The exception for an answer that is an error; `key` is that of the call, if it has one."""
    told = _problem(response)
    kind = _NAMED.get(str(told.get("type")).rpartition(":")[2], _BY_STATUS.get(response.status_code, StorageError))
    text = str(told.get("detail") or told.get("title") or f"the service answered with status {response.status_code}")
    if response.status_code == 401:
        text += "; Client(url, token=...) sends one, or the environment variable ALEXP_TOKEN"
    error = kind(text)
    if isinstance(error, UnknownOutcomeError):
        error.key = key
    return error


def _problem(response: httpx.Response) -> State:
    """What a problem document says; of an answer that is none, by something in between, where it began."""
    try:
        told = response.json()
    except ValueError:
        told = None
    if isinstance(told, dict) and ("detail" in told or "title" in told):
        return told
    beginning = " ".join(response.text.split())[:200]
    return {
        "detail": f"{response.url} answered with status {response.status_code}, not as a service would: {beginning!r}"
    }
