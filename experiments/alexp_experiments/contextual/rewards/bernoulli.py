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
from alexp.decision.weights import draw_index
from alexp.estimation.mixture.calibrating import trace_divisors
from alexp.estimation.mixture.mixture import StudentMixture
from alexp.problem.candidates import Choices
from alexp.rules import upper_confidence
from alexp_experiments.core.runner import spread

SCALES = (0.3, 1.0, 3.0)
_CONSTANT = 5.0  # prior deviation of the constant
_NEWTON = 12


class LogisticMixture:
    """Feature sets x prior scales, C components of at most D coefficients, the constant first."""

    def __init__(self, groups: Sequence[IntArray], n_columns: int, scales: Sequence[float] = SCALES) -> None:
        width = 1 + max(len(group) for group in groups)
        self._places = np.full((len(groups), width), n_columns + 1)  # a column of zeros
        for place, group in zip(self._places, groups, strict=True):
            place[0], place[1 : 1 + len(group)] = n_columns, group
        self._places = np.repeat(self._places, len(scales), axis=0)
        spread = np.tile(np.asarray(scales), len(groups))[:, None] * np.ones(width)
        spread[:, 0] = _CONSTANT
        self.means: FloatArray = np.zeros((len(self._places), width))
        self.covariances: FloatArray = spread[:, :, None] ** 2 * np.eye(width)
        self.log_evidence = np.zeros(len(spread))

    def update(self, row: FloatArray, y: float) -> None:
        """Take in one reward, 0 or 1, at a dictionary row (P,)."""
        x = self._extended(row[None])[0]
        direction = np.einsum("cde,ce->cd", self.covariances, x)
        v, start = np.einsum("cd,cd->c", direction, x), np.einsum("cd,cd->c", self.means, x)
        eta = _new_logit(start, v, y)
        p = sigmoid(eta)
        w = p * (1.0 - p)
        likelihood = -np.logaddexp(0.0, -eta if y > 0.5 else eta)
        self.log_evidence += likelihood - 0.5 * (y - p) ** 2 * v - 0.5 * np.log1p(w * v)
        self.means += (y - p)[:, None] * direction
        self.covariances -= (w / (1.0 + w * v))[:, None, None] * direction[:, :, None] * direction[:, None, :]

    def weights(self) -> FloatArray:
        """Posterior probability of every component, shape (C,)."""
        weights = np.exp(self.log_evidence - self.log_evidence.max())
        return np.asarray(weights / weights.sum())

    def moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the probability of a reward at n rows (n, P), shapes (n,): within and between."""
        x, weights = np.swapaxes(self._extended(rows), 0, 1), self.weights()  # (C, n, D)
        eta: FloatArray = np.einsum("cnd,cd->cn", x, self.means)
        v: FloatArray = np.einsum("cnd,cnd->cn", x @ self.covariances, x)
        p = sigmoid(eta / np.sqrt(1.0 + np.pi * v / 8.0))
        mean: FloatArray = weights @ p
        slope = sigmoid(eta) * (1.0 - sigmoid(eta))
        return mean, weights @ (slope**2 * v + (p - mean) ** 2)

    def draw(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Logits at n rows under one component and one draw of its coefficients, shape (n,)."""
        c = int(rng.choice(len(self.log_evidence), p=self.weights()))
        root = np.linalg.cholesky(self.covariances[c] + 1e-12 * np.eye(self.means.shape[1]))
        theta = self.means[c] + root @ rng.standard_normal(self.means.shape[1])
        return np.asarray(self._extended(rows)[:, c] @ theta)

    def _extended(self, rows: FloatArray) -> FloatArray:
        """The features of every component at n rows, (n, C, D)."""
        padded = np.hstack([rows, np.ones((len(rows), 1)), np.zeros((len(rows), 1))])
        return np.asarray(padded[:, self._places])


def _new_logit(start: FloatArray, v: FloatArray, y: float) -> FloatArray:
    """Solve eta = start + v (y - sigmoid(eta)) by Newton steps, halving the bracket where one leaves it."""
    far = start + v * (y - sigmoid(start))
    low, high = np.minimum(start, far), np.maximum(start, far)
    eta = start
    for _ in range(_NEWTON):
        p = sigmoid(eta)
        gap = eta - start - v * (y - p)
        low, high = np.where(gap < 0.0, eta, low), np.where(gap > 0.0, eta, high)
        newton = eta - gap / (1.0 + v * p * (1.0 - p))
        eta = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
    return eta


def sigmoid(eta: FloatArray) -> FloatArray:
    """1 / (1 + exp(-eta)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * eta)))


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
    """One row per problem and rule: mean regret, and ratios to the logistic mixture."""
    lines = [
        f"Clicks lost, means of {seeds} seeds; ratios of means with 95% bootstrap intervals.",
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
    cells = [f"{values.mean():.1f}" for values in found.values()]
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
    return f"{one.mean() / other.mean():.2f} [{low:.2f}, {high:.2f}]"


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
