"""SL-UCB: compressed sensing on a ball, then optimism on the coordinates it has found (Carpentier and Munos 2012)."""

from __future__ import annotations

from math import cbrt, ceil, log, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    AGENTS,
    Algorithm,
    Ball,
    Certain,
    Decision,
    Domain,
    FloatArray,
    IntArray,
    ModelClass,
    Observation,
    RidgeBank,
    Round,
    Shared,
    State,
    Weighted,
    anything,
    count,
    first_best,
    floats,
    fraction,
    integers,
    maybe,
    positive,
    record,
    same,
    ucb_width,
    whole,
)
from alexp.rivals.linucb import optimistic_point

# Coefficients from rewards at random corners of the cube inside a ball, and which of them cannot be zero.


def corner(dim: int, radius: float, rng: np.random.Generator) -> FloatArray:
    """One of the 2^dim points {-1, 1}^dim x radius/sqrt(dim), each alike; shape (dim,)."""
    return np.asarray((radius / sqrt(dim)) * (2.0 * rng.integers(0, 2, dim) - 1.0))


def coefficients_at_corners(sums: FloatArray, n: int, radius: float) -> FloatArray:
    """P/(radius^2 n) sum_s x_s y_s from the sums (..., P) of n rewards at corners: no bias, since E xx' = r^2 I/P."""
    return np.asarray(sums * (sums.shape[-1] / (radius**2 * n)))


def deviation(size: float, dim: int, delta: float) -> float:
    """b: all dim coefficients are within b/sqrt(n) of the truth with probability 1 - delta, for any one n.

    y = <x, theta + eta> at a corner x makes P x_k y / r^2 = theta_k + eta_k + sum_{j != k} e_k e_j (theta_j + eta_j),
    random signs e: sub-Gaussian about theta_k with a parameter of at most `size` = ||theta|| + bound of ||eta||. The
    union bound does the rest.
    """
    return size * sqrt(2.0 * log(2.0 * dim / delta))


def active_columns(theta: FloatArray, threshold: float) -> IntArray:
    """Coefficients of at least `threshold` in size; the largest one, if there is none."""
    sizes = np.abs(theta)
    kept = np.flatnonzero(sizes >= threshold)
    return kept if kept.size else np.array([first_best(sizes)])


_SMALLEST = 5e-324  # propensity of one of so many corners that there is no such number


class SLUCB(Algorithm):
    """Explore at corners until the largest coefficients stand out, keep those, and play UCB on their ball.

    For rewards y = <x, theta + eta_t> on `Ball(P, radius=r)`: the noise is in the parameters. `noise_std` bounds the
    norm of eta_t, `norm_bound` that of theta; size is their sum, n the `horizon`.

    1. b = scale x size sqrt(2 log(2P/delta)).
    2. Play x uniform on {-1, 1}^P r/sqrt(P); theta_t = P/(r^2 t) sum_s x_s y_s, without bias and without an inverse.
    3. Stop at the first t >= sqrt(n)/max((max_k |theta_t,k| - b/sqrt t)/size, n^(-1/4)), at the latest after n^(2/3)
       rewards; or after `n_explore` rewards, if that is given.
    4. A = {k: |theta_k| >= 2b/sqrt(T)}, or the largest coefficient if there is none. From then on maximise <x, mu> +
       w ||x||_{V^-1} over the ball of R^A, with a ridge fit of all rewards but those of step 2 and the width of
       `UCB(beta="theory")`, ridge = noise_std/norm_bound.

    All coefficients are within b/sqrt(t) of the truth with probability 1 - delta, whatever P: nothing that is zero
    enters A, and all that is at least 3b/sqrt(T) does. `scale=0.5` keeps the first half of that, and finds coefficients
    of 2b/sqrt(T) (b of scale 1). With n of some thousands and P = 200 theory's threshold is about half of `size`, more
    than a theta of three equal coefficients has: then A is one coordinate.

    What is sure: 1, 2 and 4 follow from `deviation`, and so does the printed threshold. The
    stopping rule is not known word for word; the one here has the order sqrt(n)/||theta|| that the proof balances, in
    units of `size`. Differences: this library's width in place of CB2's; exploration ends at the first reward that says
    so, and rewards of corners that come later count for the ridge fit.

    **With noise in the rewards the bound is void**: y = <x, theta> + e has a variance of P sigma^2/t in each
    coefficient, since corners spread the signal over P coordinates and the noise stays. The same `noise_std` means less
    by a factor sqrt(P) then. Needs `horizon`, `noise_std` and `norm_bound`.
    """

    name: ClassVar[str] = "sl-ucb"
    needs_columns: ClassVar[str] = "it estimates one coefficient per coordinate"
    needs_ball: ClassVar[str] = "it explores at corners inside a ball, which a list of candidates does not have"
    settings: ClassVar[tuple[str, ...]] = ("horizon", "delta", "scale", "n_explore")
    example: ClassVar[State] = {"horizon": 30, "n_explore": 5}
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        horizon: int,
        delta: float = 0.05,
        scale: float = 1.0,
        n_explore: int | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        assert isinstance(domain, Ball)
        self.horizon, self.delta = count("horizon", horizon), fraction("delta", delta)
        self.scale = positive("scale", scale)
        self.n_explore = None if n_explore is None else count("n_explore", n_explore)
        self._dim, self._radius = domain.dim, domain.radius
        self._size = self.norm_bound + self.noise_std
        self._b = self.scale * deviation(self._size, self._dim, self.delta)
        self._sums, self._n_drawn = np.zeros(self._dim), 0
        self._active: IntArray | None = None  # set once, when exploration ends
        self._fit: RidgeBank | None = None
        self._others: list[tuple[FloatArray, float]] = []  # rows and rewards that were not drawn, until there is a fit

    @property
    def relies_on(self) -> frozenset[str]:
        """The norms of noise and coefficients, for the threshold and the width."""
        return frozenset({"noise_std", "norm_bound"})

    @property
    def active(self) -> IntArray | None:
        """A, the coordinates it plays on; None while it explores."""
        return None if self._active is None else self._active.copy()

    @property
    def threshold(self) -> float:
        """2b/sqrt(T), with the rewards at corners so far for T."""
        return 2.0 * self._b / sqrt(max(self._n_drawn, 1))

    def _has_explored(self) -> bool:
        """Whether step 3 says stop."""
        t, n = self._n_drawn, self.horizon
        if self.n_explore is not None or t == 0:
            return t >= (self.n_explore or 1)
        largest = float(np.abs(self._at_corners()).max())
        signal = max((largest - self._b / sqrt(t)) / self._size, 1.0 / sqrt(sqrt(n)))
        return t >= min(sqrt(n) / signal, ceil(cbrt(n**2)))

    def _at_corners(self) -> FloatArray:
        """theta_t, (P,)."""
        return coefficients_at_corners(self._sums, max(self._n_drawn, 1), self._radius)

    def _coefficients(self) -> FloatArray:
        """What is believed of theta, (P,): the fit on A, or what now passes the threshold."""
        theta = np.zeros(self._dim)
        if self._active is not None and self._fit is not None:
            theta[self._active] = self._fit.coefficients()[0]
            return theta
        now = self._at_corners()
        kept = active_columns(now, self.threshold)
        theta[kept] = now[kept]
        return theta

    def _aim(self) -> FloatArray:
        rng = self._streams.generator(AGENTS, len(self._log))
        if self._active is None or self._fit is None:
            return corner(self._dim, self._radius, rng)
        fit = self._fit
        if self._log.pending:
            fit = fit.with_fantasies(self._offers.rows(tuple(self._log.pending)))
        width = ucb_width(self._fit.log_determinants(), self._ridge, self.noise_std, self.norm_bound, self.delta)
        x, towards = np.zeros(self._dim), rng.standard_normal(self._active.size)
        mean = fit.coefficients()[0]
        x[self._active] = optimistic_point(mean, fit.triangle(0), float(width[0]), self._radius, towards)
        return x

    def _peak(self) -> FloatArray:
        theta = self._coefficients()
        norm = float(np.linalg.norm(theta))
        return self._radius * (theta / norm) if norm > 0.0 else corner(self._dim, self._radius, self._agent_rng())

    @property
    def _ridge(self) -> float:
        return self.noise_std / self.norm_bound

    def _decide(self, round_: Round) -> Decision:
        """On the point that it has aimed at."""
        if self._active is None:
            return Decision(Weighted(np.array([0]), np.array([max(0.5**self._dim, _SMALLEST)]), explored=True))
        return Decision(Certain(0))

    def _learn(self, seen: Observation) -> None:
        if self._fit is not None:
            self._fit.update(seen.row, seen.reward)
            return
        asked = seen.trial < self.n_asked  # an external measurement gets its number now
        if not (asked and self._log.explored[seen.trial]):
            self._others.append((seen.row, seen.reward))
            return
        self._sums = self._sums + seen.row * seen.reward
        self._n_drawn += 1
        if self._has_explored():
            self._play_on(active_columns(self._at_corners(), self.threshold))

    def _play_on(self, active: IntArray) -> None:
        """End the exploration."""
        self._active = active
        self._fit = RidgeBank(active, np.array([0, active.size]), self._ridge)
        for row, reward in self._others:
            self._fit.update(row, reward)
        self._others = []

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        values = self._coefficients() @ round_.choices.table
        position = first_best(values)
        return position, float(values[position]), None

    def _state(self) -> State:
        fit = None if self._fit is None else self._fit.state()
        others = np.array([[*row, reward] for row, reward in self._others]).reshape(-1, self._dim + 1)
        return {"sums": self._sums, "n_drawn": self._n_drawn, "active": self._active, "fit": fit, "others": others}

    def _restore(self, state: State) -> None:
        checks = {
            "sums": floats(self._dim),
            "n_drawn": whole(0, self.n_told),
            "active": maybe(integers(None, low=0, high=self._dim - 1)),
            "fit": anything,
            "others": floats(None, self._dim + 1),
        }
        known = record("state", state, checks)
        active, others = known["active"], known["others"]
        self._sums, self._n_drawn = known["sums"], known["n_drawn"]
        self._active = self._fit = None
        self._others = [(row[:-1].copy(), float(row[-1])) for row in others]
        n_fitted = len(others)
        if active is not None:
            if not active.size or np.any(np.diff(active) <= 0) or len(others):
                raise ValueError("state['active'] must be coordinates in increasing order, and then none in 'others'")
            self._play_on(active)
            assert self._fit is not None
            self._fit.restore(known["fit"])
            n_fitted = self._fit.n_observations
        same("number of rewards that were drawn and others", self._n_drawn + n_fitted, self.n_told, "that of all")
