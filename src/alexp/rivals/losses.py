"""Losses in [0, 1] for masters whose theory needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from alexp.extend import limited


@dataclass(frozen=True)
class LossScale:
    """Rewards to losses: `high` to 0, `low` to 1, clipped outside.

    >>> LossScale(-1.0, 1.0)(0.5)
    0.25
    """

    low: float
    high: float

    @classmethod
    def of(cls, loss_range: Sequence[float] | None, reward_bound: float, noise_std: float, sign: float = 1.0) -> Self:
        """From the user's range of rewards, or from +-(reward_bound + 3 noise_std) if there is none.

        `sign` is -1 when rewards are minimised: the range is given in the user's units, losses are computed from
        rewards to be maximised.
        """
        if loss_range is None:
            width = reward_bound + 3.0 * noise_std
            return cls(-width, width)
        if not isinstance(loss_range, Sequence | np.ndarray) or len(loss_range) != 2:
            raise ValueError(f"loss_range must be (lowest reward, highest reward), got {loss_range!r}")
        ends = [limited("loss_range", value) for value in loss_range]
        if ends[0] >= ends[1]:
            raise ValueError(f"loss_range must be (lowest reward, highest reward), got {loss_range!r}")
        low, high = sorted(sign * end for end in ends)
        return cls(low, high)

    def __call__(self, reward: float) -> float:
        """The loss of a reward."""
        return float(np.clip((self.high - reward) / (self.high - self.low), 0.0, 1.0))
