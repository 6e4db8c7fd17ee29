"""Clicks: `EvidenceMixture(likelihood="bernoulli")` beside the usual Gaussian likelihood, both with default settings.

``python -m alexp_experiments.contextual.rewards.bernoulli`` prints the first table of docs/clicks.md, clicks lost;
``--coverage`` the second, how often true probabilities lie in credible intervals.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from alexp.algorithms.evidence_mixture import RATIOS, EvidenceMixture, Likelihood
from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.mixture.bernoulli import SCALES, BernoulliMixture, sigmoid
from alexp.estimation.mixture.calibrating import trace_divisors
from alexp.estimation.mixture.mixture import Mixture, StudentMixture
from alexp.problem import Candidates, FiniteSet, ModelClass
from alexp.problem.candidates import Choices
from alexp_experiments.core.runner import spread

_HEAD = ("click rate", "arms", "features", "rounds")
LIKELIHOODS: tuple[Likelihood, ...] = ("gaussian", "bernoulli")
LEVELS = (0.95, 0.8, 0.5)
TESTED = 200  # rows at which intervals are looked at


@dataclass(frozen=True)
class Clicks:
    """Rewards 1 with probability sigmoid(b + x'theta): `size` of 3 `size` features matter, x'theta ~ N(0, 1).

    Attributes
    ----------
    rate : sigmoid(b), about the share of clicks under even play.
    arms : candidates of a round.
    fixed : whether the candidates are the same in every round.
    """

    rate: float
    arms: int
    size: int
    rounds: int
    fixed: bool = False

    def groups(self, rng: np.random.Generator) -> list[IntArray]:
        """The features that matter; half of them; all there are; three other sets."""
        d = self.size
        true = np.arange(d)
        others = [np.sort(rng.choice(3 * d, d, replace=False)) for _ in range(3)]
        return [true, true[: max(d // 2, 1)], np.arange(3 * d), *others]


PROBLEMS = (
    Clicks(0.5, 10, 5, 1000),
    Clicks(0.1, 10, 5, 1000),
    Clicks(0.02, 10, 5, 4000),
    Clicks(0.005, 10, 5, 10000),
    Clicks(0.1, 2, 2, 1000),
    Clicks(0.1, 20, 20, 2000),
    Clicks(0.5, 10, 5, 1000, fixed=True),
    Clicks(0.02, 10, 5, 4000, fixed=True),
)


class ClickStream:
    """Candidates, rates and luck of a problem, the same for everybody with this seed."""

    def __init__(self, problem: Clicks, seed: int) -> None:
        self.problem, self._rng = problem, np.random.default_rng([5, seed])
        self.groups, width = problem.groups(self._rng), 3 * problem.size
        self._theta = np.zeros(width)
        self._theta[self.groups[0]] = self._rng.standard_normal(problem.size)
        self._theta /= np.linalg.norm(self._theta)
        self._level = log(problem.rate / (1.0 - problem.rate))
        self.reference = self._rng.standard_normal((500, width))
        self.rows = self.new_rows(problem.arms)

    def new_rows(self, n: int) -> FloatArray:
        """New candidates, (n, P)."""
        return np.asarray(self._rng.standard_normal((n, self._theta.size)))

    def rates(self, rows: FloatArray) -> FloatArray:
        """Probabilities of a click, (n,)."""
        return sigmoid(self._level + rows @ self._theta)

    def turn(self) -> FloatArray:
        """Begin a round; the rates of its candidates, (n,)."""
        if not self.problem.fixed:
            self.rows = self.new_rows(self.problem.arms)
        return self.rates(self.rows)

    def clicked(self, rate: float) -> float:
        """1 for a click, or 0."""
        return float(self._rng.random() < rate)


def play(problem: Clicks, seed: int, **settings: Any) -> float:
    """Expected clicks lost in a run of `EvidenceMixture` with its default rule."""
    stream, lost = ClickStream(problem, seed), 0.0
    sets, columns = {f"set {k}": group for k, group in enumerate(stream.groups)}, np.concatenate(stream.groups)
    if problem.fixed:
        models = ModelClass.from_matrices({name: stream.rows[:, own] for name, own in sets.items()}, intercept=True)
    else:
        models = ModelClass.from_blocks({name: len(own) for name, own in sets.items()}, intercept=True)
    domain = FiniteSet(range(problem.arms)) if problem.fixed else Candidates()
    opt = EvidenceMixture(models, domain, random_state=seed, **settings)
    for _ in range(problem.rounds):
        rates = stream.turn()
        trial = opt.ask() if problem.fixed else opt.ask(features=stream.rows[:, columns])
        opt.tell(trial, stream.clicked(rates[trial.index]))
        lost += float(rates.max() - rates[trial.index])
    return lost


def _mixture(stream: ClickStream, likelihood: Likelihood) -> Mixture:
    columns, offsets = np.concatenate(stream.groups), np.append(0, np.cumsum([len(group) for group in stream.groups]))
    divisors = trace_divisors(stream.reference.T, columns, offsets, centred=True)
    groups = (stream.reference.shape[1], columns, offsets, divisors, True)
    if likelihood == "gaussian":
        return StudentMixture(*groups, ratio_grid=RATIOS)
    return BernoulliMixture(*groups, scale_grid=SCALES)


def covered(problem: Clicks, likelihood: Likelihood, seed: int) -> FloatArray:
    """Share of new rows whose probability lies in the interval of each of `LEVELS`, after even play."""
    stream, even = ClickStream(problem, seed), np.random.default_rng([6, seed])
    mixture = _mixture(stream, likelihood)
    for _ in range(problem.rounds):
        rates, chosen = stream.turn(), int(even.integers(problem.arms))
        mixture.update(stream.rows[chosen], stream.clicked(rates[chosen]))
    rows = stream.new_rows(TESTED)
    rates, weights, choices = stream.rates(rows), mixture.weights(), Choices(None, np.ascontiguousarray(rows.T))
    ends = [mixture.interval(weights, choices, level) for level in LEVELS]
    return np.array([np.mean((low <= rates) & (rates <= high)) for low, high in ends])


def table(problems: Sequence[Clicks], seeds: int, workers: int | None = None) -> str:
    """One row per problem: clicks lost with either likelihood, and their ratio."""
    runs = [(problem, one, seed) for problem in problems for one in LIKELIHOODS for seed in range(seeds)]
    return shown(problems, np.reshape(spread(_play, runs, workers), (len(problems), len(LIKELIHOODS), seeds)))


def shown(problems: Sequence[Clicks], found: FloatArray) -> str:
    """The table of clicks lost, (problems, 2, seeds)."""
    lines = [
        f"Clicks lost, means ± standard errors of {found.shape[2]} seeds; ratio of means with 95% bootstrap interval.",
        "",
        "| " + " | ".join([*_HEAD, *LIKELIHOODS, "bernoulli / gaussian"]) + " |",
        "|" + "---|" * (len(_HEAD) + len(LIKELIHOODS) + 1),
    ]
    for problem, values in zip(problems, found, strict=True):
        losses = [f"{one.mean():.1f} ± {one.std(ddof=1) / sqrt(one.size):.1f}" for one in values]
        lines.append("| " + " | ".join([*_where(problem), *losses, ratio(values[1], values[0])]) + " |")
    return "\n".join(lines)


def _play(run: tuple[Clicks, Likelihood, int]) -> float:
    problem, likelihood, seed = run
    return play(problem, seed, likelihood=likelihood)


def _where(problem: Clicks) -> tuple[str, ...]:
    where = f"{problem.arms}{', fixed' if problem.fixed else ''}"
    return f"{problem.rate:g}", where, f"{problem.size} of {3 * problem.size}", f"{problem.rounds}"


def coverage(problems: Sequence[Clicks], seeds: int, workers: int | None = None) -> str:
    """One row per problem: how often intervals held, with standard errors over seeds."""
    levels = [f"{100 * level:g}%" for level in LEVELS]
    lines = [
        f"Shares of true probabilities in credible intervals after even play, {seeds} seeds, ± standard error.",
        "",
        "| click rate | rounds | "
        + " | ".join(f"{level}, {name}" for name in ("Gaussian", "Bernoulli") for level in levels)
        + " |",
        "|" + "---|" * (2 + len(LIKELIHOODS) * len(LEVELS)),
    ]
    runs = [(problem, one, seed) for problem in problems for one in LIKELIHOODS for seed in range(seeds)]
    found = np.reshape(spread(_covered, runs, workers), (len(problems), len(LIKELIHOODS), seeds, len(LEVELS)))
    for problem, values in zip(problems, found, strict=True):
        means, errors = values.mean(axis=1).ravel(), (values.std(axis=1) / sqrt(seeds)).ravel()
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True)]
        lines.append("| " + " | ".join([f"{problem.rate:g}", f"{problem.rounds}", *cells]) + " |")
    return "\n".join(lines)


def _covered(run: tuple[Clicks, Likelihood, int]) -> FloatArray:
    return covered(*run)


def ratio(one: FloatArray, other: FloatArray) -> str:
    """Ratio of means over common seeds, with a 95% bootstrap interval."""
    rng = np.random.default_rng(0)
    picks = rng.integers(one.size, size=(2000, one.size))
    low, high = np.quantile(one[picks].mean(axis=1) / other[picks].mean(axis=1), [0.025, 0.975])
    return f"{one.mean() / other.mean():.2f} [{low:.2f}, {high:.2f}]"


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Clicks: regret and intervals of the Bernoulli mixture.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    parser.add_argument("--problems", type=int, nargs="*", help="numbers of the problems; all by default")
    parser.add_argument("--coverage", action="store_true", help="how often intervals hold, in place of clicks lost")
    chosen = parser.parse_args(arguments)
    numbers = range(4 if chosen.coverage else len(PROBLEMS)) if chosen.problems is None else chosen.problems
    problems = [PROBLEMS[k] for k in numbers]
    print((coverage if chosen.coverage else table)(problems, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
