"""Events: what happened in a study, in one total order. The log of them is the truth; all else is derived."""

from __future__ import annotations

import json
import os
import socket
import time
import zlib
from dataclasses import dataclass, field
from importlib.metadata import version
from math import floor, log
from typing import Any, Literal

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.common.arrays import IntArray
from alexp.common.codec import pack, unpack

LIBRARY = version("alexp")
Kind = Literal["ask", "tell", "observe", "abandon"]

_EVERY_BELIEF = 256  # the beliefs of the first trials are all recorded, later ones on a grid of steps of 2 %
_MOST_MODELS = 1024  # of larger classes only the leading models are recorded


def worker_name() -> str:
    """This process, as the log names it."""
    return f"{socket.gethostname()}:{os.getpid()}"[:200]


@dataclass(frozen=True)
class Event:
    """One row of the log.

    `ask` carries the trial that was proposed, so that a replay can be held against it; `tell` the reward;
    `observe` a reward measured elsewhere (a trial that is born told); `abandon` only the trial's number.
    """

    seq: int
    kind: Kind
    trial: int
    candidate: int | None = None
    model: int | None = None
    explored: bool | None = None
    propensity: float | None = None
    reward: float | None = None
    at: float = field(default_factory=time.time)
    worker: str = field(default_factory=worker_name)
    detail: bytes | None = None


def compress(value: Any) -> bytes:
    """Nested data with arrays as compressed JSON."""
    return zlib.compress(json.dumps(pack(value), separators=(",", ":")).encode(), 1)


def decompress(data: bytes) -> Any:
    """Invert `compress`."""
    return unpack(json.loads(zlib.decompress(data)))


def describe_restriction(allowed: IntArray | None, n_candidates: int) -> dict[str, Any]:
    """Which candidates a round could choose from, by the shorter of two lists; empty for all of them."""
    if allowed is None:
        return {}
    if 2 * allowed.size <= n_candidates:
        return {"only": np.sort(allowed)}
    return {"without": np.setdiff1d(np.arange(n_candidates), allowed)}


def restriction(detail: dict[str, Any], n_candidates: int) -> IntArray | None:
    """Invert `describe_restriction`."""
    if "only" in detail:
        return np.asarray(detail["only"], dtype=np.int64)
    if "without" in detail:
        return np.setdiff1d(np.arange(n_candidates), detail["without"])
    return None


def belief_is_due(trial: int) -> bool:
    """Whether the beliefs at this trial are kept for the report: some 500 records for 100,000 trials."""
    if trial < _EVERY_BELIEF:
        return True
    return floor(log(trial + 1) / log(1.02)) != floor(log(trial) / log(1.02))


def belief(algorithm: Algorithm) -> dict[str, Any]:
    """q over the models, and hallucinated returns where the algorithm keeps them, for the report.

    Values are float32, shape (M,), or those of the `models` listed when there are very many.
    """
    q = getattr(algorithm, "probabilities", None)
    if q is None:
        return {}
    returns = getattr(algorithm, "cumulative_returns", None)
    out: dict[str, Any] = {"told": algorithm.n_told}
    chosen: Any = slice(None)
    if q.size > _MOST_MODELS:
        chosen = np.sort(np.argsort(-q, kind="stable")[:_MOST_MODELS])
        out["models"] = chosen
    out["q"] = np.asarray(q)[chosen].astype(np.float32)
    if returns is not None:
        out["returns"] = np.asarray(returns)[chosen].astype(np.float32)
    return out
