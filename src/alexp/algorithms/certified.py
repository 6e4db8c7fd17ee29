"""Certificates: which models are still plausible, what the reward can be, and whether one may stop.

All statements of this file hold at every moment of an adaptive run at once with probability 1 - delta, if one of
the models is true, its coefficients have norm at most `norm_bound` (in the features as `ModelClass.features`
returns them) and the noise is sub-Gaussian with parameter `noise_std`. They need neither a prior nor exploration.

The likelihood-mixing argument: average the Gaussian marginal likelihoods of all M models. Divided by the likelihood
of the truth it is a non-negative supermartingale that starts at one, so by Ville's inequality it exceeds 1/delta at
any time with probability at most delta. The ridge penalty of the fits is the prior used in that average; any fixed
value is valid, noise_std / norm_bound is the natural one. With an unpenalised intercept the first reward fixes the
constant: delta is split between that reward's noise and all that follows.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alexp.algorithms.protocol.base import Algorithm
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.validation import fraction, positive
from alexp.decision.pool import AgentPool
from alexp.decision.widths import model_radii
from alexp.estimation.posteriors import Posteriors

Ends = Any  # a float for one action, an array (n,) for several


class Band(NamedTuple):
    """Certified lower and upper ends of the reward; floats for one action, arrays for several."""

    lower: Ends
    upper: Ends


class CertifiedFits(NamedTuple):
    """Fits of some models on all rewards so far, the models' numbers, and ridge as in `UCB(ridge=)`.

    `ridge` is one number or one per member.
    """

    fits: Posteriors
    members: IntArray
    ridge: float | FloatArray


def fits_of_agents(pool: AgentPool) -> list[CertifiedFits]:
    """The fits of agents that see all rewards."""
    return [
        CertifiedFits(fits, members, agent.ridge)
        for fits, members, agent in zip(pool.fits, pool.members, pool.agents, strict=True)
    ]


class PlausibleFits(NamedTuple):
    """The fits that are not ruled out: positions among the fits, their numbers as models, and their radii."""

    fits: Posteriors
    local: IntArray
    models: IntArray
    radii: FloatArray


@dataclass(frozen=True)
class StopReport:
    """What can be certified about stopping now.

    Attributes
    ----------
    x, index : the recommended action.
    epsilon : with probability 1 - delta no action is better than it by more than this; the smallest such number.
    target : the epsilon asked for, if any.
    plausible : numbers of the models not ruled out.
    disagreeing : those under which the action may be worse than `target`; without a target, those whose own
        estimate has its maximum elsewhere. Largest gap first.
    """

    x: Action
    index: int
    delta: float
    epsilon: float
    target: float | None
    plausible: IntArray
    disagreeing: IntArray

    @property
    def can_stop(self) -> bool:
        """Whether the certified epsilon is within the target."""
        return self.target is not None and self.epsilon <= self.target

    def __str__(self) -> str:
        text = f"{self.x} is within {self.epsilon:.3g} of the best with confidence {1.0 - self.delta:g} at this moment"
        return f"{text}; {self.plausible.size} plausible models, {self.disagreeing.size} disagree"


class Certified(Algorithm):
    """An algorithm that keeps ridge fits of its models: adds `plausible_models`, `confidence` and `stop_report`.

    The algorithm provides `_certified_fits`, which must have seen all rewards.
    """

    @property
    def certifies(self) -> bool:
        """Whether there are fits that have seen all rewards, which is what certificates speak of."""
        return True

    @abstractmethod
    def _certified_fits(self) -> list[CertifiedFits]:
        """The fits that certificates are made of."""

    def plausible_models(self, delta: float = 0.1) -> IntArray:
        """Numbers of the models not yet ruled out, in increasing order.

        The true model is among them at every moment of the run with probability 1 - delta. Models are judged against
        each other, so at least one always remains; that none of them is true does not show here.
        """
        return np.sort(np.concatenate([fit.models for fit in self._plausible(delta)]))

    def confidence(self, x: Action, delta: float = 0.1) -> Band:
        """Certified band of the noiseless reward at `x`, over all plausible models and all their coefficients.

        Both ends are infinite while nothing is known, with an intercept before the first reward.
        """
        rows, single = self.models.rows(self.domain, x)
        lower, upper = self._band(np.ascontiguousarray(rows.T), self._plausible(delta))
        if self._sign < 0.0:
            lower, upper = -upper, -lower
        return Band(float(lower[0]), float(upper[0])) if single else Band(lower, upper)

    def stop_report(self, delta: float = 0.1, epsilon: float | None = None) -> StopReport:
        """Whether the recommended action is within `epsilon` of the best, and the smallest epsilon that holds."""
        target = None if epsilon is None else positive("epsilon", epsilon)
        fits, best = self._plausible(delta), self.best()
        position = int(self._candidates.position[best.index])
        models, gaps, estimates = [], [], []
        for fit in fits:
            gap, estimate = fit.fits.largest_gaps(fit.local, fit.radii, self._candidates.table, position)
            models.append(fit.models)
            gaps.append(gap)
            estimates.append(estimate)
        plausible, gap, estimate = np.concatenate(models), np.concatenate(gaps), np.concatenate(estimates)
        disagrees = np.flatnonzero(estimate > 0.0 if target is None else gap > target)
        ranked = disagrees[np.argsort(-gap[disagrees], kind="stable")]
        epsilon_now = float(gap.max())
        return StopReport(best.x, best.index, delta, epsilon_now, target, np.sort(plausible), plausible[ranked])

    def _plausible(self, delta: float) -> list[PlausibleFits]:
        """The fits that survive at level delta, with the radii of their confidence sets."""
        fits = self._certified_fits()
        losses = np.concatenate([fit.fits.residuals() for fit in fits])
        determinants = np.concatenate([fit.fits.log_determinants() for fit in fits])
        ends = np.cumsum([0] + [fit.members.size for fit in fits])
        out = []
        for fit, start, stop in zip(fits, ends[:-1], ends[1:], strict=True):
            squares = self._squared_radii(losses, determinants, fit, delta)[start:stop]
            squares = squares + (np.square(fit.ridge) - np.max(fit.ridge) ** 2) * self.norm_bound**2
            local = np.flatnonzero(squares >= 0.0)
            out.append(PlausibleFits(fit.fits, local, fit.members[local], np.sqrt(squares[local])))
        return out

    def _squared_radii(
        self, losses: FloatArray, determinants: FloatArray, fit: CertifiedFits, delta: float
    ) -> FloatArray:
        """rad_j^2 of `model_radii` with the fit's largest ridge, plus the price of an unknown constant, if any."""
        fraction("delta", delta)
        known = (float(np.max(fit.ridge)), self.noise_std, self.norm_bound)
        if not fit.fits.intercept:
            return model_radii(losses, determinants, *known, delta)
        if fit.fits.n_observations == 0:
            return np.full(losses.size, np.inf)
        first = 2.0 * self.noise_std**2 * np.log(4.0 / delta)
        later = model_radii(losses, determinants + np.log(fit.fits.n_observations), *known, delta / 2.0)
        return np.asarray(later + first)

    def _band(self, table: FloatArray, fits: list[PlausibleFits]) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends at n points, feature-major (P, n), as rewards to be maximised."""
        lower, upper = np.full(table.shape[1], np.inf), np.full(table.shape[1], -np.inf)
        for fit in fits:
            if fit.fits.intercept and fit.fits.n_observations == 0:
                return upper, lower  # nothing is known yet: from minus to plus infinity
            part = fit.fits.envelope(fit.local, fit.radii, table)
            lower, upper = np.minimum(lower, part.lower), np.maximum(upper, part.upper)
        return lower, upper
