"""HTTP calls to a service: connections, retries under one key, and errors as exceptions of the library."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from alexp.algorithms import AbandonedTrialError, AlreadyToldError, NotCertified, NotToldError, UnknownTrialError
from alexp.algorithms.log import NoRewardYetError
from alexp.algorithms.several import SeveralObjectivesError
from alexp.common.codec import Packable, State
from alexp.common.extras import require
from alexp.common.memory import OutOfMemoryError
from alexp.common.validation import count, positive
from alexp.study.errors import (
    HistoryReplacedError,
    LeaseError,
    NotOfferedError,
    ProblemMismatchError,
    ReplayError,
    StorageError,
    StudyError,
    StudyExistsError,
    StudyNotFoundError,
    SuspiciousRewardError,
    UnknownOutcomeError,
)

if TYPE_CHECKING:
    import httpx


# By the last part of the problem's type, `urn:alexp:already-told`.
_BY_TYPE: Mapping[str, type[Exception]] = {
    "study-not-found": StudyNotFoundError,
    "trial-not-found": UnknownTrialError,
    "already-told": AlreadyToldError,
    "abandoned": AbandonedTrialError,
    "not-told": NotToldError,
    "suspicious-reward": SuspiciousRewardError,
    "study-exists": StudyExistsError,
    "problem-mismatch": ProblemMismatchError,
    "held-by-another": LeaseError,
    "not-offered": NotOfferedError,
    "not-certified": NotCertified,
    "no-reward-yet": NoRewardYetError,
    "several-objectives": SeveralObjectivesError,
    "unknown-outcome": UnknownOutcomeError,
    "history-replaced": HistoryReplacedError,
    "out-of-memory": OutOfMemoryError,
    "log-contradicts-itself": ReplayError,
}
_BY_STATUS: Mapping[int, type[Exception]] = {
    401: PermissionError,
    403: PermissionError,
    404: LookupError,
    409: StudyError,
    **dict.fromkeys((400, 405, 408, 413, 415, 422), ValueError),
}
_AGAIN = frozenset({429, 502, 503, 504})  # repeat the call: nothing was done, or a proxy lost the response
_LOST = frozenset({502, 504})  # the call may have been stored
_SHORTEST, _LONGEST = 0.05, 5.0  # seconds between two attempts, doubling from one to the next
_LONGEST_RETRY_AFTER = 60.0  # seconds that a Retry-After may ask for
_FIRST_RETRIES = 7  # retries, about five seconds, before the first response: the address may be wrong
_POOL = 256  # connections kept open, one per thread that is in a call


def without_none(values: State) -> State:
    """The items whose value is not None."""
    return {name: value for name, value in values.items() if value is not None}


class HttpTransport:
    """Calls to one service, which may have several addresses; safe for threads and after forks.

    A call without a response is repeated, at the next address if there are several. A call that writes is repeated
    with the same key, so that it is stored once.
    """

    def __init__(
        self,
        urls: Sequence[str],
        token: str | None,
        timeout: float,
        retries: int,
        httpx_transport: Callable[[], httpx.BaseTransport] | None = None,
    ) -> None:
        require("httpx", subject="alexp.Client")
        if not urls:
            raise ValueError("url must be the address of a service, such as http://127.0.0.1:8000")
        self.urls = [_checked_url(url) for url in urls]
        self.timeout, self.retries = positive("timeout", timeout), count("retries", retries, 0)
        self._token, self._httpx_transport = _token(token), httpx_transport
        self._current, self._was_answered = 0, False
        self._open: tuple[int, httpx.Client] | None = None

    @property
    def http(self) -> httpx.Client:
        """The connections of this process; a child process opens its own."""
        if self._open is None or self._open[0] != os.getpid():
            self._open = (os.getpid(), self._connect())
        return self._open[1]

    def _connect(self) -> httpx.Client:
        import httpx

        headers = {"Accept": "application/json, application/problem+json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(self.timeout, connect=min(self.timeout, 10.0), pool=None),
            limits=httpx.Limits(max_connections=_POOL, max_keepalive_connections=_POOL),
            transport=None if self._httpx_transport is None else self._httpx_transport(),
            verify=any(url.startswith("https:") for url in self.urls),  # loading certificates is slow
            trust_env=not all(_is_loopback(url) for url in self.urls),  # loopback addresses need no proxy
        )

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        if self._open is not None and self._open[0] == os.getpid():
            self._open[1].close()
        self._open = None

    def read(self, path: str, **params: object) -> Packable:
        """The response to GET, as JSON data; parameters that are None are left out."""
        return self.send("GET", path, params=params).json()

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        params: Mapping[str, object] | None = None,
        key: str | None = None,
        again: Callable[[httpx.Response], bool] = lambda _response: False,
        changes: bool = False,
    ) -> httpx.Response:
        """The response to one call, repeated up to `retries` times.

        `changes` says that the call writes. An error of a repeated call may show that an earlier attempt succeeded:
        where `again(response)` is true, the response is returned and nothing is raised.
        """
        content = None if body is None else encoded(body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        given = {name: _text(value) for name, value in (params or {}).items() if value is not None}
        attempt, may_be_stored = 0, False
        while True:
            at = self._current
            response, trouble, sent = self._attempt(method, self.urls[at] + path, content, headers, given)
            may_be_stored |= changes and sent
            if response is not None and response.status_code not in _AGAIN:
                if response.status_code < 300 or (may_be_stored and attempt > 0 and again(response)):
                    return response
                raise failure(response, key)
            if attempt >= (self.retries if self._was_answered else min(self.retries, _FIRST_RETRIES)):
                self._give_up(response, trouble, key, may_be_stored)
            if response is None:
                self._current = (at + 1) % len(self.urls)
            time.sleep(_pause(attempt, response))
            attempt += 1

    @contextmanager
    def stream(self, path: str, **params: object) -> Iterator[httpx.Response]:
        """A response that is read while it arrives; one attempt, at the current address."""
        given = {name: _text(value) for name, value in params.items() if value is not None}
        headers = {"Accept": "text/event-stream"}
        with self.http.stream("GET", self.urls[self._current] + path, params=given, headers=headers) as response:
            if response.status_code >= 300:
                response.read()
                raise failure(response, None)
            yield response

    def _attempt(
        self, method: str, url: str, content: bytes | None, headers: Mapping[str, str], params: Mapping[str, str]
    ) -> tuple[httpx.Response | None, str, bool]:
        """The response if there is one, the reason if not, and whether the service may have received the call."""
        import httpx

        try:
            response = self.http.request(method, url, content=content, headers=headers, params=params)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return None, _reason(error), False
        except httpx.TransportError as error:
            self._was_answered = True  # the connection was established
            return None, _reason(error), True
        self._was_answered = True
        return response, f"status {response.status_code}", response.status_code in _LOST

    def _give_up(self, response: httpx.Response | None, trouble: str, key: str | None, unknown: bool) -> NoReturn:
        where = " or ".join(self.urls)
        if unknown:
            error = UnknownOutcomeError(
                f"{where} gave no answer ({trouble}): it is unknown whether the call was stored. When it is back, "
                + (f"repeat the call with key={key!r}, which stores it once" if key else "repeat the call")
            )
            error.key = key
            raise error
        if response is None:
            raise StorageError(
                f"{where} cannot be reached ({trouble}). Nothing was changed; is `alexp serve` running there?"
            )
        raise failure(response, key)


def encoded(body: Mapping[str, object]) -> bytes:
    """A body as JSON. ValueError for NaN and infinity, TypeError for unknown types."""
    try:
        return json.dumps(body, allow_nan=False, default=_plain, separators=(",", ":")).encode()
    except ValueError as error:
        if "JSON" not in str(error):
            raise
        raise ValueError("NaN and infinite numbers cannot be sent to a service; omit missing values") from None


def _plain(value: Packable) -> object:
    """Plain data for types that `json` cannot encode: those of NumPy and pandas, mappings, sequences."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict("records") if hasattr(value, "columns") else value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | set | frozenset | range):
        return list(value)
    raise TypeError(f"only numbers, text, lists and dicts of them can be sent to a service, got {type(value).__name__}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pause(attempt: int, response: httpx.Response | None) -> float:
    """Seconds to wait: what the service asks for, or twice as long each time, with random jitter."""
    wanted = None if response is None else response.headers.get("Retry-After")
    if wanted is not None and wanted.strip().isdigit():
        return min(float(wanted), _LONGEST_RETRY_AFTER) + random.uniform(0.0, _SHORTEST)
    return random.uniform(0.5, 1.0) * min(_SHORTEST * 2.0**attempt, _LONGEST)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _checked_url(url: str) -> str:
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise ValueError(f"url must be an address such as http://127.0.0.1:8000: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"url must be an address such as http://127.0.0.1:8000, got {url!r:.100}")
    if parsed.userinfo:
        raise ValueError("url must have no user or password in it; pass the token as token=, or in ALEXP_TOKEN")
    if parsed.query or parsed.fragment:
        raise ValueError(f"url must be the address of the service alone, without ? or #, got {url!r:.100}")
    return str(parsed).rstrip("/")


def _token(token: str | None) -> str | None:
    found = (os.environ.get("ALEXP_TOKEN") if token is None else token) or None
    if found is not None and not (found.isascii() and found.isprintable() and " " not in found):
        raise ValueError("token must be one word of printable ASCII characters")  # and is not shown
    return found


def _is_loopback(url: str) -> bool:
    import httpx

    host = httpx.URL(url).host
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def failure(response: httpx.Response, key: str | None) -> Exception:
    """The exception for an error response; `key` is the key of the call, if it has one."""
    body = _problem(response)
    kind = _BY_TYPE.get(str(body.get("type")).rpartition(":")[2], _BY_STATUS.get(response.status_code, StorageError))
    text = str(body.get("detail") or body.get("title") or f"the service answered with status {response.status_code}")
    if response.status_code == 401:
        text += "; Client(url, token=...) sends one, or the environment variable ALEXP_TOKEN"
    error = kind(text)
    if isinstance(error, UnknownOutcomeError):
        error.key = key
    return error


def _problem(response: httpx.Response) -> State:
    """The problem document; for another response, as of a proxy, the first characters of its text."""
    try:
        found = response.json()
    except ValueError:
        found = None
    if isinstance(found, dict) and ("detail" in found or "title" in found):
        return found
    beginning = " ".join(response.text.split())[:200]
    return {
        "detail": f"{response.url} answered with status {response.status_code}, not as a service would: {beginning!r}"
    }
