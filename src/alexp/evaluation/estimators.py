"""Off-policy evaluation: what would a new policy have earned where another one played?"""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import positive
from alexp.evaluation.log import Log
from alexp.evaluation.pairing import Pairing, Range, check_weights
from alexp.evaluation.policies import Policy
from alexp.evaluation.predictions import predictions
from alexp.evaluation.sequences import Payoffs, lower_sequence
from alexp.evaluation.values import PolicyValue


def ips(
    log: Log,
    policy: Policy,
    *,
    reward_range: Range | None = None,
    clip: float | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: str = "betting",
) -> PolicyValue:
    """Inverse propensity scoring: mean of w y, w = pi(a)/p.

    Parameters
    ----------
    log, policy
        See `Log` and `alexp.evaluation.policies.probabilities`. The policy must not have learnt from the log.
    reward_range
        (lo, hi), where rewards lie; without it there is no interval.
    clip
        Weights above it count as this much. Where rewards are non-negative the value is then too low on average, never
        too high; the interval holds for the value of the policy itself all the same, only wider.
    floor
        A lower bound of all the logger's propensities, known before the log began (gamma / n, say). Not needed; it lets
        intervals make use of predictions, as does `Log.probabilities`.
    delta, method
        The interval holds at all moments with probability 1 - delta; "betting", "hedged", "bernstein" or "drifting",
        see `alexp.evaluation.sequences`.
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
    method: str = "betting",
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
    fit: str = "predictable",
    ridge: float = 1.0,
    folds: int = 5,
    reward_range: Range | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: str = "betting",
) -> PolicyValue:
    """The direct method: mean of sum_a pi(a) q(a), as good as the predictions q are.

    The interval is that of `dr`: it is about the policy, whether q is right or not, and a value outside of it says
    that q is not. Arguments as of `dr`.
    """
    pair = Pairing.of(log, policy, "policy", reward_range, floor, delta, method)
    q = predictions(log, model, fit, ridge, folds, pair.limits)
    value = float(np.mean(pair.policy.like(pair.policy.values * q.values).sums()))
    check_weights(pair.weights)
    bets = pair.bets(q if fit == "predictable" else None)
    return pair.result(PolicyValue, "dm", value, pair.bounds(bets), pair.weights)


def dr(
    log: Log,
    policy: Policy,
    *,
    model: object = "ridge",
    fit: str = "predictable",
    ridge: float = 1.0,
    folds: int = 5,
    reward_range: Range | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: str = "betting",
) -> PolicyValue:
    """Doubly robust: mean of sum_a pi(a) q(a) + w (y - q(a_t)).

    Parameters
    ----------
    model
        "ridge": regression with a free constant on the features of all candidates (`log_features="all"`), or
        predictions of your own, (n, K) or one vector per round; these must not come from the rewards of
        their own or later rounds.
    fit
        "predictable": q of round t from rounds s < t, as adaptive logs need it. "crossfit": from all rounds but every
        `folds`-th; later rounds look back on earlier ones then, so that the interval does without q.
    ridge
        Penalty, in units of the variance of each column.

    Others as of `ips`. Without `floor` and `Log.probabilities` the interval is that of `ips`: no prediction can narrow
    a bound that must hold however large weights become.
    """
    pair = Pairing.of(log, policy, "policy", reward_range, floor, delta, method)
    q = predictions(log, model, fit, ridge, folds, pair.limits)
    known = pair.policy.like(pair.policy.values * q.values).sums()
    value = float(np.mean(known + pair.weights * (pair.rewards - q.at(pair.index))))
    check_weights(pair.weights)
    bets = pair.bets(q if fit == "predictable" else None)
    return pair.result(PolicyValue, "dr", value, pair.bounds(bets), pair.weights)


def replay(
    log: Log,
    policy: Policy,
    *,
    bound: float | None = None,
    seed: int = 0,
    reward_range: Range | None = None,
    delta: float = 0.05,
    method: str = "betting",
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
                "replay is right for uniform logs (every propensity 1/n), and this one is not: rounds would be "
                "accepted where the logger liked to play. Pass bound=, a limit of pi/p that was known before the log "
                "began, or use ips or dr"
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
