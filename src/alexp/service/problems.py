"""Errors as `application/problem+json` (RFC 9457); `TABLE` gives each error of the library its status."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy.exc
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from alexp.algorithms.assumptions import NotCertified
from alexp.algorithms.log import (
    AbandonedTrialError,
    AlreadyToldError,
    NoRewardYetError,
    NotToldError,
    UnknownTrialError,
)
from alexp.algorithms.several import SeveralObjectivesError
from alexp.common.memory import OutOfMemoryError, exceeds_memory, is_lack_of_memory, out_of_memory
from alexp.common.redaction import printable, redact
from alexp.study import errors
from alexp.table.remedies import FileError, in_json

if TYPE_CHECKING:
    from fastapi import FastAPI

MEDIA = "application/problem+json"
_LONGEST, _MOST_ERRORS = 4000, 20


class Kind(NamedTuple):
    """A kind of problem: its status and its name, the last part of `type`."""

    status: int
    name: str


INVALID = Kind(422, "invalid")
TOO_LARGE = Kind(422, "too-large")
OUT_OF_MEMORY = Kind(503, "out-of-memory")
# The first match counts: subclasses come before their base classes.
TABLE: tuple[tuple[type[BaseException], Kind], ...] = (
    (errors.StudyNotFoundError, Kind(404, "study-not-found")),
    (UnknownTrialError, Kind(404, "trial-not-found")),
    (AlreadyToldError, Kind(409, "already-told")),
    (AbandonedTrialError, Kind(409, "abandoned")),
    (NotToldError, Kind(409, "not-told")),
    (errors.SuspiciousRewardError, Kind(409, "suspicious-reward")),
    (errors.StudyExistsError, Kind(409, "study-exists")),
    (errors.ProblemMismatchError, Kind(409, "problem-mismatch")),
    (errors.LeaseError, Kind(409, "held-by-another")),
    (errors.NotOfferedError, Kind(409, "not-offered")),
    (NotCertified, Kind(409, "not-certified")),
    (NoRewardYetError, Kind(409, "no-reward-yet")),
    (SeveralObjectivesError, Kind(409, "several-objectives")),
    (errors.UnknownOutcomeError, Kind(503, "unknown-outcome")),
    (errors.HistoryReplacedError, Kind(409, "history-replaced")),
    (errors.StorageError, Kind(503, "storage-unavailable")),
    (sqlalchemy.exc.TimeoutError, Kind(503, "storage-unavailable")),
    (errors.ReplayError, Kind(500, "log-contradicts-itself")),
    (ValueError, INVALID),
    (TypeError, INVALID),
    (ArithmeticError, INVALID),
    (RecursionError, INVALID),
    (ImportError, Kind(422, "not-installed")),
    (RuntimeError, Kind(409, "not-possible")),
)
_MISSED = {
    404: ("no-such-route", "there is no such route; GET /openapi.json lists all routes"),
    405: ("no-such-method", "this route has other methods; GET /openapi.json lists them"),
}
NO_FIELDS: Mapping[str, str] = {}
_FIRST_WORD = re.compile(r"\w+")
RETRY_AFTER = 5  # seconds after which to try a storage again


class ProblemError(Exception):
    """A request that fails; members as in RFC 9457, and in `more` perhaps `field`, `key`, `errors`."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.more = kind, shown(detail), dict(more or {})
        self.headers = list(headers.items()) if isinstance(headers, Mapping) else list(headers)

    def response(self, instance: str) -> Response:
        """The problem as a response; `instance` is the name of the request in the log."""
        body = {
            "type": f"urn:alexp:{self.kind.name}",
            "title": HTTPStatus(self.kind.status).phrase,
            "status": self.kind.status,
            "detail": self.detail,
            "instance": instance,
        }
        out = Response(json.dumps(body | self.more), self.kind.status, media_type=MEDIA)
        for name, value in self.headers:
            out.headers.append(name, value)
        return out


def shown(text: str) -> str:
    """A message without passwords, shortened."""
    text = printable(redact(text[: 2 * _LONGEST]))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


@contextmanager
def as_problems(fields: Mapping[str, str] = NO_FIELDS) -> Iterator[None]:
    """Turn errors of the library into problems; `fields` gives the place in the body by argument name.

    An error that is not in `TABLE` is a defect of the service and is raised unchanged.
    """
    try:
        yield
    except ProblemError:
        raise
    except Exception as error:
        problem = problem_of(error, fields)
        if problem is None:
            raise
        raise problem from error


def problem_of(error: BaseException, fields: Mapping[str, str] = NO_FIELDS) -> ProblemError | None:
    """The problem for an error of the library; None if `TABLE` does not have it."""
    is_short = is_lack_of_memory(error)
    if exceeds_memory(error):
        return ProblemError(TOO_LARGE, f"this request needs more memory than the machine has: {error}")
    kind = OUT_OF_MEMORY if is_short else next((kind for known, kind in TABLE if isinstance(error, known)), None)
    if kind is None:
        return None
    said = error.worded(in_json) if isinstance(error, FileError) else str(error)
    text = said.strip() or type(error).__name__
    if is_short and not isinstance(error, OutOfMemoryError):
        text = str(out_of_memory(f"for this request ({text})"))
    more: dict[str, object] = {}
    headers = {"Retry-After": str(RETRY_AFTER)} if kind.status == 503 else {}
    if kind is INVALID and (field := _field_named(text, fields)):
        more["field"] = field
    if isinstance(error, errors.UnknownOutcomeError) and error.key is not None:
        more["key"] = error.key
    if kind.status >= 500 and isinstance(error, sqlalchemy.exc.TimeoutError):
        text = "all connections to the storage are in use; try again"
    return ProblemError(kind, text, headers=headers, more=more)


def _field_named(text: str, fields: Mapping[str, str]) -> str | None:
    """The place of the argument that a message begins with."""
    found = _FIRST_WORD.match(text)
    return None if found is None else fields.get(found[0])


def install(app: FastAPI) -> None:
    """Make every error of an application a problem."""
    app.add_exception_handler(ProblemError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def instance_of(request: Request) -> str:
    """The name of a request in the log."""
    return f"urn:uuid:{request.scope.get('request_id', '')}"


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    request.scope["problem"] = error.kind.name
    return error.response(instance_of(request))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name, detail = _MISSED.get(error.status_code, ("refused", str(error.detail)))
    problem = ProblemError(Kind(error.status_code, name), detail, headers=error.headers or {})
    return _refused(request, problem)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [_located(one, error.body) for one in error.errors()[:_MOST_ERRORS]]
    inside = [one for one in found if one["field"].startswith(found[0]["field"])]
    first = max(inside, key=lambda one: len(one["field"]))  # of several alternatives, the one that matched furthest
    more: dict[str, object] = {"field": first["field"]}
    if len(found) > 1:
        more["errors"] = found
    problem = ProblemError(INVALID, f"{first['field']}: {first['detail']}", more=more)
    return _refused(request, problem)


def _located(error: Mapping[str, object], body: object) -> dict[str, str]:
    """Field and reason of one error; names of pydantic's alternatives are not part of the field."""
    where, kind = list(error["loc"]), error["type"]  # type: ignore[call-overload]
    if kind == "json_invalid":
        context = error.get("ctx")
        reason = context.get("error", "") if isinstance(context, Mapping) else ""
        return {"field": "body", "detail": f"the body is not JSON: {reason}"}
    field, here, kind_named = str(where[0]), body, False
    for place, part in enumerate(where[1:], start=1):
        is_last = place == len(where) - 1
        if isinstance(here, Mapping) and not kind_named and part == here.get("kind"):
            kind_named = True  # which alternative was meant, even where a field has the same name
        elif isinstance(here, Mapping) and part in here:
            field, here, kind_named = f"{field}.{part}", here[part], False
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            field, here = f"{field}[{part}]", here[part]
        elif (is_last and kind == "missing") or where[0] != "body":
            field = f"{field}.{part}"
    return {"field": shown(field)[:200], "detail": shown(str(error["msg"]))}
