"""The figure of `alexp tables`: mean regret against n and against p, on logarithmic axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.style import DASHES, METHOD_COLOURS, new_figure, save_figure
from alexp_experiments.sparse.tables.entrants import ENTRANTS
from alexp_experiments.sparse.tables.measures import Exponent, in_rounds, in_width

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

CONTEXTS = (
    "even play, contexts", "LASSO Bandit", "Li 2022", "ModCB", "DR Lasso", "LinUCB, all columns, contexts",
    "ALExp, contexts", "SA Lasso", "TH Lasso", "Corral", "mixture, contexts", "oracle, contexts",
)  # fmt: skip
VECTOR_SETS = (
    "even play", "ESTC", "PopArt", "O2CS-EW, width x .05", "Corral, vectors", "EXP4-LS, vectors",
    "LinUCB, all columns", "ALExp", "mixture", "oracle",
)  # fmt: skip


def draw(runs: pd.DataFrame, path: Path) -> None:
    """Two panels for contexts and two for the fixed set."""
    figure, axes = new_figure(2, 2, width=6.2, height=4.2)
    for names, (left, right), title in (
        (CONTEXTS, axes[0], "contexts"),
        (VECTOR_SETS, axes[1], "fixed set of vectors"),
    ):
        for k, name in enumerate(one for one in names if one in ENTRANTS):
            _curve(left, in_rounds(runs, name), name, k)
            _curve(right, in_width(runs, name), name, k)
        left.set(title=title, xlabel="rounds n", ylabel="mean regret")
        right.set(title=f"{title}, growth", xlabel="columns p")
        right.legend(
            *left.get_legend_handles_labels(), frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5)
        )
    save_figure(figure, path)


def colour_of(name: str) -> str:
    """The colour of the algorithm behind a row: the same on contexts and on vectors, and in every other figure."""
    one = ENTRANTS[name]
    told = {"linucb": "oracle" if "model" in one.settings else "naive"}
    return METHOD_COLOURS[told.get(one.algorithm, one.algorithm)]


def _curve(ax: Axes, found: Exponent | None, name: str, k: int) -> None:
    from matplotlib.ticker import NullLocator

    if found is not None:
        dash, marker = DASHES[k % len(DASHES)], ".v"[k // len(DASHES) % 2]
        ax.loglog(found.x, found.means, color=colour_of(name), ls=dash, marker=marker, ms=5, label=name)
        ax.set_xticks(found.x, [f"{x:.0f}" for x in found.x])
        ax.xaxis.set_minor_locator(NullLocator())
