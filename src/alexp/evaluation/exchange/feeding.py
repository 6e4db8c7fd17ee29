"""Logs from elsewhere as a start for an algorithm."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import Action
from alexp.common.validation import offering
from alexp.evaluation.log import Log, LoggedRound


def feed(log: Log, opt: Action) -> int:
    """Tell an algorithm all rewards of a log, in their order, by `opt.observe`; returns how many there were.

    Rounds are passed as `ask` would have taken them: with contexts where the log has them, else with the features of
    all candidates, else by their number in a fixed domain. Propensities go along where they are known.
    """
    offering("opt", opt, "observe")
    fed = 0
    for round_ in log.presented():
        t = round_.number
        if np.isnan(log.rewards[t]):
            continue
        opt.observe(int(log.index[t]), float(log.rewards[t]), **_offered(log, round_))
        fed += 1
    return fed


def _offered(log: Log, round_: LoggedRound) -> dict[str, Action]:
    """Arguments of `observe` beside the action and its reward."""
    if round_.context is not None:
        offered: dict[str, Action] = {"context": round_.context}
    elif round_.features is not None:
        offered = {"features": round_.features, "ids": round_.ids}
    else:
        return {}
    if round_.available is not None:
        offered["available"] = round_.available
    propensity = float(log.propensities[round_.number])
    return offered if np.isnan(propensity) else offered | {"propensity": propensity}
