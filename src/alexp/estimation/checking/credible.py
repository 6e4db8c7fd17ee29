"""What to believe when nothing was stated: a mixture of all models in the units of the rewards themselves.

Component (model j, ratio r): coefficients N(0, s^2 / mean_x ||phi_j||^2), noise variance r s^2, and an inverse-gamma
prior IG(a, b) of s^2, integrated out, a = 1 and b the variance of the rewards told. Nothing of it is certified.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.checking.ledger import Rewards
from alexp.estimation.factory import posteriors
from alexp.estimation.posteriors import CandidateMoments, Posteriors
from alexp.problem.candidates import CandidateTable, Choices
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference

_RATIOS = (1e-3, 1e-2, 1e-1)
_SHAPE = 1.0
_MOST = 64  # components that are averaged


@dataclass
class Credence:
    """Mean and standard deviation of the reward at n candidates (n,), and the models' probabilities (M,) if known."""

    mean: FloatArray
    std: FloatArray
    probabilities: FloatArray | None = None

    def gap(self, position: int, quantile: float) -> float:
        """By how much another candidate may beat the one at `position`: largest mean difference plus its spread."""
        spread = np.hypot(self.std, self.std[position])
        gaps = self.mean - self.mean[position] + quantile * spread
        gaps[position] = 0.0
        return float(max(gaps.max(), 0.0))


def typical_norms(models: ModelClass, candidates: CandidateTable | Reference) -> FloatArray:
    """Root mean square of ||phi_j(x)|| over the candidates, shape (M,); of centred features, with an intercept.

    Of a kernel, the root mean of k(x, x).
    """
    squares = candidates.mean_squares(models.intercept)
    sums = np.add.reduceat(squares[models.columns_flat], models.offsets[:-1])
    for j, kernel in enumerate(models.kernels or ()):
        if kernel is not None and isinstance(candidates, CandidateTable):
            sums[j] = candidates.prior_variance(models.groups[j], kernel)
    return np.asarray(np.sqrt(sums) / models.scales)


def believe(models: ModelClass, candidates: CandidateTable | Reference, choices: Choices, told: Rewards) -> Credence:
    """The mixture's belief about some choices, after at least one reward."""
    norms = typical_norms(models, candidates)
    norms = np.where(norms > 0.0, norms, 1.0)
    prior = max(float(np.var(told.rewards)), 1e-300)
    cells: list[Posteriors] = []
    evidence, scales = [], []
    for ratio in _RATIOS:
        fits = posteriors(models, np.sqrt(ratio) * norms)
        for y, row in zip(told.rewards.tolist(), told.rows, strict=True):
            fits.update(row, y)
        freedom = len(told) - int(models.intercept)
        total = _SHAPE * prior + fits.residuals() / (2.0 * ratio)
        logs = -(_SHAPE + 0.5 * freedom) * np.log(total) - 0.5 * freedom * np.log(ratio)
        cells.append(fits)
        evidence.append(logs - 0.5 * fits.log_determinants())
        scales.append(ratio * total / (_SHAPE + 0.5 * freedom))
    weights = np.exp(np.array(evidence) - np.max(evidence))
    weights /= weights.sum()
    moments = CandidateMoments.empty(len(choices))
    for flat in np.argsort(-weights, axis=None, kind="stable")[:_MOST]:
        cell, j = divmod(int(flat), models.n_models)
        if weights[cell, j] > 1e-6:
            share, own = np.array([weights[cell, j]]), np.array([float(scales[cell][j])])
            cells[cell].merge_moments(moments, np.array([j]), share, own, choices)
    variance = (moments.within + moments.between) / moments.total
    return Credence(moments.mean, np.sqrt(variance), weights.sum(axis=0))
