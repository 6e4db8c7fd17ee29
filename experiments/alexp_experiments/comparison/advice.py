"""The advice of docs/which-algorithm.md: sentences whose numbers come from the table of `alexp compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from alexp_experiments.comparison.contest import pivot
from alexp_experiments.comparison.entries import REAL
from alexp_experiments.comparison.tuning import TUNED

if TYPE_CHECKING:
    import pandas as pd

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
    """Locked runs of an algorithm, of how many."""
    rows = table[(table["algorithm"] == name) & table["scenario"].isin(scenarios)]
    return f"{int(rows['locked'].sum())} of {int(rows['seeds'].sum())}" if len(rows) else None


def said(text: str, *values: float | str | None) -> str:
    """The sentence with its numbers; nothing if one of them was not measured.

    >>> said(" {} times.", 1.234), said(" {} times.", None)
    (' 1.23 times.', '')
    """
    if any(value is None for value in values):
        return ""
    return text.format(*(f"{value:.2f}" if isinstance(value, float) else value for value in values))


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

    def locked(name: str) -> str | None:
        return stuck(table, name, scenarios)

    nothing, misfit = f"{MIXTURE}, nothing stated", f"{MIXTURE}, ucb, misfit"
    real = times(table, f"{MIXTURE}, light", MIXTURE, tuple(REAL))
    tuned = {name: found for name in MASTERS if (found := ratio(f"{name}{TUNED}")) is not None}
    best = min(tuned, key=lambda name: tuned[name]) if tuned else None
    points = [
        "**You want the least regret:** `EvidenceMixture`. It is the default choice, and nothing has to be stated. The "
        'row "evidence-mixture" is told the noise and the size of the coefficients'
        + said("; with nothing stated regret is {} times that", ratio(nothing))
        + "."
        + said(
            f" On {USUAL} a stated noise that is three times too large multiplies its mean regret by {{}}, one that is "
            "three times too small by {}.",
            beside(table, MIXTURE, "noise stated ×3"),
            beside(table, MIXTURE, "noise stated ÷3"),
        )
        + " An unknown level of the rewards? Build the models with `intercept=True`, which tables have by default"
        + said(
            ": rewards shifted by 1 multiply mean regret by {} without an intercept and by {} with it",
            beside(table, MIXTURE, "offset 1"),
            beside(table, MIXTURE, "offset 1, intercept"),
        )
        + "."
        + said(' `rule="ucb"` has {} times the regret of the default rule.', ratio(f"{MIXTURE}, ucb"))
        + " [less-regret.md](less-regret.md) says what not knowing the model costs, and in which rounds.",
        "**You trust the stated noise and need speed, or have very many models:** `EvidenceMixture(light=True)`"
        + said(
            ": {} times the regret and {} times the time of a step.",
            ratio(f"{MIXTURE}, light"),
            times(table, f"{MIXTURE}, light", MIXTURE, scenarios, "ms per step"),
        ),
        "**You need a regret bound without a prior, or certified statements matter more than regret:** `LMUCB`. Its "
        "widths are proved" + said("; it has {} times the regret of the mixture", ratio("lm-ucb")) + ".",
        "**You want randomised choices:** `MixtureThompson`. Random rules eventually revisit candidates that a "
        "deterministic rule has stopped playing."
        + said(" It has {} times the regret of the mixture.", ratio("mixture-thompson"))
        + said(" Of its runs {} are locked, of the mixture's {}.", locked("mixture-thompson"), locked(MIXTURE)),
        "**You want the paper's algorithm and its guarantee, or agents of your own kind:** `ALExp`"
        + said(": {} times the regret of the mixture.", ratio("alexp"))
        + said(
            " With `oracle=Evidence()` it keeps its master and has {} times the regret of its default; of its "
            "runs {} are locked, with the default {}.",
            ratio("alexp, evidence oracle", "alexp"),
            locked("alexp, evidence oracle"),
            locked("alexp"),
        ),
        "**You have a table, and believe none of the models:** `EvidenceMixture(models, domain, repeats=False)` with "
        'models made by `from_matrices(kernels="auto")`, `from_inputs` or `from_components`, and nothing stated; '
        '`goal="best"` if one good row is wanted soon rather than good rows all the time. '
        "[real-tables.md](real-tables.md) has what that is worth beside other libraries. `light=True` wants noise and "
        "bound stated, and on tables there is nothing to state: whether it beats the grid depends on whether the "
        "numbers happen to fit"
        + said(" (on the two tables below, played with repeats and noise, it has {} times the regret)", real)
        + ". Where rows may be measured again and rewards have no noise, the mixture notices which rows repeat "
        "their reward and takes those for nearly known. With noise, `misfit_grid=(0.3,)` lets the mixture learn "
        "what single rows have beyond their features, at the price of visiting more of them"
        + said(
            ": {} times the regret of the same rule without it on the two tables.",
            times(table, misfit, f"{MIXTURE}, ucb", tuple(REAL)),
        ),
        "Masters that see only rewards (EXP4-IX, Corral, SmoothedCorral, D3RB, ED2RB, Balancing) need far more rounds "
        "than models"
        + said(": {}, the best of them with chosen constants, has {} times the regret", best, tuned.get(best or ""))
        + ". They are here to compare, and so is `EXP4LS`, ALExp without its Lasso.",
    ]  # fmt: skip
    head = f"Factors are geometric means over the {len(scenarios)} scenarios named below, if nothing else is said."
    return "\n".join(["## In plain words", "", head, "", *(f"- {point.strip()}" for point in points)])
