"""Trials as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from alexp.algorithms.protocol.trials import TrialLog
from alexp.common.arrays import AnyArray
from alexp.problem.domains import Domain

if TYPE_CHECKING:
    import pandas as pd


def trials_frame(log: TrialLog, domain: Domain) -> pd.DataFrame:
    """One row per trial; `reward` is missing while pending, `model` when no single model proposed it."""
    import pandas as pd  # slow to import, and needed here only

    played = [domain[i] for i in log.index] if log.offers is None else log.offers.actions
    return pd.DataFrame(
        {
            "id": np.arange(len(log)),
            "x": _objects(played) if len(log) and np.ndim(played[0]) > 0 else played,
            "index": np.array(log.index, dtype=np.int64),
            "model": pd.array([None if j < 0 else j for j in log.model], dtype="Int64"),
            "explored": np.array(log.explored, dtype=bool),
            "propensity": np.array(log.propensity, dtype=np.float64),
            "reward": np.array(log.reward, dtype=np.float64),
        }
    )


def rounds_frame(log: TrialLog, domain: Domain) -> pd.DataFrame:
    """The same with what every round offered: `context`, `ids`, `n`, `available` and `features`.

    `ids` are those that were passed, names of arms, or None; `available` positions that could be chosen, or None for
    all; `features` (n, P), of all candidates in the order in which they were passed, or None where they were not kept.
    """
    frame, offers, trials = trials_frame(log, domain), log.offers, range(len(log))
    n = domain.n_candidates
    frame["n"] = np.full(len(log), n) if offers is None else np.array(offers.n_candidates, dtype=np.int64)
    if offers is None:
        for name in ("context", "ids", "available", "features"):
            frame[name] = _objects([None] * len(log))
        return frame
    frame["context"] = _objects(offers.contexts)
    arms = [domain[k] for k in range(n)]
    frame["ids"] = _objects([list(arms[: offers.n_candidates[k]]) if n else _listed(offers.ids[k]) for k in trials])
    frame["available"] = _objects([offers.allowed(k) for k in trials])
    frame["features"] = _objects([offers.offered(k) for k in trials])
    return frame


def _listed(ids: tuple[object, ...] | None) -> list[object] | None:
    return None if ids is None else list(ids)


def _objects(values: Sequence[object]) -> AnyArray:
    """A column of anything, one entry per row whatever its own shape."""
    out = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        out[k] = value
    return out
