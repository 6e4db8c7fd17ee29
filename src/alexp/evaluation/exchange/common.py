"""What all formats need: the rounds that can be exported, and contexts and rows as named numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.evaluation.log import Log

Named = dict[str, float | str]


def exportable(log: Log) -> Log:
    """The rounds with a reward and a propensity; other libraries know no others."""
    if not isinstance(log, Log):
        raise TypeError(f"log must be an alexp.ope.Log, got {type(log).__name__}; see Log.from_frame")
    if not log.usable.any():
        raise ValueError("the log has no round with both a reward and a propensity: there is nothing to export")
    return log if log.usable.all() else log.part(log.usable)


def vector(context: Action) -> FloatArray | None:
    """A context as a vector of numbers, (d,), or None if it is something else."""
    if isinstance(context, str | Mapping) or context is None:
        return None
    try:
        found = np.atleast_1d(np.asarray(context, dtype=np.float64))
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def named(context: Action, number: int) -> Named:
    """A context as numbers and texts by name; those of a vector are called "0", "1", ..."""
    if context is None:
        return {}
    if isinstance(context, Mapping):
        return {str(name): _scalar(value, name, number) for name, value in context.items()}
    found = vector(context)
    if found is not None:
        return {str(k): float(value) for k, value in enumerate(found)}
    if isinstance(context, Sequence) and not isinstance(context, str):
        return {str(k): _scalar(value, k, number) for k, value in enumerate(context)}
    return {"context": _scalar(context, "context", number)}


def unnamed(found: Mapping[str, float | str]) -> Action:
    """The context that was named: a list of numbers where names count from 0, else a dict; None if there is nothing."""
    if not found:
        return None
    if list(found) == [str(k) for k in range(len(found))]:
        return list(found.values())
    return dict(found)


def _scalar(value: object, name: object, number: int) -> float | str:
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return float(value)
    if isinstance(value, str):
        return value
    raise TypeError(
        f"the context of round {number} has {name!r}: {type(value).__name__}; only numbers, texts, vectors and flat "
        "dicts of these can be exported"
    )


def table(rows: Sequence[Sequence[Mapping[str, float]]]) -> list[FloatArray] | None:
    """Features by name, per round and candidate, as rows; None if there are none.

    Columns that are called "0", "1", ... are in that order, all others in the order in which they appear.
    """
    names = list(dict.fromkeys(name for round_ in rows for row in round_ for name in row))
    if not names:
        return None
    if all(name.isascii() and name.isdigit() for name in names):
        names = [str(k) for k in range(max(map(int, names)) + 1)]
    column = {name: k for k, name in enumerate(names)}
    found = []
    for round_ in rows:
        block = np.zeros((len(round_), len(names)))
        for k, row in enumerate(round_):
            for name, value in row.items():
                block[k, column[name]] = value
        found.append(block)
    return found
