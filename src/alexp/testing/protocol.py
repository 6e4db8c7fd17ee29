"""Checks of the ask/tell protocol: late rewards, states, wrong input, restricted rounds, odd problems, records."""

from __future__ import annotations

import json
from functools import partial
from typing import cast

import numpy as np

from alexp.algorithms.log import Trial
from alexp.problem.domains import FiniteSet, Interval
from alexp.problem.models import ModelClass
from alexp.simulation import SyntheticEnvironment, simulate
from alexp.testing.settings import PLAIN, Kind, Setting, arguments_for, make, play, refusal, refuses, reward, weights_of

_COLUMNS = ("id", "x", "index", "model", "explored", "propensity", "reward")


def check_any_order(kind: Kind, setting: Setting = PLAIN) -> None:
    """Rewards may come late and in any order, by trial or by id, and lead to the same estimate."""
    forward, backward = make(kind, setting), make(kind, setting)
    asked, again = forward.ask(6), backward.ask(6)
    assert [t.id for t in asked] == list(range(6))
    assert asked == again
    for trial in asked:
        forward.tell(trial, reward(trial.index))
    for trial in reversed(again):
        backward.tell(trial.id, reward(trial.index))
    assert not backward.pending()
    one, two = weights_of(forward), weights_of(backward)
    if one is not None and two is not None and "order" not in kind.depends_on:
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-4)
    late = forward.ask()
    play(forward, 3, setting)
    assert [t.id for t in forward.pending()] == [late.id]
    forward.tell(late, 0.5)


def check_save_and_load(kind: Kind, setting: Setting = PLAIN) -> None:
    """A run that is saved and loaded at any step, through JSON text, continues unchanged.

    It has pending and abandoned trials, late rewards and external observations.
    """
    straight, broken = make(kind, setting), make(kind, setting)
    pending: list[int] = []
    for step in range(12):
        available = setting.available(step)
        a, b = straight.ask(available=available), broken.ask(available=available)
        assert a == b
        if step % 2:
            broken = type(broken).from_dict(json.loads(json.dumps(broken.to_dict())))
        if step in (2, 5, 6):
            pending.append(a.id)
        else:
            straight.tell(a, reward(a.index))
            broken.tell(b.id, reward(b.index))
        if step in (3, 7):
            for algorithm in (straight, broken):
                algorithm.observe(step, 0.25)
        if step == 8:
            for algorithm in (straight, broken):
                algorithm.tell(pending[1], -0.5)
                algorithm.abandon(pending[2])
        saved = json.loads(json.dumps(broken.to_dict(problem=False)))
        broken = kind.from_dict(saved, setting.models, setting.domain)
        assert [t.id for t in broken.pending()] == [t.id for t in straight.pending()]
    assert json.dumps(straight.to_dict()) == json.dumps(broken.to_dict())
    one, two = weights_of(straight), weights_of(broken)
    assert one is None or two is None or np.array_equal(one, two)
    for algorithm in (straight, broken):
        algorithm.tell(pending[0], 0.75)
    assert straight.ask(3) == broken.ask(3)


def check_bad_input(kind: Kind, setting: Setting = PLAIN) -> None:
    """Wrong input raises before anything changes."""
    algorithm, n = make(kind, setting), setting.n_candidates
    play(algorithm, 3, setting)
    told, pending = algorithm.trial(0), algorithm.ask()
    foreign = Trial(pending.id, 0.0, (pending.index + 1) % n, None, False, 1.0)
    for bad in (float("nan"), float("inf"), -float("inf"), 1e200):
        refuses(partial(algorithm.tell, pending, bad), algorithm, f"a reward of {bad}", ValueError)
        refuses(partial(algorithm.observe, 0, bad), algorithm, f"an observation of {bad}", ValueError)
    for wrong in cast("tuple[float, ...]", ("1.0", None, {}, True)):
        refuses(partial(algorithm.tell, pending, wrong), algorithm, f"a reward of {wrong!r}", TypeError)
    refuses(partial(algorithm.tell, told, 1.0), algorithm, "a reward told twice", ValueError)
    refuses(partial(algorithm.tell, 99, 1.0), algorithm, "an unknown id", ValueError)
    refuses(partial(algorithm.tell, -1, 1.0), algorithm, "a negative id", ValueError)
    refuses(partial(algorithm.tell, foreign, 1.0), algorithm, "a trial of another run", ValueError)
    refuses(partial(algorithm.observe, n, 1.0), algorithm, "an observation of no candidate", ValueError)
    refuses(partial(algorithm.ask, 0), algorithm, "n = 0", ValueError)
    for available in ([], [n], [-1], [1, 1], np.zeros(n, dtype=bool), [0.5]):
        refuses(partial(algorithm.ask, None, available), algorithm, f"available={available}", ValueError)
    algorithm.tell(pending, 0.25)
    wrong_settings: tuple[dict[str, object], ...] = (
        {"direction": "up"},
        {"noise_std": -1.0},
        {"reward_bound": 0.0},
        {"random_state": -1},
    )
    for arguments in wrong_settings:
        assert refusal(partial(make, kind, setting, **arguments), ValueError), f"{arguments} must raise ValueError"


def check_available(kind: Kind, setting: Setting = PLAIN) -> None:
    """A restricted round stays within the available candidates, and full rounds continue afterwards."""
    algorithm = make(kind, setting)
    for t in range(10):
        allowed = np.arange(t, t + 3)
        trial = algorithm.ask(available=allowed)
        assert trial.index in allowed
        algorithm.tell(trial, reward(trial.index))
    mask = np.zeros(setting.n_candidates, dtype=bool)
    mask[7] = True
    for only in ([7], mask):
        trial = algorithm.ask(available=only)
        assert trial.index == 7
        assert abs(trial.propensity - 1.0) < 1e-9
    play(algorithm, 2)


def check_small_problems(kind: Kind, setting: Setting = PLAIN) -> None:
    """One model, one candidate, tables of candidates and models of different sizes work."""
    arguments = arguments_for(kind, setting)
    one_model = kind(ModelClass.legendre(degree=1, size=2), setting.domain, **arguments)
    play(one_model, 4)
    weights = weights_of(one_model)
    assert weights is None or weights.tolist() == [1.0]
    one_candidate = kind(setting.models, Interval(resolution=1), **arguments)
    assert all(trial.index == 0 for trial in play(one_candidate, 4))
    rng = np.random.default_rng(0)
    matrices = {"wide": rng.standard_normal((9, 6)), "narrow": rng.standard_normal((9, 1)), "flat": np.ones((9, 2))}
    table = kind(ModelClass.from_matrices(matrices), FiniteSet([f"item {i}" for i in range(9)]), **arguments)
    for trial in play(table, 8):
        assert trial.x == f"item {trial.index}"
    assert table.best().x.startswith("item")


def check_records(kind: Kind, setting: Setting = PLAIN) -> None:
    """The data frame has one row per trial, and simulation reports non-decreasing regret."""
    algorithm = make(kind, setting)
    run = simulate(algorithm, SyntheticEnvironment(setting.models, setting.domain, random_state=1), steps=10)
    assert np.all(np.diff(run.regret) >= -1e-12)
    assert run.seconds > 0.0
    algorithm.ask()
    frame = algorithm.trials_dataframe()
    assert tuple(frame.columns) == _COLUMNS
    assert len(frame) == 11
    assert frame["reward"].isna().tolist() == [False] * 10 + [True]
