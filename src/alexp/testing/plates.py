"""Checks of plates and pending trials: no candidate twice at a time, and none twice at all without repeats."""

from __future__ import annotations

from functools import partial

import numpy as np

from alexp.testing.settings import PLAIN, Kind, Setting, make, play, refuses, reward


def check_plates(kind: Kind, setting: Setting = PLAIN) -> None:
    """The trials of a plate are distinct candidates, and none that is pending."""
    algorithm = make(kind, setting)
    for size in (8, 3):
        first, second = algorithm.ask(size), algorithm.ask(3)
        indices = [trial.index for trial in (*first, *second)]
        assert len(set(indices)) == size + 3, f"a candidate comes twice among {indices}"
        for trial in (*second, *first):
            algorithm.tell(trial, reward(trial.index))
    few = np.arange(4)
    assert sorted(trial.index for trial in algorithm.ask(4, available=few)) == few.tolist()
    more = algorithm.ask(4, available=few)  # all are pending: each comes a second time, none a third
    assert sorted(trial.index for trial in more) == few.tolist()


def check_pending(kind: Kind, setting: Setting = PLAIN) -> None:
    """A pending trial blocks its candidate until it is told or abandoned; single asks equal a plate."""
    plate, single = make(kind, setting), make(kind, setting)
    for algorithm in (plate, single):
        play(algorithm, 6, setting)
    assert plate.ask(5) == [single.ask() for _ in range(5)]
    everything = np.arange(setting.n_candidates)
    closed = [trial.index for trial in single.pending()]
    np.testing.assert_array_equal(single.choosable(), np.setdiff1d(everything, closed))
    given_up, told = single.pending()[:2]
    single.abandon(given_up)
    single.tell(told, reward(told.index))
    np.testing.assert_array_equal(single.choosable(), np.setdiff1d(everything, closed[2:]))
    only = single.ask(available=[given_up.index])
    assert (only.index, abs(only.propensity - 1.0) < 1e-9) == (given_up.index, True)


def check_without_repeats(kind: Kind, setting: Setting = PLAIN) -> None:
    """With repeats=False all candidates are proposed exactly once, in plates or not; then ask raises."""
    algorithm, n = make(kind, setting, repeats=False), setting.n_candidates
    algorithm.observe(3, reward(3))
    seen = [3]
    while len(seen) < n:
        plate = algorithm.ask(min(1 + len(seen) % 3, n - len(seen)))
        seen += [trial.index for trial in plate]
        for trial in plate:
            algorithm.tell(trial, reward(trial.index))
        if len(seen) == n - 2:
            assert "n must be at most 2" in refuses(partial(algorithm.ask, 3), algorithm, "asking for 3", ValueError)
    assert sorted(seen) == list(range(n)), "a candidate was measured twice"
    assert "has been measured" in refuses(partial(algorithm.ask, 1), algorithm, "asking for more", ValueError)
