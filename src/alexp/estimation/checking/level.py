"""Do the rewards speak for a constant that the models lack?

Rewards that lie around 50 can be mimicked by models without a constant wherever an optimiser likes to look, so that
nothing contradicts these; elsewhere they are far off. The evidence notices earlier: the mixture of
`estimation.checking.credible`, once as it is and once with a constant of prior variance 1 or 10 (in units of the other
coefficients' contribution to the rewards) in every model. No statement rests on the answer; statements are withheld.
"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.checking.ledger import Rewards
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.models import ModelClass

_RATIOS = (1e-4, 1e-3, 1e-2, 0.1, 0.5)
_LEVELS = (1.0, 10.0)
_MOST_MODELS = 10_000


def log_odds_of_a_constant(models: ModelClass, norms: FloatArray, told: Rewards) -> float:
    """Logarithm of the evidence with a constant over that without one; zero if models have one, are many, or kernels.

    `norms` (M,) are typical sizes of the models' features, see `credible.typical_norms`.
    """
    if models.intercept or models.kernels is not None or len(told) < 2 or models.n_models > _MOST_MODELS:
        return 0.0
    unit = float(np.mean(np.square(told.rewards)))
    if unit == 0.0:
        return 0.0
    sizes = np.where(norms > 0.0, norms, 1.0)
    with_one = np.logaddexp.reduce([_log_evidence(models, sizes, told, unit, level) for level in _LEVELS])
    return float(with_one - np.log(len(_LEVELS)) - _log_evidence(models, sizes, told, unit, 0.0))


def _log_evidence(models: ModelClass, sizes: FloatArray, told: Rewards, unit: float, level: float) -> float:
    """Of all models and ratios together, up to a constant: -(1 + t/2) log(b + F/2) - D/2 with b the mean square."""
    m, p, t = models.n_models, told.rows.shape[1], len(told)
    constants = np.sqrt(level) * sizes * models.scales  # one column for each model: their units differ
    columns = np.insert(models.columns_flat, models.offsets[1:], p + np.arange(m))
    offsets = models.offsets + np.arange(m + 1)
    rows = np.hstack([told.rows, np.tile(constants, (t, 1))])
    scores = []
    for ratio in _RATIOS:
        bank = RidgeBank(columns, offsets, np.sqrt(ratio) * sizes * models.scales)
        for row, y in zip(rows, told.rewards.tolist(), strict=True):
            bank.update(row, y)
        excess = bank.residuals() / (2.0 * ratio * unit)
        scores.append(-(1.0 + 0.5 * t) * np.log1p(excess) - 0.5 * (t * np.log(ratio) + bank.log_determinants()))
    return float(np.logaddexp.reduce(np.array(scores), axis=None))
