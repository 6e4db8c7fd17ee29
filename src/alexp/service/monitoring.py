"""Request log and Prometheus metrics of the service."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO
from uuid import uuid4

from fastapi import Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.datastructures import MutableHeaders

from alexp.common.memory import is_lack_of_memory
from alexp.common.redaction import printable, redact
from alexp.service.problems import Kind, ProblemError, instance_of, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


METRICS_MEDIA = CONTENT_TYPE_LATEST
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Prometheus metrics of one application, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "alexp_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "alexp_request_seconds", "Time to answer.", ["method", "route"], buckets=_BUCKETS, registry=registry
        )
        self.in_flight = Gauge("alexp_requests_in_flight", "Requests being answered.", registry=registry)
        self._asked = Counter("alexp_trials_asked", "Trials handed out.", ["study"], registry=registry)
        self._told = Counter(
            "alexp_rewards_told", "Rewards taken in, observations included.", ["study"], registry=registry
        )
        self.problems = Counter("alexp_problems", "Requests refused, by kind of problem.", ["kind"], registry=registry)
        self._open = Gauge("alexp_open_studies", "Studies held in memory.", registry=registry)

    def count_open_studies(self, number: Callable[[], int]) -> None:
        """Set the function that returns the number of open studies."""
        self._open.set_function(number)

    def count(self, study: str, *, asked: int = 0, told: int = 0) -> None:
        """Count trials and rewards of a study."""
        self._asked.labels(study).inc(asked)
        self._told.labels(study).inc(told)

    def forget(self, study: str) -> None:
        """Leave out a study that was deleted."""
        for counter in (self._asked, self._told):
            with suppress(KeyError):  # nothing was counted
                counter.remove(study)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


LOG = logging.getLogger("alexp.service")

# Browsers may show a response, run only scripts of this service, and keep nothing.
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


class RequestLogMiddleware:
    """Gives every request an id, times it, counts it and logs it; turns unexpected errors into problems.

    The log has one line per request, without tokens, bodies or queries.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
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

        self._metrics.in_flight.inc()
        try:
            await self._app(scope, receive, sent)
        except Exception as error:  # an error of the service itself: details go to the log only
            _log_error(error, scope["request_id"])
            problem = ProblemError(Kind(500, "internal-error"), "internal error; see the log of the service")
            if is_lack_of_memory(error):
                problem = problem_of(error) or problem
            scope["problem"] = problem.kind.name
            if status == 0:
                await problem.response(instance_of(Request(scope)))(scope, receive, sent)
        finally:
            self._metrics.in_flight.dec()
            self._log_request(scope, path, status, time.perf_counter() - start)

    def _log_request(self, scope: Scope, path: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "") or "unknown"
        method = scope["method"] if route != "unknown" else "any"  # callers must not create labels
        self._metrics.requests.labels(method, route, status).inc()
        self._metrics.seconds.labels(method, route).observe(seconds)
        line: dict[str, object] = {"method": scope["method"], "path": path, "route": route, "status": status}
        line |= {"ms": round(1000.0 * seconds, 2), "request": scope["request_id"]}
        line["client"] = scope["client"][0] if scope.get("client") else None
        if "holder" in scope:
            line["holder"] = scope["holder"]
        if "problem" in scope:
            line["problem"] = scope["problem"]
            self._metrics.problems.labels(scope["problem"]).inc()
        LOG.info("request", extra={"fields": line})


def _log_error(error: Exception, request: str) -> None:
    """Log an error with its location, redacted."""
    frames = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    fields = {
        "request": request,
        "error": type(error).__name__,
        "detail": redact(str(error))[:1000],
        "at": frames[-12:],
    }
    LOG.error("unforeseen error", extra={"fields": fields})


class SparingHandler(logging.StreamHandler[TextIO]):
    """Writes a log that strangers cannot fill: of refused requests without a token, and of what the server itself has
    to say, at most twenty lines a second, and then how many were left out.
    """

    _MOST = 20

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._second, self._count = 0, 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or count it."""
        if self._may_be_left_out(record):
            second = int(record.created)
            if second != self._second:
                if (n := self._count - self._MOST) > 0:
                    record_of = LOG.makeRecord(LOG.name, logging.WARNING, "", 0, "lines left out", (), None)
                    record_of.fields = {"number": n}
                    super().emit(record_of)
                self._second, self._count = second, 0
            self._count += 1
            if self._count > self._MOST:
                return
        super().emit(record)

    @staticmethod
    def _may_be_left_out(record: logging.LogRecord) -> bool:
        if record.name != LOG.name:
            return True
        fields = getattr(record, "fields", {})
        return "problem" in fields and "holder" not in fields


class JsonLines(logging.Formatter):
    """Log records as JSON, one line each."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
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
