"""What a mixture expected of every reward before it came, and which rewards decided between two models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.checking.ledger import Rewards
from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.mixture.replays import Replays
from alexp.problem.candidates import Choices

_FIRST = 2  # rewards before anything is expected


@dataclass(frozen=True)
class Hindsight:
    """t rewards in the order in which they came, as the mixture and K of its models expected them.

    Attributes
    ----------
    mean, std : (t,) the mixture's prediction of a reward given those before it, noise included.
    model_mean, model_std : (t, K) the same by each of the models alone.
    log_odds : (t + 1, K) logarithm of each model's weight, relative to the first model's, after 0..t rewards.
    """

    mean: FloatArray
    std: FloatArray
    model_mean: FloatArray
    model_std: FloatArray
    log_odds: FloatArray


def look_back(mixture: Mixture, told: Rewards, models: IntArray, replays: Replays) -> Hindsight:
    """Feed an empty mixture with the rewards told, and note what it expected of each.

    ``models`` (K,) are those to be told apart, ``replays`` is empty and watched if the run still holds rewards back.
    Takes as long as learning did. Nothing is expected of the first two rewards, which may be of any size and level.
    """
    t, k = len(told), models.size
    mean, std = np.full((2, t), np.nan)
    model_mean, model_std = np.full((2, t, k), np.nan)
    log_odds = np.empty((t + 1, k))
    log_odds[0] = _log_odds(mixture, models)
    for step in range(t):
        point = Choices(told.indices[step : step + 1], np.ascontiguousarray(told.rows[step][:, None]))
        scores = mixture.log_weights()
        if step >= _FIRST:
            mean[step], std[step] = _prediction(mixture, _normalised(scores), point, replays)
        for place, model in enumerate(models if step >= _FIRST else ()):
            alone = np.full_like(scores, -np.inf)
            alone[:, model] = scores[:, model]  # all of them may be negligible, and then there is no prediction
            model_mean[step, place], model_std[step, place] = _prediction(mixture, _normalised(alone), point)
        index, reward = int(told.indices[step]), float(told.rewards[step])
        if not replays.hold(index, reward):
            mixture.update(told.rows[step], reward, index)
        log_odds[step + 1] = _log_odds(mixture, models)
    return Hindsight(mean, std, model_mean, model_std, log_odds)


def _log_odds(mixture: Mixture, models: IntArray) -> FloatArray:
    """Of each model against the first, (K,); of priors that differ before there are rewards."""
    weights = mixture.log_weights()[:, models]
    return np.asarray(np.logaddexp.reduce(weights, axis=0) - np.logaddexp.reduce(weights[:, 0]))


def _prediction(
    mixture: Mixture, weights: FloatArray, point: Choices, replays: Replays | None = None
) -> tuple[float, float]:
    if np.isnan(weights).any():
        return np.nan, np.nan
    noise, (mean, variance) = mixture.noise_variance(weights), mixture.moments(weights, point)
    if replays is not None:
        mean, variance = replays.settle(mean, variance, noise, point)
    return float(mean[0]), float(np.sqrt(variance[0] + noise))


def _normalised(scores: FloatArray) -> FloatArray:
    top = scores.max()
    weights = np.exp(scores - top) if np.isfinite(top) else np.full_like(scores, np.nan)
    return np.asarray(weights / weights.sum())
