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
    INFORMED,
    LONG,
    MIS_STATED,
    N_TRIED,
    REAL,
    SCENARIOS,
    SHORT,
    STATED,
    TWELVE,
    WELL_SPECIFIED,
)
from alexp_experiments.comparison.tuning import TUNED, TUNING, TUNING_SEEDS, chosen, everybody, scores, written
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
        usual=USUAL,
        unstated=ratio(f"{MIXTURE}, nothing stated"),
        noise_large=beside(table, MIXTURE, "noise stated ×3"),
        noise_small=beside(table, MIXTURE, "noise stated ÷3"),
        offset=beside(table, MIXTURE, "offset 1"),
        intercept=beside(table, MIXTURE, "offset 1, intercept"),
        ucb=ratio(f"{MIXTURE}, ucb"),
        light=ratio(f"{MIXTURE}, light"),
        light_time=times(table, f"{MIXTURE}, light", MIXTURE, scenarios, "ms per step"),
        lm_ucb=ratio("lm-ucb"),
        thompson=ratio("mixture-thompson"),
        thompson_stuck=stuck(table, "mixture-thompson", scenarios),
        mixture_stuck=stuck(table, MIXTURE, scenarios),
        alexp=ratio("alexp"),
        evidence=ratio("alexp, evidence oracle", "alexp"),
        evidence_stuck=stuck(table, "alexp, evidence oracle", scenarios),
        alexp_stuck=stuck(table, "alexp", scenarios),
        real=times(table, f"{MIXTURE}, light", MIXTURE, tuple(REAL)),
        best=best,
        best_times=tuned.get(best or ""),
    )


OURS = ("evidence-mixture", "mixture-thompson", "evidence-sampling", "lm-ucb", "alexp")  # what is no rival
TIMED = ("s=3 σ=.1", "50 maps σ=.1", "M=4495 σ=.1")  # one scenario of each size


def report(table: pd.DataFrame, sweep: pd.DataFrame, figure: str) -> str:
    """The page as Markdown; `figure` is the path of the figure as the page should link it."""
    present = [name for name in TWELVE if name in set(table["scenario"])]
    sections = [
        f"### {title}\n\n{_cells(table, tuple(scenarios))}\n\n"
        for title, scenarios in (
            ("One of the models is true, n = 100", WELL_SPECIFIED),
            ("Something is not as stated, n = 100", MIS_STATED),
            ("Longer runs", LONG),
            ("Real tables, where no model is true", REAL),
        )
        if any(name in set(table["scenario"]) for name in scenarios)
    ]
    schedules = Schedules()
    text = PROSE(
        "page",
        verdict=_verdict(table, present),
        advice=advice(table, present),
        overview=_overview(table, present),
        figure=figure,
        choices=_choices(sweep),
        escapes=sum(schedules.gamma * t**-0.25 for t in range(1, 101)),  # exploring rounds among the first hundred
        gamma=schedules.gamma,
        cost=_cost(table),
        scenarios="".join(sections),
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
    also = [
        f"{title} at {tuned.loc[f'{name}{TUNED}'].to_dict()['x informed']:.2f}"
        for name, title in (("evidence-mixture", "EvidenceMixture"), ("alexp", "ALExp"))
        if f"{name}{TUNED}" in tuned.index
    ]
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
        rival=rivals[0].removesuffix(TUNED) if rivals else None,
        times=tuned.loc[rivals[0]].to_dict()["x informed"] if rivals else None,
        also=f" ({', '.join(also)})" if also else "",
        long=long.get("evidence-mixture"),
        alexp_long=long.get("alexp", 0),
    )


def _overview(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    means = geometric_means(table, scenarios)
    rows = [
        "| algorithm | mean regret | median | × best informed | × oracle | × ALExp | worst seed | stuck | starting | "
        "ms per step |",
        "|---" * 10 + "|",
    ]
    for name, row in means.iterrows():
        ratios = " | ".join(f"{row.get(f'x {of}', np.nan):.2f}" for of in ("informed", "oracle", "alexp"))
        rows.append(
            f"| {name} | {row['mean']:.2f} | {row['median']:.2f} | {ratios} | {row['worst']:.1f} | "
            f"{int(row['stuck'])}/{int(row['runs'])} | {int(row['starting'])} | {row['ms per step']:.2f} |"
        )
    note = PROSE.line(
        "overview",
        n=len(scenarios),
        scenarios=", ".join(scenarios),
        tuned=TUNED.strip(" ,"),
        informed=", ".join(INFORMED),
        kinder=_kinder(table, scenarios),
    )
    return "\n".join(rows) + "\n\n" + note


def _kinder(table: pd.DataFrame, scenarios: Sequence[str]) -> float | None:
    """By how much informed agents that know noise and bound make the yardstick sterner."""
    sterner, kinder = (
        best_informed(table),
        best_informed(table, [name for name in INFORMED if not name.endswith(STATED)]),
    )
    wanted = [name for name in scenarios if name in kinder.index]
    if not wanted:
        return None
    return float(np.exp(np.mean(np.log(kinder[wanted].to_numpy() / sterner[wanted].to_numpy()))))


def _choices(sweep: pd.DataFrame) -> str:
    """What was tried and chosen for every entrant, with what it brought on the tuning seeds."""
    rows = ["| algorithm | tried, beside the defaults | defaults | best | chosen |", "|---" * 5 + "|"]
    for name, constants in chosen(sweep).items():
        of = scores(sweep, name)
        tried = "; ".join(_plain(one) for one in of if one != written({}))
        default, best = of[written({})], of[written(constants)]
        rows.append(f"| {name} | {tried} | {default:.2f} | {best:.2f} | {_plain(written(constants))} |")
    first, last = TUNING_SEEDS[0], TUNING_SEEDS[-1]
    note = PROSE.line("choices", tried=N_TRIED, first=first, last=last, scenarios=", ".join(TUNING))
    return "\n".join(rows) + "\n\n" + note


def _plain(constants: str) -> str:
    return constants.strip("{}").replace('"', "") or "defaults"


def _cost(table: pd.DataFrame) -> str:
    """Milliseconds per step of the algorithms that play long runs too, on problems of three sizes."""
    wide = pivot(table, "ms per step", TIMED)
    names = [name for name, entrant in ENTRANTS.items() if entrant.long and not entrant.informed and name in wide.index]
    if wide.shape[1] == 0:
        return PROSE("no cost")
    lines = ["| M, d, N | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for name in wide.columns:
        scenario, times = SCENARIOS[name], wide[name].to_dict()
        cells = " | ".join("" if np.isnan(times[who]) else f"{times[who]:.2g}" for who in names)
        lines.append(f"| {scenario.n_models:,}, {scenario.size}, {scenario.resolution:,} | {cells} |")
    return "\n".join(lines) + "\n\n" + PROSE("cost")


def _cells(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """Mean ± s.e. (median, worst) and stuck seeds of every algorithm on some scenarios."""
    rows = table[table["scenario"].isin(scenarios)]
    names = [name for name in everybody() if name in set(rows["algorithm"])]
    columns = [name for name in scenarios if name in set(rows["scenario"])]
    seeds, informed = rows.groupby("scenario")["seeds"].max().to_dict(), best_informed(table).to_dict()
    titles = [f"{column} ({seeds[column]} seeds)" for column in columns]
    lines = ["| algorithm | " + " | ".join(titles) + " |", "|---" * (len(columns) + 1) + "|"]
    if all(column in informed for column in columns):
        lines.append("| *best informed* | " + " | ".join(f"*{informed[column]:.3g}*" for column in columns) + " |")
    lookup = {(row["scenario"], row["algorithm"]): row for _, row in rows.iterrows()}
    for name in names:
        cells = [_cell(lookup.get((column, name)), seeds[column]) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: pd.Series | None, seeds: int) -> str:
    if row is None:
        return ""
    text = f"{row['mean']:.3g} ± {row['s.e.']:.2g} ({row['median']:.3g}, {row['worst']:.3g})"
    text += "".join(f" **{name} {int(row[name])}**" for name in ("stuck", "starting") if row[name])
    return text + (f" of {int(row['seeds'])}" if row["seeds"] != seeds else "")


_KINDS = (
    ("one model is true, n = 100", tuple(WELL_SPECIFIED), "o", COLOURS[0]),
    ("noise, offset or model mis-stated, n = 100", tuple(MIS_STATED), "s", COLOURS[1]),
    ("n = 1,000 and 10,000", tuple(LONG), "^", COLOURS[2]),
    ("real tables", tuple(REAL), "D", COLOURS[3]),
)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Left: mean regret over the best informed agent's, per scenario. Right: the worst seed's over the same mean."""
    ranked = _ranking(table)
    figure, axes = new_figure(1, 2, width=6.2, height=1.9 + 0.28 * len(ranked))
    titles = ("mean regret, in units of the best informed agent's", "worst seed, in units of that mean")
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
    informed = (
        best_informed(table) if len(best_informed(table)) else table.groupby("scenario", sort=False)["mean"].min()
    )
    for k, (label, scenarios, marker, colour) in enumerate(_KINDS):
        wide = pivot(table, value, scenarios)
        for row, name in enumerate(ranked):
            tuned = wide.index == f"{name}{TUNED}"
            who = f"{name}{TUNED}" if wide[tuned].notna().to_numpy().any() else name
            if who not in wide.index or wide.shape[1] == 0:
                continue
            ratios = (wide.loc[who] / informed.reindex(wide.columns).clip(lower=1e-3)).dropna()
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
    unit = (
        next(yardstick[name] / ratio for name, ratio in summary["x informed"].items())
        if "x informed" in summary
        else 1.0
    )
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
