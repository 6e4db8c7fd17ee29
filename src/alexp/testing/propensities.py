"""Checks of randomness: probabilities sum to one, and propensities are frequencies."""

from __future__ import annotations

from collections import Counter

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.log import Trial
from alexp.common.arrays import IntArray
from alexp.problem.domains import Available
from alexp.testing.settings import PLAIN, Kind, Setting, make, play, weights_of


def check_probabilities(kind: Kind, setting: Setting = PLAIN) -> None:
    """Probabilities over the models, where there are any, are non-negative and sum to one at every moment."""
    algorithm = make(kind, setting)
    for step in range(25):
        weights = weights_of(algorithm)
        if weights is not None:
            assert weights.shape == (setting.models.n_models,)
            assert np.all(weights >= 0.0)
            assert abs(weights.sum() - 1.0) < 1e-12
        trial = algorithm.ask(available=setting.available(step))
        algorithm.tell(trial, float(np.sin(trial.index)))


def check_propensities(kind: Kind, setting: Setting = PLAIN) -> None:
    """The propensity of an action is the frequency with which it is played in that situation."""
    algorithm = make(kind, setting)
    play(algorithm, 6, setting)
    _compare_with_frequencies(algorithm, 4000 if setting is PLAIN else 600, None)


def check_restricted_propensities(kind: Kind, setting: Setting = PLAIN) -> None:
    """The same in a round restricted to some candidates, and no other candidate is played."""
    algorithm = make(kind, setting)
    play(algorithm, 6, setting)
    available = np.array([1, 2, 5, 7, 11, 12])
    played = _compare_with_frequencies(algorithm, 600, available)
    assert set(played) <= set(available.tolist())
    weights = weights_of(algorithm)
    if weights is not None:
        assert abs(weights.sum() - 1.0) < 1e-12


def check_pending_propensities(kind: Kind, setting: Setting = PLAIN) -> None:
    """The same with pending trials, and no pending candidate is played."""
    algorithm = make(kind, setting)
    play(algorithm, 6, setting)
    pending = {trial.index for trial in algorithm.ask(3)}
    played = _compare_with_frequencies(algorithm, 600, None)
    assert not pending & set(played), "a pending candidate was proposed"


def again(algorithm: Algorithm, n: int, available: Available = None) -> list[Trial]:
    """The trials of n asks in the same state: each is abandoned before the next."""
    trials = []
    for _ in range(n):
        trials.append(algorithm.ask(available=available))
        algorithm.abandon(trials[-1])
    return trials


def _compare_with_frequencies(algorithm: Algorithm, n: int, available: IntArray | None) -> Counter[int]:
    trials = again(algorithm, n, available)
    stated = {trial.index: trial.propensity for trial in trials}
    played = Counter(trial.index for trial in trials)
    for trial in trials:
        assert 0.0 < trial.propensity <= 1.0 + 1e-12
        assert abs(stated[trial.index] - trial.propensity) < 1e-12, "the same situation must give the same propensity"
    assert sum(stated.values()) <= 1.0 + 1e-9
    for index, p in stated.items():
        error = np.sqrt(max(p * (1.0 - p), 1e-12) / n)
        assert abs(played[index] / n - p) < 5.0 * error + 2.0 / n, (index, played[index] / n, p)
    return played
