"""Tables 1 and 2 as the paper prints them, slopes with their intervals, and whether they keep to a printed bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp_experiments.core.statistics import MeanEstimate
from alexp_experiments.sparse.tables.contest import AT, ENTRANTS, GRID

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Size:
    """n rounds, M models of d columns, K candidates a round."""

    n: float
    M: float
    d: float
    K: float = 20.0


Bound = Callable[[Size], float]


@dataclass(frozen=True)
class PrintedRow:
    """A row of Table 2: what is printed, the bound without its constants, and corrections by their numbers."""

    key: str
    title: str
    sets: str
    data_poor: bool
    adaptive: bool
    anytime: bool
    policy: str
    selects_by: str
    assumes: str
    regret: str
    bound: Bound
    corrections: tuple[int, ...] = ()


TABLE_2: tuple[PrintedRow, ...] = (
    PrintedRow("T2.1", "Abbasi-Yadkori et al. 2012", "infinite", False, True, True, "UCB", "EXP4 on squared error",
               "A compact", "sqrt(d M n), w.h.p.", lambda s: sqrt(s.d * s.M * s.n), (5,)),
    PrintedRow("T2.2", "Foster et al. 2019", "K", True, True, False, "UCB", "EXP4 on squared error",
               "lambda_min(Sigma) >= c", "(M n)^(3/4) K^(1/4) + sqrt(K d M n), w.h.p.",
               lambda s: (s.M * s.n) ** 0.75 * s.K**0.25 + sqrt(s.K * s.d * s.M * s.n), (1,)),
    PrintedRow("T2.3", "Carpentier and Munos 2012", "infinite", True, False, False, "UCB", "hard threshold",
               "A is a ball, parameter noise", "d sqrt(n), w.h.p.", lambda s: s.d * sqrt(s.n), (6,)),
    PrintedRow("T2.4", "Bastani and Bayati 2020", "K", False, False, False, "explore, then greedy", "Lasso",
               "kappa(Sigma) > c", "tau K d^2 (log n + log M)^2, w.h.p.",
               lambda s: s.K * s.d**2 * (log(s.n) + log(s.M)) ** 2, (2,)),
    PrintedRow("T2.5", "Kim and Paik 2019", "K", False, False, False, "explore, then eps-greedy", "Lasso",
               "kappa(Sigma) > c", "tau d sqrt(n) log(M n), w.h.p.", lambda s: s.d * sqrt(s.n) * log(s.M * s.n)),
    PrintedRow("T2.6", "Oh et al. 2021", "K", True, True, False, "greedy", "Lasso",
               "kappa(Sigma) > c, symmetry, balance", "tau d sqrt(n log(M n)), mean",
               lambda s: s.d * sqrt(s.n * log(s.M * s.n)), (3,)),
    PrintedRow("T2.7", "Li et al. 2022", "K", True, False, False, "ETC", "Lasso", "lambda_min(empirical Sigma) > c",
               "tau (n^2 d)^(1/3) sqrt(log(M n)), mean",
               lambda s: (s.n**2 * s.d) ** (1 / 3) * sqrt(log(s.M * s.n))),
    PrintedRow("T2.8", "Hao et al. 2020", "infinite", True, False, False, "ETC", "Lasso", "A spans R^(dM), compact",
               "(n d / C_min)^(2/3) (log M)^(1/3), w.h.p.",
               lambda s: (s.n * s.d) ** (2 / 3) * log(s.M) ** (1 / 3)),
    PrintedRow("T2.9", "Jang et al. 2022", "infinite", True, False, False, "ETC", "hard threshold",
               "A in [-1, 1]^(Md), spans", "(n d)^(2/3) (log M / C_min)^(1/3), w.h.p.",
               lambda s: (s.n * s.d) ** (2 / 3) * log(s.M) ** (1 / 3)),
    PrintedRow("T2.10", "ALExp", "infinite", True, True, True, "greedy or UCB", "EXP4 on reward estimates",
               "Im(phi_j) spans R^d, A compact", "sqrt(n log M) (n^(1/4) + log M / C_min), w.h.p.",
               lambda s: sqrt(s.n * log(s.M)) * (s.n**0.25 + log(s.M))),
)  # fmt: skip


@dataclass(frozen=True)
class PrintedClass:
    """A row of Table 1: a family of methods."""

    key: str
    title: str
    technique: str
    growth: str
    guarantee: bool
    adaptive: bool
    anytime: bool


TABLE_1: tuple[PrintedClass, ...] = (
    PrintedClass("T1.sparse", "sparse linear bandits", "Lasso", "log M", False, False, False),
    PrintedClass("T1.black-box", "model selection for black-box bandits", "OMD with bandit feedback", "poly M",
                 True, True, False),
    PrintedClass("T1.ours", "model selection for linear bandits (ALExp)", "EXP4 with full information", "log M",
                 True, True, True),
)  # fmt: skip


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
