"""Group Lasso paths to race on: a row arrives, lambda_t changes, the whole problem is solved again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.schedules import Schedules
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass
from alexp.simulation import SyntheticEnvironment
from alexp_experiments.bench.problems import NOISE, SEED, LegendreProblem, Player


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
