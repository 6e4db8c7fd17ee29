"""Estimates without statements: what to believe when nothing was stated, a missing constant, the size of the noise.

`believe` is a mixture of all models in the units of the rewards themselves. Component (model j, ratio r): coefficients
N(0, s^2 / mean_x ||phi_j||^2), noise variance r s^2, and s^2 integrated out, see `StudentEvidence`, with b0 from
`reward_unit`. Nothing of it is certified.

`log_odds_of_a_constant` asks whether the rewards speak for a constant that the models lack. Rewards that lie around 50
can be mimicked by models without a constant wherever an optimiser likes to look, so that nothing contradicts these;
elsewhere they are far off. The evidence notices earlier: the mixture once as it is and once with a constant of prior
variance `_LEVEL` (in units of the other coefficients' contribution to the rewards) in every model. No statement rests
on the answer; statements are withheld.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation._shape_kernels import penalised
from alexp.estimation.checking import Rewards
from alexp.estimation.factory import posteriors
from alexp.estimation.mixture.mixture import StudentEvidence, reward_unit
from alexp.estimation.posteriors import CandidateMoments, Posteriors
from alexp.estimation.shape import log_sum
from alexp.problem.candidates import CandidateTable, Choices
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference

_RATIOS = np.array([1e-3, 1e-2, 1e-1])
_MOST = 64  # components that are averaged
_LEVEL = 3.0  # prior variance of a constant
_MOST_MODELS = 10_000  # that a constant is looked for in
_MOST_WORK = 3e7  # of `residual_noise`: squared sizes of all models times rewards; well below a second
_MOST_FITTED = 3000
_SPARE = 8  # rewards beyond twice the size of a model, below which its residuals say little


@dataclass
class CrediblePrediction:
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


def believe(
    models: ModelClass, candidates: CandidateTable | Reference, choices: Choices, told: Rewards
) -> CrediblePrediction:
    """The mixture's belief about some choices, after at least one reward."""
    norms = typical_norms(models, candidates)
    norms = np.where(norms > 0.0, norms, 1.0)
    y = told.rewards
    unit = reward_unit(float(np.var(y)) if np.ptp(y) > 0.0 else 0.0, float(y.mean()), 1.0)
    unit = max(unit, 1e-290 * float(np.mean(np.square(y))), 1e-300)  # not so small that sums overflow
    cells: list[Posteriors] = []
    for ratio in _RATIOS:
        fits = posteriors(models, np.sqrt(ratio) * norms)
        for y, row in zip(told.rewards.tolist(), told.rows, strict=True):
            fits.update(row, y)
        cells.append(fits)
    formula = StudentEvidence(len(told) - int(models.intercept), unit)
    residuals = np.array([fits.residuals() for fits in cells])
    evidence = formula.log_evidence(_RATIOS[:, None], residuals, np.array([fits.log_determinants() for fits in cells]))
    noise = formula.noise_variances(_RATIOS[:, None], residuals)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    moments = CandidateMoments.empty(len(choices))
    for flat in np.argsort(-weights, axis=None, kind="stable")[:_MOST]:
        cell, j = divmod(int(flat), models.n_models)
        if weights[cell, j] > 1e-6:
            share, variance = weights[cell, [j]], noise[cell, [j]]
            cells[cell].merge_moments(moments, np.array([j]), share, variance, choices)
    variance = (moments.within + moments.between) / moments.total
    return CrediblePrediction(moments.mean, np.sqrt(variance), weights.sum(axis=0))


def log_odds_of_a_constant(models: ModelClass, norms: FloatArray, told: Rewards) -> float:
    """Logarithm of the evidence with a constant over that without one; zero if models have one, are many, or kernels.

    `norms` (M,) are typical sizes of the models' features, see `typical_norms`.
    """
    if models.intercept or models.kernels is not None or len(told) < 2 or models.n_models > _MOST_MODELS:
        return 0.0
    if not told.rewards.any():
        return 0.0
    t, offsets = len(told), models.offsets
    values = np.column_stack([told.rows, np.ones(t), told.rewards])
    products, sizes = values.T @ values, np.where(norms > 0.0, norms, 1.0) * models.scales
    penalties = np.repeat(np.square(sizes), np.diff(offsets))
    formula = StudentEvidence(t, float(products[-1, -1]) / t)  # b0 is the mean square of the rewards
    members = np.tile(np.arange(models.n_models), _RATIOS.size)
    ratios = np.repeat(_RATIOS, models.n_models)

    def log_evidence(columns: IntArray, offsets: IntArray, penalties: FloatArray) -> float:
        """Of all models and ratios together, up to a constant."""
        residuals, volumes = np.empty((2, ratios.size))
        penalised(products, members, columns, offsets, penalties, ratios, residuals, volumes)
        return log_sum(formula.log_evidence(ratios, residuals, volumes))

    columns, later = np.insert(models.columns_flat, offsets[1:], models.n_columns), np.arange(models.n_models + 1)
    with_one = log_evidence(columns, offsets + later, np.insert(penalties, offsets[1:], 1.0 / _LEVEL))
    return with_one - log_evidence(models.columns_flat, offsets, penalties)


def residual_noise(models: ModelClass, rows: FloatArray, rewards: FloatArray) -> float | None:
    """Standard deviation of the residuals of the model that fits t rewards best, by least squares; rows (t, P).

    None where some model is a kernel or too large for so few rewards, or the models too many for a quick look.
    """
    t, sizes = len(rewards), np.diff(models.offsets) + int(models.intercept)
    if models.kernels is not None or t < 2 * int(sizes.max()) + _SPARE or models.n_models > _MOST_FITTED:
        return None
    if float(np.square(sizes, dtype=np.float64).sum()) * t > _MOST_WORK:
        return None
    rows = rows - rows.mean(axis=0) if models.intercept else rows
    rewards = rewards - rewards.mean() if models.intercept else rewards
    smallest = np.inf
    for group in models.groups:
        left, values, _ = np.linalg.svd(rows[:, group], full_matrices=False)
        left = left[:, values > 1e-10 * values[:1]]
        rest = rewards - left @ (left.T @ rewards)
        smallest = min(smallest, float(rest @ rest) / (t - left.shape[1] - int(models.intercept)))
    return float(np.sqrt(smallest))
