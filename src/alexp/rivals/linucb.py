"""LinUCB: one ridge agent, on one model (the oracle, if it is the right one) or on all features (naive)."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    UCB,
    Agent,
    AgentPool,
    Alone,
    Ball,
    Certified,
    CrediblePrediction,
    Decision,
    Domain,
    FloatArray,
    Greedy,
    IntArray,
    ModelClass,
    Observation,
    RidgeBank,
    Round,
    Shared,
    State,
    anything,
    count,
    fraction,
    record,
    same,
)

# Optimism on a ball: the point whose reward is largest for some coefficients of a confidence ellipsoid.
#
# max over ||x|| <= r of <x, m> + w ||x||_{V^-1} is r times max over ||u|| <= 1 of ||m + w V^(-1/2) u||: a convex
# quadratic on a ball, whose maximum one eigendecomposition and the root of one increasing function give.

_MOST_STEPS = 100  # of Newton's method, which takes a handful
_SAME = 1e-12  # by which directions that are equally uncertain may differ, relatively


def optimistic_point(
    mean: FloatArray, triangle: FloatArray, width: float, radius: float, towards: FloatArray
) -> FloatArray:
    """A maximiser of <x, mean> + width ||x||_{V^-1} over the ball of this radius, V = triangle' triangle; shape (d,).

    With V = Q diag(v) Q', a_i = width^2/v_i and g_i = width v_i^(-1/2) (Q' mean)_i, the best u has u_i = g_i/(l - a_i)
    where l >= max a solves sum_i u_i^2 = 1. Where g vanishes on the most uncertain directions there may be no root:
    then l = max a, and u takes what is missing to norm one in these directions. All of them are equally good; `towards`
    (d,), a vector in general position, says which.

    >>> optimistic_point(np.array([3.0, 0.0]), np.eye(2), 0.0, 2.0, np.ones(2)).tolist()
    [2.0, 0.0]
    """
    _, roots, axes = np.linalg.svd(triangle)  # roots of v, largest first; rows of `axes` are the directions
    if width == 0.0:
        return _on_sphere(mean, towards, radius)
    spread = width / roots
    own, squares = axes @ mean, spread**2
    slope, below = spread * own, squares[-1] - squares  # the last is the largest
    last = below <= _SAME * squares[-1]
    below[last] = 0.0
    rest = slope[~last] / below[~last]
    if not np.any(slope[last]) and rest @ rest < 1.0:
        u = np.zeros_like(slope)
        u[~last] = rest
        u[last] = _on_sphere(axes[last] @ towards, np.ones(int(last.sum())), float(np.sqrt(1.0 - rest @ rest)))
    else:
        u = slope / (_excess(slope, below) + below)
    return _on_sphere((own + spread * u) @ axes, towards, radius)


def _excess(slope: FloatArray, below: FloatArray) -> float:
    """e > 0 with sum_i (slope_i / (e + below_i))^2 = 1, where below >= 0.

    Newton's method on one over the root of that sum, which is concave: steps from the left never pass the root.
    """
    kept = slope != 0.0
    slope, below = slope[kept], below[kept]
    e = float(np.linalg.norm(slope[below == 0.0]))
    for _ in range(_MOST_STEPS):
        u = slope / (e + below)
        squares = float(u @ u)
        step = (sqrt(squares) - 1.0) * squares / float(u @ (u / (e + below)))
        if not e + step > e:
            break
        e += step
    return e


def _on_sphere(direction: FloatArray, otherwise: FloatArray, radius: float) -> FloatArray:
    """The point of the sphere in this direction; in another one, where it is zero."""
    norm = float(np.linalg.norm(direction))
    if norm == 0.0:
        direction, norm = otherwise, float(np.linalg.norm(otherwise))
    return np.asarray(radius * (direction / norm))


class LinUCB(Certified):
    """A single base agent that plays alone.

    `model=j` uses the features of model j: Oracle UCB when j is the true model. `model=None` is the naive
    baseline on all distinct columns of the dictionary (features that are equal on every candidate count once).
    `agent` is UCB unless another is given. `forget` is the weight of a reward for each one that came after it, for
    rewards that drift (D-LinUCB with a constant width): V = sum_s forget^(t-s) phi_s phi_s' + ridge^2 I. Nothing is
    certified then, and the order of rewards matters; widths of `UCB(beta="theory")` are no theorem under it.

    On `alexp.Ball` it maximises the upper bound over all points, see `optimistic_point`; agents there are UCB and
    Greedy.

    Needs `norm_bound` for the width of UCB, and `noise_std` where that is the theory's (`UCB(beta="theory")`).
    """

    name: ClassVar[str] = "linucb"
    needs_columns: ClassVar[str] = ""
    settings: ClassVar[tuple[str, ...]] = ("model", "agent", "forget")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        model: int | None = None,
        agent: Agent | None = None,
        forget: float | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        if model is not None and count("model", model, 0) >= models.n_models:
            raise ValueError(f"model must be below the number of models ({models.n_models}), got {model}")
        self.model, self.agent = None if model is None else int(model), UCB() if agent is None else agent
        self.forget = None if forget is None else fraction("forget", forget)
        if isinstance(domain, Ball) and type(self.agent) not in (UCB, Greedy):
            raise ValueError(f"agent must be UCB or Greedy on a ball: others choose from a list, got {self.agent!r}")
        single = self._single()
        self._columns = single.columns_flat
        self._pool = AgentPool(self.agent, single, self.noise_std, self.norm_bound, self.forget)

    def _single(self) -> ModelClass:
        """The class whose only model is the one to play."""
        if self.model is not None:
            return self.models.only(self.model)
        self.models.require_linear("LinUCB without model=", "it puts all columns into one model; state which kernel")
        return self.models.pooled(self._distinct_columns())

    def _decide(self, round_: Round) -> Decision:
        policies = self._pool.suggest(round_, self._agent_rng())
        return Decision(Alone(policies, 0, self.model))

    def _aim(self) -> FloatArray:
        waiting = tuple(self._log.pending)
        fits = self._ball_fits()
        believed = fits.with_fantasies(self._offers.rows(waiting)) if waiting else fits
        agent = self.agent
        width = agent.widths(fits, self.noise_std, self.norm_bound) if isinstance(agent, UCB) else 0.0
        return self._farthest(believed, float(np.max(width)))

    def _peak(self) -> FloatArray:
        return self._farthest(self._ball_fits(), 0.0)

    def _ball_fits(self) -> RidgeBank:
        fits = self._pool.fits[0]
        assert isinstance(fits, RidgeBank)  # coordinates are few, and there is no table
        return fits

    def _farthest(self, fits: RidgeBank, width: float) -> FloatArray:
        """The point of the ball with the largest mean + width x ||x||_{V^-1}, zero in coordinates of other models."""
        assert isinstance(self.domain, Ball)
        x, towards = np.zeros(self.domain.dim), self._agent_rng().standard_normal(self._columns.size)
        mean = fits.coefficients()[0]
        x[self._columns] = optimistic_point(mean, fits.triangle(0), width, self.domain.radius, towards)
        return x

    def _learn(self, seen: Observation) -> None:
        self._pool.update(seen.row, seen.reward)

    def _certified_models(self) -> ModelClass:
        """The model that was stated to be true; all models if none was."""
        return self.models if self.model is None else self.models.only(self.model)

    def _numbers(self) -> IntArray:
        return super()._numbers() if self.model is None else np.array([self.model])

    def _predictive(self, round_: Round) -> CrediblePrediction:
        """What its own fit says where old rewards are forgotten."""
        if self.forget is None:
            return super()._predictive(round_)
        fits, choices = self._pool.fits[0], round_.choices
        return CrediblePrediction(fits.mean(0, choices), self.noise_std * fits.width(0, choices))

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        return *self._pool.best(0, round_.choices), self.model

    def _state(self) -> State:
        return {"pool": self._pool.state()}

    def _restore(self, state: State) -> None:
        self._pool.restore(record("state", state, {"pool": anything})["pool"])
        same("n_observations of the agent", self._pool.n_observations, self.n_told, "the number of rewards")
