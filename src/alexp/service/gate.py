"""What every request passes before anything is done: host, token, rate, site, media type, size, and exact names."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers

from alexp.service.access import Holder, Tokens, host_of, is_loopback, is_same_site, token_in
from alexp.service.limits import Buckets, Limits
from alexp.service.problems import Kind, ProblemError, instance_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEALTH = "/healthz"
_SAFE = {"GET", "HEAD", "OPTIONS"}
READING = {"policy", "best", "stop-report"}  # last parts of paths to which a POST changes nothing
_CHALLENGES = (
    ("WWW-Authenticate", 'Bearer realm="alexp"'),
    ("WWW-Authenticate", 'Basic realm="alexp", charset="UTF-8"'),
)
_STUDIES = b"/v1/studies/"


class Gate:
    """Lets requests pass whose caller may do what they ask for; refuses all others with a problem.

    Without tokens only this host may call, under one of its own names: a page of another site that has its name point
    here (DNS rebinding) sends that name.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens | None, limits: Limits, origins: Collection[str]) -> None:
        self._app, self._tokens, self._limits, self._origins = app, tokens, limits, frozenset(origins)
        self._buckets = Buckets(limits.rate, limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            if scope["path"] != HEALTH or scope["method"] not in _SAFE:
                self._check(scope)
            received = await self._body(Headers(scope=scope), receive)
        except ProblemError as problem:
            scope["problem"] = problem.kind.name
            await problem.response(instance_of(Request(scope)))(scope, receive, send)
            return
        if _raw(scope).startswith(_STUDIES):  # names may hold an encoded slash, which must not divide the path
            scope["path"] = _raw(scope).decode("ascii", "replace")
        await self._app(scope, received, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        holder = self._admit(headers, scope)
        if scope["method"] in _SAFE:
            return
        last = _raw(scope).rpartition(b"/")[2].decode("ascii", "replace")
        is_reading = scope["method"] == "POST" and last in READING
        if holder is not None and holder.right == "read" and not is_reading:
            raise ProblemError(Kind(403, "read-only"), "this token may read only; writing needs another one")
        authority, origin = headers.get("host", ""), headers.get("origin", "")
        if not is_same_site(authority, origin, headers.get("sec-fetch-site", ""), self._origins):
            raise ProblemError(
                Kind(403, "other-site"), "pages of other sites may not write here; --origin names those that may"
            )
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] != "DELETE" and media != "application/json":
            raise ProblemError(Kind(415, "not-json"), "the Content-Type must be application/json")

    def _admit(self, headers: Headers, scope: Scope) -> Holder | None:
        """Who calls; None where nobody needs a token."""
        address = scope["client"][0] if scope.get("client") else "unknown"
        if self._tokens is None:
            if not is_loopback(host_of(headers.get("host", ""))):
                raise ProblemError(
                    Kind(403, "other-host"),
                    "without tokens this service answers only as localhost; other names need --token-file",
                )
            self._within_rate(address)
            return None
        given = headers.getlist("authorization")
        holder = self._tokens.allow(token_in(given[0])) if len(given) == 1 else None
        self._within_rate(address if holder is None else holder.name)
        if holder is None:
            raise ProblemError(
                Kind(401, "no-token" if not given else "wrong-token"),
                "a token is needed: as a bearer token, or as the password of any user",
                headers=_CHALLENGES,
            )
        scope["holder"] = holder.name
        return holder

    def _within_rate(self, caller: str) -> None:
        if wait := self._buckets.wait(caller):
            raise ProblemError(
                Kind(429, "too-many-requests"),
                f"more than {self._limits.rate:g} requests per second; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )

    async def _body(self, headers: Headers, receive: Receive) -> Receive:
        """The request, received as a whole before anything is done with it, so that none waits half-way."""
        most = self._limits.body
        too_large = ProblemError(Kind(413, "too-large"), f"a request may have at most {most} bytes")
        if (length := headers.get("content-length", "0")).isdigit() and int(length) > most:
            raise too_large
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.patience):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return receive
                    parts.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    if sum(map(len, parts)) > most:
                        raise too_large
        except TimeoutError:
            raise ProblemError(
                Kind(408, "too-slow"), f"the request did not arrive within {self._limits.patience:g} s"
            ) from None
        whole: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def received() -> Message:
            return whole.pop() if whole else await receive()

        return received


def _raw(scope: Scope) -> bytes:
    """The path as it was sent."""
    raw: bytes | None = scope.get("raw_path")
    return quote(scope["path"]).encode() if raw is None else raw.partition(b"?")[0]
