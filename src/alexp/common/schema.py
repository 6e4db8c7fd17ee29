"""What stored data must look like: said in one line per field, and checked before anything is made of them.

A `Check` takes the name of a field and its value, and returns the value as it is to be used: arrays as copies of the
right type, numbers as numbers. Anything else is a ValueError that names the field, what it must be and what it is.

>>> record("state", {"counts": np.zeros(3), "t": 4}, {"counts": floats(3, low=0.0), "t": whole(high=9)})["t"]
4
>>> record("state", {"counts": np.zeros(2)}, {"counts": floats(3)})
Traceback (most recent call last):
ValueError: state['counts'] must have shape (3,), got (2,)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import Any, TypeVar

import numpy as np

from alexp.common.arrays import AnyArray
from alexp.common.codec import Packable, State, holds_array

Check = Callable[[str, Packable], Packable]
_T = TypeVar("_T")

_HUGE = 10**300
LARGE = 1e150  # numbers whose squares are finite
SQUARE = 1e300  # their squares
MOST = 2**53  # counts beyond it are no longer told apart from their neighbours


def record(name: str, value: Packable, checks: Mapping[str, Check], optional: Iterable[str] = ()) -> State:
    """The fields of a dict that passed their checks; those in `optional` may be missing. Others are left out."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a dict, got {_kind(value)}")
    missing = sorted(set(checks) - set(value) - set(optional))
    if missing:
        raise ValueError(f"{name} lacks {', '.join(map(repr, missing))}")
    return {key: check(f"{name}[{key!r}]", value[key]) for key, check in checks.items() if key in value}


def sequence(name: str, value: Packable, length: int | None = None) -> list[Packable]:
    """A list, of `length` if that is given."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list, got {_kind(value)}")
    if length is not None and len(value) != length:
        raise ValueError(f"{name} must have {length} entries, got {len(value)}")
    return list(value)


# -- checks ----------------------------------------------------------------------------------------------------


def floats(*shape: int | None, low: float = -LARGE, high: float = LARGE, missing: bool = False) -> Check:
    """Numbers within low..high; NaN stands for none where `missing`. None in the shape is any size."""
    return _array(shape, np.float64, "biuf", "numbers", low, high, missing)


def integers(*shape: int | None, low: float = -inf, high: float = inf) -> Check:
    """Whole numbers within low..high."""
    return _array(shape, np.int64, "iu", "whole numbers", low, high, False)


def booleans(*shape: int | None) -> Check:
    """Truth values."""
    return _array(shape, np.bool_, "b", "truth values", -inf, inf, False)


def number(low: float = -LARGE, high: float = LARGE) -> Check:
    """One number within low..high."""

    def check(name: str, value: Packable) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise ValueError(f"{name} must be a number, got {_kind(value)}")
        found = inf if isinstance(value, int) and abs(value) > _HUGE else float(value)  # which may be of any length
        if not (isfinite(found) and low <= found <= high):
            raise ValueError(f"{name} must be {_within('a finite number', low, high)}, got {value!r:.80}")
        return found

    return check


def whole(low: int = 0, high: int = MOST) -> Check:
    """One whole number within low..high."""

    def check(name: str, value: Packable) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ValueError(f"{name} must be a whole number, got {_kind(value)}")
        if not low <= value <= high:
            raise ValueError(f"{name} must be {_within('a whole number', low, high)}, got {value!r:.80}")
        return int(value)

    return check


def text(allowed: Sequence[str] | None = None, most: int = 10_000) -> Check:
    """A text, one of the `allowed` ones if these are given."""

    def check(name: str, value: Packable) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise ValueError(f"{name} must be a text of at most {most} characters, got {_kind(value)}")
        if allowed is not None and value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r:.80}")
        return value

    return check


def anything(name: str, value: Packable) -> Packable:
    """Anything; its reader checks it."""
    return value


def a_dict(name: str, value: Packable) -> State:
    """A dict; its reader checks the content."""
    if not isinstance(value, dict) or holds_array(value):
        raise ValueError(f"{name} must be a dict, got {'an array' if isinstance(value, dict) else _kind(value)}")
    return dict(value)


def maybe(check: Check) -> Check:
    """None, or what passes the check."""
    return lambda name, value: None if value is None else check(name, value)


def same(name: str, value: _T, expected: _T, why: str) -> None:
    """Raise unless a number agrees with what is known from elsewhere."""
    if value != expected:
        raise ValueError(f"{name} must be {expected}, {why}, got {value}")


def _array(
    shape: tuple[int | None, ...], dtype: type[Any], kinds: str, what: str, low: float, high: float, missing: bool
) -> Check:
    wanted = str(tuple("any" if size is None else size for size in shape)).replace("'", "")

    def check(name: str, value: Packable) -> AnyArray:
        array = np.asarray(value) if isinstance(value, np.ndarray | list) else None
        if array is None or (array.dtype.kind not in kinds and array.size):
            raise ValueError(f"{name} must be {what} of shape {wanted}, got {_kind(value)}")
        if array.size == 0 and 0 in shape:  # how an empty array is shaped does not matter
            array = array.reshape([size or 0 for size in shape])
        if array.ndim != len(shape) or any(n not in (m, None) for m, n in zip(array.shape, shape, strict=True)):
            raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
        if array.size == 0:
            return np.empty(array.shape, dtype=dtype)
        known = array[~np.isnan(array)] if missing else array
        if not np.all(np.isfinite(known)):
            raise ValueError(f"{name} must be finite, got {known[~np.isfinite(known)].flat[0]}")
        if known.size and not (low <= known.min() and known.max() <= high):
            raise ValueError(f"{name} must be {_within(what, low, high)}, got {known.min()} to {known.max()}")
        return np.array(array, dtype=dtype)

    return check


def _within(what: str, low: float, high: float) -> str:
    if (low, high) == (-inf, inf):
        return what
    return f"{what} within {low:.10g}..{high:.10g}"


def _kind(value: object) -> str:
    """What something is, for messages."""
    if isinstance(value, np.ndarray):
        return f"an array of type {value.dtype} and shape {value.shape}"
    return f"{type(value).__name__} {value!r:.40}"
