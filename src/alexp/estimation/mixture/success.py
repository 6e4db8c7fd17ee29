"""Where experiments succeed: a second mixture over the same models, from successes (1) and failures (0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.mixture.making import ratio_mixture

if TYPE_CHECKING:
    from alexp.estimation.mixture.mixture import Mixture
    from alexp.problem.candidates import CandidateTable, Choices
    from alexp.problem.models import ModelClass

FLOOR = 0.05  # least probability of success: what looks hopeless is tried where nothing else is promising
RATIOS = (1e-2, 0.1, 0.5)  # of noise to prior variance: zeros and ones are never smooth


class SuccessMixture:
    """The probability that the experiment of a candidate succeeds.

    The models regress what is missing to a success, 0 for a success and -1 for a failure: without a constant they
    expect success where nothing is known.
    """

    def __init__(self, models: ModelClass, candidates: CandidateTable | None, power: float) -> None:
        self.mixture: Mixture = ratio_mixture(models, candidates, RATIOS, None, power)

    @property
    def n_outcomes(self) -> int:
        """Number of successes and failures so far."""
        return self.mixture.n_observations

    def update(self, row: FloatArray, succeeded: bool, index: int | None) -> None:
        """Take in one outcome; `row` (P,) is the dictionary at the candidate."""
        self.mixture.update(row, 0.0 if succeeded else -1.0, index)

    def probabilities(self, choices: Choices) -> FloatArray:
        """Probability of success of every choice, (n,), from 0.05 to 1."""
        mean, _ = self.mixture.moments(self.mixture.weights(), choices)
        return np.clip(1.0 + mean, FLOOR, 1.0)


def weighed(values: FloatArray, success: FloatArray, worst: float) -> FloatArray:
    """Rewards (n,) where a failure, with probability 1 - success (n,), is worth as little as the worst."""
    return worst + success * (values - worst)
