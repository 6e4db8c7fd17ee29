"""Tokens, limits and request rates, and the middleware that enforces them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers

from alexp.common.files import read_text
from alexp.common.redaction import redact
from alexp.service.monitoring import LOG
from alexp.service.problems import RETRY_AFTER, Kind, ProblemError, instance_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class Limits:
    """Limits of a service.

    Attributes
    ----------
    body : bytes of a request.
    values : numbers, words and lists in the JSON of a request; while they are read, other requests wait. A table that
        comes as a file is one value.
    bodies : bytes of all requests that are being received or answered.
    connections : connections at once; beyond that, the one that has waited longest for its next request is closed.
    patience : seconds within which the headers of a request must have arrived, and then its body.
    rate, burst : requests per second of one token, or of one address without a token, in the long run and at once;
        a rate of zero for no limit.
    streams : event streams at once; one token, or one address without a token, may have a quarter of them.
    open_studies : studies held in memory; beyond that, the least recently used are closed.
    candidates, models, features : sizes of a problem that may be created, features being candidates x columns.
    memory : bytes of memory that all open studies may take together, as estimated.
    step : seconds that a step of a new study may take, as estimated.
    """

    body: int = 32 * 2**20
    values: int = 1_000_000
    bodies: int = 256 * 2**20
    connections: int = 1000
    patience: float = 60.0
    rate: float = 500.0
    burst: int = 1000
    streams: int = 256
    open_studies: int = 64
    candidates: int = 1_000_000
    models: int = 100_000
    features: int = 50_000_000
    memory: float = 4e9
    step: float = 5.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0 or (value == 0 and name != "rate"):
                raise ValueError(f"{name} must be positive, got {value}")


class RateLimiter:
    """Token buckets: each caller may send `burst` requests at once, and `rate` per second in the long run.

    >>> limiter = RateLimiter(rate=1.0, burst=2)
    >>> [limiter.wait("me", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [0, 0, 1, 0]
    """

    _MOST = 10_000  # callers remembered; those with a full bucket are forgotten first

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, caller: str, now: float | None = None) -> int:
        """Seconds a caller must wait, rounded up; zero if the request passes, which then counts."""
        if self._rate == 0.0:
            return 0
        at = time.monotonic() if now is None else now
        left, since = self._left.get(caller, (self._burst, at))
        left = min(self._burst, left + self._rate * (at - since))
        if left < 1.0:
            self._left[caller] = (left, at)
            return max(1, ceil((1.0 - left) / self._rate))
        if caller not in self._left and len(self._left) >= self._MOST:
            self._forget(at)
        self._left[caller] = (left - 1.0, at)
        return 0

    def _forget(self, now: float) -> None:
        for caller, (left, since) in list(self._left.items()):
            if left + self._rate * (now - since) >= self._burst:
                del self._left[caller]
        while len(self._left) >= self._MOST:
            del self._left[next(iter(self._left))]


Right = Literal["write", "read"]
RIGHTS: tuple[Right, ...] = ("write", "read")
_SHORTEST, _LONGEST = 16, 512  # characters of a token


class Tokens:
    """Tokens and what each allows: "read", or "write", which includes reading. Only hashes are kept.

    Those of a file are read again when the file changes; while it is missing or wrong, the last ones count.

    >>> tokens = Tokens({"a-long-secret-for-robots": "write"})
    >>> tokens.allow("a-long-secret-for-robots").right, tokens.allow("another"), tokens
    ('write', None, Tokens(1 of them))
    """

    def __init__(self, rights: Mapping[str, Right]) -> None:
        if not rights:
            raise ValueError("there must be at least one token")
        for number, (token, right) in enumerate(rights.items(), start=1):
            _check_token(token, f"token {number}")
            if right not in RIGHTS:
                raise ValueError(f"token {number} must be for 'write' or 'read', got {right!r:.40}")
        self._known = [
            (_digest(token), TokenHolder(f"token {k}", right)) for k, (token, right) in enumerate(rights.items(), 1)
        ]
        self._file: tuple[Path, _Version] | None = None

    @classmethod
    def from_file(cls, path: Path) -> Tokens:
        """Lines `TOKEN` or `TOKEN read`; empty lines and those that begin with # are ignored.

        Messages never contain a token.
        """
        version = _version(path)
        rights: dict[str, Right] = {}
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) > 2 or (len(words) == 2 and words[1] not in RIGHTS):
                raise ValueError(f"{path}, line {number}: must be TOKEN or TOKEN read")
            _check_token(words[0], f"{path}, line {number}: the token")
            if words[0] in rights:
                raise ValueError(f"{path}, line {number}: this token comes twice")
            rights[words[0]] = "read" if words[1:] == ["read"] else "write"
        if not rights:
            raise ValueError(f"{path} holds no token; write a long random text on a line of its own")
        tokens = cls(rights)
        tokens._file = path, version
        return tokens

    def _read_again(self) -> None:
        if self._file is None:
            return
        path, version = self._file
        try:
            if (found := _version(path)) == version:
                return
            self._file = path, found
            self._known = Tokens.from_file(path)._known
        except (OSError, ValueError) as error:
            if self._file[1] != version:
                fields = {"why": redact(str(error))}
                LOG.error("the token file cannot be read; the tokens before count", extra={"fields": fields})
        else:
            LOG.info("tokens read again", extra={"fields": {"tokens": len(self._known)}})

    def allow(self, token: str) -> TokenHolder | None:
        """The holder of a token, or None. Takes the same time whether or not the token is known."""
        self._read_again()
        digest, found = _digest(token), None
        for known, holder in self._known:
            if hmac.compare_digest(known, digest):
                found = holder
        return found

    def __repr__(self) -> str:
        return f"Tokens({len(self._known)} of them)"


_Version = tuple[int, int, int]


def _version(path: Path) -> _Version:
    """Changes when a file is written or replaced."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


class TokenHolder(NamedTuple):
    """The name of a token in the log, which does not reveal it, and its right."""

    name: str
    right: Right


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _check_token(token: str, what: str) -> None:
    if not _SHORTEST <= len(token) <= _LONGEST:
        raise ValueError(f"{what} must have {_SHORTEST} to {_LONGEST} characters, it has {len(token)}")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ValueError(f"{what} must consist of printable ASCII characters without spaces")


def token_in(authorization: str) -> str:
    """The token of an `Authorization` header, "Bearer" or the password of "Basic"; empty if there is none.

    >>> token_in("Bearer abc"), token_in("Basic " + base64.b64encode(b"anybody:abc").decode()), token_in("Digest abc")
    ('abc', 'abc', '')
    """
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        text = base64.b64decode(rest.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
    return text.partition(":")[2]


def is_loopback(host: str) -> bool:
    """Whether a name or address is a loopback one, which other hosts cannot reach.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "0.0.0.0", "lab.example.org")]
    [True, True, True, True, False, False]
    """
    name = host.strip().rstrip(".").lower().removeprefix("[").removesuffix("]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str:
    """A `Host` header without its port.

    >>> host_of("localhost:8000"), host_of("[::1]:8000"), host_of("example.org")
    ('localhost', '[::1]', 'example.org')
    """
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]


def is_same_site(authority: str, origin: str, fetch_site: str, origins: Iterable[str]) -> bool:
    """Whether the request comes from a page of this service or of an allowed origin, or not from a page at all.

    Browsers set `Origin` and `Sec-Fetch-Site`, and pages cannot change them; programs send neither.
    """
    if origin:
        return origin in origins or origin.partition("://")[2].lower() == authority.lower()
    return fetch_site in ("", "none", "same-origin")


HEALTH = {"/healthz", "/readyz"}
_SAFE = {"GET", "HEAD", "OPTIONS"}
READ_ONLY_POSTS = {"policy", "best", "stop-report"}  # last parts of paths whose POST changes nothing
_CHALLENGES = (
    ("WWW-Authenticate", 'Bearer realm="alexp"'),
    ("WWW-Authenticate", 'Basic realm="alexp", charset="UTF-8"'),
)
_STUDIES = b"/v1/studies/"


class AccessMiddleware:
    """Checks host, token, rate, origin, media type and size of a request before anything else is done.

    Without tokens requests must address a loopback name. That stops DNS rebinding: a page whose domain points here
    sends its own domain as the host.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens | None, limits: Limits, origins: Collection[str]) -> None:
        self._app, self._tokens, self._limits, self._origins = app, tokens, limits, frozenset(origins)
        self._limiter = RateLimiter(limits.rate, limits.burst)
        self._held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        body = bytearray()
        try:
            self._check(scope)
            await self._receive(body, Headers(scope=scope), scope["method"], receive)
            if _raw(scope).startswith(_STUDIES):  # names may contain an encoded slash
                scope["path"] = _raw(scope).decode("ascii", "replace")
            await self._app(scope, _received(body, receive), send)
        except _Disconnected:
            pass
        except ProblemError as problem:
            scope["problem"] = problem.kind.name
            await problem.response(instance_of(Request(scope)))(scope, receive, send)
        finally:
            self._held -= len(body)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if scope["path"] in HEALTH and scope["method"] in _SAFE:
            self._within_rate(f"health {_address(scope)}")
            return
        holder = self._admit(headers, scope)
        if scope["method"] in _SAFE:
            return
        last = _raw(scope).rpartition(b"/")[2].decode("ascii", "replace")
        is_reading = scope["method"] == "POST" and last in READ_ONLY_POSTS
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

    def _admit(self, headers: Headers, scope: Scope) -> TokenHolder | None:
        """The holder of the token; None if the service has no tokens."""
        if self._tokens is None:
            if not is_loopback(host_of(headers.get("host", ""))):
                raise ProblemError(
                    Kind(403, "other-host"),
                    "without tokens this service answers only as localhost; other names need --token-file",
                )
            self._within_rate(_address(scope))
            return None
        given = headers.getlist("authorization")
        holder = self._tokens.allow(token_in(given[0])) if len(given) == 1 else None
        self._within_rate(_address(scope) if holder is None else holder.name)
        if holder is None:
            raise ProblemError(
                Kind(401, "no-token" if not given else "wrong-token"),
                "a token is needed: as a bearer token, or as the password of any user",
                headers=_CHALLENGES,
            )
        scope["holder"] = holder.name
        return holder

    def _within_rate(self, caller: str) -> None:
        if wait := self._limiter.wait(caller):
            raise ProblemError(
                Kind(429, "too-many-requests"),
                f"more than {self._limits.rate:g} requests per second; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )

    async def _receive(self, body: bytearray, headers: Headers, method: str, receive: Receive) -> None:
        """Receive the whole body before the request is handled, so that a slow one occupies no worker.

        What is refused is not read: the connection is closed after the answer.
        """
        limits, values = self._limits, _ValueCounter()
        length = int(headers["content-length"]) if headers.get("content-length", "").isdigit() else 0
        if method in _SAFE:
            if length or "transfer-encoding" in headers:
                raise _refused(Kind(413, "too-large"), f"a {method} request has no body")
            return
        if length > limits.body:
            raise _refused(Kind(413, "too-large"), f"a request may have at most {limits.body} bytes")
        try:
            async with asyncio.timeout(limits.patience):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Disconnected
                    part = message.get("body", b"")
                    body += part
                    self._held += len(part)
                    more = message.get("more_body", False)
                    if len(body) > limits.body:
                        raise _refused(Kind(413, "too-large"), f"a request may have at most {limits.body} bytes")
                    if values.after(part) > limits.values:
                        raise _refused(
                            Kind(413, "too-large"),
                            f"the JSON of a request may have at most {limits.values} values; send a table as a file",
                        )
                    if self._held > limits.bodies:
                        raise _refused(Kind(503, "busy"), "other requests are too large at the moment; try again")
        except TimeoutError:
            raise _refused(Kind(408, "too-slow"), f"the request did not arrive within {limits.patience:g} s") from None


class _Disconnected(Exception):
    """The caller has gone before the request had arrived."""


class _ValueCounter:
    """Counts commas and opening brackets of a JSON text outside its strings, part by part.

    >>> counter = _ValueCounter()
    >>> [counter.after(part) for part in (b'{"a": [1, 2', b', "x, ', b'\\\\" , y"]', b', "b": 0}')]
    [3, 4, 4, 5]
    """

    def __init__(self) -> None:
        self._count, self._in_string, self._rest = 0, False, b""

    def after(self, part: bytes) -> int:
        """The number so far."""
        text = self._rest + part
        bare = text.rstrip(b"\\")
        self._rest = b"\\" * ((len(text) - len(bare)) % 2)  # the next part says what it escapes; pairs are a character
        pieces = bare.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        for piece in pieces[int(self._in_string) :: 2]:
            self._count += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        self._in_string ^= len(pieces) % 2 == 0
        return self._count


def _received(body: bytearray, receive: Receive) -> Receive:
    """A whole body in place of what is still to be received."""
    whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def received() -> Message:
        return whole.pop() if whole else await receive()

    return received


def _refused(kind: Kind, detail: str) -> ProblemError:
    headers = {"Connection": "close"} | ({"Retry-After": str(RETRY_AFTER)} if kind.status == 503 else {})
    return ProblemError(kind, detail, headers=headers)


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else "unknown"


def caller_of(scope: Scope) -> str:
    """Who sends a request: the name of its token, or its address without tokens."""
    return scope.get("holder") or _address(scope)


def _raw(scope: Scope) -> bytes:
    """The path as it was sent."""
    raw: bytes | None = scope.get("raw_path")
    return quote(scope["path"]).encode() if raw is None else raw.partition(b"?")[0]
