"""Claims about regret after n rounds: who outperforms whom, what correlation does, and what a growing class does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.experiments.core.scenarios import SCALING_DEGREES
from alexp.experiments.core.statistics import (
    Centre,
    MeanEstimate,
    difference,
    estimate,
    locked,
    ratio,
    ratio_of_ratios,
)
from alexp.experiments.paper.claims.rules import Claim, above, below, verdict
from alexp.experiments.paper.grids import MAIN_SCENARIOS
from alexp.experiments.paper.methods import METHODS
from alexp.experiments.paper.results import Results, scaling_names

HARD = ("hard-printed", "hard-meant")


def beats(results: Results, rival: str) -> Claim:
    """ALExp has less regret than a rival, problem by problem, on the same seeds."""
    lines, parts = [], []
    for name in MAIN_SCENARIOS:
        ours, theirs = results.final(name, "alexp"), results.final(name, rival)
        gap = estimate(ours - theirs)
        parts.append(True if gap.high < 0.0 else False if gap.low > 0.0 else None)
        verb = {True: "less", False: "more", None: "not distinguishable"}[parts[-1]]
        both = f"ALExp {ours.mean():.2f}, {METHODS[rival].label} {theirs.mean():.2f}"
        medians = f"medians {np.median(ours):.2f} and {np.median(theirs):.2f}"
        wins = f"ALExp ahead in {int(np.sum(ours < theirs))} of {ours.size} seeds"
        lines.append(f"{name}: {both}; paired difference {gap}: {verb}; {medians}; {wins}")
    return Claim(
        f"ALExp outperforms {METHODS[rival].label}.",
        "the 95% interval of the paired difference in R(100) lies below zero, on each of the four problems",
        tuple(lines),
        verdict(parts),
    )


def oracle_ratio(results: Results, name: str) -> MeanEstimate:
    """Mean regret of ALExp in units of the oracle's."""
    return ratio(results.final(name, "alexp"), results.final(name, "oracle"))


def _medians(results: Results, name: str) -> str:
    return f"{ratio(results.final(name, 'alexp'), results.final(name, 'oracle'), centre=np.median)}"


def competitive(results: Results) -> Claim:
    """ALExp is competitive with the oracle."""
    ratios = {name: oracle_ratio(results, name) for name in MAIN_SCENARIOS}
    lines = [
        f"{name}: R(100) of ALExp / Oracle UCB = {value}, of medians {_medians(results, name)}"
        for name, value in ratios.items()
    ]
    return Claim(
        "ALExp is competitive with the oracle.",
        "its mean regret is at most twice that of Oracle UCB on each of the four problems, with the whole 95% interval",
        tuple(lines),
        verdict(below(value, 2.0) for value in ratios.values()),
    )


def correlation(results: Results) -> Claim:
    """Correlated features do not hurt ALExp.

    The paper: "not only ALExp is not affected by the correlations between the models, but also it achieves a
    performance competitive to the oracle in both cases". It would be contradicted by an ALExp that falls behind the
    oracle where models are correlated. Two things are asked of each hard problem. (a) ALExp / Oracle UCB there is at
    most 1.25 times what it is on the easy problem, for means and for medians; with means alone a few locked runs on the
    easy problem would excuse anything. (b) ALExp / Oracle UCB there is at most 2, whatever it is elsewhere. Each with
    its 95% interval.
    """
    pairs = {name: (results.final(name, "alexp"), results.final(name, "oracle")) for name in ("easy", *HARD)}
    parts, lines = [], []
    for name, pair in pairs.items():
        stuck = int(locked(results.curves(name, "alexp")).sum())
        lines.append(
            f"{name}: ALExp / Oracle UCB = {ratio(*pair)}, of medians {ratio(*pair, centre=np.median)}; {stuck} of "
            f"{len(results.scope.seeds)} runs of ALExp locked"
        )
    for name in HARD:
        growth = {word: ratio_of_ratios(pairs[name], pairs["easy"], centre=c) for word, c in _CENTRES.items()}
        parts += [*(below(value, 1.25) for value in growth.values()), below(ratio(*pairs[name]), 2.0)]
        lines.append(f"{name} against easy: {', '.join(f'{word} {value} times' for word, value in growth.items())}")
    return Claim(
        "ALExp is not affected by the correlation between models.",
        "on each hard problem ALExp / Oracle UCB is at most 1.25 times what it is on the easy one, for means and for "
        "medians, and at most 2 whatever it is there; each with its whole 95% interval",
        tuple(lines),
        verdict(parts),
    )


_CENTRES: dict[str, Centre] = {"means": np.mean, "medians": np.median}


def lasso_baselines(results: Results) -> Claim:
    """ETC and ETS suffer from correlation."""
    lines, parts = [], []
    for rival in ("etc", "ets"):
        plain = results.final("easy", rival) - results.final("easy", "oracle")
        for name in HARD:
            hard = results.final(name, rival) - results.final(name, "oracle")
            gap = difference(hard, plain)
            parts.append(above(gap, 0.0))
            lines.append(
                f"{METHODS[rival].label} minus Oracle UCB: {name} {estimate(hard)}, easy {estimate(plain)}; "
                f"difference {gap}"
            )
    return Claim(
        "ETC and ETS, which rely on the Lasso for selection, perform poorly with correlated features.",
        "their mean distance to the oracle is larger on each hard problem than on the easy one, by 95% intervals",
        tuple(lines),
        verdict(parts),
    )


def scaling(results: Results, methods: Sequence[str], statement: str, grows: bool) -> Claim:
    """Regret as M doubles, and far beyond: hardly any growth, or growth."""
    small, big = scaling_names((SCALING_DEGREES[0], SCALING_DEGREES[-1]))
    far = scaling_names(results.scope.far[-1:])[0] if results.scope.far else big
    m = [results.scope.scenario(name).n_models for name in (small, big, far)]
    lines, parts = [], []
    for method in methods:
        near = ratio(results.final(big, method), results.final(small, method), paired=False)
        wide = ratio(results.final(far, method), results.final(small, method), paired=False)
        parts += [above(near, 1.0)] if grows else [below(near, 1.5), below(wide, 2.0)]
        shown = [f"{(r := results.final(name, method)).mean():.2f} ({np.median(r):.2f})" for name in (small, big, far)]
        lines.append(
            f"{METHODS[method].label}: mean (median) R(100) {shown[0]} at M = {m[0]}, {shown[1]} at M = {m[1]} "
            f"(factor of means {near}), {shown[2]} at M = {m[2]} (factor {wide})"
        )
    small_growth = (
        f"mean regret grows by at most half from M = {m[0]} to M = {m[1]} and at most doubles up to M = {m[2]}, each "
        "with its whole 95% interval"
    )
    growth = f"the 95% interval of the growth from M = {m[0]} to M = {m[1]} lies above 1, for each method"
    return Claim(statement, growth if grows else small_growth, tuple(lines), verdict(parts))
