"""The dashboard: its files, the view of a study, and the stream of its events."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from alexp.service.dashboard.views import MOST_POINTS, MOST_ROWS, Excerpt, ViewCache
from alexp.service.events import EventStreams
from alexp.service.problems import Kind, ProblemError
from alexp.service.routes import StudyName, problems
from alexp.service.security import Limits, caller_of
from alexp.service.studies import StudyCache

# Scripts and styles of this server only, so that the name of a study cannot become one. Styles may be inline because
# Plotly writes those of its figures into the page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOLDER = files("alexp.service.dashboard") / "static"
_PLOTLY = "plotly.min.js"
_KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


class _File(NamedTuple):
    kind: str
    plain: bytes
    packed: bytes
    tag: str


def file_names() -> list[str]:
    """Names of the files of the dashboard."""
    found = [entry.name for entry in _FOLDER.iterdir() if entry.name.rpartition(".")[2] in _KINDS]
    return sorted([*found, _PLOTLY])


def _file_response(name: str, request: Request) -> Response:
    """A file, compressed if the browser accepts that; 304 if it has the file already."""
    if name not in file_names():
        raise ProblemError(Kind(404, "no-such-route"), "there is no such file")
    file = _file(name)
    headers = {
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
        "ETag": file.tag,
        "Vary": "Accept-Encoding",
    }
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.kind)
    return Response(file.plain, headers=headers, media_type=file.kind)


@cache
def _file(name: str) -> _File:
    if name == _PLOTLY:
        from plotly.offline import get_plotlyjs  # slow to import

        data = str(get_plotlyjs()).encode()
    else:
        data = (_FOLDER / name).read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    return _File(_KINDS[name.rpartition(".")[2]], data, gzip.compress(data, 6, mtime=0), tag)


_VIEW = {"description": "The view.", "content": {"application/json": {"schema": {"type": "object"}}}}
_EVENTS = {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}


def dashboard_routes(studies: StudyCache, limits: Limits) -> APIRouter:
    """Routes of the page, the view of a study and the stream of its events."""
    router, views, streams = APIRouter(), ViewCache(), EventStreams(studies, limits.streams)

    @router.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        return _file_response("index.html", request)

    @router.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        return _file_response(name, request)

    @router.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return RedirectResponse("/static/icon.svg")

    @router.get("/v1/studies/{name}/view", tags=["looking"], responses=problems(404) | {200: _VIEW})
    def view(
        name: StudyName,
        request: Request,
        points: Annotated[int, Query(ge=10, le=MOST_POINTS, description="At most so many points of a curve.")] = 600,
        rows: Annotated[int, Query(ge=0, le=MOST_ROWS, description="At most so many trials.")] = 25,
        before: Annotated[
            int | None, Query(ge=0, lt=2**53, description="Trials with smaller ids than this; the newest if absent.")
        ] = None,
        deep: Annotated[bool, Query(description="With certificates and explanation even if they take long.")] = False,
    ) -> Response:
        """The data of the dashboard at one moment: thinned curves, and one page of trials."""
        excerpt = Excerpt(points, rows, before)
        encoded = studies.use(name, lambda opened: views.encoded(opened.study, excerpt, deep)).value
        headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(encoded, media_type="application/json", headers=headers)
        packed = gzip.compress(encoded, 1)
        return Response(packed, media_type="application/json", headers=headers | {"Content-Encoding": "gzip"})

    @router.get("/v1/studies/{name}/events", tags=["looking"], responses=problems(404) | {200: _EVENTS})
    async def events(
        name: StudyName,
        request: Request,
        since: Annotated[
            int | None, Query(ge=0, lt=2**53, description="After so many events; the next ones if absent.")
        ] = None,
        last_event_id: Annotated[str | None, Header(description="In place of since: the last id received.")] = None,
    ) -> StreamingResponse:
        """New events as they are stored: one message per event; its id is the number of events so far."""
        seen = last_event_id if last_event_id is not None else ""
        start = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 16 else since
        lines = await streams.stream(name, start, caller_of(request.scope))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(lines, media_type="text/event-stream", headers=headers)

    return router
