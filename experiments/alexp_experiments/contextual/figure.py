"""The figure of `alexp compare --contextual`: regret curves, one panel per stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.style import DASHES, legend_below, method_colour, new_figure, save_figure
from alexp_experiments.contextual.contest import ContextSummary, moments, summaries
from alexp_experiments.contextual.entrants import ALONE, COBA, MIXTURE, VOWPAL
from alexp_experiments.core.statistics import mean_and_error

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_OURS = (MIXTURE, ALONE, "mixture, ucb", "alexp", "lm-ucb", "linucb, all columns")
_COLOUR_OF = {
    MIXTURE: "evidence-mixture",
    ALONE: "evidence-mixture",
    "mixture, ucb": "evidence-mixture, ucb",
    "linucb, all columns": "naive",
}
_PLACES = (*_OURS, "coba", "VW")  # who has which dashes in all panels


def draw_streams(runs: pd.DataFrame, path: Path) -> None:
    """Mean regret with standard errors of ours, and of the best entrant of each other library on that stream."""
    found = summaries(runs)
    streams = list(dict.fromkeys(scenario for scenario, _ in found))
    columns = min(len(streams), 3)
    figure, axes = new_figure(-(-len(streams) // columns), columns, width=4.2, height=4.0)
    for ax, scenario in zip(axes.ravel(), streams, strict=False):
        own = {entrant: one for (title, entrant), one in found.items() if title == scenario}
        rounds = int(runs.loc[runs["scenario"] == scenario, "rounds"].max())
        _panel(ax, own, rounds)
        ax.set(title=scenario, xlabel="round t", ylabel="cumulative regret")
    for ax in axes.ravel()[len(streams) :]:
        ax.set_visible(False)
    save_figure(figure, path)


def _panel(ax: Axes, own: dict[str, ContextSummary], rounds: int) -> None:
    for label, name, place in _shown(own):
        mean, error = mean_and_error(own[name].curves)
        k = _PLACES.index(place)
        colour = method_colour(_COLOUR_OF.get(place, place))
        ax.plot(moments(rounds), mean, color=colour, ls=DASHES[k % len(DASHES)], label=label)
        ax.fill_between(moments(rounds), mean - error, mean + error, color=colour, alpha=0.15, lw=0)
    ax.set_ylim(bottom=0.0)
    legend_below(ax, 2, 7)


def _shown(own: dict[str, ContextSummary]) -> Iterator[tuple[str, str, str]]:
    """Legend, entrant and place of every curve: ours, and the best learner of each other library."""
    for name in _OURS:
        if name in own:
            yield f"mixture, {own[name].chosen} alone" if name == ALONE else name, name, name
    for place, group in (("coba", COBA), ("VW", VOWPAL)):
        playing = [name for name in group if name in own]
        if playing:
            best = min(playing, key=lambda name: own[name].regret.mean)
            yield best, best, place
