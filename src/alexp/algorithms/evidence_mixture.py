"""Evidence mixture: act on the exact posterior over models, noise levels and coefficient scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np

from alexp.algorithms.certified import Certified
from alexp.algorithms.protocol.rounds import Decision, Observation
from alexp.algorithms.protocol.streams import AGENTS
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.validation import count, non_negative, positive
from alexp.decision.plays import Among, Certain, Explore
from alexp.decision.selection import information_directed, upper_confidence
from alexp.decision.weights import draw_index
from alexp.estimation.checking.credible import Credence
from alexp.estimation.mixture.effects import EffectMixture
from alexp.estimation.mixture.mixture import Mixture
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.models import ModelClass

_UNKNOWN_NOISE = (0.01, 0.03, 0.1, 0.3, 1.0)  # in units of the reward bound
_BETA_SQUARED = {"ids": 4.0, "ucb": 2.0, "thompson": 0.0}


@dataclass(frozen=True)
class Outlook:
    """What a round is decided on: component weights (cells, M), mixture mean and standard deviation (n,)."""

    weights: FloatArray
    mean: FloatArray
    std: FloatArray


class EvidenceMixture(Certified):
    """Bayesian model averaging whose uncertainty includes the disagreement between models.

    Every component, one model with one noise level and one coefficient scale, is weighted by its exact Gaussian
    evidence; its d coefficients have independent normal priors with a norm of about the scale. The mixture's mean
    m(x) and standard deviation s(x), within plus between components, decide the round:

    * rule="ids": argmin of (max(m + beta s) - m(x))^2 / log(1 + s(x)^2 / noise^2), regret per information;
    * rule="ucb": argmax of m + beta s;
    * rule="thompson": argmax under coefficients drawn from the posterior; a round chooses evenly among `draws`
      such maximisers, so that its propensity is exact given the draws.

    Parameters
    ----------
    noise_std : nominal noise; None when unknown, which means a grid from 1% to 100% of `reward_bound`. There are
        no certificates then.
    reward_bound : nominal norm of the coefficients.
    noise_grid, scale_grid : multiples of the two that get a component each; (1/3, 1, 3) and (1, 4) by default.
    misfit_grid : sizes, as multiples of `reward_bound`, of what a candidate's reward may have beyond any model; each is
        weighed against none at all. For tables, where playing a candidate again tells more than its features do.
    light : a single noise level and scale, six times cheaper; for when both are trusted.
    beta : constant width; by default beta_t^2 = 4 + log(t)/4 for "ids" and 2 + log(t)/4 for "ucb".
    gamma : explore evenly with probability gamma t^(-1/3); zero by default.

    The credible band m -/+ 2 s is no confidence band (it covers the reward at the maximiser less often than it
    says); `confidence` and `plausible_models` are certified, if `noise_std` and a bound were stated. Pending trials
    shrink the variances within components, for "ids" and "ucb"; weights and means stay until their rewards come.

    >>> import alexp
    >>> models = alexp.ModelClass.legendre(degree=4, size=2)
    >>> opt = alexp.EvidenceMixture(models, alexp.Interval(-1.0, 1.0, resolution=50), noise_std=None, random_state=0)
    >>> for _ in range(20):
    ...     trial = opt.ask()
    ...     opt.tell(trial, 1.0 - trial.x**2)
    >>> abs(opt.best().x) < 0.1, opt.noise_estimate < 0.05
    (True, True)
    """

    name: ClassVar[str] = "evidence-mixture"
    weights_mean: ClassVar[str] = "posterior"
    settings: ClassVar[tuple[str, ...]] = ("rule", "noise_grid", "scale_grid", "misfit_grid", "beta", "gamma", "draws")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        rule: str = "ids",
        noise_std: float | None = 0.1,
        noise_grid: Sequence[float] | None = None,
        scale_grid: Sequence[float] | None = None,
        misfit_grid: Sequence[float] = (),
        light: bool = False,
        beta: float | None = None,
        gamma: float = 0.0,
        draws: int = 8,
        **shared: Any,
    ) -> None:
        if rule not in _BETA_SQUARED:
            raise ValueError(f"rule must be one of {sorted(_BETA_SQUARED)}, got {rule!r}")
        if light and (noise_std is None or noise_grid is not None or scale_grid is not None):
            raise ValueError("light means one noise level and one scale; give noise_std and neither grid with it")
        super().__init__(models, domain, noise_std=noise_std, **shared)
        if noise_std is None:
            self.noise_std = self.reward_bound  # the unit of the grid of noise levels
        levels = _UNKNOWN_NOISE if noise_std is None else (1.0,) if light else (1.0 / 3.0, 1.0, 3.0)
        self.noise_grid = _grid("noise_grid", levels if noise_grid is None else noise_grid)
        self.scale_grid = _grid("scale_grid", scale_grid if scale_grid is not None else (1.0,) if light else (1.0, 4.0))
        self.misfit_grid = _grid("misfit_grid", misfit_grid) if len(misfit_grid) else ()
        self.rule, self.beta = rule, None if beta is None else non_negative("beta", beta)
        self.gamma, self.draws = non_negative("gamma", gamma), count("draws", draws)
        self._roots = np.sqrt(np.diff(models.offsets))  # a prior variance of 1/d per coefficient has norm one
        self._mixture = self._new_mixture()

    def _new_mixture(self) -> Mixture:
        models = self.models
        groups = (models.n_columns, models.columns_flat, models.offsets, models.scales * self._roots, models.intercept)
        settings: State = {
            "noise_std": self.noise_std, "reward_bound": self.reward_bound,
            "noise_grid": self.noise_grid, "scale_grid": self.scale_grid,
        }  # fmt: skip
        if not self.misfit_grid:
            return Mixture(*groups, **settings)
        effects = (0.0, *self.misfit_grid)
        return EffectMixture(*groups, n_candidates=self.domain.n_candidates, effect_grid=effects, **settings)

    @property
    def relies_on(self) -> frozenset[str]:
        """What was stated; nothing is assumed."""
        return frozenset(name for name, value in self.stated._asdict().items() if value is not None)

    def _decide(self, round_: Round) -> Decision:
        t, n = self.n_told + 1, len(round_)
        gamma = min(1.0, self.gamma * t ** (-1.0 / 3.0))
        play = Among(self._maximisers(round_)) if self.rule == "thompson" else Certain(self._index_rule(round_))
        return Decision(Explore(gamma, n, None, play) if gamma > 0.0 else play)

    def _index_rule(self, round_: Round) -> int:
        """Position of the choice that the "ids" or "ucb" rule plays."""
        outlook = self._outlook(round_)
        if self.rule == "ucb":
            return upper_confidence(outlook.mean, outlook.std, self.beta_t(self.n_told + 1))
        variance = self._noise_variance(outlook.weights)
        return information_directed(outlook.mean, outlook.std, self.beta_t(self.n_told + 1), variance)

    def _maximisers(self, round_: Round) -> IntArray:
        """Best choices under `draws` samples of the posterior; the samples depend on the seed and t alone."""
        rng, weights, choices = self._streams.generator(AGENTS, self.n_told), self._weights().ravel(), round_.choices
        out = np.empty(self.draws, dtype=np.int64)
        for k in range(self.draws):
            cell, model = divmod(draw_index(weights, rng), self.models.n_models)
            out[k] = np.argmax(self._mixture.draw(cell, model, rng, choices.table, choices.indices))
        return out

    def _learn(self, seen: Observation) -> None:
        self._mixture.update(seen.row, seen.reward, seen.index)

    def _outlook(self, round_: Round) -> Outlook:
        return self._once(("outlook", round_.key), lambda: self._look(round_))

    def _look(self, round_: Round) -> Outlook:
        weights, wide = self._weights(), round_.wide
        mean, variance = self._mixture.moments(weights, wide.table, wide.indices, round_.pending)
        return Outlook(weights, round_.narrow(mean), np.sqrt(round_.narrow(variance)))

    def _weights(self) -> FloatArray:
        """Posterior of the components, shape (cells, M)."""
        return self._once("weights", self._mixture.weights)

    def _noise_variance(self, weights: FloatArray) -> float:
        return float(weights.sum(axis=1) @ self._mixture.noise**2)

    def beta_t(self, t: int) -> float:
        """Width of the index in round t."""
        return sqrt(_BETA_SQUARED[self.rule] + 0.25 * log(t)) if self.beta is None else self.beta

    @property
    def probabilities(self) -> FloatArray:
        """Posterior probability of each model, shape (M,)."""
        weights = self._weights().sum(axis=0)
        return np.asarray(weights / weights.sum())

    @property
    def noise_estimate(self) -> float:
        """Square root of the posterior mean of the noise variance."""
        return sqrt(self._noise_variance(self._weights()))

    def predict(self, x: Action) -> tuple[Any, Any]:
        """Mixture mean and standard deviation of the reward at `x`; a credible, not a confidence statement."""
        rows, single = self.models.rows(self.domain, x)
        indices = np.array([self.domain.locate(x)]) if isinstance(self.domain, FiniteSet) else None
        mean, variance = self._mixture.moments(self._weights(), np.ascontiguousarray(rows.T), indices)
        mean, std = self._sign * mean, np.sqrt(variance)
        return (float(mean[0]), float(std[0])) if single else (mean, std)

    def _recommend(self) -> tuple[int, float, int | None]:
        outlook = self._outlook(self._everything)
        position = int(np.argmax(outlook.mean))
        return position, float(outlook.mean[position]), int(np.argmax(outlook.weights.sum(axis=0)))

    def _belief(self) -> Credence:
        outlook = self._outlook(self._everything)
        return Credence(outlook.mean, outlook.std)

    def _state(self) -> State:
        return {"mixture": self._mixture.state()}

    def _restore(self, state: State) -> None:
        self._mixture.restore(state["mixture"])


class MixtureThompson(EvidenceMixture):
    """Thompson sampling from the evidence mixture: `EvidenceMixture(rule="thompson")` under a name of its own."""

    name: ClassVar[str] = "mixture-thompson"

    def __init__(self, models: ModelClass, domain: Domain, *, rule: str = "thompson", **settings: Any) -> None:
        super().__init__(models, domain, rule=rule, **settings)


def _grid(name: str, values: Sequence[float]) -> tuple[float, ...]:
    if isinstance(values, str) or not len(values):
        raise ValueError(f"{name} must hold at least one positive number, got {values!r}")
    levels = tuple(positive(name, value) for value in values)
    if len(set(levels)) != len(levels):
        raise ValueError(f"{name} must hold distinct numbers, got {values!r}")
    return levels
