"""A study as a file: CSV of all trials, and the HTML report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, islice
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from alexp.common.cells import to_csv
from alexp.service.routes.common import StudyName, problems
from alexp.service.shelf import Opened, Shelf
from alexp.study.report import render
from alexp.study.tables import export as lines_of

_LINES = 500  # of CSV that are sent at once


def routes(shelf: Shelf) -> APIRouter:
    """Downloads."""
    router = APIRouter(prefix="/v1/studies/{name}", tags=["files"])

    @router.get(
        "/export",
        response_class=Response,
        responses=problems(404) | {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
        summary="All trials as CSV",
    )
    def export(name: StudyName) -> Response:
        def work(opened: Opened) -> Iterator[list[str]]:
            lines = lines_of(opened.study)
            return chain([next(lines)], lines)  # whatever can be wrong shows here

        lines = shelf.act(name, work).value
        return StreamingResponse(_parts(lines), media_type="text/csv", headers=_download(name, "csv"))

    @router.get(
        "/report",
        response_class=Response,
        responses=problems(404) | {200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
        summary="One HTML page about the study",
    )
    def report(name: StudyName) -> Response:
        view = shelf.act(name, lambda opened: opened.study.view()).value
        return Response(render(view, time.time()), media_type="text/html", headers=_download(name, "html"))

    return router


def _parts(lines: Iterator[list[str]]) -> Iterator[str]:
    while part := list(islice(lines, _LINES)):
        yield to_csv(part)


def _download(name: str, ending: str) -> dict[str, str]:
    """As a file with the study's name; old programs get one without the letters they do not know."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)[:100]
    exact = quote(f"{name}.{ending}", safe="")
    return {"Content-Disposition": f"attachment; filename=\"{plain}.{ending}\"; filename*=UTF-8''{exact}"}
