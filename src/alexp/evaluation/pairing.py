"""A log and a policy held against each other, and the way from bounds to what users get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import LARGEST, finite, fraction, one_of
from alexp.common.warning import caution
from alexp.evaluation._wealth import mixture_crossings
from alexp.evaluation.log import Log, LogWarning
from alexp.evaluation.payoffs import Bets, running_level
from alexp.evaluation.policies import Policy, check_overlap, probabilities
from alexp.evaluation.ragged import Ragged
from alexp.evaluation.sequences import METHODS, STAKES
from alexp.evaluation.values import PolicyValue

Range = tuple[float, float]
Result = TypeVar("Result", bound=PolicyValue)
SUSPICION = 1000.0  # odds against true propensities at which a warning is given


@dataclass(frozen=True)
class Pairing:
    """A log and a policy that were found to fit together, reduced to the rounds that can be used.

    Attributes
    ----------
    policy : probabilities of all candidates.
    index, propensities, rewards, weights : (n,).
    least : (N,), lower bounds of the logger's probabilities, or None.
    most : 1 / floor, infinite without one.
    limits : the stated range of rewards, or None.
    """

    log: Log
    policy: Ragged
    index: IntArray
    propensities: FloatArray
    rewards: FloatArray
    weights: FloatArray
    least: FloatArray | None
    most: float
    limits: Range | None
    delta: float
    method: str

    @classmethod
    def of(
        cls, log: Log, policy: Policy, name: str, limits: object, floor: float | None, delta: float, method: str
    ) -> Pairing:
        """Check everything; errors name the argument."""
        if not isinstance(log, Log):
            raise TypeError(f"log must be an alexp.ope.Log, got {type(log).__name__}; see Log.from_frame")
        fraction("delta", delta)
        one_of("method", method, METHODS)
        found = probabilities(name, policy, log)
        check_overlap(name, found, log)
        some = log.usable
        rewards, propensities, index = log.rewards[some], log.propensities[some], log.index[some]
        stated = None if limits is None else _range(limits, rewards)
        found = found.take(some)
        return cls(
            log,
            found,
            index,
            propensities,
            rewards,
            _weights(name, found.at(index), log),
            _least(log, found, floor),
            np.inf if floor is None else 1.0 / floor,
            stated,
            delta,
            method,
        )

    def unit(self, rewards: FloatArray) -> FloatArray:
        """Rewards in units of the range; predictions outside of it are brought to its ends."""
        low, high = self.limits or (0.0, 1.0)
        return np.clip((rewards - low) / (high - low), 0.0, 1.0)

    def bets(self, predicted: Ragged | None, clip: float = np.inf) -> Bets:
        """What bounds are made of."""
        q = None if predicted is None else predicted.like(self.unit(predicted.values))
        return Bets(
            self.policy, self.index, self.propensities, self.unit(self.rewards), q, self.least, self.most, clip=clip
        )

    def level(self) -> Ragged | None:
        """The self-normalised value so far as a prediction, in units of the rewards; None if it is of no use."""
        if self.least is None or self.limits is None:
            return None
        low, high = self.limits
        found = running_level(self.policy, self.index, self.propensities, self.unit(self.rewards))
        return found.like(low + (high - low) * found.values)

    def bounds(self, bets: Bets) -> tuple[FloatArray, FloatArray]:
        """Running bounds of the value, in units of the rewards; infinite without a stated range."""
        if self.limits is None:
            return self.nothing()
        low, high = self.limits
        lower, upper = bets.sequences(self.delta, self.method)
        start = 0.0 if bets.difference else low
        return start + (high - low) * lower, start + (high - low) * upper

    def nothing(self) -> tuple[FloatArray, FloatArray]:
        """Bounds that say nothing."""
        return np.full(self.index.size, -np.inf), np.full(self.index.size, np.inf)

    def result(
        self,
        kind: type[Result],
        estimator: str,
        value: float,
        bounds: tuple[FloatArray, FloatArray],
        weights: FloatArray,
        n_accepted: int | None = None,
    ) -> Result:
        """What the user gets; says so if it contradicts itself."""
        squares = float(weights @ weights)
        found = kind(
            estimator=estimator,
            value=value,
            running_lower=bounds[0],
            running_upper=bounds[1],
            delta=self.delta,
            method=self.method,
            n_used=weights.size,
            n_left_out=self.log.n_left_out,
            largest_weight=float(weights.max()),
            mean_weight=float(weights.mean()),
            effective_size=float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0,
            assumes=self._assumes() if self.limits is not None else (),
            n_accepted=n_accepted,
        )
        if found.contradicted:
            caution(
                "no value agrees with this log at every moment: propensities are not those the log was played with, "
                'rewards or contexts have changed over time (see method="drifting"), or the policy knows the log',
                LogWarning,
            )
        return found

    def _assumes(self) -> tuple[str, ...]:
        low, high = self.limits or (np.nan, np.nan)
        steady = "rewards given contexts and actions, and the contexts, have one distribution throughout"
        if self.method == "drifting":
            steady = "nothing about drift: the value is the average over the rounds so far, on their own contexts"
        return (
            f"rewards in [{low:g}, {high:g}]; rounds are left out for reasons that do not depend on their rewards",
            "propensities are those with which actions were drawn, given all that came before",
            "the policy was fixed before the log began, or before each round without its reward",
            steady,
        )


def check_weights(weights: FloatArray) -> None:
    """Weights have mean 1 if propensities are true and the logger could play all that the policy plays."""
    mean = float(weights.mean())
    one = mixture_crossings(weights[:, None], np.zeros(1), STAKES, np.ones(1), SUSPICION)
    if one[0] < weights.size:
        caution(
            f"weights pi/p average {mean:.3g} and not 1, which would be a {1 / SUSPICION:g} chance if the propensities "
            "were true: they are too small",
            LogWarning,
        )
    elif weights.size >= 100 and mean + 5.0 * weights.std() / np.sqrt(weights.size) < 1.0:
        caution(
            f"weights pi/p average {mean:.3g} and not 1: the policy plays what the log has hardly played. If the "
            "logger could not play it at all, neither value nor interval holds; if it was rare, the interval does",
            LogWarning,
        )


def _weights(name: str, chosen: FloatArray, log: Log) -> FloatArray:
    """pi/p of the usable rounds, (n,); squares of them must be numbers."""
    propensities = log.propensities[log.usable]
    with np.errstate(over="ignore"):
        weights = chosen / propensities
    if (wrong := np.flatnonzero(weights > LARGEST)).size:
        raise ValueError(
            f"propensities of round {np.flatnonzero(log.usable)[wrong[0]]} is {propensities[wrong[0]]:g}, where {name} "
            f"plays with probability {chosen[wrong[0]]:g}: weights pi/p must not exceed {LARGEST:g}. Nothing that rare "
            "was played by chance: correct the propensity, or set it to NaN, and the round is left out"
        )
    return weights


def _range(limits: object, rewards: FloatArray) -> Range:
    if not isinstance(limits, tuple | list) or len(limits) != 2:
        raise TypeError(f"reward_range must be two numbers (lo, hi), got {limits!r}")
    low, high = finite("reward_range[0]", limits[0]), finite("reward_range[1]", limits[1])
    if not low < high:
        raise ValueError(f"reward_range must have lo < hi, got ({low:g}, {high:g})")
    outside = np.flatnonzero((rewards < low) | (rewards > high))
    if outside.size:
        raise ValueError(
            f"{outside.size} rewards lie outside the stated range [{low:g}, {high:g}], {rewards[outside[0]]:g} the "
            "first of them: bounds would not hold. State a range in which all rewards must lie, seen or not"
        )
    return low, high


def _least(log: Log, policy: Ragged, floor: float | None) -> FloatArray | None:
    """Lower bounds of the logger's probabilities of all candidates, (N,), or None."""
    if floor is not None:
        fraction("floor", floor)
        smallest = float(np.nanmin(log.propensities))
        if smallest < floor * (1.0 - 1e-9):
            raise ValueError(f"floor = {floor:g} is no lower bound of the propensities: the log has {smallest:g}")
    if log.probabilities is not None:
        return log.probabilities.take(log.usable).values
    return None if floor is None else np.full(policy.values.size, floor)
