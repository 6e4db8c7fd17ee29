"""Regret figures of the paper (1, 2, 3 and 6), each with the numbers it is drawn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from alexp.common.arrays import AnyArray, FloatArray
from alexp.common.style import COLOURS, DASHES, new_figure
from alexp_experiments.core.scenarios import SCALING_DEGREES
from alexp_experiments.core.statistics import mean_and_error
from alexp_experiments.paper.grids import MAIN_SCENARIOS
from alexp_experiments.paper.methods import METHODS
from alexp_experiments.paper.results import Results

TITLES = {
    "easy": "Easy: s = 2, p = 10, M = 55",
    "hard-printed": "Hard as printed: s = 8, p = 10, M = 165",
    "hard-meant": "Hard as meant: s = 9, p = 10, M = 55",
    "large": "Large class: s = 3, p = 10, M = 165",
}

FLOOR = 0.5  # regret below this is not worth a decade of a logarithmic axis

Drawn = tuple[Figure, pd.DataFrame]


def figure_1(results: Results) -> Drawn:
    """Easy and hard problems; Figure 6 shows whole the curves that leave a panel."""
    return _regret_panels(results, MAIN_SCENARIOS[:3], results.scope.methods)


def figure_2(results: Results) -> Drawn:
    """The large class."""
    return _regret_panels(results, ("large",), results.scope.methods)


def figure_6(results: Results) -> Drawn:
    """All problems and all variants in full, on a logarithmic scale."""
    methods = [name for name in METHODS if ("large", name) in results.runs]
    return _regret_panels(results, MAIN_SCENARIOS, methods, full=True)


def _regret_panels(results: Results, scenarios: Sequence[str], methods: Sequence[str], full: bool = False) -> Drawn:
    columns = 2 if full else len(scenarios)
    rows = len(scenarios) // columns
    figure, axes = new_figure(rows, columns, width=4.4, height=3.6)
    tables = []
    for ax, name in zip(axes.ravel(), scenarios, strict=True):
        tops = []
        for method in methods:
            mean, error = mean_and_error(results.curves(name, method))
            _draw_curve(ax, method, mean, error, floor=FLOOR if full else None)
            tables.append(_table(name, method, mean, error))
            if method != "corral":
                tops.append((mean + error)[-1])
        ax.set(xlabel="round t", ylabel="cumulative regret", title=TITLES[name], xlim=(1, mean.size))
        if full:
            ax.set(yscale="log", ylim=(FLOOR, None))
        else:
            ax.set_ylim(0.0, 1.15 * max(tops))  # Corral may leave the panel, as in the paper
    legend_under(figure, axes, columns=_legend_columns(len(methods), columns))
    return figure, pd.concat(tables, ignore_index=True)


def _legend_columns(n_methods: int, panels: int) -> int:
    """As many columns as fit below the panels, in rows that are about full."""
    most = 2 * panels if n_methods <= 6 else (4 * panels + 2) // 3
    rows = -(-n_methods // most)
    return -(-n_methods // rows)


def _draw_curve(ax: Axes, method: str, mean: FloatArray, error: FloatArray, floor: float | None = None) -> None:
    look, rounds = METHODS[method], np.arange(1, mean.size + 1)
    low = mean - error if floor is None else np.maximum(mean - error, floor)
    ax.plot(rounds, mean, color=look.colour, ls=look.dashes, lw=1.8, label=look.label)
    ax.fill_between(rounds, low, mean + error, color=look.colour, alpha=0.18 if floor is None else 0.1, lw=0)


def _table(scenario: str, method: str, mean: FloatArray, error: FloatArray) -> pd.DataFrame:
    rounds = np.arange(1, mean.size + 1)
    return pd.DataFrame(
        {"scenario": scenario, "method": method, "t": rounds, "mean": mean.round(5), "error": error.round(5)}
    )


def legend_under(figure: Figure, axes: AnyArray, columns: int) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.ravel()[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=columns, frameon=False, fontsize=9)


def figure_3(results: Results) -> Drawn:
    """Regret curves of each method as M grows from 45 to 91, and regret after 100 rounds far beyond."""
    names, methods = list(results.sizes)[: len(SCALING_DEGREES)], results.scope.methods
    figure, axes = new_figure(2, len(methods) // 2 + 1, width=3.6, height=3.0)
    tables = []
    for ax, method in zip(axes.ravel(), methods, strict=False):
        for i, name in enumerate(names):
            mean, error = mean_and_error(results.curves(name, method))
            rounds = np.arange(1, mean.size + 1)
            ax.plot(rounds, mean, color=COLOURS[i], ls=DASHES[i], lw=1.6, label=f"M = {results.sizes[name]}")
            ax.fill_between(rounds, mean - error, mean + error, color=COLOURS[i], alpha=0.15, lw=0)
            tables.append(_table(name, method, mean, error))
        ax.set(title=METHODS[method].label, xlabel="round t", ylim=(0.0, None))
    for ax in axes[:, 0]:
        ax.set_ylabel("cumulative regret")
    far, key = axes.ravel()[len(methods) :]
    key.axis("off")
    tables.append(_draw_scaling(far, results))
    handles, labels = far.get_legend_handles_labels()
    key.legend(handles, labels, frameon=False, loc="center left", fontsize=9, title="all methods, far beyond")
    legend_under(figure, axes, columns=len(names))
    return figure, pd.concat(tables, ignore_index=True)


def _draw_scaling(ax: Axes, results: Results) -> pd.DataFrame:
    names, sizes = list(results.sizes), list(results.sizes.values())
    tables = []
    for method in results.scope.methods:
        look, final = METHODS[method], [results.final(name, method)[:, None] for name in names]
        mean, error = (np.array(part).ravel() for part in zip(*(mean_and_error(f) for f in final), strict=True))
        ax.errorbar(
            sizes, mean, yerr=error, color=look.colour, ls=look.dashes, marker="o", ms=3, lw=1.4, label=look.label
        )
        tables.append(pd.DataFrame({"scenario": names, "method": method, "t": "final", "mean": mean, "error": error}))
    ax.set(title="All methods, far beyond", xlabel="number of models M", xscale="log", yscale="log")
    return pd.concat(tables, ignore_index=True)
