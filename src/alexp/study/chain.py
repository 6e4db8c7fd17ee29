"""Checksums of the log: each covers its event and the checksum before it, back to the row of the study.

    c_0 = H(row),   c_{k+1} = H(c_k, event k),   H = SHA-256.

The row of the study stores the newest checksum. A missing tail, a changed row and a row of another study are detected.
What is hashed must not change between versions: databases store the checksums.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from alexp.study.errors import damaged
from alexp.study.events import Event

if TYPE_CHECKING:
    from alexp.study.records import StudyRow

_STUDY, _SNAPSHOT = "alexp study", "alexp snapshot"  # distinct prefixes for the two kinds of checksum


def _hash(start: bytes, facts: Sequence[object], data: bytes | None = None) -> bytes:
    text = json.dumps([*facts, None if data is None else len(data)], separators=(",", ":"))
    digest = sha256(start)
    digest.update(text.encode())
    digest.update(data or b"")
    return digest.digest()


def row_checksum(row: StudyRow) -> bytes:
    """c_0, the checksum of the row of a study. The row refers to the arrays of the problem by their hashes."""
    facts = (row.name, row.algorithm, row.settings, row.entropy, row.problem, row.probe, row.library, row.created_at)
    return _hash(b"", (_STUDY, *facts, row.when_expired))


def event_checksum(before: bytes, event: Event) -> bytes:
    """c_{k+1} from c_k and event k."""
    decision = (event.candidate, event.model, event.explored, event.propensity)
    facts = (event.seq, event.kind, event.trial, *decision, event.reward, event.at, event.worker, event.key)
    return _hash(before, facts, event.detail)


def key_of(call: str, position: int) -> str:
    """The key of an event: that of its call, and its position among the events of that call."""
    return f"{call}:{position}"


def with_checksums(before: bytes, events: Iterable[Event], call: str) -> Iterator[Event]:
    """The events of a call with their keys and checksums."""
    for position, event in enumerate(events):
        named = replace(event, key=key_of(call, position))
        before = event_checksum(before, named)
        yield replace(named, chain=before)


def snapshot_checksum(n_events: int, layout: int, library: str, chain: bytes, data: bytes) -> bytes:
    """Checksum of a snapshot; `chain` is the checksum of the last event that the snapshot contains."""
    return _hash(chain, (_SNAPSHOT, n_events, layout, library), data)


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
