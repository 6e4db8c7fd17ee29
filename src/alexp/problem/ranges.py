"""The range that rewards lie in, where one is stated: yields lie between 0 and 100."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import limited


class RewardRange(NamedTuple):
    """Smallest and largest reward that is possible."""

    low: float
    high: float

    @classmethod
    def checked(cls, given: object) -> RewardRange | None:
        """The range, or raise unless it is a pair of numbers in increasing order; None for none."""
        if given is None:
            return None
        if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) != 2:
            raise ValueError(f"reward_range must be a pair (lowest, highest), such as (0, 100), got {given!r:.80}")
        low, high = (limited("reward_range", value) for value in given)
        if not low < high:
            raise ValueError(f"reward_range must be (lowest, highest) with lowest < highest, got ({low:g}, {high:g})")
        return cls(low, high)

    def check(self, reward: float) -> float:
        """The reward; raises where it lies outside."""
        if self.low <= reward <= self.high:
            return reward
        raise ValueError(
            f"reward must lie within the reward_range of {self.low:g} to {self.high:g}, got {reward:.10g}; correct it"
        )

    def clip(self, values: FloatArray) -> FloatArray:
        """Values, those outside at the nearer end."""
        return np.clip(values, self.low, self.high)

    def largest_gap(self, lower: float, sign: float) -> float:
        """By how much a reward can beat one that is `lower` at least, both to be maximised if `sign` is 1, else -1."""
        best, worst = (self.high, self.low) if sign > 0.0 else (-self.low, -self.high)
        return best - min(max(lower, worst), best)
