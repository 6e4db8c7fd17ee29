"""The claims of the paper's experiments section, each with what was measured and a verdict by a stated rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from alexp.experiments.core.scenarios import SCALING_DEGREES
from alexp.experiments.core.statistics import MeanEstimate, estimate, ratio
from alexp.experiments.core.tasks import SNAPSHOT_ROUND
from alexp.experiments.paper.methods import METHODS
from alexp.experiments.paper.results import Results, scaling_names
from alexp.experiments.paper.tuning import MAIN_SCENARIOS

HOLDS, PARTLY, FAILS = "holds", "holds partly", "does not hold"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the rule by which we judge it, what we measured, and the verdict."""

    statement: str
    rule: str
    evidence: tuple[str, ...]
    verdict: str


def verdict(good: Iterable[bool]) -> str:
    """Holds if every part does, partly if some do.

    >>> verdict([True, True]), verdict([True, False]), verdict([False])
    ('holds', 'holds partly', 'does not hold')
    """
    parts = list(good)
    return HOLDS if all(parts) else PARTLY if any(parts) else FAILS


def beats(results: Results, rival: str) -> Claim:
    """ALExp has less regret than a rival, problem by problem, on the same seeds."""
    lines, good = [], []
    for name in MAIN_SCENARIOS:
        ours, theirs = results.final(name, "alexp"), results.final(name, rival)
        gap = estimate(ours - theirs)
        good.append(gap.high < 0.0)
        verb = "less" if gap.high < 0.0 else "more" if gap.low > 0.0 else "not distinguishable"
        both = f"ALExp {ours.mean():.2f}, {METHODS[rival].label} {theirs.mean():.2f}"
        wins = f"ALExp ahead in {int(np.sum(ours < theirs))} of {ours.size} seeds"
        lines.append(f"{name}: {both}; paired difference {gap}: {verb}; {wins}")
    return Claim(
        f"ALExp outperforms {METHODS[rival].label}.",
        "the 95% interval of the paired difference in R(100) lies below zero, on each of the four problems",
        tuple(lines),
        verdict(good),
    )


def competitive(results: Results) -> Claim:
    """ALExp is competitive with the oracle."""
    ratios = {name: oracle_ratio(results, name) for name in MAIN_SCENARIOS}
    lines = [f"{name}: R(100) of ALExp / Oracle UCB = {value}" for name, value in ratios.items()]
    return Claim(
        "ALExp is competitive with the oracle.",
        "its mean regret is at most twice that of Oracle UCB, on each of the four problems",
        tuple(lines),
        verdict(value.mean <= 2.0 for value in ratios.values()),
    )


def oracle_ratio(results: Results, name: str) -> MeanEstimate:
    """Mean regret of ALExp in units of the oracle's."""
    return ratio(results.final(name, "alexp"), results.final(name, "oracle"))


def correlation(results: Results) -> Claim:
    """Correlated features do not hurt ALExp."""
    easy = oracle_ratio(results, "easy")
    hard = {name: oracle_ratio(results, name) for name in ("hard-printed", "hard-meant")}
    lines = [f"easy: ALExp / Oracle UCB = {easy}"]
    lines += [f"{name}: ALExp / Oracle UCB = {value}" for name, value in hard.items()]
    return Claim(
        "ALExp is not affected by the correlation between models.",
        "relative to the oracle it loses at most 1.25 times as much on the hard problems as on the easy one",
        tuple(lines),
        verdict(value.mean <= 1.25 * easy.mean for value in hard.values()),
    )


def lasso_baselines(results: Results) -> Claim:
    """ETC and ETS suffer from correlation."""
    lines, good = [], []
    for rival in ("etc", "ets"):
        for name in ("hard-printed", "hard-meant"):
            hard = estimate(results.final(name, rival) - results.final(name, "oracle"))
            plain = estimate(results.final("easy", rival) - results.final("easy", "oracle"))
            good.append(hard.mean > plain.mean)
            lines.append(f"{METHODS[rival].label} minus Oracle UCB: {name} {hard}, easy {plain}")
    return Claim(
        "ETC and ETS, which rely on the Lasso for selection, perform poorly with correlated features.",
        "their mean distance to the oracle is larger on the hard problems than on the easy one",
        tuple(lines),
        verdict(good),
    )


def scaling(results: Results, methods: Sequence[str], statement: str, grows: bool) -> Claim:
    """Regret as M doubles, and far beyond: hardly any growth, or growth."""
    small, big = scaling_names((SCALING_DEGREES[0], SCALING_DEGREES[-1]))
    far = scaling_names(results.scope.beyond[-1:])[0] if results.scope.beyond else big
    m = [results.scope.scenario(name).n_models for name in (small, big, far)]
    lines, good = [], []
    for method in methods:
        near = ratio(results.final(big, method), results.final(small, method), paired=False)
        wide = ratio(results.final(far, method), results.final(small, method), paired=False)
        good += [near.low > 1.0] if grows else [near.mean <= 1.5, wide.mean <= 2.0]
        means = [results.final(name, method).mean() for name in (small, big, far)]
        lines.append(
            f"{METHODS[method].label}: R(100) {means[0]:.2f} at M = {m[0]}, {means[1]:.2f} at M = {m[1]} "
            f"(factor {near}), {means[2]:.2f} at M = {m[2]} (factor {wide})"
        )
    small_growth = f"regret grows by at most half from M = {m[0]} to M = {m[1]} and at most doubles up to M = {m[2]}"
    growth = f"the 95% interval of the growth from M = {m[0]} to M = {m[1]} excludes no growth, for each method"
    return Claim(statement, growth if grows else small_growth, tuple(lines), verdict(good))


def ruled_out(results: Results) -> Claim:
    """Most agents are ruled out at t = 20 though few have played."""
    records = results.runs["large", "alexp"]
    m = records[0].snapshot.size
    out = estimate([np.mean(record.snapshot < 0.1 / m) for record in records])
    tiny = estimate([np.mean(record.snapshot < 0.01 / m) for record in records])
    visited = estimate([record.visited[min(SNAPSHOT_ROUND, record.visited.size) - 1] / m for record in records])
    return Claim(
        f"At t = {SNAPSHOT_ROUND} more than 80% of the agents are practically ruled out, and less than 10% have been "
        "queried (M = 165).",
        "mean share of agents with q below a tenth of 1/M above 0.8; mean share visited below 0.1",
        (
            f"share of agents with q < 0.1/M: {out}; with q < 0.01/M: {tiny}",
            f"share of agents that had played: {visited}",
        ),
        verdict([out.mean > 0.8, visited.mean < 0.1]),
    )


def leads(results: Results) -> Claim:
    """The true model is on top, but not by much."""
    records = results.runs["large", "alexp"]
    first = [int(np.argmax(r.snapshot)) == r.true_model for r in records]
    rank = [int(np.sum(r.snapshot > r.snapshot[r.true_model])) + 1 for r in records]
    m = records[0].snapshot.size
    return Claim(
        f"At t = {SNAPSHOT_ROUND} the true model has the highest probability of selection.",
        "in at least 80% of the runs (holds), in at least 20% (partly)",
        (f"on top in {sum(first)} of {len(first)} runs; median rank {np.median(rank):.0f} of {m}",),
        HOLDS if np.mean(first) >= 0.8 else PARTLY if np.mean(first) >= 0.2 else FAILS,
    )


def below_quarter(results: Results) -> Claim:
    """q of the true model stays below 0.25."""
    curves = np.array([record.q_true for record in results.runs["large", "alexp"]], dtype=np.float64)
    peaks = curves.max(axis=1)
    above = int(np.sum(peaks > 0.25))
    return Claim(
        "The probability of the true model does not exceed 0.25 (M = 165).",
        "the mean curve stays below 0.25, and so does every single run",
        (
            f"largest value of the mean curve: {curves.mean(axis=0).max():.3f}",
            f"largest value within a run: {estimate(peaks)}; above 0.25 in {above} of {peaks.size} runs",
        ),
        verdict([curves.mean(axis=0).max() <= 0.25, bool(np.all(peaks <= 0.25))]),
    )
