"""The ASGI application: studies over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware

from alexp.common.codec import State
from alexp.service import dashboard, problems, reference, routes
from alexp.service.answers import ProblemAnswer
from alexp.service.monitoring import Metrics, RequestLogMiddleware
from alexp.service.security import AccessMiddleware, Limits, Right, Tokens
from alexp.service.studies import StudyCache
from alexp.study import Storage
from alexp.study.events import LIBRARY

_ABOUT = """Durable experiments: ask for trials and tell rewards; everything is stored.

Every call that writes takes a `key` (or the header `Idempotency-Key`): repeated with the same key it returns the stored
result and does nothing. Errors are `application/problem+json`: `type` is the kind of error, `field` the place."""

_THREADS = 200  # concurrent requests; many may wait for one study without blocking the others


def create_app(
    storage: str | Path | Storage,
    *,
    tokens: Tokens | Mapping[str, Right] | None = None,
    limits: Limits | None = None,
    origins: Collection[str] = (),
) -> FastAPI:
    """The service as an ASGI application, for uvicorn or any other server; `alexp serve` runs it.

    Parameters
    ----------
    storage
        Where the studies are. Several processes may serve the same storage.
    tokens
        {token: "write" or "read"}. Without tokens, requests must address this host by a loopback name, and the service
        must not be reachable from other hosts.
    limits
        See `Limits`.
    origins
        Other sites whose pages may call, such as "https://lab.example.org". None by default.
    """
    allowed = limits or Limits()
    known = tokens if isinstance(tokens, Tokens | None) else Tokens(tokens)
    metrics = Metrics()
    studies = StudyCache(storage if isinstance(storage, Storage) else Storage(storage), allowed, metrics)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = _THREADS
        yield
        studies.close()

    app = FastAPI(
        title="alexp",
        version=LIBRARY,
        description=_ABOUT,
        docs_url=None,  # these pages load scripts from other sites; `reference` has one that does not
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.studies, app.state.limits = studies, allowed
    problems.install(app)
    app.include_router(routes.study_routes(studies, allowed))
    app.include_router(routes.table_routes(allowed))
    app.include_router(routes.trial_routes(studies, allowed))
    app.include_router(routes.statement_routes(studies))
    app.include_router(routes.file_routes(studies))
    app.include_router(routes.operation_routes(studies))
    app.include_router(reference.reference_routes(app))
    app.include_router(dashboard.dashboard_routes(studies, allowed))
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_middleware(AccessMiddleware, tokens=known, limits=allowed, origins=origins)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["Retry-After", "X-Request-Id"],
        )
    app.add_middleware(RequestLogMiddleware, metrics=metrics)
    return app


def _openapi(app: FastAPI) -> State:
    """The OpenAPI description, with problems and tokens."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        parts = found.setdefault("components", {})
        reference = "#/components/schemas/{model}"
        schema = ProblemAnswer.model_json_schema(ref_template=reference)
        inner = schema.pop("$defs", {})
        parts.setdefault("schemas", {}).update(inner | {"ProblemAnswer": schema})
        parts["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "basic", "description": "The token in place of the password."},
        }
        found["security"] = [{"bearer": []}, {"basic": []}]
        app.openapi_schema = found
    return app.openapi_schema
