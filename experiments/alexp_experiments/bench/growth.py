"""How the cost of a step grows with M, N, t and d: fitted exponents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import comb

import numpy as np

from alexp.problem.dictionaries import Legendre
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass
from alexp_experiments.bench.problems import LegendreProblem, Player
from alexp_experiments.bench.records import Measurement, median_ms, one_blas_thread, record
from alexp_experiments.bench.step import measure_steps

SUBJECTS = ("step", "lasso", "posterior", "sweep")
Point = tuple[int, Callable[[], Player], int]  # value on the axis, how to build its run, rounds to observe first


def exponent(values: list[float], costs: list[float]) -> float:
    """Slope of log cost against log value by least squares.

    >>> round(exponent([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(values), np.log(costs), 1)[0])


def _axes(quick: bool) -> Iterator[tuple[str, str, list[Point]]]:
    """Name of each axis, what is held fixed, and its points."""
    degrees = (4, 5) if quick else (10, 15, 20, 30, 40)
    yield (
        "M",
        "s=3, N=2000, t=100",
        [(comb(p + 1, 3), partial(Player.of, LegendreProblem(p, 3)), 100) for p in degrees],
    )
    candidates = (50, 100) if quick else (500, 1_000, 2_000, 4_000, 8_000)
    yield (
        "N",
        "s=3, M=1,330, t=100",
        [(n, partial(Player.of, LegendreProblem(20, 3, n)), 100) for n in candidates],
    )
    rounds = (10, 20) if quick else (100, 1_000, 10_000, 50_000)
    yield "t", "s=3, M=165, N=2000", [(t, partial(Player.of, LegendreProblem(10, 3)), t) for t in rounds]
    sizes = (2, 3) if quick else (2, 4, 8, 16, 32)
    m = 20 if quick else 200
    yield "d", f"M={m}, P=41, N=2000, t=100", [(d, partial(_sized, d, m), 100) for d in sizes]


def _sized(dimension: int, n_models: int) -> Player:
    """A run on `n_models` random subsets of one size of one dictionary, whatever the size."""
    dictionary = Legendre(40)
    rng = np.random.default_rng(dimension)
    groups = [rng.permutation(dictionary.n_columns)[:dimension].tolist() for _ in range(n_models)]
    return Player(ModelClass(dictionary, groups), Interval(-1.0, 1.0, resolution=2000))


def bench_growth(quick: bool = False) -> list[Measurement]:
    """CPU time of a step and its parts along each axis, and the exponent of the best power law through it."""
    with one_blas_thread():
        return [row for axis, fixed, points in _axes(quick) for row in _along(axis, fixed, points, 3 if quick else 9)]


def _along(axis: str, fixed: str, points: list[Point], steps: int) -> list[Measurement]:
    costs: dict[str, list[float]] = {subject: [] for subject in SUBJECTS}
    rows = []
    for value, build, rounds in points:
        player = build()
        player.observe(rounds)
        laps = measure_steps(player, steps)
        for subject in SUBJECTS:
            cost = median_ms([lap.cpu for lap in laps[subject]])
            costs[subject].append(cost)
            point = f"{axis}={value:,}"
            rows.append(record("growth", point, subject, median_ms=cost, axis=axis, value=value, fixed=fixed))
    values = [float(value) for value, _, _ in points]
    for subject in SUBJECTS:
        last = exponent(values[-2:], costs[subject][-2:])
        rows.append(
            record(
                "growth", f"exponent of {axis}", subject, axis=axis, fixed=fixed,
                exponent=exponent(values, costs[subject]), last_exponent=last,
            )
        )  # fmt: skip
    return rows
