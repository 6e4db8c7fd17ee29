"""Clicks: the mixture of `EvidenceMixture(likelihood="bernoulli")` beside the usual Gaussian one.

``python -m alexp_experiments.contextual.rewards.bernoulli`` prints the first table of docs/clicks.md, clicks lost;
``--coverage`` the second, how often true probabilities lie in credible intervals.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from alexp.algorithms.evidence_mixture import CONTEXTUAL, RATIOS
from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.mixture.bernoulli import SCALES, BernoulliMixture, sigmoid
from alexp.estimation.mixture.calibrating import trace_divisors
from alexp.estimation.mixture.mixture import Mixture, StudentMixture
from alexp.problem.candidates import Choices
from alexp.rules import UCB, Matching
from alexp_experiments.core.runner import spread

_HEAD = ("click rate", "arms", "features", "rounds")


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


Make = Callable[[list[IntArray], FloatArray], Mixture]


def _gaussian(groups: list[IntArray], reference: FloatArray) -> Mixture:
    return StudentMixture(*_problem(groups, reference), ratio_grid=RATIOS)


def _bernoulli(groups: list[IntArray], reference: FloatArray) -> Mixture:
    return BernoulliMixture(*_problem(groups, reference), free=None, scale_grid=SCALES)


def _problem(groups: list[IntArray], reference: FloatArray) -> tuple[int, IntArray, IntArray, FloatArray, bool]:
    columns, offsets = np.concatenate(groups), np.append(0, np.cumsum([len(group) for group in groups]))
    return reference.shape[1], columns, offsets, trace_divisors(reference.T, columns, offsets, centred=True), True


ENTRANTS: dict[str, Make] = {"Gaussian": _gaussian, "Bernoulli": _bernoulli}
RULES = ("ucb", "default")
LEVELS = (0.95, 0.8, 0.5)
TESTED = 200  # rows at which intervals are looked at


def _choices(rows: FloatArray) -> Choices:
    return Choices(None, np.ascontiguousarray(rows.T))


class ClicksRun:
    """A problem and a learner; candidates and chance are the same for everybody with this seed."""

    def __init__(self, problem: Clicks, entrant: str, seed: int) -> None:
        self.problem, self._rng, self._own = problem, np.random.default_rng([5, seed]), np.random.default_rng([6, seed])
        groups, width = problem.groups(self._rng), 3 * problem.size
        self._theta = np.zeros(width)
        self._theta[groups[0]] = self._rng.standard_normal(problem.size)
        self._theta /= np.linalg.norm(self._theta)
        self._level = log(problem.rate / (1.0 - problem.rate))
        self.mixture = ENTRANTS[entrant](groups, self._rng.standard_normal((500, width)))
        self._rows = self.rows(problem.arms)

    def rows(self, n: int) -> FloatArray:
        """New candidates, (n, P)."""
        return np.asarray(self._rng.standard_normal((n, self._theta.size)))

    def rates(self, rows: FloatArray) -> FloatArray:
        """Probabilities of a click, (n,)."""
        return sigmoid(self._level + rows @ self._theta)

    def step(self, rule: str, t: int) -> float:
        """Round t; expected clicks lost."""
        if not self.problem.fixed:
            self._rows = self.rows(self.problem.arms)
        rates, chosen = self.rates(self._rows), self._chosen(rule, t)
        self.mixture.update(self._rows[chosen], float(self._rng.random() < rates[chosen]))
        return float(rates.max() - rates[chosen])

    def _chosen(self, rule: str, t: int) -> int:
        weights, choices = self.mixture.weights(), _choices(self._rows)
        if rule == "even":
            return int(self._own.integers(self.problem.arms))
        assert isinstance(CONTEXTUAL.rule, Matching)
        if rule == "ucb" or self._own.random() > CONTEXTUAL.rule.share:
            mean, variance = self.mixture.moments(weights, choices)
            return int(np.argmax(mean + UCB().width(t) * np.sqrt(variance)))
        return int(self._own.choice(len(choices), p=self.mixture.chances(weights, choices, self._own)))


def play(problem: Clicks, entrant: str, rule: str, seed: int) -> float:
    """Expected clicks lost in a run."""
    run = ClicksRun(problem, entrant, seed)
    return sum(run.step(rule, t) for t in range(1, problem.rounds + 1))


def covered(problem: Clicks, entrant: str, seed: int) -> FloatArray:
    """Share of new rows whose probability lies in the interval of each of `LEVELS`, after even play."""
    run = ClicksRun(problem, entrant, seed)
    for t in range(1, problem.rounds + 1):
        run.step("even", t)
    rows = run.rows(TESTED)
    rates, weights = run.rates(rows), run.mixture.weights()
    ends = [run.mixture.interval(weights, _choices(rows), level) for level in LEVELS]
    return np.array([np.mean((low <= rates) & (rates <= high)) for low, high in ends])


def table(problems: Sequence[Clicks], rules: Sequence[str], seeds: int, workers: int | None = None) -> str:
    """One row per problem and rule: mean regret, and its ratio to that of the Gaussian mixture."""
    lines = [
        f"Clicks lost, means of {seeds} seeds; ratio of means with 95% bootstrap interval.",
        "",
        "| " + " | ".join([*_HEAD, "rule", *ENTRANTS, "Bernoulli / Gaussian"]) + " |",
        "|" + "---|" * (len(_HEAD) + len(ENTRANTS) + 2),
    ]
    rows = [(problem, rule) for problem in problems for rule in rules]
    runs = [(problem, name, rule, seed) for problem, rule in rows for name in ENTRANTS for seed in range(seeds)]
    found: FloatArray = np.reshape(spread(_play, runs, workers), (len(rows), len(ENTRANTS), seeds))
    for (problem, rule), values in zip(rows, found, strict=True):
        cells = [*_where(problem), rule, *(f"{one.mean():.1f}" for one in values), _ratio(values[1], values[0])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _play(run: tuple[Clicks, str, str, int]) -> float:
    return play(*run)


def _where(problem: Clicks) -> tuple[str, ...]:
    where = f"{problem.arms}{', fixed' if problem.fixed else ''}"
    return f"{problem.rate:g}", where, f"{problem.size} of {3 * problem.size}", f"{problem.rounds}"


def coverage(problems: Sequence[Clicks], seeds: int, workers: int | None = None) -> str:
    """One row per problem: how often intervals held, with standard errors over seeds."""
    levels = [f"{100 * level:g}%" for level in LEVELS]
    lines = [
        f"Shares of true probabilities in credible intervals after even play, {seeds} seeds, ± standard error.",
        "",
        "| click rate | rounds | " + " | ".join(f"{level}, {name}" for name in ENTRANTS for level in levels) + " |",
        "|" + "---|" * (2 + len(ENTRANTS) * len(LEVELS)),
    ]
    runs = [(problem, name, seed) for problem in problems for name in ENTRANTS for seed in range(seeds)]
    found = np.reshape(spread(_covered, runs, workers), (len(problems), len(ENTRANTS), seeds, len(LEVELS)))
    for problem, values in zip(problems, found, strict=True):
        means, errors = values.mean(axis=1).ravel(), (values.std(axis=1) / sqrt(seeds)).ravel()
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True)]
        lines.append("| " + " | ".join([f"{problem.rate:g}", f"{problem.rounds}", *cells]) + " |")
    return "\n".join(lines)


def _covered(run: tuple[Clicks, str, int]) -> FloatArray:
    return covered(*run)


def _ratio(one: FloatArray, other: FloatArray) -> str:
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
    parser.add_argument("--rules", nargs="*", choices=RULES, default=list(RULES))
    parser.add_argument("--problems", type=int, nargs="*", help="numbers of the problems; all by default")
    parser.add_argument("--coverage", action="store_true", help="how often intervals hold, in place of clicks lost")
    chosen = parser.parse_args(arguments)
    numbers = range(4 if chosen.coverage else len(PROBLEMS)) if chosen.problems is None else chosen.problems
    problems = [PROBLEMS[k] for k in numbers]
    if chosen.coverage:
        print(coverage(problems, chosen.seeds, chosen.workers))
    else:
        print(table(problems, chosen.rules, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
