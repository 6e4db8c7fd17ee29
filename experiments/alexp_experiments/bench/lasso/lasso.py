"""The group Lasso path against public solvers at equal accuracy, step by step and side by side.

A row arrives, lambda_t changes, the whole problem is solved again. At a step, every solver starts from the certified
solution of the step before. A rival runs with the loosest tolerance of its own for which a relative duality gap of 1e-6
is certified, by itself or by the residual of its answer, and only that run counts, not the search for the tolerance. An
answer may be that good before it is certified; the time until it is within 1e-6 of the optimum (a dual bound that is
solved to 1e-9) is kept as well. Slow rivals are measured on some steps of the path, those that get nowhere on very few;
their ratio compares the same steps.

Rivals return any minimiser, and so does our solver in the race; what the canonical one takes is measured beside it.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.schedules import Schedules
from alexp.estimation.lasso.group_lasso import GroupLasso, GroupLassoPath, LassoFit
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass
from alexp.simulation import SyntheticEnvironment
from alexp_experiments.bench.lasso.rivals import Rival, installed
from alexp_experiments.bench.problems import NOISE, SEED, LegendreProblem, Player
from alexp_experiments.bench.records import Measurement, one_blas_thread, record, timed


@dataclass(frozen=True, eq=False)
class LassoInstance:
    """A path of n problems (1/t) ||y - Phi theta||^2 + 2 lambda_t sum_j ||theta_j||, t = 1..n.

    Attributes
    ----------
    rows, y : (n, P) dictionary rows and (n,) rewards.
    columns : (M d,) the groups one after the other, all of size `size`.
    lambdas : (n,) the paper's lambda_t.
    subset_size : the size when the groups are all subsets of the columns, else None.
    """

    name: str
    rows: FloatArray
    y: FloatArray
    columns: IntArray
    size: int
    lambdas: FloatArray
    subset_size: int | None

    @property
    def n_steps(self) -> int:
        """n."""
        return int(self.y.size)

    def shortened(self, n: int) -> LassoInstance:
        """The first n steps."""
        return replace(self, rows=self.rows[:n], y=self.y[:n], lambdas=self.lambdas[:n])

    def expanded(self, t: int) -> FloatArray:
        """Phi of the first t rows with every group's columns side by side, shape (t, M d), column-major."""
        return np.asfortranarray(self.rows[:t, self.columns])

    def values(self, theta: FloatArray, t: int) -> tuple[float, float]:
        """Primal value of theta (M d,) on the first t rows and dual value of its rescaled residual, times t/2.

        P = ||r||^2/2 + mu sum_j ||theta_j|| and D = s y'r - s^2 ||r||^2/2, mu = lambda_t t, with the best s for which
        s r is dual feasible, |s| max_j ||Phi_j'r|| <= mu. Computed from the data alone.
        """
        mu, y = self.lambdas[t - 1] * t, self.y[:t]
        beta = np.bincount(self.columns, theta, minlength=self.rows.shape[1])
        residual = y - self.rows[:t] @ beta
        slopes = (self.rows[:t].T @ residual)[self.columns].reshape(-1, self.size)
        steepest = float(np.sqrt((slopes**2).sum(axis=1).max()))
        squares, against = float(residual @ residual), float(y @ residual)
        norms = np.sqrt((theta.reshape(-1, self.size) ** 2).sum(axis=1))
        primal = 0.5 * squares + mu * float(norms.sum())
        if squares == 0.0:
            return primal, 0.0
        limit = mu / steepest if steepest > 0.0 else np.inf
        scale = float(np.clip(against / squares, -limit, limit))
        return primal, scale * against - 0.5 * scale * scale * squares


def legendre_instance(degree: int, size: int, n: int, *, played: bool = False) -> LassoInstance:
    """Legendre subsets at lambda = 0.009 x theory, sigma = 0.01; rows drawn evenly, or those that ALExp plays."""
    problem = LegendreProblem(degree, size)
    models, domain = ModelClass.legendre(degree, size), Interval(-1.0, 1.0, resolution=problem.resolution)
    environment = SyntheticEnvironment(models, domain, noise_std=NOISE, random_state=SEED)
    if played:
        player = Player(models, domain)
        for _ in range(n):
            player.step()
        index = np.array(player.algorithm.log.index)
    else:
        index = np.random.default_rng(SEED).integers(domain.n_candidates, size=n)
    y = np.array([environment.observe_index(int(i)) for i in index])
    how = ", rows as ALExp plays them" if played else ""
    return LassoInstance(
        name=f"Legendre s={size}, p={degree} (M={models.n_models:,}), n={n}{how}",
        rows=models.matrix(domain)[index],
        y=y,
        columns=models.columns_flat,
        size=size,
        lambdas=_lambdas(Schedules(), n, NOISE, models.n_models, size),
        subset_size=size,
    )


def independent_instance(n_maps: int, n: int, *, strong: bool = False) -> LassoInstance:
    """Unrelated Gaussian maps of five features; `strong` is lambda = 1.0 x theory at sigma = 0.1."""
    size, noise = 5, 0.1 if strong else NOISE
    rng = np.random.default_rng(SEED)
    rows = rng.standard_normal((n, n_maps * size))
    theta = rng.standard_normal(size)
    first = size * int(rng.integers(n_maps))
    y = rows[:, first : first + size] @ (theta / np.linalg.norm(theta)) + noise * rng.standard_normal(n)
    return LassoInstance(
        name=f"independent d={size}, M={n_maps:,}, n={n}" + (", strong lambda" if strong else ""),
        rows=rows,
        y=y,
        columns=np.arange(n_maps * size),
        size=size,
        lambdas=_lambdas(Schedules(lam=1.0) if strong else Schedules(), n, noise, n_maps, size),
        subset_size=None,
    )


def _lambdas(schedules: Schedules, n: int, noise: float, n_models: int, dimension: int) -> FloatArray:
    return np.array([schedules.lambda_t(t, noise, n_models, dimension) for t in range(1, n + 1)])


INSTANCES: tuple[Callable[[], LassoInstance], ...] = (
    lambda: legendre_instance(10, 2, 100),
    lambda: legendre_instance(10, 3, 100),
    lambda: legendre_instance(10, 3, 100, played=True),
    lambda: legendre_instance(10, 8, 100),
    lambda: legendre_instance(30, 3, 100),
    lambda: legendre_instance(60, 3, 100),
    lambda: legendre_instance(10, 2, 1000),
    lambda: independent_instance(100, 200),
    lambda: independent_instance(1_000, 200),
    lambda: independent_instance(10_000, 200),
    lambda: independent_instance(100, 200, strong=True),
    lambda: independent_instance(1_000, 200, strong=True),
    lambda: independent_instance(10_000, 200, strong=True),
)
QUICK: tuple[Callable[[], LassoInstance], ...] = (
    lambda: legendre_instance(4, 2, 6),
    lambda: independent_instance(6, 6, strong=True),
)


ACCURACY = 1e-6
_TIGHTER = 4.0  # tolerances are tried in steps of this factor
_MOST_TRIES = 18
_PATIENCE_S = 4.0  # a rival that has searched a step for so long has not reached it
_FEWEST_STEPS = 3  # on which a rival is measured, however slow
_OVERDRAWN = 10.0  # a path stops a rival at so many times its budget
_SHORT_PATH_S = 1.0  # a path of at most this length is run again without rivals
_SIDE_BY_SIDE = 5  # and so often in turns with the canonical minimisers


@dataclass(frozen=True)
class Heat:
    """One rival on one step: its seconds, the relative gap it certified, and what finding that out took."""

    t: int
    seconds: float
    gap: float
    told_s: float  # of the first run whose answer was good enough, certified or not
    spent_s: float  # including the search for the tolerance

    @property
    def reached(self) -> bool:
        """Whether the rival got to the accuracy that is asked for."""
        return self.gap <= ACCURACY


class Race:
    """All steps of one path with this package's solver, and rivals beside it on some of them."""

    def __init__(self, instance: LassoInstance, canonical: bool = False) -> None:
        self.instance, self.canonical = instance, canonical
        self._offsets = np.arange(0, instance.columns.size + 1, instance.size)

    def run(
        self, rivals: Mapping[str, Rival], steps: Mapping[str, Collection[int]], most_s: float = np.inf
    ) -> tuple[list[float], list[float], dict[str, list[Heat]]]:
        """Seconds and certified gap of every step, and the heats of each rival on its steps.

        A rival that has taken more than `most_s` seconds per share does not run again.
        """
        instance, path = self.instance, self._bind()
        fit: LassoFit | None = None
        start = np.zeros(instance.columns.size)
        seconds, gaps = [], []
        heats: dict[str, list[Heat]] = defaultdict(list)
        for t in range(1, instance.n_steps + 1):
            solved, lap = timed(partial(self._advance, path, t, fit))
            fit, theta = solved, self._coefficients(path, solved)
            primal, dual = instance.values(theta, t)
            seconds.append(lap.thread)
            gaps.append(_relative(primal, dual))
            racing = [r for name, r in rivals.items() if t in steps[name] and _spent(heats[name]) <= most_s * r.share]
            if racing:
                bound = self._dual_bound(path, t, solved)
                expanded = instance.expanded(t)
                for rival in racing:
                    heats[rival.name].append(self._heat(rival, expanded, t, start, bound))
            start = theta
        return seconds, gaps, heats

    def _advance(self, path: GroupLassoPath, t: int, fit: LassoFit | None) -> LassoFit:
        path.append(self.instance.rows[t - 1], self.instance.y[t - 1])
        return path.solve(self.instance.lambdas[t - 1], fit)

    def _dual_bound(self, path: GroupLassoPath, t: int, fit: LassoFit) -> float:
        tight = copy.copy(path)
        tight.spec = GroupLasso(tol=1e-9, canonical=False)
        exact = tight.solve(self.instance.lambdas[t - 1], fit)
        return self.instance.values(self._coefficients(path, exact), t)[1]

    def _heat(self, rival: Rival, expanded: FloatArray, t: int, start: FloatArray, bound: float) -> Heat:
        instance = self.instance
        y, lam = instance.y[:t], float(instance.lambdas[t - 1])
        heat = Heat(t, np.inf, np.inf, np.inf, 0.0)
        for tries in range(_MOST_TRIES):
            tol = rival.loosest(bound, y, lam) / _TIGHTER**tries
            (theta, own_gap), lap = rival.run(expanded, y, lam, instance.size, start, tol)
            primal, dual = instance.values(theta, t)
            told = lap.thread if np.isinf(heat.told_s) and _relative(primal, bound) <= ACCURACY else heat.told_s
            gap = _relative(primal, max(dual, primal - t * own_gap))
            heat = Heat(t, lap.thread, gap, told, heat.spent_s + lap.thread)
            if heat.reached or heat.spent_s > _PATIENCE_S:
                break
        return heat

    def _bind(self) -> GroupLassoPath:
        instance = self.instance
        return GroupLasso(tol=ACCURACY, canonical=self.canonical).bind_groups(
            instance.rows.shape[1], instance.columns, self._offsets, None, False, instance.subset_size
        )

    def _coefficients(self, path: GroupLassoPath, fit: LassoFit) -> FloatArray:
        theta = np.zeros(self.instance.columns.size)
        for j, block in path.group_coefficients(fit).items():
            theta[self._offsets[j] : self._offsets[j + 1]] = block
        return theta


def _relative(primal: float, dual: float) -> float:
    return (primal - dual) / primal if primal > 0.0 else 0.0


def bench_lasso(quick: bool = False, budget_s: float = 3.0, python: Path | None = None) -> list[Measurement]:
    """Every instance with every rival that is installed; about `budget_s` seconds per instance and share.

    `python` is the interpreter of an environment with more rivals, see `rivals_python`.
    """
    found, missing = installed(python)
    rivals = {rival.name: rival for rival in found}
    out: list[Measurement] = []
    with ExitStack() as ending, one_blas_thread(), warnings.catch_warnings():
        for rival in found:
            ending.callback(rival.close)
        warnings.simplefilter("ignore")  # rivals warn when they stop early; the gap says so, too
        for rival in found:
            _warm_up(rival)
        for build in QUICK if quick else INSTANCES:
            instance = build()
            out += _instance_records(instance, rivals, budget_s)
            out += [record("lasso", instance.name, name, error=error) for name, error in missing.items()]
    return out


def _warm_up(rival: Rival) -> None:
    """Let a rival compile what it compiles, outside the measurements."""
    instance = independent_instance(30, 20)
    rival.run(instance.expanded(20), instance.y, 1e-3, instance.size, np.zeros(instance.columns.size), 1e-12)


def _instance_records(instance: LassoInstance, rivals: Mapping[str, Rival], budget_s: float) -> list[Measurement]:
    n, race = instance.n_steps, Race(instance)
    seconds, _, pilot = race.run(rivals, dict.fromkeys(rivals, _spread(n, _FEWEST_STEPS)))
    paths = [] if sum(seconds) > _SHORT_PATH_S else [race.run({}, {})[0]]
    steps = {name: _sample(n, heats, budget_s * rivals[name].share) for name, heats in pilot.items()}
    beside, gaps, heats = race.run(rivals, steps, most_s=_OVERDRAWN * budget_s)
    # Rivals leave the caches to us as they please, which matters for steps of some microseconds: a path is measured
    # without them, before and after, and with them only if it is long.
    paths.append(race.run({}, {})[0] if paths else beside)
    own = np.median(paths, axis=0)
    return [
        record(
            "lasso", instance.name, "alexp",
            median_ms=1e3 * float(np.median(own)), path_s=float(own.sum()), max_gap=max(gaps), ratio=1.0,
            reached=max(gaps) <= ACCURACY, steps=n, of_steps=n, slowest_ms=1e3 * float(own.max()),
            canonical_ratio=_canonical_ratio(instance, 1 if sum(seconds) > _SHORT_PATH_S else _SIDE_BY_SIDE),
        ),
        *(_rival_record(instance, rival, heats[name] or pilot[name], own) for name, rival in rivals.items()),
    ]  # fmt: skip


def _canonical_ratio(instance: LassoInstance, times: int) -> float:
    """Time of a path to the canonical minimisers over that to any, run in turns."""
    races = [Race(instance), Race(instance, canonical=True)]
    seconds = np.median([[sum(race.run({}, {})[0]) for race in races] for _ in range(times)], axis=0)
    return float(seconds[1] / seconds[0])


def _spent(heats: Collection[Heat]) -> float:
    return sum(heat.spent_s for heat in heats)


def _sample(n: int, pilot: Collection[Heat], budget_s: float) -> set[int]:
    """Steps that fit the budget at the slowest pace so far; none for a rival that got nowhere yet."""
    if not any(heat.reached for heat in pilot):
        return set()
    affordable = int(budget_s / max(heat.spent_s for heat in pilot))
    return _spread(n, max(affordable, _FEWEST_STEPS))


def _spread(n: int, parts: int) -> set[int]:
    """The middles of so many equal parts of a path of n steps."""
    parts = min(parts, n)
    return {1 + (2 * k + 1) * n // (2 * parts) for k in range(parts)}


def _rival_record(instance: LassoInstance, rival: Rival, heats: list[Heat], own: FloatArray) -> Measurement:
    """`path_s` is the mean over the measured steps times the length of the path; `own` (n,) are our seconds."""
    times, ours = np.array([heat.seconds for heat in heats]), own[[heat.t - 1 for heat in heats]]
    told = np.array([min(heat.told_s, heat.seconds) for heat in heats])
    return record(
        "lasso", instance.name, rival.name,
        median_ms=1e3 * float(np.median(times)),
        path_s=float(times.mean()) * instance.n_steps,
        max_gap=max(heat.gap for heat in heats),
        ratio=float(times.sum() / ours.sum()),
        median_ratio=float(np.median(times / ours)),
        known_ratio=float(told.sum() / ours.sum()),
        good_steps=sum(np.isfinite(heat.told_s) for heat in heats),
        reached=all(heat.reached for heat in heats),
        reached_steps=sum(heat.reached for heat in heats),
        steps=len(heats),
        of_steps=instance.n_steps,
        version=rival.version,
    )  # fmt: skip
