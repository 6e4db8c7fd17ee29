"""Checks of what users hand in: each names the argument, what was wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import NoReturn, TypeVar

import numpy as np

from alexp.common.arrays import FloatArray

_Word = TypeVar("_Word", bound=str)

# Rewards and features beyond this size are refused, and so is noise below the other: squares of all of them, and
# products of two squares, are then numbers.
LARGEST = 1e100
SMALLEST = 1e-100
VANISHING = 1e-140  # features of this size or less count as zero in models that take them as they are: so do squares


def positive(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it is finite and above zero."""
    number = finite(name, value)
    if number <= 0.0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return number


def non_negative(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it is finite and at least zero."""
    number = finite(name, value)
    if number < 0.0:
        raise ValueError(f"{name} must not be negative, got {value!r}")
    return number


def scale(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it is positive and squares of it are numbers."""
    number = positive(name, value)
    if not SMALLEST <= number <= LARGEST:
        raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {value!r}; use other units")
    return number


def limited(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it is a number of at most `LARGEST` in size."""
    number = _number(name, value)
    if not abs(number) <= LARGEST:
        raise ValueError(f"{name} must be finite and not exceed {LARGEST:g} in size, got {number:g}")
    return number


def finite(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it is one finite number."""
    number = _number(name, value)
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def _number(name: str, value: object) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be one real number, got {type(value).__name__}: {value!r}")
    try:
        return float(value)
    except OverflowError:
        digits = f"an integer of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__
        raise ValueError(f"{name} must be finite and not exceed {LARGEST:g} in size, got {digits}") from None


def fraction(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it lies strictly between 0 and 1."""
    number = finite(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def share(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it lies in 0..1."""
    number = finite(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return number


def count(name: str, value: object, minimum: int = 1) -> int:
    """Return `value` as an int, or raise unless it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {type(value).__name__}: {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    if int(value) >= 2**63:
        raise ValueError(f"{name} must be below 2**63, got a number of {int(value).bit_length()} bits")
    return int(value)


def offering(name: str, value: object, method: str) -> None:
    """Raise unless `value` is an object with this method; a class in place of an instance is refused, too."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise TypeError(f"{name} must be an object with a method {method}(), got {type(value).__name__}: {value!r}")


def one_of(name: str, value: object, allowed: tuple[_Word, ...]) -> _Word:
    """Return `value`, or raise unless it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return allowed[allowed.index(value)]


def matrix(name: str, value: object, rows: int | None = None) -> FloatArray:
    """Return `value` as a finite float64 matrix (vectors become one column), or raise."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # the last is a tensor's
        raise TypeError(f"{name} must be a numeric array of shape (n, d): {error}") from error
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d), got {array.shape}")
    if rows is not None and array.shape[0] != rows:
        raise ValueError(f"{name} must have {rows} rows, one per point, got {array.shape[0]}")
    if not np.all(np.isfinite(array)):
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{name} has {array[row, column]} at row {row}, column {column}; features must be finite")
    check_sizes(name, array)
    return array


def check_sizes(name: str, array: FloatArray, first: int = 0) -> None:
    """Raise if a number of a finite matrix (n, d) is larger than `LARGEST` in size; its rows count from `first`."""
    if array.size and max(array.max(), -array.min()) > LARGEST:
        row, column = np.argwhere(np.abs(array) > LARGEST)[0]
        refuse_size(name, float(array[row, column]), first + int(row), int(column))


def refuse_size(name: str, value: float, row: int, column: int) -> NoReturn:
    """Raise for a feature that is larger than `LARGEST` in size."""
    raise ValueError(
        f"{name} has {value:g} at row {row}, column {column}; features must not exceed {LARGEST:g} in size; use other "
        "units"
    )


def did_you_mean(name: object, known: Iterable[object], likeness: float = 0.6) -> str:
    """A question for the end of an error about a name that is not known; empty where no known one looks like it.

    >>> did_you_mean("celcius", ["solvent", "celsius"]), did_you_mean("date", ["solvent", "celsius"])
    ("; did you mean 'celsius'?", '')
    """
    found = nearest(name, known, likeness)
    return "" if found is None else f"; did you mean {found!r}?"


def misspelt(missing: object, given: Iterable[object]) -> str:
    """The same for a name that is missing among those given.

    >>> misspelt("celsius", ["solvent", "celcius"])
    "; is 'celcius' misspelt?"
    """
    found = nearest(missing, given, 0.6)
    return "" if found is None else f"; is {found!r} misspelt?"


def nearest(name: object, known: Iterable[object], likeness: float = 0.6) -> str | None:
    """The known name that looks most like a name, whatever the case; None where none does."""
    by_lower = {str(one).lower(): str(one) for one in known}
    found = get_close_matches(str(name).lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None
