"""LM-UCB: optimism over the models that the likelihood has not ruled out."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from alexp.algorithms.agent_based import AgentBased
from alexp.algorithms.base import Decision, Observation, Shared
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.ties import first_best
from alexp.common.validation import fraction, positive
from alexp.decision.agents import UCB
from alexp.decision.plays import Certain
from alexp.decision.pool import AgentPool
from alexp.decision.weights import exponential_weights
from alexp.decision.widths import model_radii, model_radii_with_constant
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class LMUCB(AgentBased):
    """Likelihood-mixing UCB: play the action with the largest certified upper bound.

    argmax_x max over plausible models j of mu_j(x) + rad_j ||phi_j(x)||_{V_j^-1}, with the plausible models and
    their radii as in `decision.widths`. With probability 1 - 2 delta its regret is of order
    sqrt(n P (d log n + log(M / delta))) for all n at once, P the number of distinct features: no horizon, no
    exploration, nothing to tune; the price is a width that grows with log det V.

    Parameters
    ----------
    delta : probability with which the certificates may fail.
    ridge : square root of the penalty; noise_std / norm_bound by default.

    Needs `noise_std` and `norm_bound`; with `reward_bound` alone, that number stands in for the norm.

    >>> import alexp
    >>> models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=50)
    >>> opt = alexp.LMUCB(models, domain, noise_std=0.1, reward_bound=1.0, random_state=0)
    >>> for _ in range(30):
    ...     trial = opt.ask()
    ...     opt.tell(trial, 1.0 - trial.x**2)
    >>> band = opt.confidence(0.5)
    >>> band.lower <= 0.75 <= band.upper
    True
    """

    _pool: AgentPool
    name: ClassVar[str] = "lm-ucb"
    needs_columns: ClassVar[str] = ""
    weights_mean: ClassVar[str] = "posterior"
    settings: ClassVar[tuple[str, ...]] = ("delta", "ridge")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        delta: float = 0.1,
        ridge: float | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.delta = fraction("delta", delta)
        self.ridge = self.noise_std / self.norm_bound if ridge is None else positive("ridge", ridge)
        self._pool = AgentPool(UCB(ridge=self.ridge), models, self.noise_std, self.norm_bound)

    def _decide(self, round_: Round) -> Decision:
        local, radii = self._optimistic()
        band = self._pool.with_fantasies(0, round_.pending).envelope(local, radii, round_.wide)
        position = first_best(round_.narrow(band.upper))
        return Decision(Certain(position, int(round_.narrow(band.model)[position])))

    def _optimistic(self) -> tuple[IntArray, FloatArray]:
        """Models not ruled out if noise and norm are as stated or assumed, and the radii of their confidence sets.

        What users are told is certified is computed elsewhere, from what was stated alone.
        """
        fits, numbers = self._pool.fits[0], (self.ridge, self.noise_std, self.norm_bound, self.delta)
        if fits.intercept and fits.n_observations == 0:
            return np.arange(fits.n_models), np.ones(fits.n_models)
        losses, levels = fits.residuals(), fits.log_determinants()
        if fits.intercept:
            squares = model_radii_with_constant(losses, levels, fits.counts, *numbers)
        else:
            squares = model_radii(losses, levels, *numbers)
        local = np.flatnonzero(squares >= 0.0)
        if local.size == 0:  # by rounding only, where rewards are 1e8 times the noise or more
            return np.array([self._leader()]), np.zeros(1)
        return local, np.sqrt(squares[local])

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, None)

    @property
    def probabilities(self) -> FloatArray:
        """Posterior probability of each model under the mixture behind the certificates, shape (M,)."""
        return exponential_weights(self._pool.fits[0].evidence(self.noise_std), 1.0)
