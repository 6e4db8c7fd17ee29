"""What routes have in common: names, callers, answers, and what OpenAPI says about errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response

from alexp.algorithms.log import Trial
from alexp.common.codec import Packable, State, jsonable
from alexp.service.problems import INVALID, MEDIA, ProblemError
from alexp.service.shelf import Acted, Opened
from alexp.study.candidates import trial_label

_REF = {"$ref": "#/components/schemas/ProblemAnswer"}
_STATUSES = {
    401: "No token, or a wrong one.",
    403: "The token may only read; or a page of another site; or, without tokens, another host.",
    404: "There is no such study or trial.",
    409: "Told twice, held by another worker, exists already, looks like a typing error, or not to be had here.",
    413: "The body is too large.",
    415: "The Content-Type is not application/json.",
    422: "A field is wrong; `field` names it.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "The storage cannot be reached; Retry-After says when to try again.",
}


def problems(*statuses: int) -> dict[int | str, State]:
    """What OpenAPI says about the problems of a route."""
    wanted = sorted({401, 403, 422, 429, 503, *statuses})
    return {status: {"description": _STATUSES[status], "content": {MEDIA: {"schema": _REF}}} for status in wanted}


async def _study_name(
    name: Annotated[
        str,
        Path(min_length=1, description="Name of the study, percent-encoded where it must be.", examples=["solvents"]),
    ],
) -> str:
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise ProblemError(INVALID, "path.name: the name is not UTF-8", more={"field": "path.name"}) from None


StudyName = Annotated[str, Depends(_study_name)]


@dataclass(frozen=True)
class Caller:
    """Who calls: the address, and the key of the call if a header has one."""

    address: str
    header_key: str | None

    def worker(self, named: str | None) -> str:
        """The name that the log will have."""
        return (named or "").strip() or self.address

    def key(self, given: str | None) -> str | None:
        """The key of the call, from the body or from the header."""
        if given is not None and self.header_key not in (None, given):
            raise ProblemError(INVALID, "body.key: differs from the header Idempotency-Key", more={"field": "body.key"})
        return self.header_key if given is None else given


async def _caller(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(min_length=1, max_length=100, description="The same as key in the body.")
    ] = None,
) -> Caller:
    return Caller(request.client.host if request.client else "unknown", idempotency_key)


Called = Annotated[Caller, Depends(_caller)]


class _StrictRequest(Request):
    """A request whose body is JSON as the standard has it: without NaN, and without numbers of thousands of digits."""

    async def json(self) -> Packable:
        """The body."""
        try:
            return json.loads(await self.body(), parse_constant=_no_constant)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            raise json.JSONDecodeError(str(error).partition(";")[0], "", 0) from None


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number in JSON")


class StrictRoute(APIRoute):
    """A route that takes JSON to the letter."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Packable, Packable, Response]]:
        """The handler."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly


def reply(content: Mapping[str, object], status: int = 200) -> Response:
    """An answer in JSON; NaN in it would be a mistake, and is an error."""
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


def answer(outcome: Acted[State], status: int = 200) -> Response:
    """What came of a call, with what was warned of."""
    return reply(outcome.value | {"warnings": outcome.warnings}, status)


def trial_answer(opened: Opened, trial: Trial, **more: object) -> State:
    """A trial as JSON data."""
    return trial.to_dict() | {"label": trial_label(trial, opened.domain)} | more


def number(value: float | None) -> float | None:
    """A number for JSON, which has neither NaN nor infinity."""
    return None if value is None else jsonable(float(value))


def fields_of(body: BaseModel, place: str = "body") -> dict[str, str]:
    """Where the fields of a body are, by name."""
    return {name: f"{place}.{name}" for name in type(body).model_fields}
