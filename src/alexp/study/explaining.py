"""Why this model: what was expected of every reward, for the view of a study."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import LooksBack, offers
from alexp.study.view import Explanation, Standing

_MOST_WORK = 5_000_000  # models x rewards up to which the run is looked back on


def explanation(algorithm: Algorithm, standing: Standing | None, name: Callable[[int], str]) -> Explanation | None:
    """What the two leading models made of every reward; None where the algorithm cannot tell or it takes too long."""
    subject: object = algorithm
    work = algorithm.models.n_models * algorithm.n_told
    if standing is None or work == 0 or work > _MOST_WORK or not offers(subject, LooksBack):
        return None
    if algorithm.log_features == "none":  # rows are not kept
        return None
    leaders = standing.leaders[:2]
    if not leaders:
        return None
    seen, log = subject.hindsight([leader.model for leader in leaders]), algorithm.log
    trials = np.array(log.told_in_order(), dtype=np.int64)
    both = len(leaders) == 2
    return Explanation(
        leader=leaders[0].name,
        runner_up=leaders[1].name if both else None,
        trial=trials,
        label=[name(int(trial)) for trial in trials],
        reward=np.array([log.reward[int(trial)] for trial in trials]),
        expected=seen.mean,
        spread=seen.std,
        by_leader=seen.model_mean[:, 0],
        by_runner_up=seen.model_mean[:, 1] if both else None,
        odds=-seen.log_odds[:, 1] / np.log(10.0) if both else None,
    )
