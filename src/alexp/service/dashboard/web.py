"""Routes of the dashboard: its files, the view of a study, and the stream of what happens in it."""

from __future__ import annotations

import gzip
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from alexp.service.dashboard import pages
from alexp.service.dashboard.decimation import MOST_POINTS, MOST_ROWS, Excerpt
from alexp.service.dashboard.live import Live
from alexp.service.dashboard.views import Views
from alexp.service.problems import Kind, ProblemError
from alexp.service.routes.common import StudyName, problems
from alexp.service.shelf import Shelf

_VIEW = {"description": "The view.", "content": {"application/json": {"schema": {"type": "object"}}}}
_EVENTS = {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}


def routes(shelf: Shelf) -> APIRouter:
    """The routes, for the studies on a shelf."""
    router, views, live = APIRouter(), Views(), Live(shelf)

    @router.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        return _found(pages.serve("index.html", request))

    @router.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        return _found(pages.serve(name, request))

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
        deep: Annotated[bool, Query(description="With certificates and a look back even if they take long.")] = False,
    ) -> Response:
        """Everything a page shows, of one moment: curves thinned to their extremes, and one page of trials."""
        excerpt = Excerpt(points, rows, before)
        made = shelf.act(name, lambda opened: views.encoded(opened.study, excerpt, deep))
        headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(made.value, media_type="application/json", headers=headers)
        packed = gzip.compress(made.value, 1)
        return Response(packed, media_type="application/json", headers=headers | {"Content-Encoding": "gzip"})

    @router.get("/v1/studies/{name}/events", tags=["looking"], responses=problems(404) | {200: _EVENTS})
    async def events(
        name: StudyName,
        since: Annotated[
            int | None, Query(ge=0, lt=2**53, description="After so many events; the next ones if absent.")
        ] = None,
        last_event_id: Annotated[str | None, Header(description="In place of since: what a browser has seen.")] = None,
    ) -> StreamingResponse:
        """What happens, as it happens: one message per event, whose id is the number of events so far."""
        seen = last_event_id if last_event_id is not None else ""
        start = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 16 else since
        lines = await live.stream(name, start)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(lines, media_type="text/event-stream", headers=headers)

    return router


def _found(response: Response | None) -> Response:
    if response is None:
        raise ProblemError(Kind(404, "no-such-route"), "there is no such file")
    return response
