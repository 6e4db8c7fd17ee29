"""Direct arylation in plates of five, beside fifty chemists and EDBO: the best yield after k experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.style import DASHES, METHOD_COLOURS, new_figure, save_figure
from alexp.common.validation import count
from alexp.datasets import direct_arylation
from alexp_experiments.comparison.tables.contest import FIRST_SEED, TABLE_ENTRANTS
from alexp_experiments.comparison.tables.data import ARYLATION, RealScenario
from alexp_experiments.core.statistics import MeanEstimate, difference, estimate, share
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd

EXPERIMENTS, PLATE, GOOD = 50, 5, 99.0
SEEDS = 200
MARKS, LATE = (5, 10, 25, 50), (25, 50)  # when the best yield is looked at, and when it is compared
CHEMISTS, EDBO = "50 chemists", "EDBO"
# Who plays: an entrant of the tables, and how its first plate is made.
PLAYERS: dict[str, tuple[str, str]] = {
    "mixture, kernels": ("mixture, kernels", "random"),
    "mixture, kernels, first plate designed": ("mixture, kernels", "designed"),
    "mixture, kernels on whole rows": ("mixture, kernels on whole rows", "random"),
}


_COLOUR_OF = {
    CHEMISTS: "chemists",
    EDBO: "EDBO",
    "mixture, kernels on whole rows": "evidence-mixture, ucb",  # a lighter shade
}


SLOW = ("mixture, kernels on whole rows",)  # they play a quarter of the seeds


def arylation_tasks(seeds: int, first_seed: int = FIRST_SEED, experiments: int = EXPERIMENTS) -> dict[str, list[Task]]:
    """Runs by player: goal "best", nothing stated, no reaction twice, the first plate given."""
    count("seeds", seeds, 2)
    out = {}
    for name, (entrant, start) in PLAYERS.items():
        player = TABLE_ENTRANTS[entrant]
        scenario = RealScenario.of(
            ARYLATION, models=player.models, steps=experiments, plate=PLATE, first=PLATE, start=start
        )
        n = max(2, seeds // 4) if name in SLOW else seeds
        out[name] = [player.task(scenario, "best", seed) for seed in range(first_seed, first_seed + n)]
    return out


def run_arylation(tasks: Mapping[str, list[Task]], sweep: Callable[[list[Task]], list[Record]]) -> pd.DataFrame:
    """One row per run: player, seed, and the best yield after 1, 2, ... experiments."""
    import pandas as pd

    records = iter(sweep([task for own in tasks.values() for task in own]))
    yields, rows = direct_arylation().rewards, []
    for name, own in tasks.items():
        for task in own:
            best = np.maximum.accumulate(yields[next(records).chosen])
            rows.append({"player": name, "seed": task.seed} | {str(k + 1): float(v) for k, v in enumerate(best)})
    return pd.DataFrame(rows)


def shown(name: str) -> str:
    """What a player is called on the page and in figures.

    >>> shown("mixture, kernels"), shown("random"), shown("LinUCB on one map")
    ('EvidenceMixture, kernels', 'random play', 'LinUCB on one map')
    """
    return "random play" if name == "random" else name.replace("mixture", "EvidenceMixture", 1)


def curves(runs: pd.DataFrame) -> dict[str, FloatArray]:
    """Best yield after 1, 2, ... experiments, (runs, experiments) each: chemists, EDBO, and the players."""
    shipped = direct_arylation()
    columns = [name for name in runs.columns if name.isdigit()]
    published = {
        CHEMISTS: np.fmax.accumulate(shipped.chemists_yields, axis=1)[:, : len(columns)],
        EDBO: np.maximum.accumulate(shipped.edbo_yields, axis=1)[:, : len(columns)],
    }
    played = {str(name): group[columns].to_numpy(np.float64) for name, group in runs.groupby("player", sort=False)}
    return published | played


def after(curve: FloatArray, k: int) -> MeanEstimate | None:
    """Mean best yield after k experiments; None if there were fewer."""
    return None if k > curve.shape[1] else estimate(curve[:, k - 1])


def reached(curve: FloatArray, k: int) -> MeanEstimate | None:
    """Share of runs that had a yield of 99 after k experiments."""
    return None if k > curve.shape[1] else share(curve[:, k - 1] >= GOOD)


def compared(found: Mapping[str, FloatArray], name: str, other: str) -> str:
    """How a player stands beside another: differences of the mean best yield."""
    parts = []
    for k in LATE:
        if min(found[one].shape[1] for one in (name, other)) < k:
            continue
        gap = difference(found[name][:, k - 1], found[other][:, k - 1])
        word = "ahead" if gap.low > 0.0 else "behind" if gap.high < 0.0 else "level"
        ours, theirs = (found[one][:, k - 1].mean() for one in (name, other))
        parts.append(f"after {k} experiments {ours:.1f} against {theirs:.1f}, difference {gap}: *{word}*")
    return "; ".join(parts)


def draw_arylation(runs: pd.DataFrame, path: Path) -> None:
    """Mean best yield with 95% intervals."""
    figure, axes = new_figure(1, 1, width=6.4, height=4.4)
    ax = axes[0, 0]
    for k, (name, curve) in enumerate(curves(runs).items()):
        means = [estimate(curve[:, j]) for j in range(curve.shape[1])]
        experiments, colour = np.arange(1, len(means) + 1), METHOD_COLOURS[_COLOUR_OF.get(name, "evidence-mixture")]
        label = f"{shown(name)} ({len(curve)} runs)" if name != CHEMISTS else name
        ax.plot(experiments, [m.mean for m in means], color=colour, ls=DASHES[k % len(DASHES)], label=label)
        ax.fill_between(experiments, [m.low for m in means], [m.high for m in means], color=colour, alpha=0.15, lw=0)
    ax.axhline(100.0, color="0.5", lw=0.8)
    ax.set(
        xlabel="experiments",
        ylabel="best yield found, percent",
        ylim=(20, 102),
        title=f"Direct arylation, {direct_arylation().rewards.size:,} reactions",
    )
    ax.legend(frameon=False, loc="lower right", fontsize=8)
    save_figure(figure, path)
