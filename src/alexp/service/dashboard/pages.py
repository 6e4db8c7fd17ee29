"""The files of the dashboard: one page, its modules, and Plotly as it is installed. Nothing comes from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

# Scripts and styles of this server only: a name that somebody gave to a study cannot become one. Plotly writes the
# styles of its figures into the page, which is why those (and only those) may be inline.
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


def names() -> list[str]:
    """Names of all files there are."""
    found = [entry.name for entry in _FOLDER.iterdir() if entry.name.rpartition(".")[2] in _KINDS]
    return sorted([*found, _PLOTLY])


def serve(name: str, request: Request) -> Response | None:
    """One file, packed if the browser takes that, or word that it has it already; None if there is no such file."""
    if name not in names():
        return None
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
        from plotly.offline import get_plotlyjs  # slow to import, and needed here only

        data = str(get_plotlyjs()).encode()
    else:
        data = (_FOLDER / name).read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    return _File(_KINDS[name.rpartition(".")[2]], data, gzip.compress(data, 6, mtime=0), tag)
