"""Which candidates a round may use, as a user says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from alexp.common.arrays import Action, AnyArray, IntArray
from alexp.problem.domains import Domain, FiniteSet

# Candidates by number, by a boolean mask, by their own text, or all of them.
Available = Sequence[int] | Sequence[bool] | Sequence[str] | AnyArray | None

_NAMES_SHOWN = 5  # known candidates that an error message lists


def check_available(available: Available, domain: Domain) -> IntArray | None:
    """Candidate numbers that a round may use; None for all of them.

    `available` are indices, a boolean mask of length N, or, where candidates are texts, the candidates themselves.
    """
    if available is None:
        return None
    return check_positions(available, domain.n_candidates, lambda names: _named(names, domain))


def check_positions(available: Available, n: int, by_name: Callable[[list[object]], IntArray]) -> IntArray:
    """Numbers of some of n candidates that are given by number, by a mask, or by texts that `by_name` looks up."""
    array = np.asarray(available)
    if array.dtype == bool:
        if array.shape != (n,):
            raise ValueError(f"available as a mask must have shape ({n},), got {array.shape}")
        if array.any():
            return np.flatnonzero(array)
    elif array.ndim == 1 and array.size and _holds_text(available):
        array = by_name(list(available))  # type: ignore[arg-type]
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            "available must be a non-empty list of candidate indices, a boolean mask with some True, or a list of "
            "candidates where these are texts"
        )
    if array.min() < 0 or array.max() >= n:
        raise ValueError(f"available must hold indices in 0..{n - 1}, got {array.min()}..{array.max()}")
    if np.unique(array).size != array.size:
        raise ValueError("available must not list a candidate twice")
    return array.astype(np.int64)


def _holds_text(available: Action) -> bool:
    return any(isinstance(item, str) for item in available)


def _named(names: list[object], domain: Domain) -> IntArray:
    """Numbers of candidates that are given by their texts."""
    if not isinstance(domain, FiniteSet) or not isinstance(domain[0], str):
        raise ValueError(
            "available can hold texts only where the candidates are texts, a FiniteSet of names; here it takes indices "
            f"in 0..{domain.n_candidates - 1} or a boolean mask, got {names[:_NAMES_SHOWN]!r}"
        )
    numbers = []
    for name in names:
        try:
            numbers.append(domain.locate(name))
        except ValueError:
            known = ", ".join(repr(domain[i]) for i in range(min(domain.n_candidates, _NAMES_SHOWN)))
            more = ", ..." if domain.n_candidates > _NAMES_SHOWN else ""
            raise ValueError(
                f"available holds {name!r}, which is none of the {domain.n_candidates} candidates: {known}{more}; "
                "give all of them as texts, or all as indices"
            ) from None
    return np.array(numbers, dtype=np.int64)
