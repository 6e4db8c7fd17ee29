"""log M against poly M: the comparison of the paper's first table as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.validation import count, positive

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["compare_rates", "plot_rates"]


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
    from matplotlib.figure import Figure

    table = compare_rates(n_models, horizon, dimension, c_min)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for name, part in table.groupby("curve", sort=False):
        axes.loglog(part["n_models"], part["rate"], label=str(name), linestyle="--" if "poly" in str(name) else "-")
    axes.set_xlabel("number of models M")
    axes.set_ylabel(f"rate of the regret after n = {horizon} rounds (constants one)")
    axes.legend(fontsize="small", frameon=False)
    return figure, table
