"""What runs on tables say: means with intervals, the best model in hindsight, ratios over tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alexp_experiments.comparison.tables.entrants import TABLE_ENTRANTS, YARDSTICK
from alexp_experiments.core.statistics import MeanEstimate, estimate

if TYPE_CHECKING:
    import pandas as pd

_DRAWS = 2000  # of the bootstrap
_SMALLEST = 1e-3  # regret below this counts as this in ratios
BEST_OF_ONE = "the best single map or kernel in hindsight"
DECIDED_BY = {"sum": "regret", "best": "gap"}  # what the best model in hindsight is best in


class Summed(NamedTuple):
    """One entrant on one table: its model, if it played with one at a time, and what its runs reached."""

    model: str
    seeds: int
    regret: MeanEstimate
    median_regret: float
    gap: MeanEstimate
    top: MeanEstimate
    best: MeanEstimate
    seconds: float


def chosen(runs: pd.DataFrame, rounds: int, plate: int, repeats: bool, goal: str) -> pd.DataFrame:
    """Runs under one protocol and with one goal; of who plays one model at a time, the best model in hindsight."""
    own = runs[
        (runs["rounds"] == rounds) & (runs["plate"] == plate) & (runs["repeats"] == repeats) & (runs["goal"] == goal)
    ]
    kept = []
    for _, group in own.groupby(["table", "entrant"], sort=False):
        means = group.groupby("model", sort=False)[DECIDED_BY[goal]].mean()
        kept.append(group[group["model"] == means.index[int(np.argmin(means.to_numpy()))]])
    return own.iloc[:0] if not kept else own.loc[[k for group in kept for k in group.index]]


def summed(group: pd.DataFrame) -> Summed:
    """Means over the seeds of one entrant on one table."""
    return Summed(
        str(group["model"].iloc[0]),
        len(group),
        estimate(group["regret"]),
        float(group["regret"].median()),
        estimate(group["gap"]),
        estimate(group["top"]),
        estimate(group["best"]),
        float(group["seconds"].median()),
    )


def by_table(runs: pd.DataFrame) -> dict[tuple[str, str], Summed]:
    """Entrant and table -> what was reached, for runs as `chosen` returns them."""
    return {
        (str(entrant), str(table)): summed(group)
        for (entrant, table), group in runs.groupby(["entrant", "table"], sort=False)
    }


def entrants_in(runs: pd.DataFrame) -> list[str]:
    """Entrants in the order of the list of them."""
    present = set(runs["entrant"])
    return [name for name in TABLE_ENTRANTS if name in present]


def tables_in(runs: pd.DataFrame) -> list[str]:
    """Tables by name."""
    return sorted(set(runs["table"]), key=str.lower)


def best_of_one(runs: pd.DataFrame) -> pd.DataFrame:
    """Who of ours plays one model at a time and lost least on a table, as an entrant of its own."""
    kept = []
    for _, own in runs[[TABLE_ENTRANTS[name].is_told for name in runs["entrant"]]].groupby("table", sort=False):
        means = own.groupby("entrant", sort=False)["regret"].mean()
        kept += [own[own["entrant"] == means.index[int(np.argmin(means.to_numpy()))]]]
    return runs.iloc[:0] if not kept else runs.loc[[k for own in kept for k in own.index]].assign(entrant=BEST_OF_ONE)


def regret_ratio(
    runs: pd.DataFrame, entrant: str, tables: Sequence[str], reference: str = YARDSTICK
) -> MeanEstimate | None:
    """Geometric mean over tables of the ratio of mean regrets, with a 95% interval: seeds drawn again in pairs.

    On the seeds that both have played; None where there are fewer than two of them on one of the tables.
    """
    pairs = []
    for table in tables:
        above, below = (
            runs[(runs["table"] == table) & (runs["entrant"] == name)].set_index("seed")["regret"]
            for name in (entrant, reference)
        )
        both = above.index.intersection(below.index).sort_values()
        if len(both) < 2:
            return None
        pairs.append((above[both].to_numpy(), below[both].to_numpy()))
    if not pairs:
        return None
    rng = np.random.default_rng(0)
    draws = np.array([_log_ratio(pairs, rng) for _ in range(_DRAWS)])
    centre = float(np.exp(_log_ratio(pairs)))
    low, high = np.exp(np.quantile(draws, [0.025, 0.975]))
    return MeanEstimate(centre, centre * float(draws.std()), float(low), float(high))


def _log_ratio(pairs: Sequence[tuple[np.ndarray, np.ndarray]], rng: np.random.Generator | None = None) -> float:
    logs = []
    for above, below in pairs:
        picks = slice(None) if rng is None else rng.integers(above.size, size=above.size)
        logs.append(np.log(max(above[picks].mean(), _SMALLEST)) - np.log(max(below[picks].mean(), _SMALLEST)))
    return float(np.mean(logs))
