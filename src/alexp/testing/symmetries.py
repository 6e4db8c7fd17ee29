"""Checks of invariances: reading attributes, sign and unit of rewards, and the kind of seed must not matter."""

from __future__ import annotations

import json

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import Estimates, SumsReturns, offers
from alexp.testing.settings import PLAIN, Kind, Setting, make, play, reward, weights_of


def check_repeats_with_seed(kind: Kind, setting: Setting = PLAIN) -> None:
    """The same seed gives the same run bit for bit; reading attributes in between changes nothing."""
    first, second = make(kind, setting), make(kind, setting)
    for step in range(15):
        a, b = (algorithm.ask(available=setting.available(step)) for algorithm in (first, second))
        assert a == b
        first.tell(a, reward(a.index))
        second.tell(b, reward(b.index))
        _look(second)
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def check_looking(kind: Kind, setting: Setting = PLAIN) -> None:
    """Reading probabilities and recommendations between full and restricted rounds changes nothing."""
    blind, curious = make(kind, setting), make(kind, setting)
    for step in range(10):
        available = None if step % 4 == 3 else (np.arange(4) + step) % setting.n_candidates
        _look(curious)
        a, b = blind.ask(2, available=available), curious.ask(2, available=available)
        assert a == b
        _look(curious)
        for trial, again in zip(a[: 1 + step % 2], b, strict=False):  # every other trial stays pending
            blind.tell(trial, reward(trial.index))
            curious.tell(again, reward(again.index))
        again = blind.ask(available=available)
        assert again == curious.ask(available=available)
        one, two = weights_of(make_copy(blind, setting)), weights_of(curious)
        assert one is None or two is None or np.array_equal(one, two)
    assert json.dumps(blind.to_dict()) == json.dumps(curious.to_dict())


def make_copy(algorithm: Algorithm, setting: Setting) -> Algorithm:
    """The run, saved and loaded."""
    saved = json.loads(json.dumps(algorithm.to_dict(problem=False)))
    return type(algorithm).from_dict(saved, setting.models, setting.domain)


def _look(algorithm: Algorithm) -> None:
    weights_of(algorithm)
    algorithm.trials_dataframe()
    algorithm.to_dict()
    if algorithm.n_told:
        algorithm.best()
    if offers(algorithm, SumsReturns):
        _ = algorithm.cumulative_returns
    if offers(algorithm, Estimates):
        _ = algorithm.fit


def check_generator_as_seed(kind: Kind, setting: Setting = PLAIN) -> None:
    """`random_state` may be a NumPy generator or None."""
    one = play(make(kind, setting, random_state=np.random.default_rng(5)), 8)
    two = play(make(kind, setting, random_state=np.random.default_rng(5)), 8)
    assert one == two
    play(make(kind, setting, random_state=None), 3)


def check_direction(kind: Kind, setting: Setting = PLAIN) -> None:
    """Minimising a reward is maximising its negative, decision by decision."""
    up, down = make(kind, setting, direction="maximize"), make(kind, setting, direction="minimize")
    for step in range(12):
        a, b = (algorithm.ask(available=setting.available(step)) for algorithm in (up, down))
        assert a == b
        up.tell(a, reward(a.index))
        down.tell(b, -reward(b.index))
    assert up.best().index == down.best().index
    assert up.best().value == -down.best().value


def check_observed_direction(kind: Kind, setting: Setting = PLAIN) -> None:
    """External observations have their sign changed like rewards of trials, and lead to the same state."""
    up, down = make(kind, setting, direction="maximize"), make(kind, setting, direction="minimize")
    for step, index in enumerate((3, 8, 3, 5, 0)):
        up.observe(index, reward(index))
        down.observe(index, -reward(index))
        a, b = (algorithm.ask(available=setting.available(step)) for algorithm in (up, down))
        assert a == b
        if step % 2:
            up.tell(a, reward(a.index))
            down.tell(b, -reward(b.index))
    assert json.dumps(up.state()) == json.dumps(down.state())
    assert up.best().index == down.best().index
    assert up.best().value == -down.best().value


def check_scale(kind: Kind, setting: Setting = PLAIN) -> None:
    """Rewards, noise and bound scaled together by a power of two change no decision, bit for bit."""
    if "scale" in kind.depends_on:
        return
    plain = make(kind, setting, noise_std=0.1, reward_bound=1.0)
    scaled = make(kind, setting, noise_std=0.1 * 1024.0, reward_bound=1024.0)
    for step in range(15):
        a, b = (algorithm.ask(available=setting.available(step)) for algorithm in (plain, scaled))
        assert a == b
        plain.tell(a, reward(a.index))
        scaled.tell(b, 1024.0 * reward(b.index))
