"""Distance to the floor: multiply-adds that a sweep cannot do without, against the fastest this core can do them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass
from alexp.simulation import SyntheticEnvironment
from alexp_experiments.bench._peak import peak_multiply_adds
from alexp_experiments.bench.problems import NOISE, SEED, LegendreProblem
from alexp_experiments.bench.records import Measurement, record, timed

RIDGE = 0.01
WIDTH = 2.0 * RIDGE  # of UCB() at a reward bound of one


@dataclass(frozen=True)
class FloorCase:
    """A problem and how often its sweep is repeated."""

    problem: LegendreProblem
    repeats: int


CASES = (
    FloorCase(LegendreProblem(10, 2), 200),
    FloorCase(LegendreProblem(10, 3), 100),
    FloorCase(LegendreProblem(30, 3), 15),
    FloorCase(LegendreProblem(60, 3), 7),
    FloorCase(LegendreProblem(10, 4), 60),
    FloorCase(LegendreProblem(10, 8), 30),
)
QUICK = (FloorCase(LegendreProblem(4, 2, 100), 3),)


def multiply_adds_per_pair(size: int, kind: str) -> float:
    """Least multiply-adds of one score: s for the mean, and s (s + 1)/2 for the quadratic form of UCB.

    >>> multiply_adds_per_pair(3, "ucb"), multiply_adds_per_pair(3, "greedy")
    (9.0, 3.0)
    """
    return float(size) if kind == "greedy" else size * (size + 3) / 2


def bench_floor(quick: bool = False) -> list[Measurement]:
    """Time of the sweep over the time its multiply-adds take at peak, both on one core, measured in turns.

    `ratio` is that quotient: 1 would be the floor itself. Loads, stores, comparisons and square roots are not counted.
    Every sweep follows an observation, as it does in a run.
    """
    out: list[Measurement] = []
    for case in QUICK if quick else CASES:
        history = EvenHistory(case.problem)
        history.observe(100)
        for kind in ("ucb", "greedy"):
            history.sweep(kind)()
            seconds, peaks = [], []
            for _ in range(case.repeats):
                history.observe(1)
                seconds.append(timed(history.sweep(kind))[1].thread)
                peaks.append(peak_multiply_adds(50))
            out.append(_record(case.problem, kind, float(np.median(seconds)), float(np.median(peaks))))
    return out


class EvenHistory:
    """Posteriors of all models, on one thread, that see rewards of even draws."""

    def __init__(self, problem: LegendreProblem) -> None:
        models = ModelClass.legendre(problem.degree, problem.size)
        domain = Interval(-1.0, 1.0, resolution=problem.resolution)
        self._environment = SyntheticEnvironment(models, domain, noise_std=NOISE, random_state=SEED)
        self._rng = np.random.default_rng(SEED)
        self._features = models.matrix(domain)
        self._table = np.ascontiguousarray(self._features[self._rng.permutation(domain.n_candidates)].T)
        self._table.flags.writeable = False
        self._bank = RidgeBank(models.columns_flat, models.offsets, RIDGE, threads=1)

    def observe(self, rounds: int) -> None:
        """Take in so many rewards."""
        for index in self._rng.integers(len(self._features), size=rounds).tolist():
            self._bank.update(self._features[index], self._environment.observe_index(index))

    def sweep(self, kind: str) -> Callable[[], object]:
        """The search for every model's best candidate, ready to be run."""
        if kind == "ucb":
            return partial(self._bank.argmax_ucb, self._table, WIDTH)
        return partial(self._bank.argmax_linear, self._table, self._bank.coefficients()[0])


def _record(problem: LegendreProblem, kind: str, seconds: float, peak: float) -> Measurement:
    pairs = problem.n_models * problem.resolution
    counted = multiply_adds_per_pair(problem.size, kind)
    return record(
        "floor", problem.label, f"{kind} sweep",
        median_ms=1e3 * seconds,
        ratio=seconds * peak / (pairs * counted),
        ns_per_pair=1e9 * seconds / pairs,
        multiply_adds_per_pair=counted,
        peak_per_ns=1e-9 * peak,
        reached_per_ns=1e-9 * pairs * counted / seconds,
    )  # fmt: skip
