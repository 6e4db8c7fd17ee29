"""The figure of `alexp compare --contextual`: regret curves, one panel per stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.style import COLOURS, DASHES, new_figure, save_figure
from alexp.experiments.contextual.contest import ContextSummary, moments, summaries
from alexp.experiments.contextual.entrants import ALONE, COBA, CONTEXT_ENTRANTS, MIXTURE, VOWPAL
from alexp.experiments.core.statistics import mean_and_error

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_OURS = (MIXTURE, ALONE, "alexp", "lm-ucb", "linucb, all columns", "uniform")


def draw_streams(runs: pd.DataFrame, path: Path) -> None:
    """Mean regret with standard errors of ours, and of the best entrant of each other library on that stream."""
    found = summaries(runs)
    streams = list(dict.fromkeys(scenario for scenario, _ in found))
    columns = min(len(streams), 3)
    figure, axes = new_figure(-(-len(streams) // columns), columns, width=4.2, height=3.4)
    for ax, scenario in zip(axes.ravel(), streams, strict=False):
        own = {entrant: one for (title, entrant), one in found.items() if title == scenario}
        rounds = int(runs.loc[runs["scenario"] == scenario, "rounds"].max())
        _panel(ax, own, rounds)
        ax.set(title=scenario, xlabel="round t", ylabel="cumulative regret")
    for ax in axes.ravel()[len(streams) :]:
        ax.set_visible(False)
    save_figure(figure, path)


def _panel(ax: Axes, own: dict[str, ContextSummary], rounds: int) -> None:
    worst = max((own[name].regret.mean for name in own if name != "uniform"), default=1.0)
    for k, (label, name) in enumerate(_shown(own).items()):
        mean, error = mean_and_error(own[name].curves)
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(moments(rounds), mean, color=colour, ls=DASHES[k % len(DASHES)], label=label)
        ax.fill_between(moments(rounds), mean - error, mean + error, color=colour, alpha=0.15, lw=0)
    ax.set_ylim(0.0, np.nanmin([1.05 * worst, ax.get_ylim()[1]]))
    ax.legend(frameon=False, fontsize=7)


def _shown(own: dict[str, ContextSummary]) -> dict[str, str]:
    """Legend and entrant of every curve."""
    out = {name: name for name in _OURS if name in own}
    if ALONE in out:
        del out[ALONE]
        out[f"mixture, {own[ALONE].chosen} alone"] = ALONE
    for group in (COBA, VOWPAL):
        playing = [name for name in group if name in own]
        if playing:
            best = min(playing, key=lambda name: own[name].regret.mean)
            out[best] = best
    return {label: name for label, name in out.items() if name in CONTEXT_ENTRANTS}
