"""What is believed about several objectives at once: a mixture for each that is measured, and known columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.hypervolume import reference_point
from alexp.problem.candidates import Choices, Round

if TYPE_CHECKING:
    from alexp.algorithms.evidence_mixture import MixtureBelief


class ObjectivesBelief:
    """The `SeveralBeliefs` of a run: K objectives to be maximised, which are independent given the rewards.

    Parameters
    ----------
    parts : for every objective the belief of its mixture, or its known values (N,).
    measured : (m,) candidates that have been measured.
    costs : (N,) of all candidates; None where experiments have none.
    """

    def __init__(
        self, parts: Sequence[MixtureBelief | FloatArray], measured: IntArray, costs: FloatArray | None
    ) -> None:
        self._parts, self._measured, self._costs = parts, measured, costs
        self._first = next(part for part in parts if not isinstance(part, np.ndarray))

    @cached_property
    def values(self) -> FloatArray:
        """Values of the measured candidates, (m, K): means of their measurements, or of the posterior under noise."""
        if not self._measured.size:
            return np.empty((0, len(self._parts)))
        own = [
            part[self._measured] if isinstance(part, np.ndarray) else part.values_at(self._measured)
            for part in self._parts
        ]
        return np.stack(own, axis=1)

    @cached_property
    def reference(self) -> FloatArray:
        """`reference_point` of the measured values; of a known objective, of all candidates.

        Before the first reward, one deviation below what is expected.
        """
        ends = [
            reference_point(part[:, None])[0]
            if isinstance(part, np.ndarray)
            else reference_point(self.values[:, [k]])[0]
            if self._measured.size
            else -1.0
            for k, part in enumerate(self._parts)
        ]
        return np.array(ends)

    def front(self, round: Round) -> FloatArray:
        """Measured values, and means of pending trials, (m, K)."""
        if not round.pending:
            return self.values
        waiting = Choices(round.pending.indices, np.ascontiguousarray(round.pending.rows.T))
        expected = [
            part[round.pending.indices] if isinstance(part, np.ndarray) else part.moments_at(waiting)[0]
            for part in self._parts
        ]
        return np.vstack([self.values, np.stack(expected, axis=1)])

    def excess(self, objective: int, round: Round, levels: FloatArray, width: float) -> FloatArray:
        """E[max(value - level, 0)] of one objective, (L, n)."""
        part = self._parts[objective]
        if isinstance(part, np.ndarray):
            return np.maximum(part[round.indices] - levels[:, None], 0.0)
        return part.excess(round, levels, width)

    def uncertainty(self, round: Round) -> FloatArray:
        """Standard deviations in units of the reach of the measured values above the reference, summed, (n,)."""
        reach = np.ones(len(self._parts))
        if self._measured.size:
            reach = self.values.max(axis=0) - self.reference
        total = np.zeros(len(round))
        for part, unit in zip(self._parts, reach.tolist(), strict=True):
            if not isinstance(part, np.ndarray):
                total += part.plain_moments(round).std / unit
        return total

    def worth(self, round: Round, gains: FloatArray) -> FloatArray:
        """Gains times the probability of success, per unit of cost."""
        likely = gains * self._first.success_probabilities(round)
        return likely if self._costs is None else likely / self._costs[round.indices]
