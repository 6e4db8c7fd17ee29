"""The rule "ei" of a mixture: how much each choice is expected to improve on the best so far."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.decision.selection import expected_improvement
from alexp.estimation.checking.ledger import Rewards
from alexp.estimation.mixture.mixture import Mixture
from alexp.problem.candidates import Choices, Round

_CONSIDERED = 1e-5  # weight of components whose expected improvement is computed


def expected_gains(mixture: Mixture, weights: FloatArray, round_: Round, incumbent: float, width: float) -> FloatArray:
    """Expected improvement of each choice of a round, (n,), averaged over components."""
    least, pending = _CONSIDERED * float(weights.max()), round_.pending
    parts = mixture.components(weights, round_.wide, pending, least)
    incumbents: Iterable[float] = repeat(incumbent)
    if pending:  # what a component expects of them is no improvement any more
        out = Choices(pending.indices, np.ascontiguousarray(pending.rows.T))
        expected = mixture.components(weights, out, least=least)
        incumbents = (max(incumbent, float(part.mean.max())) for part in expected)
    return round_.narrow(expected_improvement(parts, len(round_.wide), incumbents, mixture.freedom, width))


def best_so_far(mixture: Mixture, weights: FloatArray, told: Rewards, fair: bool) -> float:
    """The best reward told, if that is a fair incumbent; else the best mean among the candidates told."""
    if fair:
        return float(told.rewards.max())
    seen, first = np.unique(told.indices, return_index=True)
    mean, _ = mixture.moments(weights, Choices(seen, np.ascontiguousarray(told.rows[first].T)))
    return float(mean.max())
