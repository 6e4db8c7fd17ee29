"""What one ask + tell costs, where the time goes, and how that grows with M, N, t and d."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np

from alexp.problem.dictionaries import Legendre
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass
from alexp_experiments.bench.problems import LegendreProblem, Player
from alexp_experiments.bench.records import Lap, Measurement, median_ms, one_blas_thread, record, timed

PARTS = ("lasso", "posterior", "sweep")
ROUND = 100  # steps are timed from about this round on


@dataclass(frozen=True)
class StepCase:
    """A problem, how many steps of it are timed, and whether the rounds before were played or observed."""

    problem: LegendreProblem
    timed: int
    played: bool = True


CASES = (
    StepCase(LegendreProblem(10, 2), 100),
    StepCase(LegendreProblem(10, 3), 100),
    StepCase(LegendreProblem(30, 3), 30),
    StepCase(LegendreProblem(60, 3), 10, played=False),
    StepCase(LegendreProblem(182, 3), 5, played=False),
)
QUICK = (StepCase(LegendreProblem(4, 2, 100), 5), StepCase(LegendreProblem(4, 3, 100), 5, played=False))


class PartTimer:
    """Times the three parts of ALExp's step from outside, by standing in for the methods that do the work.

    "lasso" takes in a row and solves, "posterior" updates all ridge posteriors, "sweep" finds every agent's best
    candidate; the rest is drawing, weighting and bookkeeping.
    """

    def __init__(self, player: Player) -> None:
        self._laps: dict[str, list[Lap]] = defaultdict(list)
        pool, data = player.algorithm._pool, player.algorithm._data
        self._stand_in(pool, "suggest", "sweep")
        self._stand_in(pool, "update", "posterior")
        self._stand_in(data, "append", "lasso")
        self._stand_in(data, "solve", "lasso")

    def _stand_in(self, owner: object, method: str, part: str) -> None:
        original: Callable[..., object] = getattr(owner, method)

        def measured(*args: object, **kwargs: object) -> object:
            result, lap = timed(lambda: original(*args, **kwargs))
            self._laps[part].append(lap)
            return result

        setattr(owner, method, measured)

    def take(self) -> dict[str, Lap]:
        """Time of each part since the last call."""
        laps = {part: _total(self._laps[part]) for part in PARTS}
        self._laps.clear()
        return laps


def _total(laps: list[Lap]) -> Lap:
    return Lap(sum(x.wall for x in laps), sum(x.cpu for x in laps), sum(x.thread for x in laps))


def measure_steps(player: Player, steps: int) -> dict[str, list[Lap]]:
    """Laps of `steps` whole steps ("step") and of their parts ("lasso", "posterior", "sweep", "rest")."""
    timer = PartTimer(player)
    player.step()  # compiles, or loads what was compiled
    timer.take()
    laps: dict[str, list[Lap]] = defaultdict(list)
    for _ in range(steps):
        _, whole = timed(player.step)
        parts = timer.take()
        done = _total(list(parts.values()))
        rest = Lap(whole.wall - done.wall, whole.cpu - done.cpu, whole.thread - done.thread)
        for subject, lap in (("step", whole), *parts.items(), ("rest", rest)):
            laps[subject].append(lap)
    return laps


def bench_step(quick: bool = False) -> list[Measurement]:
    """Whole ask + tell around round 100 on one problem after the other; `share` is a part's share of the step."""
    out: list[Measurement] = []
    for case in QUICK if quick else CASES:
        player = Player.of(case.problem)
        warm_up = 10 if quick else ROUND - 2
        if case.played:
            for _ in range(warm_up):
                player.step()
        else:
            player.observe(warm_up)
        out += _records(case, measure_steps(player, case.timed))
    return out


def _records(case: StepCase, laps: dict[str, list[Lap]]) -> list[Measurement]:
    whole = sum(lap.wall for lap in laps["step"])
    rows = []
    for subject, own in laps.items():
        rows.append(
            record(
                "step", case.problem.label, subject,
                median_ms=median_ms([lap.wall for lap in own]),
                path_s=sum(lap.wall for lap in own),
                cpu_ms=median_ms([lap.cpu for lap in own]),
                fastest_ms=1e3 * min(lap.wall for lap in own),
                share=sum(lap.wall for lap in own) / whole,
                history="played" if case.played else "observed",
                steps=len(own),
                n_models=case.problem.n_models,
            )
        )  # fmt: skip
    return rows


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
