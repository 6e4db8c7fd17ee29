"""Logs of this library's own runs, as tables, turned into the columns of a `Log`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import Action

if TYPE_CHECKING:
    import pandas as pd

    from alexp.problem.domains import Domain

NEEDED = ("index", "propensity", "reward")


def columns_of(frame: pd.DataFrame, domain: Domain | None, n: object) -> dict[str, Action]:
    """Arguments of `Log` from a table with one row per trial.

    Needed are index, propensity and reward; n, context, ids, model, explored, features (all candidates' rows) or
    row (the chosen one's) and probabilities are taken along where they exist.
    """
    missing = [name for name in NEEDED if name not in frame]
    if missing:
        raise ValueError(f"frame needs the columns {', '.join(NEEDED)}; {', '.join(missing)} are missing")
    columns: dict[str, Action] = {
        "rewards": frame["reward"].to_numpy(dtype=np.float64, na_value=np.nan),
        "propensities": frame["propensity"].to_numpy(dtype=np.float64, na_value=np.nan),
        "index": frame["index"].to_numpy(dtype=np.int64),
        "n": _sizes(frame, domain, n),
    }
    for argument, name in (
        ("contexts", "context"),
        ("ids", "ids"),
        ("models", "model"),
        ("explored", "explored"),
        ("probabilities", "probabilities"),
    ):
        columns[argument] = _whole_column(frame, name)
    if "available" in frame and any(positions is not None for positions in frame["available"]):
        columns["available"] = list(frame["available"])
    return columns | _features(frame)


def _sizes(frame: pd.DataFrame, domain: Domain | None, n: object) -> Action:
    if "n" in frame:
        return frame["n"].to_numpy(dtype=np.int64)
    if n is not None:
        return n
    if domain is not None:
        return domain.n_candidates
    raise ValueError("frame has no column n: pass domain=, or n=, the number of candidates that rounds had")


def _features(frame: pd.DataFrame) -> dict[str, Action]:
    """Rows of all candidates if every trial has a matrix of them; those of the chosen ones if it has one row."""
    for name in ("features", "row"):
        found = _whole_column(frame, name)
        if found is not None:
            return {"features": found} if np.ndim(found[0]) == 2 else {"chosen": np.array(found, dtype=np.float64)}
    return {}


def _whole_column(frame: pd.DataFrame, name: str) -> list[Action] | None:
    """A column without gaps, as a list; None if it does not exist or is not there for every trial."""
    if name not in frame or not len(frame):
        return None
    values = list(frame[name])
    return None if any(value is None for value in values) else values
