"""One line of JSON for every request, without tokens, bodies or queries; and the last word on unforeseen errors."""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import TYPE_CHECKING
from uuid import uuid4

from fastapi import Request
from starlette.datastructures import MutableHeaders

from alexp.common.memory import is_lack_of_memory
from alexp.common.redaction import printable, redact
from alexp.service.metrics import Meters
from alexp.service.problems import Kind, ProblemError, instance_of, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger("alexp.service")

# What a browser may do with an answer: show it, run nothing but what this service has sent, and keep nothing.
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
}


class Journal:
    """Names every request, times it, counts it, and writes it down."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app, self._meters = app, meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["request_id"], path, status, start = str(uuid4()), redact(scope["path"]), 0, time.perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = scope["request_id"]
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        self._meters.in_flight.inc()
        try:
            await self._app(scope, receive, sent)
        except Exception as error:  # a mistake of ours: what it was is for the log alone
            _write_down(error, scope["request_id"])
            problem = ProblemError(Kind(500, "internal-error"), "something went wrong here; the log says what")
            if is_lack_of_memory(error):
                problem = problem_of(error) or problem
            scope["problem"] = problem.kind.name
            if status == 0:
                await problem.response(instance_of(Request(scope)))(scope, receive, sent)
        finally:
            self._meters.in_flight.dec()
            self._note(scope, path, status, time.perf_counter() - start)

    def _note(self, scope: Scope, path: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "") or "unknown"
        method = scope["method"] if route != "unknown" else "any"  # callers must not make up labels
        self._meters.requests.labels(method, route, status).inc()
        self._meters.seconds.labels(method, route).observe(seconds)
        line: dict[str, object] = {"method": scope["method"], "path": path, "route": route, "status": status}
        line |= {"ms": round(1000.0 * seconds, 2), "request": scope["request_id"]}
        line["client"] = scope["client"][0] if scope.get("client") else None
        if "holder" in scope:
            line["holder"] = scope["holder"]
        if "problem" in scope:
            line["problem"] = scope["problem"]
            self._meters.problems.labels(scope["problem"]).inc()
        LOG.info("request", extra={"fields": line})


def _write_down(error: Exception, request: str) -> None:
    """An error with where it happened; its values stay out, as far as they look like secrets."""
    frames = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    fields = {
        "request": request,
        "error": type(error).__name__,
        "detail": redact(str(error))[:1000],
        "at": frames[-12:],
    }
    LOG.error("unforeseen error", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Log records as JSON, one line each."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, object] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": printable(redact(record.getMessage())),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line |= fields
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = redact(repr(record.exc_info[1]))[:1000]
        return json.dumps(line, default=str)
