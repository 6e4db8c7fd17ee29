"""Distance to the floor: multiply-adds that a sweep cannot do without, against the fastest this core can do them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alexp.bench._peak import peak_multiply_adds
from alexp.bench.problems import NOISE, SEED, LegendreProblem
from alexp.bench.records import Record, record, timed
from alexp.estimation.ridge import RidgeBank
from alexp.experiments.environments import SyntheticEnvironment
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass

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


def bench_floor(quick: bool = False) -> list[Record]:
    """Time of the sweep over the time its multiply-adds take at peak, both on one core, measured in turns.

    `ratio` is that quotient: 1 would be the floor itself. Loads, stores, comparisons and square roots are not counted.
    """
    out: list[Record] = []
    for case in QUICK if quick else CASES:
        bank, table = _observed(case.problem)
        coefficients, _ = bank.coefficients()
        sweeps: dict[str, Callable[[], Any]] = {
            "ucb": partial(bank.argmax_ucb, table, WIDTH),
            "greedy": partial(bank.argmax_linear, table, coefficients),
        }
        for kind, sweep in sweeps.items():
            sweep()
            seconds, peaks = [], []
            for _ in range(case.repeats):
                seconds.append(timed(sweep)[1].thread)
                peaks.append(peak_multiply_adds(50))
            out.append(_record(case.problem, kind, float(np.median(seconds)), float(np.median(peaks))))
    return out


def _record(problem: LegendreProblem, kind: str, seconds: float, peak: float) -> Record:
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


def _observed(problem: LegendreProblem) -> tuple[RidgeBank, NDArray[np.float64]]:
    """Posteriors of all models after 100 even draws, on one thread, and the table they are swept over."""
    models = ModelClass.legendre(problem.degree, problem.size)
    domain = Interval(-1.0, 1.0, resolution=problem.resolution)
    environment = SyntheticEnvironment(models, domain, noise_std=NOISE, random_state=SEED)
    rng = np.random.default_rng(SEED)
    features = models.matrix(domain)
    bank = RidgeBank(models.columns_flat, models.offsets, RIDGE, threads=1)
    for index in rng.integers(domain.n_candidates, size=100).tolist():
        bank.update(features[index], environment.observe_index(index))
    return bank, np.ascontiguousarray(features[rng.permutation(domain.n_candidates)].T)
