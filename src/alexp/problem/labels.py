"""Do features and candidates speak of the same rows? What labels can tell, and what to do where they disagree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

_MOST_COMPARED = 200_000  # candidates up to which equal ones are looked for


def frame_labels(block: object) -> list[Hashable] | None:
    """Row labels of a DataFrame or Series; None for other things, and for rows that are merely numbered."""
    index: Any = getattr(block, "index", None)
    if index is None or callable(index):  # a list has an `index` too, of another kind
        return None
    labels = list(index)
    return None if labels == list(range(len(labels))) else labels


def check_same_rows(names: Sequence[str], labels: Sequence[list[Hashable] | None]) -> list[Hashable] | None:
    """The labels that all labelled matrices share; raises where two of them list their rows differently."""
    labelled = [(name, own) for name, own in zip(names, labels, strict=True) if own is not None]
    if not labelled:
        return None
    first_name, first = labelled[0]
    for name, own in labelled:
        if len(set(own)) < len(own):
            raise ValueError(f"features {name!r} have two rows labelled {_twice(own)!r}; every candidate needs one row")
        if own != first:
            raise ValueError(
                f"features {name!r} and {first_name!r} list their rows differently: {_first_difference(own, first)}; "
                f"bring them into one order with frame.loc[...], or pass .to_numpy() if the labels mean nothing"
            )
    return first


def check_labels(labels: list[Hashable], candidates: object) -> None:
    """Raise if the rows of labelled features are in another order than the candidates, or speak of other ones."""
    own = _candidate_labels(candidates)
    if own is None or own == labels:
        return
    remedy = "features.loc[candidates.index]" if hasattr(candidates, "iloc") else "features.loc[candidates]"
    if set(own) == set(labels):
        raise ValueError(
            f"the features list the candidates in another order: {_first_difference(labels, own)}; use {remedy}"
        )
    if hasattr(candidates, "iloc") or set(own) & set(labels):
        missing = next((label for label in own if label not in set(labels)), None)
        what = f"candidate {missing!r} has no row" if missing is not None else "some rows belong to no candidate"
        raise ValueError(
            f"the labels of features and candidates do not match: {what}; give both the same index, or pass "
            "features.to_numpy() if the rows are in the candidates' order"
        )


def _candidate_labels(candidates: object) -> list[Hashable] | None:
    """What candidates are called: the index of a table, or texts themselves; None where they have no names."""
    if hasattr(candidates, "iloc"):
        return list(candidates.index)  # type: ignore[attr-defined]
    if isinstance(candidates, list | tuple) and all(isinstance(item, str) for item in candidates):
        return list(candidates)
    if isinstance(candidates, np.ndarray) and candidates.ndim == 1 and candidates.dtype.kind == "U":
        return [str(item) for item in candidates]
    return None


def equal_candidates(candidates: object) -> tuple[int, int] | None:
    """Two candidates that cannot be told apart, by number; None if all differ, are too many, or cannot be compared."""
    if len(candidates) > _MOST_COMPARED:  # type: ignore[arg-type]
        return None
    seen: dict[Hashable, int] = {}
    rows: Any = candidates.to_numpy() if hasattr(candidates, "to_numpy") else candidates
    for number, item in enumerate(rows):
        key: Any = (np.shape(item), tuple(np.ravel(item).tolist())) if isinstance(item, np.ndarray) else item
        key = tuple(item) if isinstance(item, list) else key
        try:
            if key in seen:
                return seen[key], number
        except TypeError:
            return None  # objects of the user's own
        seen[key] = number
    return None


def _twice(labels: list[Hashable]) -> Hashable:
    seen: set[Hashable] = set()
    return next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]


def _first_difference(labels: list[Hashable], others: list[Hashable]) -> str:
    for row, (one, two) in enumerate(zip(labels, others, strict=False)):
        if one != two:
            return f"row {row} is {one!r} in one and {two!r} in the other"
    return f"{len(labels)} rows in one and {len(others)} in the other"
