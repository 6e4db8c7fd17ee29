"""The regret of ALExp: the formal theorem's right-hand side, a bound with explicit constants, and rates in M."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp.common.extras import require
from alexp.common.style import COLOURS, legend_below
from alexp.common.validation import count, fraction, non_negative, positive
from alexp.theory.boundaries import azuma_boundary
from alexp.theory.confidence import ridge_radius_bound, self_normalised_lambda_bound
from alexp.theory.eigenvalues import expected_explorations, explored_lambda_min_bound, kappa_lower_bound

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RegretBound:
    """A bound on the cumulative regret R(n), split into its terms.

    Attributes
    ----------
    n : rounds, shape (k,).
    terms : each term of the sum, shape (k,), by name.
    trivial : 2 B n, what the rewards' range alone gives, shape (k,).
    """

    n: FloatArray
    terms: dict[str, FloatArray]
    trivial: FloatArray

    @property
    def sum(self) -> FloatArray:
        """Sum of the terms, also where it exceeds the trivial bound."""
        return np.asarray(np.sum(list(self.terms.values()), axis=0), dtype=np.float64)

    @property
    def total(self) -> FloatArray:
        """The bound: the sum, or the trivial bound where that is smaller."""
        return np.minimum(self.sum, self.trivial)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per n, one column per term."""
        require("pandas")
        import pandas as pd

        return pd.DataFrame({"n": self.n, **self.terms, "sum": self.sum, "trivial": self.trivial, "total": self.total})

    def plot(self, ax: Axes | None = None, *, engine: str = "matplotlib") -> Any:
        """Draw the bound and its terms; returns the axes, or with `engine="plotly"` a figure of Plotly."""
        return import_module("alexp.plot").bound(self, ax, engine=engine)


def lasso_complexity(n_models: int, dimension: int, delta: float, noise_std: float) -> float:
    """C(M, delta, d) = sigma sqrt(1 + sqrt(d w) + w), w = log(M/delta) + (log log d)_+, with C_6 = 1."""
    size = count("dimension", dimension)
    iterated = max(np.log(np.log(size)), 0.0) if size > 1 else 0.0
    w = np.log(count("n_models", n_models) / fraction("delta", delta)) + iterated
    return float(non_negative("noise_std", noise_std) * np.sqrt(1.0 + np.sqrt(size * w) + w))


def regret_rate(
    n: ArrayLike,
    n_models: int,
    dimension: int,
    delta: float,
    noise_std: float,
    norm_bound: float,
    c_min: float,
    constants: Sequence[float] = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
) -> RegretBound:
    """Right-hand side of the formal regret theorem, with its unknown absolute constants C_1..C_6 set to one.

    Read with C_min^-1 in front of n^(3/4) C(M, delta, d), as the lemma behind it has it and the theorem forgets. For
    rates and comparisons only; `regret_bound` is a valid bound.
    """
    if len(constants) != 6:
        raise ValueError(f"constants must be the six numbers C_1..C_6, got {len(constants)}")
    rounds, bound, eigenvalue = _rounds(n), positive("norm_bound", norm_bound), positive("c_min", c_min)
    c1, c2, c3, c4, c5, c6 = constants
    complexity = c6 * lasso_complexity(n_models, dimension, delta, noise_std)
    confidence = np.log(n_models * dimension / delta)
    transient = 1.0 + rounds**-0.375 / eigenvalue * np.sqrt(confidence + _log_log(rounds))
    terms = {
        "exploration": c1 * bound * rounds**0.75,
        "exponential weights": c2 * np.sqrt(rounds) * complexity * np.log(n_models) / eigenvalue
        + c3 * bound**2 * eigenvalue * np.sqrt(rounds),
        "deviation": c4 * bound * np.sqrt(rounds * (_log_log(rounds * bound**2) - np.log(delta))),
        "estimation": c5
        * transient
        * (bound * rounds**0.25 + (rounds**0.75 + np.log(rounds)) * complexity / eigenvalue),
        "oracle agent": c5
        * transient
        * rounds**0.625
        / np.sqrt(eigenvalue)
        * np.sqrt(dimension * np.log(rounds + 1.0) - np.log(delta) + bound**2),
    }
    return RegretBound(rounds, {k: np.asarray(v, dtype=np.float64) for k, v in terms.items()}, 2.0 * bound * rounds)


def regret_bound(
    horizon: int,
    n_models: int,
    dimension: int,
    delta: float,
    noise_std: float,
    norm_bound: float,
    c_min: float,
    gamma: float = 1.0,
    eta: float = 1.0,
    ridge: float = 1.0,
) -> RegretBound:
    """Regret of ALExp for n = 1..horizon at once, with probability 1 - delta, every constant explicit.

    For ||phi_j|| <= 1, ||theta|| <= B, sigma-sub-Gaussian noise, Algorithm 1 as printed with the self-normalised
    lambda_t, hallucinated returns clipped to [-B, B], a greedy or UCB(beta="theory") oracle agent, and exploration with
    a design whose lambda_min on the concatenation is ``c_min``:

        R(n) <= 2 B Gamma_n                                   exploration
              + azuma(n)                                      actions drawn, not averaged
              + log M / eta_n                                 exponential weights; looking ahead costs no variance
              + 2 sum_t min(2B, 16 lambda_{t-1} / kappa_{t-1}^2)            estimated returns
              + sum_t min(2B, 2 w_{t-1} / sqrt(ridge^2 + lambda_min,t-1))   the oracle agent itself.

    kappa^2 and lambda_min are the lower bounds of `alexp.theory.eigenvalues`; delta is split over the four events.
    Below their burn-in times the minima are 2B, so that the bound is trivial for every practical n.
    """
    bound, t = positive("norm_bound", norm_bound), np.arange(1.0, count("horizon", horizon) + 1.0)
    fraction("delta", delta)
    columns, expected = n_models * dimension, expected_explorations(horizon, gamma)
    entries = kappa_lower_bound(t, expected, c_min, columns, dimension, 1.0, delta / 8.0)
    matrix = explored_lambda_min_bound(expected, c_min, float(n_models), columns, np.sqrt(n_models), delta / 8.0) / t
    level = self_normalised_lambda_bound(t, noise_std, n_models, dimension, delta / 4.0)
    radius = _capped(16.0 * level, np.maximum(entries, matrix), 2.0 * bound)
    own = ridge**2 + explored_lambda_min_bound(expected, c_min, 1.0, dimension, 1.0, delta / 8.0)
    width = ridge_radius_bound(t, dimension, ridge, noise_std, bound, delta / 8.0)
    agent = _capped(2.0 * width, np.sqrt(own), 2.0 * bound)
    terms = {
        "exploration": 2.0 * bound * expected,
        "deviation": azuma_boundary(t, bound, delta / 4.0),
        "exponential weights": bound * np.log(n_models) * np.sqrt(t) / positive("eta", eta),
        "estimation": 2.0 * np.cumsum(_shifted(radius, 2.0 * bound)),
        "oracle agent": np.cumsum(_shifted(agent, 2.0 * bound)),
    }
    return RegretBound(t, terms, 2.0 * bound * t)


def exponential_weights_bound(rates: ArrayLike, n_models: int, mixed_squares: ArrayLike) -> float:
    """Anytime exponential weights lemma: log M / eta_n + sum_t eta_t sum_j q_tj r_tj^2.

    Bounds sum_t r_tk - sum_t <q_t, r_t> for every k when q_t is proportional to exp(eta_t sum_{s<t} r_s), the rates do
    not increase, and eta_t r_tj <= 1. ``mixed_squares`` is sum_j q_tj r_tj^2, shape (n,).
    """
    eta = _rates(rates)
    return float(np.log(count("n_models", n_models)) / eta[-1] + eta @ np.asarray(mixed_squares, dtype=np.float64))


def look_ahead_bound(rates: ArrayLike, n_models: int) -> float:
    """The same regret when q_t already contains r_t, as in Algorithm 1: log M / eta_n, no variance, no condition.

    q_t proportional to exp(eta_t sum_{s<=t} r_s) leads the leader (Kalai and Vempala 2005): it maximises what the
    entropy-regularised sum will be, so only the regularisation costs anything.
    """
    return float(np.log(count("n_models", n_models)) / _rates(rates)[-1])


def _rates(rates: ArrayLike) -> FloatArray:
    eta = np.asarray(rates, dtype=np.float64)
    if eta.ndim != 1 or eta.size == 0 or np.any(eta <= 0.0) or np.any(np.diff(eta) > 0.0):
        raise ValueError("rates must be positive and must not increase")
    return eta


def _capped(top: FloatArray, bottom: FloatArray, cap: float) -> FloatArray:
    return np.asarray(np.minimum(cap, np.divide(top, bottom, out=np.full(top.shape, np.inf), where=bottom > 0.0)))


def _shifted(values: FloatArray, first: float) -> FloatArray:
    """Round t is decided on the data of t - 1 rounds; the first on none."""
    return np.concatenate([[first], values[:-1]])


def _rounds(n: ArrayLike) -> FloatArray:
    rounds = np.atleast_1d(np.asarray(n, dtype=np.float64))
    if np.any(~(rounds >= 1.0)):
        raise ValueError("n must be at least 1")
    return rounds


def _log_log(v: FloatArray) -> FloatArray:
    """(log log v)_+."""
    return np.asarray(np.log(np.maximum(np.log(np.maximum(v, math.e)), 1.0)), dtype=np.float64)


def compare_rates(
    n_models: ArrayLike | None = None, horizon: int = 1000, dimension: int = 2, c_min: float | None = None
) -> pd.DataFrame:
    """Regret rates at ``horizon`` rounds as functions of M, leading terms with constants one; one row per curve and M.

    ``n_models`` are powers of two up to 2^24 unless given.

    * ALExp: sqrt(n log M) (n^(1/4) + log M) / C_min with every model normalised, ||phi_j|| <= 1; ``c_min`` then need
      not depend on M and defaults to its largest possible value, 1/d.
    * ALExp, concatenation normalised: the same with ||phi|| <= 1 for the concatenation, as the paper assumes. The trace
      of the second moment is then at most one, so C_min <= 1/(M d), and the bound is polynomial in M.
    * sparse linear bandits: (n d / C_min)^(2/3) (log M)^(1/3), explore then commit with known n (Hao et al. 2020).
    * black-box selection: sqrt(n M), mirror descent with bandit feedback (Agarwal et al. 2017).
    """
    require("pandas")
    import pandas as pd

    sizes = 2.0 ** np.arange(1, 25) if n_models is None else np.asarray(n_models, dtype=np.float64)
    if np.any(~(sizes >= 2.0)):
        raise ValueError("n_models must be at least 2")
    n, d = float(count("horizon", horizon)), float(count("dimension", dimension))
    eigenvalue, logs = 1.0 / d if c_min is None else positive("c_min", c_min), np.log(sizes)
    alexp = np.sqrt(n * logs) * (n**0.25 + logs)
    curves = {
        "ALExp, log M": alexp / eigenvalue,
        "ALExp, concatenation normalised: poly M": alexp * sizes * d,
        "sparse linear bandits, log M (needs n)": (n * d / eigenvalue) ** (2.0 / 3.0) * logs ** (1.0 / 3.0),
        "black-box selection, poly M (needs n)": np.sqrt(n * sizes),
    }
    parts = [pd.DataFrame({"curve": name, "n_models": sizes, "rate": rate}) for name, rate in curves.items()]
    return pd.concat(parts, ignore_index=True)


def plot_rates(
    n_models: ArrayLike | None = None, horizon: int = 1000, dimension: int = 2, c_min: float | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Figure of `compare_rates` with logarithmic axes, and the data behind it."""
    require("matplotlib")
    from matplotlib.figure import Figure

    table = compare_rates(n_models, horizon, dimension, c_min)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for colour, (name, part) in zip(COLOURS, table.groupby("curve", sort=False), strict=False):
        dash = "--" if "poly" in str(name) else "-"
        axes.loglog(part["n_models"], part["rate"], label=str(name), color=colour, linestyle=dash)
    axes.set_xlabel("number of models M")
    axes.set_ylabel(f"rate of the regret after n = {horizon} rounds (constants one)")
    legend_below(axes, 2)
    return figure, table
