"""docs/which-algorithm.md and its figure, from the stored table of `alexp compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.style import COLOURS, new_figure, save_figure
from alexp.decision import Schedules
from alexp_experiments.comparison.contest import FIRST_SEED, best_informed, geometric_means, linear_regret, pivot
from alexp_experiments.comparison.entries import (
    ENTRANTS,
    LONG,
    MIS_STATED,
    N_TRIED,
    REAL,
    SHORT,
    TWELVE,
)
from alexp_experiments.comparison.tuning import TUNED, TUNING, TUNING_SEEDS
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.statistics import STUCK

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


PROSE = Prose("alexp_experiments.comparison", "which-algorithm.md")
MIXTURE, USUAL = "evidence-mixture", "s=3 σ=.1"
MASTERS = ("exp4-ix", "corral", "smoothed-corral", "d3rb", "ed2rb", "balancing")  # they see nothing but rewards


def times(table: pd.DataFrame, one: str, other: str, scenarios: Sequence[str], value: str = "mean") -> float | None:
    """Geometric mean over scenarios of the ratio of two algorithms' mean regrets; None if they share none."""
    wide = pivot(table, value, scenarios)
    if not {one, other} <= set(wide.index):
        return None
    both = wide.loc[[one, other]].dropna(axis=1).to_numpy()
    return float(np.exp(np.mean(np.log(both[0] / both[1])))) if both.size else None


def stuck(table: pd.DataFrame, name: str, scenarios: Sequence[str]) -> str | None:
    """Stuck runs of an algorithm, of how many."""
    rows = table[(table["algorithm"] == name) & table["scenario"].isin(scenarios)]
    return f"{int(rows['stuck'].sum())} of {int(rows['seeds'].sum())}" if len(rows) else None


def beside(table: pd.DataFrame, name: str, scenario: str) -> str | None:
    """Mean regret on a scenario over that of the same algorithm where all is as stated, with its standard error."""
    rows = table[table["algorithm"] == name].set_index("scenario")
    if not {scenario, USUAL} <= set(rows.index):
        return None
    (mean, error), (usual, usual_error) = rows.loc[[scenario, USUAL], ["mean", "s.e."]].to_numpy()
    ratio = mean / usual
    return f"{ratio:.2f} ± {ratio * np.hypot(error / mean, usual_error / usual):.2f}"


def advice(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """What to pick, in points."""

    def ratio(one: str, other: str = MIXTURE) -> float | None:
        return times(table, one, other, scenarios)

    tuned = {name: found for name in MASTERS if (found := ratio(f"{name}{TUNED}")) is not None}
    best = min(tuned, key=lambda name: tuned[name]) if tuned else None
    return PROSE.line(
        "advice",
        n=len(scenarios),
        unstated=ratio(f"{MIXTURE}, nothing stated"),
        noise_large=beside(table, MIXTURE, "noise stated ×3"),
        noise_small=beside(table, MIXTURE, "noise stated ÷3"),
        ucb=ratio(f"{MIXTURE}, ucb"),
        light=ratio(f"{MIXTURE}, light"),
        light_time=times(table, f"{MIXTURE}, light", MIXTURE, scenarios, "ms per step"),
        lm_ucb=ratio("lm-ucb"),
        thompson=ratio("mixture-thompson"),
        alexp=ratio("alexp"),
        evidence=ratio("alexp, evidence oracle", "alexp"),
        evidence_stuck=stuck(table, "alexp, evidence oracle", scenarios),
        alexp_stuck=stuck(table, "alexp", scenarios),
        best=ROWS[best] if best else None,
        best_times=tuned.get(best or ""),
    )


OURS = ("evidence-mixture", "mixture-thompson", "evidence-sampling", "lm-ucb", "alexp")  # what is no rival
# The rows of page and figure, by their names in compare.csv, and what they are called there.
ROWS = {
    "informed ids, stated": "given the true model: IDS",
    "oracle": "given the true model: UCB (the paper's oracle)",
    "evidence-mixture": "EvidenceMixture",
    "evidence-mixture, light": "EvidenceMixture, light",
    "evidence-mixture, nothing stated": "EvidenceMixture, given nothing",
    "evidence-sampling": "evidence sampling",
    "mixture-thompson": "MixtureThompson",
    "alexp, evidence oracle": "ALExp, evidence for Lasso",
    "alexp": "ALExp",
    "lm-ucb": "LM-UCB",
    "naive": "UCB on all features",
    "squarecb": "SquareCB",
    "exp4-ls": "EXP4-LS",
    "fs-scb": "FS-SCB",
    "ets": "ETS",
    "d3rb": "D3RB",
    "ed2rb": "ED2RB",
    "exp4-ix": "EXP4-IX",
    "etc": "ETC",
    "corral": "Corral",
    "o2cs-ew": "O2CS-EW",
    "uniform": "random play",
    "smoothed-corral": "SmoothedCorral",
    "balancing": "Balancing",
}
KINDS = (
    ("one model is true, n = 100", TWELVE),
    ("wrong assumptions, n = 100", MIS_STATED),
    ("n = 1,000 and 10,000", LONG),
    ("real tables", REAL),
)


def report(table: pd.DataFrame, sweep: pd.DataFrame, figure: str) -> str:
    """The page as Markdown; `figure` is the path of the figure as the page should link it."""
    present = [name for name in TWELVE if name in set(table["scenario"])]
    schedules = Schedules()
    text = PROSE.line(
        "page",
        verdict=_verdict(table, present),
        advice=advice(table, present),
        overview=_overview(table, present),
        kinds=_kinds(table),
        figure=figure,
        choices=_choices(sweep),
        escapes=sum(schedules.gamma * t**-0.25 for t in range(1, 101)),  # exploring rounds among the first hundred
        gamma=schedules.gamma,
        alexp_stuck=stuck(table, "alexp", present) or "some",
        mixture_stuck=stuck(table, MIXTURE, present) or "some",
        n_problems=len(set(table["scenario"])),
        first_seed=FIRST_SEED,
        stuck=STUCK,
    )
    return text + "\n"


def _verdict(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """What the numbers say, in a few sentences that change with them."""
    means = geometric_means(table, scenarios)
    if not {"oracle", "alexp", "evidence-mixture"} <= set(means.index) or "x informed" not in means:
        return PROSE("no verdict")
    worst = pivot(table, "worst", scenarios)
    tail = int(np.sum(worst.loc["evidence-mixture"].to_numpy() < worst.loc["alexp"].to_numpy()))
    tuned = means[[name.endswith(TUNED) for name in means.index]]
    rivals = [name for name in tuned.index if name.removesuffix(TUNED) not in (*OURS, "oracle")]
    long = linear_regret(table)
    return PROSE.line(
        "verdict",
        n=len(scenarios),
        **{
            key: means.loc[name].to_dict()
            for key, name in (("ours", MIXTURE), ("alexp", "alexp"), ("oracle", "oracle"))
        },
        tail=tail,
        stuck=STUCK,
        rival=ROWS.get(rivals[0].removesuffix(TUNED)) if rivals else None,
        times=tuned.loc[rivals[0]].to_dict()["x informed"] if rivals else None,
        long=long.get("evidence-mixture"),
        alexp_long=long.get("alexp", 0),
    )


def _overview(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """One row per algorithm: regret with defaults and tuned, beside the true model, worst run, stuck runs, time."""
    means = geometric_means(table, scenarios)
    of = {str(name): row for name, row in means.iterrows()}
    rows = [
        "| algorithm | regret | tuned | × true model | worst run | stuck, % of runs | ms per step |",
        "|---" * 7 + "|",
    ]
    for name, row in of.items():
        if name in ROWS:
            tuned = f"{of[f'{name}{TUNED}']['mean']:.2f}" if f"{name}{TUNED}" in of else ""
            rows.append(
                f"| {ROWS[name]} | {row['mean']:.2f} | {tuned} | {row.get('x informed', np.nan):.2f} | "
                f"{row['worst']:.1f} | {100 * row['stuck'] / row['runs']:.0f} | {row['ms per step']:.2f} |"
            )
    return PROSE("overview", n=len(scenarios), tried=N_TRIED) + "\n\n" + "\n".join(rows)


def _kinds(table: pd.DataFrame) -> str:
    """Regret in units of the best agent that was given the true model, by kind of problem."""
    names = [name for name, entrant in ENTRANTS.items() if entrant.long and not entrant.informed and name in ROWS]
    rows = ["| problems | " + " | ".join(ROWS[name] for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    for title, scenarios in KINDS:
        of = geometric_means(table, [name for name in scenarios if name in set(table["scenario"])])
        if "x informed" in of:
            ratios = of["x informed"].to_dict()
            cells = [f"{ratios[name]:.2f}" if name in ratios else "" for name in names]
            rows.append(f"| {title} | " + " | ".join(cells) + " |")
    return PROSE("kinds") + "\n\n" + "\n".join(rows)


def _choices(sweep: pd.DataFrame) -> str:
    """How constants were chosen, in words; the sweep itself is a file."""
    first, last = TUNING_SEEDS[0], TUNING_SEEDS[-1]
    return PROSE.line(
        "choices",
        tried=sweep.groupby("algorithm")["constants"].nunique().max(),
        first=first,
        last=last,
        scenarios="; ".join(TUNING),
    )


_LOOKS = ("o", "s", "^", "D")


def draw(table: pd.DataFrame, path: Path) -> None:
    """Left: mean regret over the best informed agent's, per problem. Right: the worst run's over the same mean."""
    ranked = _ranking(table)
    figure, axes = new_figure(1, 2, width=6.0, height=1.6 + 0.26 * len(ranked))
    titles = ("mean regret", "regret of the worst run")
    for ax, value, title in zip(axes[0], ("mean", "worst"), titles, strict=True):
        _panel(ax, table, ranked, value)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("× mean regret of the best agent given the true model", fontsize=9)
    axes[0, 1].set_yticklabels([])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    save_figure(figure, path)


def _ranking(table: pd.DataFrame) -> list[str]:
    """The rows from best to worst in geometric mean over the problems that all of them played."""
    return [str(name) for name in geometric_means(table, _shared(table)).index if name in ROWS]


def _shared(table: pd.DataFrame) -> list[str]:
    present = list(dict.fromkeys(table["scenario"]))
    return [name for name in present if name in TWELVE] or [name for name in present if name in SHORT] or present


def _panel(ax: Axes, table: pd.DataFrame, ranked: Sequence[str], value: str) -> None:
    """One mark per algorithm and problem, a bar at the geometric mean."""
    unit = best_informed(table) if len(best_informed(table)) else table.groupby("scenario", sort=False)["mean"].min()
    for k, (label, scenarios) in enumerate(KINDS):
        wide = pivot(table, value, list(scenarios))
        for row, name in enumerate(ranked):
            if name not in wide.index or wide.shape[1] == 0:
                continue
            ratios = (wide.loc[name] / unit.reindex(wide.columns).clip(lower=1e-3)).dropna()
            height = np.full(len(ratios), row + 0.18 * (k - 1.5))
            ax.plot(
                ratios, height, _LOOKS[k], color=COLOURS[k], markersize=4.2, alpha=0.65, markeredgewidth=0.0,
                label=label if row == 0 else None,
            )  # fmt: skip
    shared = _shared(table)
    means = geometric_means(table, shared)[value].to_dict()
    scale = float(np.exp(np.log(unit.reindex(shared).clip(lower=1e-3)).mean()))
    ax.plot(
        [means[name] / scale for name in ranked], np.arange(len(ranked)), "|", color="black", markersize=14,
        markeredgewidth=2.2, label="geometric mean, blue marks",
    )  # fmt: skip
    ax.axvline(1.0, color="0.5", linewidth=0.8, zorder=0)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(np.arange(len(ranked)), [ROWS[name] for name in ranked])
    ax.set_ylim(len(ranked) - 0.5, -0.5)
    for row in range(0, len(ranked), 2):
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=-1)
