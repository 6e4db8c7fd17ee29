"""Off-policy estimators: the value of a new policy on a log of another one, with confidence sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.notebook import paragraph
from alexp.common.validation import LARGEST, finite, fraction, one_of, positive
from alexp.common.warning import caution
from alexp.ope._kernels import mixture_crossings
from alexp.ope.log import AGREEMENT, Log, LoggedRound, LogWarning, NoOverlapError, Ragged, check_distributions
from alexp.ope.sequences import METHODS, STAKES, Bets, Method, Payoffs, lower_sequence, running_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Range = tuple[float, float]
Result = TypeVar("Result", bound="PolicyValue")
GROWTH = 1.1  # the regression is solved again when the number of rewards has grown by this factor
SUSPICION = 1000.0  # odds against true propensities at which a warning is given


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
    n_used, n_left_out : number of rounds of the log that were used, and of those that could not be.
    largest_weight, mean_weight : of the weights pi/p of the played actions; their expectation is 1.
    effective_size : (sum w)^2 / sum w^2, roughly the number of rounds of the new policy itself that are worth as much.
    n_accepted : for "replay", number of rounds in which the new policy would have played the same.
    assumes : the assumptions of the bounds.
    """

    estimator: str
    value: float
    running_lower: FloatArray
    running_upper: FloatArray
    delta: float
    method: Method
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
        """Whether there are bounds, which need a stated range of rewards."""
        return bool(np.isfinite(self.lower) and np.isfinite(self.upper))

    @property
    def contradicted(self) -> bool:
        """Whether no value agrees with the log; if the assumptions are true, this has probability at most delta."""
        return bool(np.any(self.running_lower > self.running_upper))

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._details()])

    def _repr_html_(self) -> str:
        return paragraph(self)

    def plot(self, ax: Axes | None = None, *, engine: str = "matplotlib") -> Any:
        """Draw the interval after every round; returns the axes. `alexp.plot.values` draws several results."""
        return import_module("alexp.plot").values(self, ax, engine=engine)

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
        """Number of used rounds since which the sign has been certain; None if it is not."""
        open_ = np.flatnonzero(self.running_lower <= 0.0 if self.lower > 0.0 else self.running_upper >= 0.0)
        since = int(open_[-1]) + 2 if open_.size else 1
        return since if since <= self.running_lower.size else None

    @property
    def verdict(self) -> str:
        """What is certain of b: "better by at least ...", "worse by at least ...", or "not yet"."""
        if self.lower > 0.0:
            return f"better by at least {_rounded_down(self.lower)}"
        return f"worse by at least {_rounded_down(-self.upper)}" if self.upper < 0.0 else "not yet"

    def _headline(self) -> str:
        since = "" if self.decided_at is None else f" (certain after {self.decided_at} rounds)"
        return f"{self.verdict}{since}: difference {self.value:.4g}, {self._bounds()}"

    def _details(self) -> list[str]:
        lines = super()._details()
        lines[1] = f"  |weights|: mean {self.mean_weight:.3g}, largest {self.largest_weight:.4g}"
        return lines


def _rounded_down(positive_number: float) -> str:
    """Three digits, so that "at least" stays true."""
    unit = 10.0 ** (np.floor(np.log10(positive_number)) - 2)
    return f"{np.floor(positive_number / unit) * unit:.3g}"


def ips(
    log: Log,
    policy: Policy,
    *,
    reward_range: Range | None = None,
    clip: float | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: Method = "betting",
) -> PolicyValue:
    """Inverse propensity scoring: mean of w y, w = pi(a)/p.

    Parameters
    ----------
    log, policy
        See `Log` and `policy_probabilities`. The policy must not have learnt from the log.
    reward_range
        (lo, hi), where rewards lie; without it there is no interval.
    clip
        Upper bound of the weights. With non-negative rewards the value is then too low on average; the interval is
        wider and still holds for the value of the policy itself.
    floor
        A lower bound of all the logger's propensities, known before the log began, such as gamma / n. Optional; with
        it, or with `Log.probabilities`, intervals use predictions.
    delta, method
        The interval holds at all moments with probability 1 - delta; "betting", "hedged", "bernstein" or "drifting",
        see `alexp.ope.sequences`.
    """
    pair = Pairing.of(log, policy, "policy", reward_range, floor, delta, method)
    most = np.inf if clip is None else positive("clip", clip)
    weights = np.minimum(pair.weights, most)
    bets = pair.bets(pair.level() if clip is None else None, most)
    check_weights(pair.weights)
    value = float(np.mean(weights * pair.rewards))
    return pair.result(PolicyValue, "ips", value, pair.bounds(bets), weights)


def snips(
    log: Log,
    policy: Policy,
    *,
    reward_range: Range | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: Method = "betting",
) -> PolicyValue:
    """Self-normalised inverse propensity scoring: sum(w y) / sum(w). Arguments as of `ips`."""
    pair = Pairing.of(log, policy, "policy", reward_range, floor, delta, method)
    total = pair.weights.sum()
    value = float(pair.weights @ pair.rewards / total) if total > 0.0 else float("nan")
    check_weights(pair.weights)
    return pair.result(PolicyValue, "snips", value, pair.bounds(pair.bets(pair.level())), pair.weights)


def dm(
    log: Log,
    policy: Policy,
    *,
    model: object = "ridge",
    ridge: float = 1.0,
    reward_range: Range | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: Method = "betting",
) -> PolicyValue:
    """The direct method: mean of sum_a pi(a) q(a), as good as the predictions q are.

    The interval is that of `dr`: it holds for the value of the policy whether q is right or not, and a value outside of
    it shows that q is wrong. Arguments as of `dr`.
    """
    pair = Pairing.of(log, policy, "policy", reward_range, floor, delta, method)
    q = predictions(log, model, ridge, pair.limits)
    value = float(np.mean(pair.policy.like(pair.policy.values * q.values).sums()))
    check_weights(pair.weights)
    return pair.result(PolicyValue, "dm", value, pair.bounds(pair.bets(q)), pair.weights)


def dr(
    log: Log,
    policy: Policy,
    *,
    model: object = "ridge",
    ridge: float = 1.0,
    reward_range: Range | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: Method = "betting",
) -> PolicyValue:
    """Doubly robust: mean of sum_a pi(a) q(a) + w (y - q(a_t)).

    Parameters
    ----------
    model
        "ridge": regression with a free constant on the features of all candidates (`log_features="all"`), fitted
        on earlier rounds; or predictions of your own, (n, K) or one vector per round, which must not come from the
        rewards of their own or later rounds.
    ridge
        Penalty, in units of the variance of each column.

    Others as of `ips`. Without `floor` and `Log.probabilities` the interval is that of `ips`: predictions cannot narrow
    a bound that must hold for arbitrarily large weights.
    """
    pair = Pairing.of(log, policy, "policy", reward_range, floor, delta, method)
    q = predictions(log, model, ridge, pair.limits)
    known = pair.policy.like(pair.policy.values * q.values).sums()
    value = float(np.mean(known + pair.weights * (pair.rewards - q.at(pair.index))))
    check_weights(pair.weights)
    return pair.result(PolicyValue, "dr", value, pair.bounds(pair.bets(q)), pair.weights)


def replay(
    log: Log,
    policy: Policy,
    *,
    bound: float | None = None,
    seed: int = 0,
    reward_range: Range | None = None,
    delta: float = 0.05,
    method: Method = "betting",
) -> PolicyValue:
    """The mean reward of the rounds in which the new policy would have played the same (rejection sampling).

    A round is accepted with probability w / `bound`. In uniform logs the bound is the largest number of candidates, so
    that a deterministic policy accepts where it agrees. Other logs need a `bound` of w that was known before the log
    began; they are refused without.
    """
    pair = Pairing.of(log, policy, "policy", reward_range, None, delta, method)
    sizes = log.n[log.usable]
    if bound is None:
        if np.abs(pair.propensities * sizes - 1.0).max() > 1e-9:
            raise ValueError(
                "replay without bound= needs a uniform log (every propensity 1/n), and this one is not: accepted "
                "rounds would be biased towards the logger's policy. Pass bound=, a limit of pi/p that was known "
                "before the log began, or use ips or dr"
            )
        bound = float(sizes.max())
    if pair.weights.max() > positive("bound", bound) * (1.0 + 1e-9):
        raise ValueError(
            f"bound must be at least as large as every weight pi/p, got {bound:g} < {pair.weights.max():g}"
        )
    accepted = np.random.default_rng(seed).random(sizes.size) * bound < pair.weights
    if not accepted.any():
        raise ValueError(f"in none of {sizes.size} rounds the new policy would have played the same; use ips or dr")
    rewards = pair.rewards[accepted]
    bounds = pair.nothing()
    if pair.limits is not None:
        low, high = pair.limits
        unit = pair.unit(rewards)
        known = np.cumsum(accepted)  # rounds accepted so far; before the first, nothing is known
        below, above = (np.concatenate(([0.0], _replayed(part, pair)))[known] for part in (unit, 1.0 - unit))
        bounds = low + (high - low) * below, high - (high - low) * above
    value = float(rewards.mean())
    return pair.result(PolicyValue, "replay", value, bounds, pair.weights, int(accepted.sum()))


def _replayed(rewards: FloatArray, pair: Pairing) -> FloatArray:
    """Lower bounds of the mean of accepted rewards, which are non-negative."""
    return lower_sequence(Payoffs(rewards[:, None], np.zeros(1), 0.0), pair.delta / 2.0, pair.method)


def compare(
    log: Log,
    a: Policy,
    b: Policy,
    *,
    model: object = None,
    ridge: float = 1.0,
    reward_range: Range | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: Method = "betting",
) -> PolicyDifference:
    """The value of policy b minus that of policy a, with a confidence sequence.

    Larger is better: negate rewards that are costs. Rounds in which both play alike add no variance, so that this
    decides much earlier than two intervals. The value is that of `ips`, or of `dr` with a `model`. Arguments as there.
    """
    pair = Pairing.of(log, b, "b", reward_range, floor, delta, method)
    other = Pairing.of(log, a, "a", reward_range, floor, delta, method)
    q = None if model is None else predictions(log, model, ridge, pair.limits)
    return _difference(pair, other, q)


def verdict(
    log: Log,
    incumbent: Policy,
    policy: Policy | None = None,
    *,
    delta: float = 0.05,
    reward_range: Range = (0.0, 1.0),
    method: Method = "drifting",
) -> PolicyDifference:
    """Whether a new policy earns more than the one in use: "not yet", or better or worse by at least so much.

    The claim is the result's `verdict`, and stands first when it is printed. With probability 1 - delta all claims are
    true that are made while the log grows, so that it may be asked after every round.

    Parameters
    ----------
    log
        Rounds without a reward (pending, lost) are left out and counted. This assumes that the missing ones do not
        depend on their rewards: if successes are reported sooner than failures, leave out all rounds that are young.
    incumbent
        The policy in use: an action by name or position, or as in `policy_probabilities`.
    policy
        The new policy, judged on a log of another (shadow mode): what it would have chosen in every round, or as in
        `policy_probabilities`. By default the policy that made the log. It may learn, as long as it is fixed in each
        round before that round's reward.
    reward_range
        (lo, hi), where rewards lie. Larger is better: negate costs.
    method
        "drifting": policies, contexts and rewards may change, the claim is about the mean over the rounds so far.
        "betting" is narrower, and assumes that neither policies nor world change.
    """
    other = Pairing.of(log, incumbent, "incumbent", reward_range, None, delta, method)
    if policy is None:
        return _own_difference(other)
    return _difference(Pairing.of(log, policy, "policy", reward_range, None, delta, method), other)


def _difference(pair: Pairing, other: Pairing, q: Ragged | None = None) -> PolicyDifference:
    """The value of `pair` less that of `other`; q are predictions."""
    change = pair.policy.like(pair.policy.values - other.policy.values)
    signed = pair.weights - other.weights
    value = float(np.mean(signed * pair.rewards))
    if q is not None:
        known = change.like(change.values * q.values).sums()
        value = float(np.mean(known + signed * (pair.rewards - q.at(pair.index))))
    bets = Bets(
        change,
        pair.index,
        pair.propensities,
        pair.unit(pair.rewards),
        None if q is None else q.like(pair.unit(q.values)),
        pair.least,
        pair.most,
        difference=True,
    )
    check_weights(pair.weights)
    check_weights(other.weights)
    return pair.result(PolicyDifference, "ips" if q is None else "dr", value, pair.bounds(bets), np.abs(signed))


def _own_difference(other: Pairing) -> PolicyDifference:
    """The value of the logger less that of `other`, from the propensities of the played actions alone.

    A round becomes two candidates, the played action and the rest, whose changes add up to 0. Offsets must then be the
    same for both: those of the rest are not known.
    """
    change = other.propensities - other.policy.at(other.index)
    n = change.size
    bets = Bets(
        Ragged(np.stack((change, -change), axis=1).ravel(), 2 * np.arange(n + 1)),
        np.zeros(n, dtype=np.int64),
        other.propensities,
        other.unit(other.rewards),
        difference=True,
        offset=1.0,
    )
    check_weights(other.weights)
    signed = 1.0 - other.weights
    value = float(np.mean(signed * other.rewards))
    return other.result(PolicyDifference, "ips", value, other.bounds(bets), np.abs(signed))


@dataclass(frozen=True)
class Pairing:
    """A log and a policy that fit together, reduced to the usable rounds.

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
    method: Method

    @classmethod
    def of(
        cls, log: Log, policy: Policy, name: str, limits: object, floor: float | None, delta: float, method: Method
    ) -> Pairing:
        """Check log, policy and arguments; errors name the argument."""
        if not isinstance(log, Log):
            raise TypeError(
                f"log must be an alexp.ope.Log, got {type(log).__name__}; use Log.from_frame(run.log_frame())"
            )
        fraction("delta", delta)
        one_of("method", method, METHODS)
        found = policy_probabilities(name, policy, log)
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
        """Rewards scaled to [0, 1] by the range; predictions outside are clipped."""
        low, high = self.limits or (0.0, 1.0)
        return np.clip((rewards - low) / (high - low), 0.0, 1.0)

    def bets(self, predicted: Ragged | None, clip: float = np.inf) -> Bets:
        """The rounds as the bounds need them."""
        q = None if predicted is None else predicted.like(self.unit(predicted.values))
        return Bets(
            self.policy, self.index, self.propensities, self.unit(self.rewards), q, self.least, self.most, clip=clip
        )

    def level(self) -> Ragged | None:
        """The self-normalised value so far as a prediction, in units of the rewards; None if bounds cannot use it."""
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
        """Infinite bounds."""
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
        """The result for the user; warns if no value agrees with the bounds."""
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
    """Warn if the weights do not have mean 1, as true propensities and overlap imply."""
    mean = float(weights.mean())
    one = mixture_crossings(weights[:, None], np.zeros(1), STAKES, np.ones(1), SUSPICION)
    if one[0] < weights.size:
        caution(
            f"weights pi/p average {mean:.3g} and not 1, which has probability {1 / SUSPICION:g} if the propensities "
            "are right: they are too small",
            LogWarning,
        )
    elif weights.size >= 100 and mean + 5.0 * weights.std() / np.sqrt(weights.size) < 1.0:
        caution(
            f"weights pi/p average {mean:.3g} and not 1: the policy plays actions that are rare in the log. If the "
            "logger could not play them at all, neither value nor interval holds; if they were rare, the interval does",
            LogWarning,
        )


def _weights(name: str, chosen: FloatArray, log: Log) -> FloatArray:
    """pi/p of the usable rounds, (n,); their squares must be finite."""
    propensities = log.propensities[log.usable]
    with np.errstate(over="ignore"):
        weights = chosen / propensities
    if (wrong := np.flatnonzero(weights > LARGEST)).size:
        raise ValueError(
            f"propensities of round {np.flatnonzero(log.usable)[wrong[0]]} is {propensities[wrong[0]]:g}, where {name} "
            f"plays with probability {chosen[wrong[0]]:g}: weights pi/p must not exceed {LARGEST:g}. Correct the "
            "propensity, or set it to NaN, and the round is left out"
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


@runtime_checkable
class HasPolicy(Protocol):
    """An algorithm or a study: `policy` returns its present probabilities, and changes nothing."""

    def policy(self, **arguments: object) -> FloatArray:
        """Probability of every candidate, (n,)."""


Policy = int | str | Sequence[object] | np.ndarray | Callable[[LoggedRound], object] | HasPolicy


def policy_probabilities(name: str, policy: Policy, log: Log) -> Ragged:
    """Probabilities of all candidates of all rounds of the log, those without a reward included.

    `policy` is an action, by position or by its name in `ids`, that is always played; an array (n, K); a list with one
    action or vector of probabilities per round; a function of `LoggedRound` that returns either; or an object with a
    method `policy`, which is called as the logger was: with `context=` where the log has contexts, with `features=`
    where it has those of all candidates, with nothing on a fixed domain; `available=` is added where it was restricted.
    """
    blocks: object = policy
    if isinstance(policy, HasPolicy):
        _warn_if_learnt_from(name, policy, log)
        blocks = _policies_of(policy, log)
    elif callable(policy):
        blocks = [policy(round_) for round_ in log.presented()]
    elif _is_action(policy):
        blocks = [policy] * len(log)
    elif isinstance(policy, np.ndarray) and policy.ndim == 3 and policy.shape[2] == 1:
        blocks = policy[:, :, 0]  # as Open Bandit Pipeline has them
    if isinstance(blocks, Sequence | np.ndarray) and len(blocks) == len(log) and any(map(_is_action, blocks)):
        rounds = zip(blocks, log.presented(), strict=True)
        blocks = [_always(name, one, round_) if _is_action(one) else one for one, round_ in rounds]
    found = Ragged.of(name, blocks, log.n)
    check_distributions(name, found)
    return found


def _is_action(value: object) -> bool:
    return isinstance(value, int | np.integer | str) and not isinstance(value, bool)


def _always(name: str, action: Any, round_: LoggedRound) -> FloatArray:
    """Probability 1 for an action, by position or name, (n,)."""
    if isinstance(action, str):
        names = list(round_.ids or ())
        if action not in names:
            known = f"its candidates are {', '.join(map(str, names))}" if names else "the log has no names (ids)"
            raise ValueError(f"{name} plays {action!r} in round {round_.number}, and {known}")
        action = names.index(action)
    elif not 0 <= action < round_.n:
        raise ValueError(
            f"{name} plays {action} in round {round_.number}, and its candidates are 0..{round_.n - 1}: give a "
            "position or a name"
        )
    found = np.zeros(round_.n)
    found[action] = 1.0
    return found


RESTRICTED = (
    ". Rounds that were restricted beforehand, by available= or a budget, may be left out: "
    "log.part([one is None for one in log.available])"
)


def check_overlap(name: str, found: Ragged, log: Log) -> None:
    """Raise if the log shows that the logger could not have played what the policy plays."""
    open_ = log.usable & (log.n > 1)
    sure = open_ & (log.propensities >= 1.0)
    if not log.usable.any():
        raise ValueError("the log has no round with both a reward and a propensity: there is nothing to evaluate with")
    if sure.any() and np.array_equal(sure, open_):
        raise NoOverlapError(
            "every propensity is 1: the logger was deterministic, so the log cannot evaluate other actions. Log with a "
            "rule that explores, such as EvidenceMixture(floor=0.1)"
        )
    other = sure & (found.at(log.index) < 1.0 - 1e-9)
    if other.any():
        t = int(np.flatnonzero(other)[0])
        raise NoOverlapError(
            f"{name} plays actions that the logger could not: in {int(other.sum())} rounds (the first is {t}) the "
            "logger played its action with propensity 1, and the policy plays others. If contexts identify these "
            f"rounds, leave them out (`log.part`) and evaluate on the rest{RESTRICTED if log.available else ''}"
        )
    _check_available(name, found, log)
    if log.probabilities is not None:
        never = (log.probabilities.values <= 0.0) & (found.values > 1e-12)
        if never.any():
            t = int(np.searchsorted(found.starts, np.flatnonzero(never)[0], side="right")) - 1
            raise NoOverlapError(f"{name} plays in round {t} an action that the logger could not play (probability 0)")


def _check_available(name: str, found: Ragged, log: Log) -> None:
    for t, positions in enumerate(log.available or ()):
        if positions is not None and log.usable[t] and found[t][list(positions)].sum() < 1.0 - AGREEMENT:
            raise NoOverlapError(f"{name} plays in round {t} an action that was not available{RESTRICTED}")


def _policies_of(policy: HasPolicy, log: Log) -> list[FloatArray]:
    def ask(round_: LoggedRound) -> FloatArray:
        restricted = {} if round_.available is None else {"available": round_.available}
        return policy.policy(**_round_arguments(round_), **restricted)

    if log.features is None and log.contexts is None and log.available is None:  # the same in every round
        return [policy.policy()] * len(log)
    return [ask(round_) for round_ in log.presented()]


def _round_arguments(round_: LoggedRound) -> dict[str, object]:
    if round_.context is not None:
        return {"context": round_.context}
    return {} if round_.features is None else {"features": round_.features}


def _warn_if_learnt_from(name: str, policy: object, log: Log) -> None:
    """Warn if the policy has learnt from this log: its value would be biased upwards."""
    own = getattr(getattr(policy, "algorithm", policy), "log", None)
    rewards = np.asarray(getattr(own, "reward", ()), dtype=np.float64)[: len(log)]
    index = np.asarray(getattr(own, "index", ()), dtype=np.int64)[: len(log)]
    if rewards.size and np.array_equal(index, log.index) and np.array_equal(rewards, log.rewards, equal_nan=True):
        caution(
            f"{name} has learnt from the rewards of this log: its value is biased upwards, and the interval does not "
            "hold. Evaluate a policy that was frozen before the log began, or use another log",
            LogWarning,
        )


def predictions(log: Log, model: object, ridge: float, limits: tuple[float, float] | None) -> Ragged:
    """Predicted rewards of all candidates in the rounds that can be used, in the units of the rewards.

    `model` is "ridge", which predicts round t from rounds s < t, or predictions per round, (n, K) or a list of (n_t,),
    for all rounds of the log.
    """
    if not isinstance(model, str):
        if isinstance(model, np.ndarray) and model.ndim == 3 and model.shape[2] == 1:
            model = model[:, :, 0]  # as Open Bandit Pipeline has them
        return Ragged.of("model", model, log.n).take(log.usable)
    one_of("model", model, ("ridge",))
    if log.features is None:
        raise ValueError(
            "predicting the rewards of all candidates needs the features of all candidates, and the log has "
            + ("those of the chosen ones only" if log.chosen is not None else "none")
            + ': run with log_features="all", add them by log.with_features(...), or pass predictions as model='
        )
    rows, rewards = log.features.take(log.usable), log.rewards[log.usable]
    chosen = rows.at(log.index[log.usable])
    values, sums = np.zeros(len(rows.values)), _Sums(chosen.shape[1])
    for start, stop in _stretches(len(rewards)):
        weights, level = sums.solve(positive("ridge", ridge))
        part = slice(rows.starts[start], rows.starts[stop])
        values[part] = rows.values[part] @ weights + level
        sums.add(chosen[start:stop], rewards[start:stop])
    return rows.like(values if limits is None else np.clip(values, *limits))


def _stretches(n: int) -> Iterator[tuple[int, int]]:
    """Ranges [start, stop) of rounds that one fit predicts, from the rounds before start."""
    start = 0
    while start < n:
        stop = min(n, max(start + 1, int(GROWTH * start)))
        yield start, stop
        start = stop


class _Sums:
    """Sums of a ridge regression with a free constant; columns are penalised in units of their variance."""

    def __init__(self, columns: int) -> None:
        self._n = 0
        self._row = np.zeros(columns)
        self._level = 0.0
        self._gram = np.zeros((columns, columns))
        self._moment = np.zeros(columns)

    def add(self, rows: FloatArray, rewards: FloatArray) -> None:
        self._n += len(rewards)
        self._row += rows.sum(axis=0)
        self._level += rewards.sum()
        self._gram += rows.T @ rows
        self._moment += rows.T @ rewards

    def solve(self, ridge: float) -> tuple[FloatArray, float]:
        """Coefficients (P,) and the constant; all 0 without data."""
        if not self._n:
            return np.zeros_like(self._row), 0.0
        mean, level = self._row / self._n, self._level / self._n
        gram = self._gram - self._n * np.outer(mean, mean)
        spread = np.diag(gram) / self._n
        flat = spread <= 1e-12 * np.diag(self._gram) / self._n  # rounding of a constant column
        penalty = np.where(flat, 1.0, spread)
        gram[flat] = gram[:, flat] = 0.0
        moment = np.where(flat, 0.0, self._moment - self._level * mean)
        weights = np.asarray(np.linalg.solve(gram + np.diag(ridge * penalty), moment), dtype=np.float64)
        return weights, float(level - weights @ mean)
