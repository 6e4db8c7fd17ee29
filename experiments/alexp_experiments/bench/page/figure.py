"""One figure of all benchmarks that were run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.style import COLOURS, DASHES, legend_below, new_figure, save_figure
from alexp_experiments.bench.page.tables import present
from alexp_experiments.bench.records import Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(records: Sequence[Measurement], path: Path) -> None:
    """Write a figure with one panel per benchmark that has something to draw."""
    names = [name for name in present(records) if name in PANELS]
    if not names:
        raise ValueError(f"nothing to draw: the plot shows {', '.join(PANELS)}")
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    figure, axes = new_figure(rows, columns, width=6.0, height=4.2)
    for ax, name in zip(axes.ravel(), names, strict=False):
        PANELS[name](ax, [row for row in records if row["benchmark"] == name])
    for ax in axes.ravel()[len(names) :]:
        ax.set_visible(False)
    save_figure(figure, path)


def _subjects(rows: Sequence[Measurement]) -> list[str]:
    return list(dict.fromkeys(str(row["subject"]) for row in rows))


def _step(ax: Axes, rows: Sequence[Measurement]) -> None:
    for k, subject in enumerate(_subjects(rows)):
        own = [row for row in rows if row["subject"] == subject]
        ax.plot(
            [row["n_models"] for row in own], [row["median_ms"] or np.nan for row in own],
            color=COLOURS[k], linestyle=DASHES[k], marker="o", markersize=3, label=subject,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="number of models M", ylabel="ms", title="One ask + tell, N = 2000")
    legend_below(ax, 5)


def _lasso(ax: Axes, rows: Sequence[Measurement]) -> None:
    instances = list(dict.fromkeys(str(row["instance"]) for row in rows))
    rivals = [subject for subject in _subjects(rows) if subject != "alexp"]
    height = 0.8 / max(len(rivals), 1)
    for k, rival in enumerate(rivals):
        ratio = {row["instance"]: row["ratio"] for row in rows if row["subject"] == rival}
        where = np.arange(len(instances)) + (k - (len(rivals) - 1) / 2) * height
        ax.barh(where, [ratio.get(name) or np.nan for name in instances], height, color=COLOURS[k], label=rival)
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="time of the rival / time of alexp", title="Group Lasso path, equal accuracy")
    ax.set_yticks(np.arange(len(instances)), instances, fontsize=6)
    ax.invert_yaxis()
    legend_below(ax, 3)


def _growth(ax: Axes, rows: Sequence[Measurement]) -> None:
    whole = [row for row in rows if row["subject"] == "step"]
    slopes = {row["axis"]: row["exponent"] for row in whole if "exponent" in row}
    for k, axis in enumerate(slopes):
        points = [row for row in whole if row["axis"] == axis and "value" in row]
        value, cost = (np.array([row[key] for row in points]) for key in ("value", "median_ms"))
        ax.plot(
            value / value[0], cost / cost[0], color=COLOURS[k], linestyle=DASHES[k], marker="o", markersize=3,
            label=f"{axis}: exponent {slopes[axis]:.2f}",
        )  # fmt: skip
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="growth of M, N, t or d",
        ylabel="growth of CPU time",
        title="How a step grows",
    )
    legend_below(ax)


def _floor(ax: Axes, rows: Sequence[Measurement]) -> None:
    labels = [f"{row['instance'].removeprefix('Legendre ')}\n{row['subject']}" for row in rows]
    ax.barh(np.arange(len(rows)), [row["ratio"] or np.nan for row in rows], color=COLOURS[0])
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set(xlabel="time / time of the counted multiply-adds at peak", title="Distance to the floor, one core")
    ax.set_yticks(np.arange(len(rows)), labels, fontsize=6)
    ax.invert_yaxis()


PANELS: dict[str, Callable[[Axes, Sequence[Measurement]], None]] = {
    "step": _step,
    "lasso": _lasso,
    "growth": _growth,
    "floor": _floor,
}
