"""The course of a run: what happened in which order, in eight bytes per event."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from alexp.common.arrays import AnyArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import integers, record, same

Step = Literal["ask", "tell", "observe", "abandon"]
_STEPS: tuple[Step, ...] = ("ask", "tell", "observe", "abandon")
_ASK, _TELL, _OBSERVE, _ABANDON = range(4)


class Happened(NamedTuple):
    """One event: what, to which trial, and for an ask the restriction of its round (None for all candidates)."""

    step: Step
    trial: int
    restriction: bytes | None


class Course:
    """Asks, tells, observations and abandonments in the order in which they happened.

    An event is one number, 4 x value + step. The value of a tell or an abandonment is its trial; asks and
    observations make trials in the order of their numbers, so the value of an ask can say which restriction its round
    had. Equal restrictions are stored once. Events are part of the course once they are committed, all in one step.
    """

    def __init__(self) -> None:
        self._codes = array("q")
        self._new: list[int] = []  # not committed yet
        self._numbers: dict[bytes, int] = {}  # 1, 2, ... of every restriction

    def __len__(self) -> int:
        return len(self._codes)

    def asked(self, restriction: bytes | None = None) -> None:
        """The next trial was proposed."""
        number = 0 if restriction is None else self._numbers.setdefault(restriction, len(self._numbers) + 1)
        self._new.append(4 * number + _ASK)

    def told(self, trial: int) -> None:
        """A trial's reward was told."""
        self._new.append(4 * trial + _TELL)

    def observed(self) -> None:
        """The next trial was measured elsewhere, and told at once."""
        self._new.append(_OBSERVE)

    def abandoned(self, trial: int) -> None:
        """A trial was given up."""
        self._new.append(4 * trial + _ABANDON)

    def commit(self) -> None:
        """Make what has happened since the last time part of the course: an interrupt comes before or after."""
        if len(self._new) == 1:
            self._codes.append(self._new[0])
        else:
            self._codes.extend(array("q", self._new))
        self._new = []

    def since(self, start: int = 0, n_trials: int = 0) -> Iterator[Happened]:
        """Events number `start` and later; there were `n_trials` trials before them."""
        restrictions = [None, *self._numbers]
        for code in self._codes[start:]:
            value, step = divmod(code, 4)
            if step in (_ASK, _OBSERVE):
                yield Happened(_STEPS[step], n_trials, restrictions[value] if step == _ASK else None)
                n_trials += 1
            else:
                yield Happened(_STEPS[step], value, None)

    @property
    def one_by_one(self) -> bool:
        """Whether the newest reward came right after an ask, not after another reward as in a plate."""
        for k in range(len(self._codes) - 1, 0, -1):
            if (step := self._codes[k] % 4) in (_TELL, _OBSERVE):
                return step == _TELL and self._codes[k - 1] % 4 == _ASK
        return False

    def state(self) -> State:
        """The course as arrays."""
        restrictions = list(self._numbers)
        return {
            "codes": np.array(self._codes, dtype=np.int64),
            "sizes": np.array([len(restriction) for restriction in restrictions], dtype=np.int64),
            "restrictions": np.frombuffer(b"".join(restrictions), dtype=np.uint8),
        }

    def as_arrays(self) -> tuple[AnyArray, IntArray]:
        """What happened, and to which trial, one entry per event."""
        values, steps = np.divmod(np.array(self._codes, dtype=np.int64), 4)
        made = (steps == _ASK) | (steps == _OBSERVE)
        return np.array(_STEPS)[steps], np.where(made, np.cumsum(made) - 1, values)

    @classmethod
    def read(cls, state: State, n_candidates: int) -> Course:
        """Invert `state`; restrictions must be of so many candidates."""
        checks = {
            "codes": integers(None, low=0),
            "sizes": integers(None, low=1, high=4 * n_candidates + 1),
            "restrictions": integers(None, low=0, high=255),
        }
        known = record("course", state, checks)
        out, data = cls(), known["restrictions"].astype(np.uint8).tobytes()
        ends = np.cumsum(known["sizes"]).tolist()
        same("length of course['restrictions']", len(data), ends[-1] if ends else 0, "the sum of course['sizes']")
        parts = [data[end - size : end] for end, size in zip(ends, known["sizes"].tolist(), strict=True)]
        out._numbers = {part: number for number, part in enumerate(parts, 1)}
        for part in out._numbers:
            check_restriction(part, n_candidates)
        asks = known["codes"][known["codes"] % 4 == _ASK] // 4
        if len(out._numbers) != len(parts) or np.any(asks > len(parts)):
            raise ValueError(f"course['codes'] must name restrictions 1..{len(parts)}, each of which is stored once")
        out._codes = array("q", known["codes"].tobytes())
        return out


def check_restriction(packed: bytes, n_candidates: int) -> None:
    """Raise unless this is what `pack_restriction` makes of some of the candidates."""
    form, size = packed[:1], len(packed) - 1
    listed = form in (b"+", b"-") and size % 4 == 0
    if not (listed or (form == b"#" and size == (n_candidates + 7) // 8)):
        raise ValueError(f"course['restrictions'] must be lists or masks of {n_candidates} candidates")
    named = np.frombuffer(packed[1:], dtype=np.uint32) if listed else np.empty(0, dtype=np.uint32)
    if np.any(named >= n_candidates) or not unpack_restriction(packed, n_candidates).size:
        raise ValueError(f"course['restrictions'] must leave some of the {n_candidates} candidates, and name no others")


def pack_restriction(indices: IntArray, n_candidates: int) -> bytes:
    """Some of N candidates as bytes: the shortest of a list of them, a list of the others, and one bit for each."""
    inside = np.zeros(n_candidates, dtype=bool)
    inside[indices] = True
    forms = (
        b"+" + np.flatnonzero(inside).astype(np.uint32).tobytes(),
        b"-" + np.flatnonzero(~inside).astype(np.uint32).tobytes(),
        b"#" + np.packbits(inside).tobytes(),
    )
    return min(forms, key=len)


def unpack_restriction(packed: bytes, n_candidates: int) -> IntArray:
    """Invert `pack_restriction`: the indices, in increasing order.

    >>> unpack_restriction(pack_restriction(np.array([5, 2]), 9), 9).tolist()
    [2, 5]
    """
    form, data = packed[:1], packed[1:]
    if form == b"#":
        return np.flatnonzero(np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=n_candidates))
    listed = np.frombuffer(data, dtype=np.uint32).astype(np.int64)
    return listed if form == b"+" else np.setdiff1d(np.arange(n_candidates), listed)
