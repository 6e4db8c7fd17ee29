"""The figure of `alexp compare --tables`: regret and gap of every entrant, one dot per table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.style import COLOURS, new_figure, save_figure
from alexp_experiments.comparison.tables.reading import by_table, chosen, entrants_in, regret_ratio, tables_in

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MARKERS = "osD^vPX*<>"


def draw_tables(runs: pd.DataFrame, rounds: int, plate: int, path: Path) -> None:
    """Left: mean regret over that of the mixture of 0.1.0, goal "sum", same seeds. Right: top 1% found, goal "best"."""
    ours = {goal: chosen(runs, rounds, plate, False, goal) for goal in ("sum", "best")}
    names = [name for name in entrants_in(runs) if any((own["entrant"] == name).any() for own in ours.values())]
    figure, axes = new_figure(1, 2, width=6.2, height=1.6 + 0.32 * len(names))
    for k, table in enumerate(tables_in(runs)):
        style = {"color": COLOURS[k % len(COLOURS)], "marker": _MARKERS[k % len(_MARKERS)], "ls": "", "ms": 5.0}
        ratios = [(row, regret_ratio(ours["sum"], name, [table])) for row, name in enumerate(names)]
        known = [(row, ratio.mean) for row, ratio in ratios if ratio is not None]
        axes[0, 0].plot([ratio for _, ratio in known], [row for row, _ in known], **style)
        found = by_table(ours["best"])
        rows = [(row, found[name, table]) for row, name in enumerate(names) if (name, table) in found]
        axes[0, 1].plot([own.top.mean for _, own in rows], [row for row, _ in rows], label=table, **style)
    axes[0, 0].set_xscale("log")
    low, high = axes[0, 0].get_xlim()
    ticks = [tick for tick in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20) if low <= tick <= high]
    axes[0, 0].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0, 0].minorticks_off()
    axes[0, 0].axvline(1.0, color="0.5", lw=0.8, zorder=0)
    axes[0, 0].set_title(f'R({rounds}), goal "sum", in units of the mixture of 0.1.0', fontsize=9)
    axes[0, 1].set_title(f'share of the top 1% found by round {rounds}, goal "best"', fontsize=9)
    _label(axes[0, 0], names)
    _label(axes[0, 1], [""] * len(names))
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    save_figure(figure, path)


def _label(ax: Axes, names: list[str]) -> None:
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    for row in range(0, len(names), 2):
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=-1)
