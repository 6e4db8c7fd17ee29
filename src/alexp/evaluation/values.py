"""What evaluation returns: a value, an interval that holds at every moment, and what all of it rests on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class PolicyValue:
    """The estimated value of a policy: its mean reward per round.

    Attributes
    ----------
    estimator : "ips", "snips", "dm", "dr" or "replay".
    value : the estimate.
    running_lower, running_upper
        (n_used,), bounds after each round that was used; with probability 1 - delta all of them hold at once.
    delta, method : of the bounds.
    n_used, n_left_out : rounds of the log that were used, and that could not be.
    largest_weight, mean_weight : of pi/p where actions were played; the mean is 1 but for chance.
    effective_size : (sum w)^2 / sum w^2, how many rounds of the new policy itself the log is worth, roughly.
    n_accepted : of "replay": rounds in which the new policy would have played the same.
    assumes : what the bounds rest on.
    """

    estimator: str
    value: float
    running_lower: FloatArray
    running_upper: FloatArray
    delta: float
    method: str
    n_used: int
    n_left_out: int
    largest_weight: float
    mean_weight: float
    effective_size: float
    assumes: tuple[str, ...]
    n_accepted: int | None = None

    @property
    def lower(self) -> float:
        """The lower bound after all rounds."""
        return float(self.running_lower[-1])

    @property
    def upper(self) -> float:
        """The upper bound after all rounds."""
        return float(self.running_upper[-1])

    @property
    def interval(self) -> tuple[float, float]:
        """Both bounds after all rounds."""
        return self.lower, self.upper

    @property
    def bounded(self) -> bool:
        """Whether there are bounds at all: they need a stated range of rewards."""
        return bool(np.isfinite(self.lower) and np.isfinite(self.upper))

    @property
    def contradicted(self) -> bool:
        """Whether no value agrees with the log: something that is assumed is wrong, but for chance delta."""
        return bool(np.any(self.running_lower > self.running_upper))

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._details()])

    def _headline(self) -> str:
        return f"{self.estimator}: value {self.value:.4g}, {self._bounds()}"

    def _bounds(self) -> str:
        if not self.bounded:
            return "no interval (state reward_range)"
        level = f"{100 * (1 - self.delta):g}% at every moment"
        found = f"in [{self.lower:.4g}, {self.upper:.4g}] ({level}, {self.method})"
        return found + (": EMPTY, what is assumed is contradicted" if self.contradicted else "")

    def _details(self) -> list[str]:
        accepted = "" if self.n_accepted is None else f", {self.n_accepted} of them accepted"
        return [
            f"  {self.n_used} rounds used{accepted}, {self.n_left_out} left out; "
            f"effective size {self.effective_size:.1f}",
            f"  weights: mean {self.mean_weight:.3g} (1 but for chance), largest {self.largest_weight:.4g}",
            *(f"  assumes {what}" for what in self.assumes),
        ]


@dataclass(frozen=True, eq=False)
class PolicyDifference(PolicyValue):
    """The value of policy b less that of policy a; weights are |pi_b - pi_a| / p, with mean twice the distance."""

    @property
    def decided_at(self) -> int | None:
        """Number of used rounds after which the sign was certain; None if it is not."""
        certain = np.flatnonzero((self.running_lower > 0.0) | (self.running_upper < 0.0))
        return int(certain[0]) + 1 if certain.size else None

    @property
    def verdict(self) -> str:
        """ "b is better", "a is better", or "undecided"."""
        if self.lower > 0.0:
            return "b is better"
        return "a is better" if self.upper < 0.0 else "undecided"

    def _headline(self) -> str:
        since = "" if self.decided_at is None else f" (certain after {self.decided_at} rounds)"
        return f"{self.verdict}{since}: b - a = {self.value:.4g}, {self._bounds()}"

    def _details(self) -> list[str]:
        lines = super()._details()
        lines[1] = f"  |weights|: mean {self.mean_weight:.3g}, largest {self.largest_weight:.4g}"
        return lines
