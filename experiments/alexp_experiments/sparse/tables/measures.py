"""Slopes with their intervals, and what they say of a printed bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp_experiments.core.statistics import MeanEstimate
from alexp_experiments.sparse.tables.entrants import AT, ENTRANTS, GRID
from alexp_experiments.sparse.tables.printed import Bound, Size

if TYPE_CHECKING:
    import pandas as pd

FLAT = 0.1  # a slope whose interval ends below it: regret has stopped growing, and every rate holds
_DRAWS = 2000


@dataclass(frozen=True)
class Exponent:
    """Exponent of mean regret in n or in p, with what it was measured on.

    Attributes
    ----------
    slope : of log mean regret on log x; interval by resampling seeds, the same ones at every x.
    x, means : (k,) the points.
    seeds : runs at each.
    """

    slope: MeanEstimate
    x: FloatArray
    means: FloatArray
    seeds: int

    @property
    def is_flat(self) -> bool:
        """Whether regret has stopped growing."""
        return self.slope.high < FLAT


def log_slope(x: FloatArray, y: FloatArray) -> FloatArray:
    """Least-squares slope of log y on log x, of one curve (k,) or of several (m, k).

    >>> log_slope(np.array([1.0, 2.0, 4.0]), np.array([3.0, 6.0, 12.0])).round(6).item()
    1.0
    """
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(np.log(np.maximum(y, 1e-12)) @ centred / (centred @ centred))


def measured(x: ArrayLike, regrets: FloatArray) -> Exponent:
    """The exponent of mean regret in x (k,), from runs (seeds, k)."""
    points = np.asarray(x, dtype=np.float64)
    rng = np.random.default_rng(0)
    picks = rng.integers(len(regrets), size=(_DRAWS, len(regrets)))
    slopes = log_slope(points, regrets[picks].mean(axis=1))
    low, high = np.quantile(slopes, [0.025, 0.975])
    means = regrets.mean(axis=0)
    slope = MeanEstimate(float(log_slope(points, means)), float(slopes.std()), float(low), float(high))
    return Exponent(slope, points, means, len(regrets))


def in_rounds(runs: pd.DataFrame, name: str, beyond: bool = False) -> Exponent | None:
    """The exponent in n of an entrant; with `beyond`, from the last point of the grid on."""
    own = runs[(runs["entrant"] == name) & (runs["part"] == "n")]
    last = min(GRID[-1], own["n"].max()) if len(own) else 0
    return _of(own[own["n"] >= last] if beyond else own[own["n"] <= last], "n")


def in_width(runs: pd.DataFrame, name: str) -> Exponent | None:
    """The exponent in p of an entrant."""
    return _of(runs[(runs["entrant"] == name) & (runs["part"] == "p")], "p")


def _of(own: pd.DataFrame, axis: str) -> Exponent | None:
    table = own.pivot_table(index="seed", columns=axis, values="regret").dropna()
    if table.shape[1] < 2 or len(table) < 2:
        return None
    return measured(table.columns.to_numpy(dtype=np.float64), table.to_numpy())


def promised(bound: Bound, found: Exponent, name: str, axis: str) -> float:
    """The exponent that a printed bound has over the same points."""
    who = ENTRANTS[name]
    at = AT[who.family]
    size = who.scenario(at, 2).size
    if axis == "n":
        values = [bound(Size(n, at / size, size)) for n in found.x]
    else:
        values = [bound(Size(who.width_rounds, p / size, size)) for p in found.x]
    return float(log_slope(found.x, np.array(values)))


def verdict(found: Exponent | None, allowed: float) -> str:
    """Whether a measured exponent keeps to a printed one.

    "flat" where regret has stopped growing; "yes" if the interval begins at or below what is printed; else "no".
    """
    if found is None:
        return "-"
    if found.is_flat:
        return "flat"
    return "yes" if found.slope.low <= allowed else "no"
