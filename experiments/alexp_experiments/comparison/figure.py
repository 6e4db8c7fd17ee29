"""The figure of `alexp compare`: regret over the best told agent's, one row per algorithm, one dot per scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.style import COLOURS, new_figure, save_figure
from alexp_experiments.comparison.contest import best_told, geometric_means, pivot
from alexp_experiments.comparison.entries import LONG, MIS_STATED, REAL, SHORT
from alexp_experiments.comparison.tuning import TUNED
from alexp_experiments.core.well_specified import TWELVE, WELL_SPECIFIED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_KINDS = (
    ("one model is true, n = 100", tuple(WELL_SPECIFIED), "o", COLOURS[0]),
    ("noise, offset or model mis-stated, n = 100", tuple(MIS_STATED), "s", COLOURS[1]),
    ("n = 1,000 and 10,000", tuple(LONG), "^", COLOURS[2]),
    ("real tables", tuple(REAL), "D", COLOURS[3]),
)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Left: mean regret over the best told agent's, per scenario. Right: the worst seed's over the same mean."""
    ranked = _ranking(table)
    figure, axes = new_figure(1, 2, width=6.2, height=1.9 + 0.28 * len(ranked))
    titles = ("mean regret, in units of the best told agent's", "worst seed, in units of that mean")
    for ax, value, title in zip(axes[0], ("mean", "worst"), titles, strict=True):
        _panel(ax, table, ranked, value)
        ax.set_title(title, fontsize=10)
    axes[0, 1].set_yticklabels([])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    save_figure(figure, path)


def _ranking(table: pd.DataFrame) -> list[str]:
    """Algorithms from best to worst in geometric mean over the scenarios that all of them played, as tuned."""
    means = geometric_means(table, _shared(table))["mean"].to_dict()
    plain = [str(name) for name in means if not str(name).endswith(TUNED)]
    return sorted(plain, key=lambda name: means.get(f"{name}{TUNED}", means[name]))


def _shared(table: pd.DataFrame) -> list[str]:
    present = list(dict.fromkeys(table["scenario"]))
    return [name for name in present if name in TWELVE] or [name for name in present if name in SHORT] or present


def _panel(ax: Axes, table: pd.DataFrame, ranked: Sequence[str], value: str) -> None:
    told = best_told(table) if len(best_told(table)) else table.groupby("scenario", sort=False)["mean"].min()
    for k, (label, scenarios, marker, colour) in enumerate(_KINDS):
        wide = pivot(table, value, scenarios)
        for row, name in enumerate(ranked):
            tuned = wide.index == f"{name}{TUNED}"
            who = f"{name}{TUNED}" if wide[tuned].notna().to_numpy().any() else name
            if who not in wide.index or wide.shape[1] == 0:
                continue
            ratios = (wide.loc[who] / told.reindex(wide.columns).clip(lower=1e-3)).dropna()
            height = np.full(len(ratios), row + 0.18 * (k - 1.5))
            ax.plot(
                ratios, height, marker, color=colour, markersize=4.2, alpha=0.65, markeredgewidth=0.0,
                label=label if row == 0 else None,
            )  # fmt: skip
    _means(ax, table, ranked, value)
    ax.axvline(1.0, color="0.5", linewidth=0.8, zorder=0)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(np.arange(len(ranked)), ranked)
    ax.set_ylim(len(ranked) - 0.5, -0.5)
    for row in range(0, len(ranked), 2):
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=-1)


def _means(ax: Axes, table: pd.DataFrame, ranked: Sequence[str], value: str) -> None:
    """Geometric means: a bar for what is best of defaults and chosen constants, a line to where the defaults are."""
    summary = geometric_means(table, _shared(table))
    of, yardstick = summary[value].to_dict(), summary["mean"].to_dict()
    unit = next(yardstick[name] / ratio for name, ratio in summary["x told"].items()) if "x told" in summary else 1.0
    default = np.array([of[name] for name in ranked]) / unit
    tuned = np.array([of.get(f"{name}{TUNED}", of[name]) for name in ranked]) / unit
    rows = np.arange(len(ranked))
    ax.hlines(rows, np.minimum(default, tuned), np.maximum(default, tuned), color="black", linewidth=0.9)
    ax.plot(
        default, rows, "|", color="0.45", markersize=9, markeredgewidth=1.2,
        label="geometric mean over the twelve, defaults",
    )  # fmt: skip
    ax.plot(
        tuned, rows, "|", color="black", markersize=15, markeredgewidth=2.2,
        label="the same, chosen constants (dots of the first kind, too)",
    )  # fmt: skip
