"""What one caller may take: bytes, requests, studies held open, sizes of problems."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Limits:
    """Limits of a service.

    Attributes
    ----------
    body : bytes of a request.
    patience : seconds within which a request must have arrived.
    rate, burst : requests per second of one token, or of one address without a token, in the long run and at once;
        a rate of zero for no limit.
    open_studies : studies held in memory; of more, those least recently used are closed until they are used again.
    candidates, models, features : sizes of a problem that may be created, features being candidates x columns.
    memory, step : bytes of memory and seconds of a step that a study may take, by the estimate before it is made.
    """

    body: int = 32 * 2**20
    patience: float = 60.0
    rate: float = 500.0
    burst: int = 1000
    open_studies: int = 64
    candidates: int = 1_000_000
    models: int = 100_000
    features: int = 50_000_000
    memory: float = 4e9
    step: float = 5.0

    def __post_init__(self) -> None:
        if self.rate < 0.0 or min(self.body, self.burst, self.open_studies) < 1 or self.patience <= 0.0:
            raise ValueError("body, burst, open_studies and patience must be positive, and rate must not be negative")


class Buckets:
    """Token buckets: each caller has `burst` requests at once, and `rate` more of them every second.

    >>> buckets = Buckets(rate=1.0, burst=2)
    >>> [buckets.wait("me", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [0, 0, 1, 0]
    """

    _MOST = 10_000  # callers remembered; those with a full bucket are forgotten first

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, caller: str, now: float | None = None) -> int:
        """Whole seconds for which a caller has to wait; zero if the request may pass, which it then does."""
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
