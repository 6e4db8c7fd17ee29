"""Contexts of the literature on sparse bandits: K candidates a round with p features each, s0 of which matter."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import TypedDict, Unpack

import numpy as np

from alexp.algorithms.base import RandomState
from alexp.common.arrays import FloatArray
from alexp.common.validation import count, positive, share
from alexp.problem.domains import Arms, Candidates
from alexp.problem.models import ModelClass
from alexp.simulation import CONTEXT, PROBLEM, EnvironmentRound, RoundEnvironment

_HARD_THETA = (1.0, 0.1, 1.0)
_HARD = np.array([[[1, 0, 0], [0, 1, 0], [0.9, 0.5, 0]], [[0, 1, 0], [0, 0, 1], [0, 0.5, 0.9]]], dtype=np.float64)
_HARD_SHARE = 0.3  # of rounds with the first of the two sets


class Common(TypedDict, total=False):
    """Keywords that all of these environments share; see `SparseContexts`."""

    noise_std: float
    theta: tuple[float, float]
    stacked: bool
    intercept: bool
    random_state: RandomState


class SparseContexts(RoundEnvironment):
    """y = x_a . theta + noise with theta of s0 non-zero coordinates; regret counts noiseless rewards.

    Parameters
    ----------
    K, p, s0 : candidates of a round, features, and how many of them matter.
    noise_std : of the noise, which the K candidates of a round share.
    theta : between which two numbers the non-zero coordinates are drawn evenly; (0, 1) in Kim and Paik (2019) and Oh
        et al. (2021), (1, 2) in Ariu et al. (2022).
    stacked : offer K arms and the K p numbers as one context, with coefficients of their own for every arm: how LASSO
        Bandit, which knows one context and K vectors, plays on K contexts and one vector.
    intercept : whether `models` have a constant, as the regressions of the released codes do.
    """

    def __init__(
        self,
        K: int,
        p: int,
        s0: int,
        *,
        noise_std: float = 0.5,
        theta: tuple[float, float] = (0.0, 1.0),
        stacked: bool = False,
        intercept: bool = False,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(noise_std, random_state)
        self.K, self.p, self.s0 = count("K", K), count("p", p), count("s0", s0)
        if self.s0 > self.p:
            raise ValueError(f"s0 must be at most p = {self.p}, got {s0}")
        self.stacked = bool(stacked)
        self.theta = np.zeros(self.p)
        rng = self._streams.generator(PROBLEM)
        self.theta[rng.choice(self.p, self.s0, replace=False)] = rng.uniform(*theta, self.s0)
        if self.stacked:
            arms = Arms([f"arm {a}" for a in range(self.K)])
            self.domain = arms
            self.models = ModelClass.per_arm({"x": range(self.K * self.p)}, arms, intercept=intercept)
        else:
            self.domain = Candidates()
            self.models = ModelClass.from_blocks({"x": self.p}, intercept=intercept)

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> FloatArray:
        """The features of one round, (K, p)."""

    def rows(self, t: int) -> FloatArray:
        """The features of round t, (K, p)."""
        return self._draw(self._streams.generator(CONTEXT, t))

    def round(self, t: int) -> EnvironmentRound:
        """Round t: its features, or all of them as one context."""
        rows = self.rows(t)
        presented = {"context": rows.ravel()} if self.stacked else {"features": rows}
        return EnvironmentRound(presented, np.asarray(rows @ self.theta))


class GaussianContexts(SparseContexts):
    """For each coordinate the K candidates are jointly N(0, (1 - rho2) I + rho2 11'); rows are cut to norm `x_max`.

    >>> env = GaussianContexts(K=20, p=100, s0=5, rho2=0.7, random_state=0)
    >>> env.rows(3).shape, int((env.theta > 0).sum())
    ((20, 100), 5)
    """

    def __init__(
        self, K: int, p: int, s0: int, rho2: float = 0.7, x_max: float | None = None, **shared: Unpack[Common]
    ) -> None:
        super().__init__(K, p, s0, **shared)
        self.rho2 = share("rho2", rho2)
        self.x_max = None if x_max is None else positive("x_max", x_max)

    def _draw(self, rng: np.random.Generator) -> FloatArray:
        rows = correlated(self.K, self.p, self.rho2, rng)
        if self.x_max is not None:
            rows *= np.minimum(1.0, self.x_max / np.linalg.norm(rows, axis=1, keepdims=True))
        return rows


class UniformContexts(SparseContexts):
    """Every feature of every candidate is U[-1, 1] on its own."""

    def _draw(self, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1.0, 1.0, (self.K, self.p))


class EllipticalContexts(SparseContexts):
    """Candidate i is A (R_i S_i): S_i even on the unit sphere of R^k, R_i standard normal, A (p, k) of U(0, 1) entries.

    A is drawn once for an environment; k is p/2 by default.
    """

    def __init__(self, K: int, p: int, s0: int, k: int | None = None, **shared: Unpack[Common]) -> None:
        super().__init__(K, p, s0, **shared)
        self.k = max(1, self.p // 2) if k is None else count("k", k)
        self._matrix = self._streams.generator(PROBLEM, 1).uniform(0.0, 1.0, (self.p, self.k))

    def _draw(self, rng: np.random.Generator) -> FloatArray:
        sphere = rng.standard_normal((self.K, self.k))
        sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
        return np.asarray((rng.standard_normal((self.K, 1)) * sphere) @ self._matrix.T)


class HardInstance(SparseContexts):
    """Three candidates on which greedy play learns too little (Ariu et al. 2022): theta = (1, .1, 1, 0, ...).

    With probability .3 their first coordinates are (1, 0, 0), (0, 1, 0), (.9, .5, 0), and else (0, 1, 0), (0, 0, 1),
    (0, .5, .9); the other p - 3 coordinates are Gaussian and worth nothing.
    """

    def __init__(self, p: int, rho2: float = 0.7, **shared: Unpack[Common]) -> None:
        super().__init__(3, count("p", p, 3), 3, **shared)
        self.rho2 = share("rho2", rho2)
        self.theta = np.zeros(self.p)
        self.theta[:3] = _HARD_THETA

    def _draw(self, rng: np.random.Generator) -> FloatArray:
        known = _HARD[0 if rng.random() < _HARD_SHARE else 1]
        return np.hstack([known, correlated(3, self.p - 3, self.rho2, rng)])


def correlated(n: int, p: int, rho2: float, rng: np.random.Generator) -> FloatArray:
    """(n, p) standard normal numbers, those of a column with correlation rho2."""
    common = rng.standard_normal(p)
    return np.asarray(sqrt(1.0 - rho2) * rng.standard_normal((n, p)) + sqrt(rho2) * common)
