"""The part of the conformance suite for algorithms that play on a ball.

    @pytest.mark.parametrize("check", alexp.testing.balls.CHECKS, ids=lambda check: check.__name__)
    def test_mine(check):
        check(MyAlgorithm)

`CHECKS` are for classes that find points of a ball; all others are checked to `refuse` it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.log import Trial
from alexp.problem.domains import Ball
from alexp.problem.models import ModelClass
from alexp.testing import settings
from alexp.testing.settings import Kind, arguments_for_class

_DIM, _RADIUS = 4, 2.0
_THETA = np.array([0.0, 0.6, 0.0, -0.3])


def make(kind: Kind, **arguments: object) -> Algorithm:
    """An instance on a ball of four dimensions."""
    every = arguments_for_class(kind) | {"norm_bound": 1.0, "reward_bound": 2.0} | arguments
    return kind(ModelClass.coordinates(_DIM), Ball(_DIM, _RADIUS), **every)


def reward(trial: Trial) -> float:
    """The reward of a point, in the unit of the coefficients; noise depends on the number of the trial."""
    return float(trial.x @ _THETA + 0.05 * np.cos(7.0 * trial.id))


def play(algorithm: Algorithm, rounds: int, sign: float = 1.0) -> list[Trial]:
    """Ask and tell."""
    trials = []
    for _ in range(rounds):
        trials.append(algorithm.ask())
        algorithm.tell(trials[-1], sign * reward(trials[-1]))
    return trials


def same(one: list[Trial], two: list[Trial]) -> bool:
    """Whether two lists of trials are the same, point by point."""
    alike = [(a.id, a.explored, a.propensity, a.model) == (b.id, b.explored, b.propensity, b.model)
             and np.array_equal(a.x, b.x) for a, b in zip(one, two, strict=True)]  # fmt: skip
    return all(alike)


def text_of(algorithm: Algorithm) -> str:
    """The whole algorithm as JSON text."""
    return json.dumps(algorithm.to_dict())


def check_points(kind: Kind) -> None:
    """Actions are points of the ball with positive propensities; the same seed repeats them, another does not."""
    one, two, other = make(kind), make(kind), make(kind, random_state=4)
    trials = play(one, 12)
    assert same(trials, play(two, 12))
    assert not same(trials, play(other, 12))
    for trial in trials:
        assert trial.x.shape == (_DIM,)
        assert np.linalg.norm(trial.x) <= _RADIUS * (1.0 + 1e-9)
        assert 0.0 < trial.propensity <= 1.0
    best = one.best()
    assert abs(np.linalg.norm(best.x) - _RADIUS) < 1e-9
    assert one.best(candidates=[best.x, -best.x]).index == 0
    assert len(one.trials_dataframe()) == 12


def check_direction(kind: Kind) -> None:
    """Minimising -y is maximising y."""
    assert same(play(make(kind), 12), play(make(kind, direction="minimize"), 12, -1.0))


def check_scale(kind: Kind) -> None:
    """Rewards, noise and norms in another unit give the same points."""
    run = make(kind, noise_std=0.4, norm_bound=4.0, reward_bound=8.0)
    plain = make(kind)
    for _ in range(12):
        a, b = plain.ask(), run.ask()
        assert np.array_equal(a.x, b.x)
        plain.tell(a, reward(a))
        run.tell(b, 4.0 * reward(a))


def check_save_and_load(kind: Kind) -> None:
    """A run that is saved and loaded at any step continues unchanged, with late, abandoned and external rewards."""
    straight, broken, pending = make(kind), make(kind), []
    for step in range(14):
        a, b = straight.ask(), broken.ask()
        assert same([a], [b])
        broken = kind.from_dict(json.loads(json.dumps(broken.to_dict())))
        if step in (1, 4, 9):
            pending.append(a.id)
        else:
            straight.tell(a, reward(a))
            broken.tell(b.id, reward(b))
        if step in (3, 10):
            for algorithm in (straight, broken):
                algorithm.observe(0, 0.25, candidates=0.5 * a.x)
    for algorithm in (straight, broken):
        algorithm.tell(pending[2], 0.5)
        algorithm.abandon(pending[0])
    assert text_of(straight) == text_of(broken)
    assert same(straight.ask(3), broken.ask(3))


def check_batches(kind: Kind) -> None:
    """Points asked for together may differ, and rewards come in any order, by trial or by id."""
    algorithm = make(kind)
    assert len({trial.x.tobytes() for trial in make(kind).ask(3)}) > 1
    for _ in range(4):
        trials = algorithm.ask(3)
        for trial in reversed(trials):
            algorithm.tell(trial.id, reward(trial))
    assert not algorithm.pending()


def check_amend(kind: Kind) -> None:
    """After `amend` or `retract`, the state is that of a run in which the reward was right, or never told."""
    for right in (0.125, None):
        for which in (2, 9):
            wrong, at_once = make(kind), make(kind)
            for trial in play(wrong, 12):
                offers = wrong.log.offers
                assert offers is not None
                offer = offers.offer(trial.id, 0, _DIM)
                at_once.take_trial(offer, 0, trial.model, trial.explored, trial.propensity)
                if trial.id != which or right is not None:
                    at_once.tell(trial.id, right if trial.id == which and right is not None else reward(trial))
                else:
                    at_once.abandon(trial.id)
            if right is None:
                wrong.retract(which)
            else:
                wrong.amend(which, right)
            assert wrong.state() == at_once.state()
            assert np.array_equal(wrong.ask().x, at_once.ask().x)


def check_wrong_input(kind: Kind) -> None:
    """Wrong input raises, says why, and changes nothing."""
    algorithm = make(kind)
    x = play(algorithm, 3)[0].x
    wrong: list[Callable[[], object]] = [
        partial(algorithm.ask, 0),
        partial(algorithm.ask, candidates=[x]),
        partial(algorithm.ask, context=1.0),
        partial(algorithm.ask, features=[x]),
        partial(algorithm.ask, available=[0]),
        algorithm.policy,
        partial(algorithm.observe, 0, 1.0),
        partial(algorithm.observe, 1, 1.0, candidates=[x]),
        partial(algorithm.observe, 0, 1.0, candidates=[2.0 * x]),
        partial(algorithm.observe, 0, 1.0, candidates=[x[:-1]]),
        partial(algorithm.observe, 0, float("nan"), candidates=[x]),
        partial(algorithm.best, candidates=[]),
        partial(algorithm.best, candidates="text"),
        partial(make, kind, repeats=False),
        partial(kind, ModelClass.coordinates(3), Ball(4), **arguments_for_class(kind)),
        partial(kind, ModelClass.from_blocks({"x": 4}, intercept=True), Ball(4), **arguments_for_class(kind)),
        partial(kind, ModelClass.legendre(2, 2), Ball(3), **arguments_for_class(kind)),
    ]
    for k, call in enumerate(wrong):
        settings.refuses(call, algorithm, f"call {k}", ValueError, TypeError)


def refuses(kind: Kind) -> None:
    """A class that chooses from lists raises for a ball, and says so."""
    message = settings.refusal(lambda: make(kind), ValueError)
    assert "ball" in message, f"{kind.__name__} accepts a ball, or its error does not mention it"


CHECKS: tuple[Callable[[Kind], None], ...] = (
    check_points,
    check_direction,
    check_scale,
    check_save_and_load,
    check_batches,
    check_amend,
    check_wrong_input,
)
