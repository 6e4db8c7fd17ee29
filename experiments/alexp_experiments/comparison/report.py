"""docs/which-algorithm.md: which algorithm to pick, from the stored table of `alexp compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from alexp_experiments.comparison.advice import advice
from alexp_experiments.comparison.contest import best_told, geometric_means, linear_regret, pivot
from alexp_experiments.comparison.entries import ENTRANTS, LONG, MIS_STATED, N_TRIED, REAL, SCENARIOS, STATED, TOLD
from alexp_experiments.comparison.text import CAVEATS, CERTIFICATES, COST, GUARANTEES, LOCK_IN
from alexp_experiments.comparison.tuning import TUNED, TUNING, TUNING_SEEDS, chosen, everybody, scores, written
from alexp_experiments.core.statistics import LOCKED
from alexp_experiments.core.well_specified import TWELVE, WELL_SPECIFIED

if TYPE_CHECKING:
    import pandas as pd


OURS = ("evidence-mixture", "mixture-thompson", "evidence-sampling", "lm-ucb", "alexp")  # what is no rival
TIMED = ("s=3 σ=.1", "50 maps σ=.1", "M=4495 σ=.1")  # one scenario of each size


def report(table: pd.DataFrame, sweep: pd.DataFrame, figure: str) -> str:
    """The page as Markdown; `figure` is the path of the figure as the page should link it."""
    present = [name for name in TWELVE if name in set(table["scenario"])]
    parts = ["# Which algorithm", _verdict(table, present), advice(table, present)]
    parts += ["## Everything at a glance", _overview(table, present), f"![Regret relative to the best told]({figure})"]
    parts += ["## Constants, chosen the same way for everybody", _choices(sweep)]
    parts += ["## Why ALExp locks in, and what works against it", LOCK_IN]
    parts += ["## Guarantees side by side", GUARANTEES, "## Certificates", CERTIFICATES]
    parts += ["## Cost of a step", _cost(table), COST]
    parts += ["## Scenario by scenario"]
    for title, scenarios in (
        ("One of the models is true, n = 100", WELL_SPECIFIED),
        ("Something is not as stated, n = 100", MIS_STATED),
        ("Longer runs", LONG),
        ("Real tables, where no model is true", REAL),
    ):
        if any(name in set(table["scenario"]) for name in scenarios):
            parts += [f"### {title}", _cells(table, tuple(scenarios))]
    return "\n\n".join([*parts, "## How to read this, and its limits", CAVEATS]) + "\n"


def _verdict(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """What the numbers say, in a few sentences that change with them."""
    means = geometric_means(table, scenarios)
    if not {"oracle", "alexp", "evidence-mixture"} <= set(means.index) or "x told" not in means:
        return "This page was made from a grid without told agents, the oracle, ALExp or EvidenceMixture; no verdict."
    ours, alexp, oracle = (means.loc[name].to_dict() for name in ("evidence-mixture", "alexp", "oracle"))
    worst = pivot(table, "worst", scenarios)
    tail = int(np.sum(worst.loc["evidence-mixture"].to_numpy() < worst.loc["alexp"].to_numpy()))
    text = (
        f"Choosing a model is to be measured against an agent that is *told the true model*, with the same prior and "
        f"the same rule. In geometric mean over the {len(scenarios)} scenarios below, n = 100, EvidenceMixture "
        f"pays **{ours['x told']:.2f} times** the mean regret of the best told agent of every scenario, ALExp "
        f"**{alexp['x told']:.2f} times**, the paper's oracle (UCB on the true model) {oracle['x told']:.2f} times. "
        f"The mixture's worst seed is below ALExp's in {tail} of {len(scenarios)} scenarios. Locked runs, those that "
        f"still lose more than {LOCKED} per round at the end: {int(ours['locked'])} of {int(ours['runs'])} against "
        f"{int(alexp['locked'])} for ALExp and {int(oracle['locked'])} for the oracle."
    )
    tuned = means[[name.endswith(TUNED) for name in means.index]]
    rivals = [name for name in tuned.index if name.removesuffix(TUNED) not in (*OURS, "oracle")]
    if rivals:
        best = tuned.loc[rivals[0]].to_dict()
        text += (
            f" With constants chosen for everybody in the same way, the best rival is "
            f"{rivals[0].removesuffix(TUNED)} at {best['x told']:.2f} times the best told agent"
        )
        also = [
            f"{title} at {tuned.loc[f'{name}{TUNED}'].to_dict()['x told']:.2f}"
            for name, title in (("evidence-mixture", "EvidenceMixture"), ("alexp", "ALExp"))
            if f"{name}{TUNED}" in tuned.index
        ]
        text += f" ({', '.join(also)})." if also else "."
    stuck = linear_regret(table)
    if "evidence-mixture" in stuck:
        text += (
            f" On the long runs, n = 1,000 and 10,000, {stuck['evidence-mixture']} of its seeds are locked; of ALExp's "
            f"{stuck.get('alexp', 0)}."
        )
    return text


def _overview(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    means = geometric_means(table, scenarios)
    rows = [
        "| algorithm | mean regret | median | × best told | × oracle | × ALExp | worst seed | locked | starting | "
        "ms per step |",
        "|---" * 10 + "|",
    ]
    for name, row in means.iterrows():
        ratios = " | ".join(f"{row.get(f'x {of}', np.nan):.2f}" for of in ("told", "oracle", "alexp"))
        rows.append(
            f"| {name} | {row['mean']:.2f} | {row['median']:.2f} | {ratios} | {row['worst']:.1f} | "
            f"{int(row['locked'])}/{int(row['runs'])} | {int(row['starting'])} | {row['ms per step']:.2f} |"
        )
    note = (
        f"Geometric means over {len(scenarios)} scenarios with n = 100 ({', '.join(scenarios)}) of means, medians and "
        f"worst seeds; median time. Rows that end in “{TUNED.strip(' ,')}” have the constants of the table below, all "
        f"others their defaults. “Best told” is the least mean regret among {', '.join(TOLD)} on each scenario."
        f"{_kinder(table, scenarios)}"
    )
    return "\n".join(rows) + "\n\n" + note


def _kinder(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """What the yardstick was before told agents that know noise and bound joined it."""
    sterner, kinder = best_told(table), best_told(table, [name for name in TOLD if not name.endswith(STATED)])
    wanted = [name for name in scenarios if name in kinder.index]
    if not wanted:
        return ""
    ratio = float(np.exp(np.mean(np.log(kinder[wanted].to_numpy() / sterner[wanted].to_numpy()))))
    return (
        f" Those to which noise and bound are stated joined after a first look at the results, because others in this "
        f"table are told both; with the others alone all numbers in that column are divided by {ratio:.2f}."
    )


def _choices(sweep: pd.DataFrame) -> str:
    """What was tried and chosen for every entrant, with what it brought on the tuning seeds."""
    rows = ["| algorithm | tried, beside the defaults | defaults | best | chosen |", "|---" * 5 + "|"]
    for name, constants in chosen(sweep).items():
        of = scores(sweep, name)
        tried = "; ".join(_plain(one) for one in of if one != written({}))
        default, best = of[written({})], of[written(constants)]
        rows.append(f"| {name} | {tried} | {default:.2f} | {best:.2f} | {_plain(written(constants))} |")
    note = (
        f"{N_TRIED} settings each, seeds {TUNING_SEEDS[0]} to {TUNING_SEEDS[-1]}, geometric mean of mean regret over "
        f"{', '.join(TUNING)}; one choice for all scenarios. `alexp compare --tune FILE` makes this sweep. Ridge and "
        "beta of oracle and naive and the ridge of LM-UCB are in units of the stated noise, eta and gamma of Corral in "
        "units of sqrt(M/n) and 1/n; all others are settings as they stand. What was never tried may be better still: "
        "the budget is equal, not infinite. Where few locked seeds carry the means, a choice may be worse on other "
        "seeds than the defaults were; the medians say how much of that is the tail."
    )
    return "\n".join(rows) + "\n\n" + note


def _plain(constants: str) -> str:
    return constants.strip("{}").replace('"', "") or "defaults"


def _cost(table: pd.DataFrame) -> str:
    """Milliseconds per step of the algorithms that play long runs too, on problems of three sizes."""
    wide = pivot(table, "ms per step", TIMED)
    names = [name for name, entrant in ENTRANTS.items() if entrant.long and not entrant.told and name in wide.index]
    if wide.shape[1] == 0:
        return "The table has none of the scenarios that steps are timed on."
    lines = ["| M, d, N | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for name in wide.columns:
        scenario, times = SCENARIOS[name], wide[name].to_dict()
        cells = " | ".join("" if np.isnan(times[who]) else f"{times[who]:.2g}" for who in names)
        lines.append(f"| {scenario.n_models:,}, {scenario.size}, {scenario.resolution:,} | {cells} |")
    note = "Milliseconds per ask and tell: the mean of a run, median over the seeds, taken beside other runs."
    return "\n".join(lines) + "\n\n" + note


def _cells(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """Mean ± s.e. (median, worst) and locked seeds of every algorithm on some scenarios."""
    rows = table[table["scenario"].isin(scenarios)]
    names = [name for name in everybody() if name in set(rows["algorithm"])]
    columns = [name for name in scenarios if name in set(rows["scenario"])]
    seeds, told = rows.groupby("scenario")["seeds"].max().to_dict(), best_told(table).to_dict()
    titles = [f"{column} ({seeds[column]} seeds)" for column in columns]
    lines = ["| algorithm | " + " | ".join(titles) + " |", "|---" * (len(columns) + 1) + "|"]
    if all(column in told for column in columns):
        lines.append("| *best told* | " + " | ".join(f"*{told[column]:.3g}*" for column in columns) + " |")
    lookup = {(row["scenario"], row["algorithm"]): row for _, row in rows.iterrows()}
    for name in names:
        cells = [_cell(lookup.get((column, name)), seeds[column]) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: pd.Series | None, seeds: int) -> str:
    if row is None:
        return ""
    text = f"{row['mean']:.3g} ± {row['s.e.']:.2g} ({row['median']:.3g}, {row['worst']:.3g})"
    text += "".join(f" **{sign}{int(row[name])}**" for sign, name in (("L", "locked"), ("S", "starting")) if row[name])
    return text + (f" of {int(row['seeds'])}" if row["seeds"] != seeds else "")
