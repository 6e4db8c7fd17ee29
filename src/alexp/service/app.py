"""The application: studies over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware

from alexp.common.codec import State
from alexp.service import dashboard, problems
from alexp.service.access import Right, Tokens
from alexp.service.gate import Gate
from alexp.service.journal import Journal
from alexp.service.limits import Limits
from alexp.service.metrics import Meters
from alexp.service.routes import files, operations, statements, studies, trials
from alexp.service.schemas.answers import ProblemAnswer
from alexp.service.shelf import Shelf
from alexp.study import Storage
from alexp.study.events import LIBRARY

_ABOUT = """Durable experiments: ask for trials, tell rewards, and nothing is lost.

Every call that writes takes a `key` (or the header `Idempotency-Key`): repeated with the same key it returns what
happened the first time. Errors are `application/problem+json`; `type` says which, `field` where."""

_THREADS = 200  # requests at a time: a crowd at one study waits for its turns, and must not keep others from theirs


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
        Who may do what, {token: "write" or "read"}. Without them requests must address this host by a loopback name;
        do not let others reach it then.
    limits
        See `Limits`.
    origins
        Other sites whose pages may call, such as "https://lab.example.org". None by default.
    """
    allowed = limits or Limits()
    known = tokens if isinstance(tokens, Tokens | None) else Tokens(tokens)
    meters = Meters()
    shelf = Shelf(storage if isinstance(storage, Storage) else Storage(storage), allowed.open_studies, meters)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = _THREADS
        yield
        shelf.close()

    app = FastAPI(
        title="alexp",
        version=LIBRARY,
        description=_ABOUT,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.shelf = shelf
    problems.install(app)
    app.include_router(studies.routes(shelf, allowed))
    for part in (trials, statements, files, operations, dashboard):
        app.include_router(part.routes(shelf))
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    app.add_middleware(Gate, tokens=known, limits=allowed, origins=origins)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["Retry-After", "X-Request-Id"],
        )
    app.add_middleware(Journal, meters=meters)
    return app


def _described(app: FastAPI) -> State:
    """The OpenAPI description, with problems and tokens in it."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        parts = made.setdefault("components", {})
        reference = "#/components/schemas/{model}"
        schema = ProblemAnswer.model_json_schema(ref_template=reference)
        inner = schema.pop("$defs", {})
        parts.setdefault("schemas", {}).update(inner | {"ProblemAnswer": schema})
        parts["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "basic", "description": "The token in place of the password."},
        }
        made["security"] = [{"bearer": []}, {"basic": []}]
        app.openapi_schema = made
    return app.openapi_schema
