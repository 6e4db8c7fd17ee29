"""LM-UCB: optimism over the models that the likelihood has not ruled out."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from alexp.algorithms.agent_based import AgentBased
from alexp.algorithms.protocol.base import Shared
from alexp.algorithms.protocol.rounds import Decision, Observation
from alexp.common.arrays import FloatArray
from alexp.common.validation import fraction, positive
from alexp.decision.agents import UCB
from alexp.decision.plays import Certain
from alexp.decision.pool import AgentPool
from alexp.decision.weights import exponential_weights
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class LMUCB(AgentBased):
    """Likelihood-mixing UCB: play the action with the largest certified upper bound.

    argmax_x max over plausible models j of mu_j(x) + rad_j ||phi_j(x)||_{V_j^-1}, with the plausible models and
    their radii of `plausible_models(delta)`. With probability 1 - 2 delta its regret is of order
    sqrt(n P (d log n + log(M / delta))) for all n at once, P the number of distinct features: no horizon, no
    exploration, nothing to tune; the price is a width that grows with log det V.

    Parameters
    ----------
    delta : probability with which the certificates may fail.
    ridge : square root of the penalty; noise_std / reward_bound by default.

    >>> import alexp
    >>> opt = alexp.LMUCB(alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=50), random_state=0)
    >>> for _ in range(30):
    ...     trial = opt.ask()
    ...     opt.tell(trial, 1.0 - trial.x**2)
    >>> band = opt.confidence(0.5, delta=0.1)
    >>> band.lower <= 0.75 <= band.upper
    True
    """

    _pool: AgentPool
    name: ClassVar[str] = "lm-ucb"
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
        (fit,) = self._plausible(self.delta)
        radii = fit.radii if np.isfinite(fit.radii).all() else np.ones(fit.radii.size)  # an intercept at t = 0
        band = self._pool.believing(0, round_.pending).envelope(fit.local, radii, round_.wide.table)
        position = int(np.argmax(round_.narrow(band.upper)))
        return Decision(Certain(position, int(round_.narrow(band.model)[position])))

    def _learn(self, seen: Observation) -> None:
        self._train(seen.row, seen.reward, None)

    @property
    def probabilities(self) -> FloatArray:
        """Posterior probability of each model under the mixture behind the certificates, shape (M,)."""
        return exponential_weights(self._pool.fits[0].evidence(self.noise_std), 1.0)
