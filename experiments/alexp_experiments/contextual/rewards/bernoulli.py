"""Is the Gaussian mixture of unknown noise good enough for clicks? Its regret beside that of logistic regressions.

``python -m alexp_experiments.contextual.rewards.bernoulli`` prints the first table of docs/clicks.md. 40 seeds take
some CPU minutes a row.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import log, sqrt

import numpy as np

from alexp.algorithms.evidence_mixture import RATIOS
from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.selection import upper_confidence
from alexp.decision.weights import draw_index
from alexp.estimation.mixture.calibrating import trace_divisors
from alexp.estimation.mixture.mixture import StudentMixture
from alexp.problem.candidates import Choices
from alexp_experiments.contextual.rewards.logistic import LogisticMixture, sigmoid
from alexp_experiments.core.runner import spread

_HEAD = ("click rate", "arms", "features", "rounds", "rule")
NOISIER = (3.0, 30.0, 300.0)  # further ratios of noise to prior variance


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


class Gaussian:
    """The mixture that `EvidenceMixture` has where nothing is stated, with an intercept."""

    def __init__(self, groups: Sequence[IntArray], reference: FloatArray, ratios: Sequence[float]) -> None:
        columns, offsets = np.concatenate(groups), np.append(0, np.cumsum([len(group) for group in groups]))
        divisors = trace_divisors(reference.T, columns, offsets, centred=True)
        self._mixture = StudentMixture(reference.shape[1], columns, offsets, divisors, True, ratio_grid=ratios)

    def moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the reward at n rows."""
        return self._mixture.moments(self._mixture.weights(), _choices(rows))

    def draw(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Rewards at n rows under one draw from the posterior."""
        weights = self._mixture.weights()
        cell, model = divmod(draw_index(weights.ravel(), rng), weights.shape[1])
        return self._mixture.draw(cell, model, rng, _choices(rows))

    def update(self, row: FloatArray, y: float) -> None:
        """Take in one reward."""
        self._mixture.update(row, y)


def _choices(rows: FloatArray) -> Choices:
    return Choices(None, np.ascontiguousarray(rows.T))


Learner = Gaussian | LogisticMixture
Make = Callable[[list[IntArray], FloatArray], Learner]


def _gaussian(ratios: Sequence[float], groups: list[IntArray], reference: FloatArray) -> Learner:
    return Gaussian(groups, reference, ratios)


def _logistic(groups: list[IntArray], reference: FloatArray) -> Learner:
    return LogisticMixture(groups, reference.shape[1])


def _oracle(groups: list[IntArray], reference: FloatArray) -> Learner:
    return LogisticMixture(groups[:1], reference.shape[1])


ENTRANTS: dict[str, Make] = {
    "Gaussian": partial(_gaussian, RATIOS),
    "Gaussian, noisier ratios": partial(_gaussian, (*RATIOS, *NOISIER)),
    "logistic": _logistic,
    "logistic, true set": _oracle,
}
RULES = ("ucb", "matching", "thompson")  # matching: draws until two in a row agree, probabilities squared


def play(problem: Clicks, entrant: str, rule: str, seed: int) -> float:
    """Expected clicks lost in a run; candidates and chance are the same for everybody with this seed."""
    rng, own = np.random.default_rng([5, seed]), np.random.default_rng([6, seed])
    groups, width = problem.groups(rng), 3 * problem.size
    theta = np.zeros(width)
    theta[groups[0]] = rng.standard_normal(problem.size)
    theta /= np.linalg.norm(theta)
    level = log(problem.rate / (1.0 - problem.rate))
    learner = ENTRANTS[entrant](groups, rng.standard_normal((500, width)))
    rows, total = rng.standard_normal((problem.arms, width)), 0.0
    for t in range(1, problem.rounds + 1):
        if not problem.fixed:
            rows = rng.standard_normal((problem.arms, width))
        rates = sigmoid(level + rows @ theta)
        if rule == "ucb":
            mean, variance = learner.moments(rows)
            chosen = upper_confidence(mean, np.sqrt(variance), sqrt(2.0 + 0.25 * log(t)))
        else:
            chosen = _drawn(learner, rows, own)
            while rule == "matching" and chosen != _drawn(learner, rows, own):
                chosen = _drawn(learner, rows, own)
        learner.update(rows[chosen], float(rng.random() < rates[chosen]))
        total += float(rates.max() - rates[chosen])
    return total


def _drawn(learner: Learner, rows: FloatArray, rng: np.random.Generator) -> int:
    return int(np.argmax(learner.draw(rows, rng)))


def table(problems: Sequence[Clicks], rules: Sequence[str], seeds: int, workers: int | None = None) -> str:
    """One row per problem and rule: mean regret and its standard error, the median, and ratios to the logistic one."""
    lines = [
        f"Mean ± standard error (median) of {seeds} seeds; ratios of means with 95% bootstrap intervals over seeds.",
        "",
        "| " + " | ".join([*_HEAD, *ENTRANTS, "Gaussian / logistic", "noisier / logistic"]) + " |",
        "|" + "---|" * (len(_HEAD) + len(ENTRANTS) + 2),
    ]
    rows = [(problem, rule) for problem in problems for rule in rules]
    runs = [(problem, name, rule, seed) for problem, rule in rows for name in ENTRANTS for seed in range(seeds)]
    found: FloatArray = np.reshape(spread(_play, runs, workers), (len(rows), len(ENTRANTS), seeds))
    lines += [
        _line(problem, rule, dict(zip(ENTRANTS, values, strict=True)))
        for (problem, rule), values in zip(rows, found, strict=True)
    ]
    return "\n".join(lines)


def _play(run: tuple[Clicks, str, str, int]) -> float:
    return play(*run)


def _line(problem: Clicks, rule: str, found: dict[str, FloatArray]) -> str:
    cells = [
        f"{values.mean():.1f} ± {values.std(ddof=1) / sqrt(values.size):.1f} ({np.median(values):.1f})"
        for values in found.values()
    ]
    plain, noisier, logistic, _ = found.values()
    ratios = [_ratio(one, logistic) for one in (plain, noisier)]
    where = f"{problem.arms}{', fixed' if problem.fixed else ''}"
    head = (f"{problem.rate:g}", where, f"{problem.size} of {3 * problem.size}", f"{problem.rounds}", rule)
    return "| " + " | ".join([*head, *cells, *ratios]) + " |"


def _ratio(one: FloatArray, other: FloatArray) -> str:
    """Ratio of means over common seeds, with a 95% bootstrap interval."""
    rng = np.random.default_rng(0)
    picks = rng.integers(one.size, size=(2000, one.size))
    low, high = np.quantile(one[picks].mean(axis=1) / other[picks].mean(axis=1), [0.025, 0.975])
    return f"{one.mean() / other.mean():.2f} ({low:.2f} to {high:.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Regret of the Gaussian mixture on clicks, beside logistic models.")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    parser.add_argument("--rules", nargs="*", choices=RULES, default=["ucb", "thompson"])
    parser.add_argument("--problems", type=int, nargs="*", help="numbers of the problems; all by default")
    chosen = parser.parse_args(arguments)
    numbers = range(len(PROBLEMS)) if chosen.problems is None else chosen.problems
    print(table([PROBLEMS[k] for k in numbers], chosen.rules, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
