"""Events of a study, in one total order. All other data are derived from their log.

Each event has a checksum that covers it and the checksum before it, back to the row of the study:

    c_0 = H(row),   c_{k+1} = H(c_k, event k),   H = SHA-256.

The row of the study stores the newest checksum. A missing tail, a changed row and a row of another study are detected.
What is hashed must not change between versions: databases store the checksums.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from math import floor, log
from typing import Literal, TypedDict, cast
from uuid import uuid4

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import SumsReturns, WeighsModels, provides
from alexp.common.arrays import AnyArray, FloatArray, IntArray, NarrowArray
from alexp.common.codec import Packable, deflate, inflate, pack, unpack
from alexp.common.redaction import redact
from alexp.problem.objectives import Value
from alexp.study.errors import damaged
from alexp.table.encoding import Arrivals

LIBRARY = version("alexp")
Kind = Literal["ask", "tell", "observe", "abandon", "fail", "amend", "retract", "arm", "add", "learn"]
FAILED: Literal["failed"] = "failed"  # in place of a reward, in results
AMENDS = ("amend", "retract")
GROWS = ("arm", "add", "learn")  # kinds after which the problem is larger; of no trial
RERUNS = (*AMENDS, *GROWS)  # kinds after which the run may be repeated as a whole

_EVERY_BELIEF = 256  # the beliefs of the first trials are all recorded, later ones on a grid of steps of 2 %
MOST_MODELS = 1024  # of larger classes only the leading models are recorded


_acting: ContextVar[str] = ContextVar("acting", default="")


@contextmanager
def acting_as(worker: str | None) -> Iterator[None]:
    """Set the worker's name within this block, in this thread; None keeps the present name."""
    token = _acting.set(_acting.get() if worker is None else worker.strip())
    try:
        yield
    finally:
        _acting.reset(token)


def new_key() -> str:
    """A random key, by which a call is known when it is repeated."""
    return uuid4().hex


def worker_name() -> str:
    """Name of this worker in the log: that of `acting_as`, $ALEXP_WORKER, or host:process."""
    if named := _acting.get() or os.environ.get("ALEXP_WORKER", "").strip():
        return "".join(c if c.isprintable() else "?" for c in redact(named[:1000])[:200])
    return f"{socket.gethostname()}:{os.getpid()}"[:200]


class EventDict(TypedDict):
    """One event as JSON data; `at` is in seconds since 1970, UTC."""

    seq: int
    kind: Kind
    trial: int
    candidate: int | None
    model: int | None
    explored: bool | None
    propensity: float | None
    reward: float | dict[str, float] | None
    at: float
    worker: str


def entry_text(event: EventDict) -> str:
    """What an event says about the reward of its trial, in a word."""
    if event["kind"] == "fail":
        return FAILED
    if isinstance(event["reward"], dict):
        return ", ".join(f"{name} {value!r}" for name, value in event["reward"].items())
    return "retracted" if event["reward"] is None else repr(event["reward"])


class BeliefRecord(TypedDict, total=False):
    """Probabilities `q` and `returns` after `told` rewards, of all models or of the `models` listed."""

    told: int
    models: IntArray
    q: NarrowArray
    returns: NarrowArray


class Decided(TypedDict):
    """The device that a decision was computed `on`, and the number of rewards `told` by then."""

    on: str
    told: int


class StoredOffer(TypedDict, total=False):
    """A contextual round of `n` candidates: the packed row that was chosen, or all `rows`, and the arguments of ask."""

    n: int
    row: AnyArray
    rows: AnyArray
    action: Packable
    context: Packable
    ids: list[Packable]


class Detail(TypedDict, total=False):
    """What an event stores beyond its columns: the round's restriction, by the shorter of two lists, and the beliefs.

    Asks that were decided on a device have `decided`. Asks and observations of contextual rounds have `offer`, new arms
    their name, failures their reason as `note`; `replicate` is the trial that an observation measured again. Where
    several objectives are measured, `values` has all of a reward by name, and the column of the reward the first. New
    candidates are `added`: their cells, their features, and how these were made; so is what was learned from campaigns.
    """

    only: IntArray
    without: IntArray
    belief: BeliefRecord
    decided: Decided
    offer: StoredOffer
    arm: str
    note: str
    replicate: int
    values: dict[str, float]
    added: Arrivals


@dataclass(frozen=True)
class Event:
    """One row of the log.

    `ask` carries the trial that was proposed, with which a replay is compared; `tell` the reward; `observe` an external
    measurement (a new trial with its reward); `amend` the reward that replaces an earlier one, which stays in the log;
    `fail` a trial whose experiment failed, pending or with a reward that the failure replaces; `abandon` and `retract`
    only the trial's number; `arm` a new arm, its number as the candidate, and no trial (-1); `add` new candidates, the
    number of the first as the candidate, and no trial; `learn` old campaigns, and neither.
    `key`, the idempotency key of the call, and `chain`, the checksum, are set when the event is written.
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
    key: str | None = None
    chain: bytes = b""


def digest(start: bytes, facts: Sequence[object], data: bytes | None = None) -> bytes:
    """H of a checksum, facts that JSON can write, and data."""
    text = json.dumps([*facts, None if data is None else len(data)], separators=(",", ":"))
    out = sha256(start)
    out.update(text.encode())
    out.update(data or b"")
    return out.digest()


def event_checksum(before: bytes, event: Event) -> bytes:
    """c_{k+1} from c_k and event k."""
    decision = (event.candidate, event.model, event.explored, event.propensity)
    facts = (event.seq, event.kind, event.trial, *decision, event.reward, event.at, event.worker, event.key)
    return digest(before, facts, event.detail)


def key_of(call: str, position: int) -> str:
    """The key of an event: that of its call, and its position among the events of that call."""
    return f"{call}:{position}"


def with_checksums(before: bytes, events: Iterable[Event], call: str) -> Iterator[Event]:
    """The events of a call with their keys and checksums."""
    for position, event in enumerate(events):
        named = replace(event, key=key_of(call, position))
        before = event_checksum(before, named)
        yield replace(named, chain=before)


def verify(before: bytes, events: Sequence[Event], start: int, stop: int) -> bytes:
    """Raise unless these are events `start` to `stop` - 1 after checksum `before`; returns the checksum of the last."""
    for seq, event in zip(range(start, stop), events, strict=False):
        if event.seq != seq:
            raise damaged(f"event {seq} is missing", seq)
        if not follows(before, event):
            raise damaged(f"event {seq} is damaged: its checksum is wrong", seq)
        before = event.chain
    if len(events) < stop - start:
        seq = start + len(events)
        raise damaged(f"event {seq} is missing, and all after it up to event {stop - 1}", seq)
    return before


def follows(before: bytes, event: Event) -> bool:
    """Whether the event is unchanged and follows the checksum `before`."""
    try:
        return event_checksum(before, event) == event.chain
    except (TypeError, ValueError):  # a value of a type that is never written
        return False


def compress(value: object) -> bytes:
    """Nested data with arrays as compressed JSON."""
    return deflate(json.dumps(pack(value), separators=(",", ":")).encode())


def decompress(data: bytes) -> Packable:
    """Invert `compress`; ValueError for other data, and for data that would take far too much memory."""
    return unpack(json.loads(inflate(data)))


def detail_of(event: Event) -> Detail:
    """What an event stores beyond its columns."""
    detail: Detail = decompress(event.detail) if event.detail else {}
    return detail


def noted(note: str, reward: Value | None = None) -> bytes | None:
    """The detail of an event with a note, or with a reward of several objectives; None without both."""
    detail = rewarded(reward) | ({"note": note} if note else {})
    return compress(detail) if detail else None


def rewarded(reward: Value | None) -> Detail:
    """What an event stores of a reward beyond the column for it."""
    return {"values": reward} if isinstance(reward, dict) else {}


def reward_of(event: Event) -> Value | None:
    """The reward of an event, of all objectives where several are measured."""
    values: dict[str, float] | None = detail_of(event).get("values") if event.detail else None
    return event.reward if values is None else values


def public_event(event: Event) -> EventDict:
    """An event as JSON data."""
    reward = reward_of(event) if event.kind in ("tell", "observe", "amend") else None
    return {
        "seq": event.seq,
        "kind": event.kind,
        "trial": event.trial,
        "candidate": event.candidate,
        "model": event.model,
        "explored": event.explored,
        "propensity": event.propensity,
        "reward": reward,
        "at": event.at,
        "worker": event.worker,
    }


def describe_restriction(allowed: IntArray | None, n_candidates: int) -> Detail:
    """The candidates that a round could choose from, by the shorter of two lists; empty for all of them."""
    if allowed is None:
        return {}
    if 2 * allowed.size <= n_candidates:
        return {"only": np.sort(allowed)}
    return {"without": np.setdiff1d(np.arange(n_candidates), allowed)}


def restriction(detail: Detail, n_candidates: int) -> IntArray | None:
    """Invert `describe_restriction`."""
    if "only" in detail:
        return np.asarray(detail["only"], dtype=np.int64)
    if "without" in detail:
        return np.setdiff1d(np.arange(n_candidates), detail["without"])
    return None


def belief_is_due(trial: int) -> bool:
    """Whether the beliefs at this trial are recorded for the report: about 500 records for 100,000 trials."""
    if trial < _EVERY_BELIEF:
        return True
    return floor(log(trial + 1) / log(1.02)) != floor(log(trial) / log(1.02))


def belief(algorithm: Algorithm) -> BeliefRecord | None:
    """q over the models, and hallucinated returns where the algorithm keeps them; None where there is no q.

    To be called after the round's ask, which does not change them and has computed them already. Values are float32,
    shape (M,), or those of the `models` listed when there are very many.
    """
    q, returns = probabilities_of(algorithm), returns_of(algorithm)
    if q is None:
        return None
    listed = leading_models(q)
    out: BeliefRecord = {"told": algorithm.n_told}
    if listed.size < q.size:
        out["models"] = listed
    out["q"] = q[listed].astype(np.float32)
    if returns is not None:
        most = float(np.finfo(np.float32).max)
        out["returns"] = np.clip(returns[listed], -most, most).astype(np.float32)
    return out


def probabilities_of(algorithm: object) -> FloatArray | None:
    """Probability of every model, shape (M,); None where the algorithm has none."""
    if not provides(type(algorithm), WeighsModels):
        return None
    listable = getattr(getattr(algorithm, "models", None), "is_listable", True)  # stand-ins of tests have no models
    return np.asarray(cast(WeighsModels, algorithm).probabilities) if listable else None


def returns_of(algorithm: object) -> FloatArray | None:
    """Cumulative return of every model, shape (M,); None where the algorithm has none."""
    if not provides(type(algorithm), SumsReturns):
        return None
    return np.asarray(cast(SumsReturns, algorithm).cumulative_returns)


def leading_models(q: FloatArray) -> IntArray:
    """Numbers of all models, or of the `MOST_MODELS` most probable ones if there are more, in increasing order."""
    if q.size <= MOST_MODELS:
        return np.arange(q.size)
    return np.sort(np.argsort(-q, kind="stable")[:MOST_MODELS])
