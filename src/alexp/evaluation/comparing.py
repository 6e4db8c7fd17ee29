"""Two policies on one log: which is better, and since when is that certain?"""

from __future__ import annotations

import numpy as np

from alexp.evaluation.log import Log
from alexp.evaluation.pairing import Pairing, Range, check_weights
from alexp.evaluation.payoffs import Bets
from alexp.evaluation.policies import Policy
from alexp.evaluation.predictions import predictions
from alexp.evaluation.values import PolicyDifference


def compare(
    log: Log,
    a: Policy,
    b: Policy,
    *,
    model: object = None,
    fit: str = "predictable",
    ridge: float = 1.0,
    folds: int = 5,
    reward_range: Range | None = None,
    floor: float | None = None,
    delta: float = 0.05,
    method: str = "betting",
) -> PolicyDifference:
    """Is policy b better than policy a? The difference of their values, with a sequence that may be read at any time.

    Larger is better: negate rewards that are costs. Where both play alike nothing is at stake, so that this decides
    much earlier than two intervals do. The value is that of `ips`, or of `dr` with a `model`. Arguments as there.
    """
    pair = Pairing.of(log, b, "b", reward_range, floor, delta, method)
    other = Pairing.of(log, a, "a", reward_range, floor, delta, method)
    change = pair.policy.like(pair.policy.values - other.policy.values)
    signed = pair.weights - other.weights
    q = None if model is None else predictions(log, model, fit, ridge, folds, pair.limits)
    value = float(np.mean(signed * pair.rewards))
    if q is not None:
        known = change.like(change.values * q.values).sums()
        value = float(np.mean(known + signed * (pair.rewards - q.at(pair.index))))
    usable = q if fit == "predictable" else None
    bets = Bets(
        change,
        pair.index,
        pair.propensities,
        pair.unit(pair.rewards),
        None if usable is None else usable.like(pair.unit(usable.values)),
        pair.least,
        pair.most,
        difference=True,
    )
    check_weights(pair.weights)
    check_weights(other.weights)
    estimator = "ips" if model is None else "dr"
    return pair.result(PolicyDifference, estimator, value, pair.bounds(bets), np.abs(signed))
