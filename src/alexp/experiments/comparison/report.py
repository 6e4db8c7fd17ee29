"""docs/which-algorithm.md: which algorithm to pick, from the stored table of `alexp compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from alexp.experiments.comparison.contest import geometric_means, linear_regret, pivot
from alexp.experiments.comparison.entries import ENTRANTS, LONG, MIS_STATED, REAL, SCENARIOS, SHORT
from alexp.experiments.comparison.text import ADVICE, CAVEATS, CERTIFICATES, COST, GUARANTEES, LOCK_IN, TRIED
from alexp.experiments.core.well_specified import WELL_SPECIFIED

if TYPE_CHECKING:
    import pandas as pd


TIMED = ("s=3 σ=.1", "50 maps σ=.1", "M=4495 σ=.1")  # one scenario of each size


def report(table: pd.DataFrame, figure: str) -> str:
    """The page as Markdown; `figure` is the path of the figure as the page should link it."""
    present = [name for name in SHORT if name in set(table["scenario"])]
    parts = ["# Which algorithm", _verdict(table, present), ADVICE]
    parts += ["## Everything at a glance", _overview(table, present), f"![Regret relative to the oracle]({figure})"]
    parts += ["## Why ALExp locks in, and what stops it", LOCK_IN]
    parts += ["## Guarantees side by side", GUARANTEES, "## Certificates", CERTIFICATES]
    parts += ["## Cost of a step", _cost(table), COST]
    parts += ["## What was tried to close the rest", TRIED, "## Scenario by scenario"]
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
    """What the numbers say, in one paragraph that changes with them."""
    means = geometric_means(table, scenarios)
    if not {"oracle", "alexp", "evidence-mixture"} <= set(means.index):
        return "This page was made from a grid without the oracle, ALExp or EvidenceMixture; no verdict."
    ours, alexp, oracle = (means.loc[name].to_dict() for name in ("evidence-mixture", "alexp", "oracle"))
    worst = pivot(table, "worst", scenarios)
    tail = int(np.sum(worst.loc["evidence-mixture"].to_numpy() < worst.loc["alexp"].to_numpy()))
    stuck, harder = linear_regret(table), geometric_means(table, [name for name in scenarios if "s=9" not in name])
    text = (
        f"Over the {len(scenarios)} scenarios with n = 100, in geometric mean of mean regret, EvidenceMixture pays "
        f"**{ours['x oracle']:.2f} times** what UCB on the true model pays and **{ours['x alexp']:.2f} times** what "
        f"ALExp pays (ALExp: {alexp['x oracle']:.2f} times the oracle). Its worst seed is below ALExp's in {tail} of "
        f"{len(scenarios)} scenarios. Locked runs, those that still lose more than 0.1 per round at the end: "
        f"{int(ours['locked'])} of {int(ours['runs'])} against {int(alexp['locked'])} for ALExp and "
        f"{int(oracle['locked'])} for the oracle itself. With s = 9 the oracle's own prior is too wide and the mixture "
        f"beats it; without those scenarios it pays {harder['x oracle'].to_dict()['evidence-mixture']:.2f} times the "
        f"oracle's regret."
    )
    if "evidence-mixture" in stuck:
        text += (
            f" On the long runs, n = 1,000 and 10,000, {stuck['evidence-mixture']} of its seeds are locked; of ALExp's "
            f"{stuck.get('alexp', 0)}."
        )
    return text


def _overview(table: pd.DataFrame, scenarios: Sequence[str]) -> str:
    means = geometric_means(table, scenarios)
    rows = [
        "| algorithm | mean regret | × oracle | × ALExp | worst seed | locked | ms per step |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in means.iterrows():
        rows.append(
            f"| {name} | {row['mean']:.2f} | {row.get('x oracle', np.nan):.2f} | {row.get('x alexp', np.nan):.2f} | "
            f"{row['worst']:.1f} | {int(row['locked'])}/{int(row['runs'])} | {row['ms per step']:.2f} |"
        )
    note = f"Geometric means over {len(scenarios)} scenarios with n = 100, of means and of worst seeds; median time."
    return "\n".join(rows) + "\n\n" + note


def _cost(table: pd.DataFrame) -> str:
    """Milliseconds per step of the algorithms that play long runs too, on problems of three sizes."""
    wide = pivot(table, "ms per step", TIMED)
    names = [name for name, entrant in ENTRANTS.items() if entrant.long and name in wide.index]
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
    names = [name for name in ENTRANTS if name in set(rows["algorithm"])]
    columns = [name for name in scenarios if name in set(rows["scenario"])]
    seeds = rows.groupby("scenario")["seeds"].max().to_dict()
    titles = [f"{column} ({seeds[column]} seeds)" for column in columns]
    lines = ["| algorithm | " + " | ".join(titles) + " |", "|---" * (len(columns) + 1) + "|"]
    lookup = {(row["scenario"], row["algorithm"]): row for _, row in rows.iterrows()}
    for name in names:
        cells = [_cell(lookup.get((column, name))) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: pd.Series | None) -> str:
    if row is None:
        return ""
    text = f"{row['mean']:.3g} ± {row['s.e.']:.2g} ({row['median']:.3g}, {row['worst']:.3g})"
    return text + (f" **L{int(row['locked'])}**" if row["locked"] else "")
