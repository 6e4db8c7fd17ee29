"""Checks of contextual asks: randomness, batches, symmetries, wrong input, and a pool that comes as features."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.common.arrays import IntArray
from alexp.common.codec import State
from alexp.problem.domains import Candidates, FiniteSet
from alexp.problem.models import ModelClass
from alexp.testing.contextual.problems import ContextualProblem, reward
from alexp.testing.settings import Kind, arguments_for_class


def check_repeats_with_seed(kind: Kind, problem: ContextualProblem) -> None:
    """The same seed gives the same run bit for bit; reading attributes in between changes nothing."""
    first, second = problem.make(kind), problem.make(kind)
    for step in range(12):
        round_ = problem.round(step)
        a, b = first.ask(**round_), second.ask(**round_)
        assert a == b
        first.tell(a, reward(step, a.index))
        second.tell(b, reward(step, b.index))
        second.policy(**problem.round(step + 50))
        second.best(**problem.round(step + 51))
        second.log_frame()
        if offers(second, WeighsModels):
            weights = second.probabilities
            assert np.all(weights >= 0.0)
            assert abs(weights.sum() - 1.0) < 1e-12
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def check_policy(kind: Kind, problem: ContextualProblem) -> None:
    """`policy` is what asks are drawn from: propensities and scores are its entries, and frequencies follow it."""
    algorithm = problem.make(kind)
    expected, found = np.zeros(50), np.zeros(50)
    for step in range(10):
        round_ = problem.round(step)
        p = algorithm.policy(**round_)
        trial = algorithm.ask(**round_, scores=True)
        assert trial.n_candidates == p.size
        assert trial.propensity == p[trial.index] > 0.0
        assert trial.scores is not None
        assert np.array_equal(trial.scores, p)
        assert np.all(p >= 0.0)
        assert abs(p.sum() - 1.0) < 1e-9
        algorithm.tell(trial, reward(step, trial.index))
        few = np.array([0, p.size - 1])
        q = algorithm.policy(available=few, **round_)
        assert abs(q[few].sum() - 1.0) < 1e-9
        assert np.count_nonzero(q) <= 2
        assert algorithm.ask(available=few, **round_).index in few
        algorithm.abandon(algorithm.n_asked - 1)
    round_ = problem.round(99)
    for _ in range(200):
        p = algorithm.policy(**round_)
        expected[: p.size] += p
        trial = algorithm.ask(**round_)
        found[trial.index] += 1.0
        algorithm.abandon(trial)
    spread = np.sqrt(np.maximum(expected * (1.0 - expected / 200.0), 1e-12))
    assert np.all(np.abs(found - expected) < 5.0 * spread + 2.0), (found, expected)


def check_batches(kind: Kind, problem: ContextualProblem) -> None:
    """n trials of one round are n candidates, other rounds do not matter; rewards come late and in any order."""
    algorithm = problem.make(kind)
    round_ = problem.round(3)
    n = algorithm.policy(**round_).size
    trials = algorithm.ask(n, **round_)
    assert sorted(trial.index for trial in trials) == list(range(n))
    again = algorithm.ask(2, **round_)  # pending trials of other asks close nothing: contexts come again
    assert len({trial.index for trial in again}) == 2
    if "context" in round_:
        contexts = np.array([problem.round(step)["context"] for step in range(4)])
        several = algorithm.ask(4, **(round_ | {"context": contexts}))
        assert [np.array_equal(np.asarray(t.context), c) for t, c in zip(several, contexts, strict=True)] == [True] * 4
    late = algorithm.pending()
    for trial in late[::-2] + late[-2::-2]:
        algorithm.tell(trial.id, reward(0, trial.index))
    assert algorithm.n_told == len(late)
    assert not algorithm.pending()
    algorithm.tell(algorithm.ask(**problem.round(4)), 0.5)


def check_direction(kind: Kind, problem: ContextualProblem) -> None:
    """Minimising a reward is maximising its negative, decision by decision."""
    up, down = problem.make(kind, direction="maximize"), problem.make(kind, direction="minimize")
    for step in range(10):
        round_ = problem.round(step)
        a, b = up.ask(**round_), down.ask(**round_)
        assert a == b
        up.tell(a, reward(step, a.index))
        down.tell(b, -reward(step, b.index))
    one, two = up.best(**round_), down.best(**round_)
    assert (one.index, one.value, one.model) == (two.index, -two.value, two.model)


def check_wrong_input(kind: Kind, problem: ContextualProblem) -> None:
    """Arguments that do not fit domain and models raise before anything changes."""
    algorithm = problem.make(kind)
    for step in range(3):
        trial = algorithm.ask(**problem.round(step))
        algorithm.tell(trial, reward(step, trial.index))
    right = problem.round(9)
    n = algorithm.policy(**right).size
    names = {"context": np.ones(3), "candidates": [(1.0, 2.0)], "features": np.ones((2, 6)), "ids": ["a", "b"]}
    wrong: list[State] = [{}]
    wrong += [right | {name: value} for name, value in names.items() if name not in right and name != "ids"]
    wrong += [{name: value for name, value in right.items() if name != left} for left in right if left != "ids"]
    if "features" in right:
        features = np.array(right["features"])
        features[0, 0] = np.nan
        one_short = right["ids"][1:]
        twice = [right["ids"][0]] * n
        wrong += [
            {"features": features}, {"features": np.ones((3, 5))}, {"features": np.empty((0, 6))},
            {"features": np.ones((n, 6)), "ids": one_short}, {"features": np.ones((n, 6)), "ids": twice},
            {"features": {"a": np.ones((2, 3))}}, {"features": np.ones((1, 6)), "ids": [object()]},
        ]  # fmt: skip
    if "candidates" in right:
        wrong += [right | {"candidates": []}, right | {"candidates": "text"}]
    if "context" in right:
        wrong += [right | {"context": np.full(3, np.inf)}]
    for one in wrong:
        for use in (algorithm.ask, algorithm.policy, algorithm.best, partial(algorithm.observe, 0, 1.0)):
            _refuses(partial(use, **one), algorithm, f"{one!r:.80}")
    for available in ([], [n], [-1], [0, 0], ["unknown"], np.zeros(n, dtype=bool)):
        _refuses(partial(algorithm.ask, None, available, **right), algorithm, f"available={available}")
    _refuses(lambda: algorithm.ask(0, **right), algorithm, "n = 0")
    _refuses(lambda: algorithm.observe(n, 1.0, **right), algorithm, "an observation of no candidate")
    _refuses(lambda: algorithm.observe(0, 1.0, propensity=1.5, **right), algorithm, "a propensity beyond one")
    _refuses(lambda: algorithm.observe(0, float("nan"), **right), algorithm, "a reward of NaN")
    if "context" in right:
        _refuses(lambda: algorithm.ask(2, **(right | {"context": [np.ones(3)] * 3})), algorithm, "3 contexts, n = 2")
        _refuses(lambda: algorithm.ask(3, **(right | {"context": [1.0, 2.0, 3.0]})), algorithm, "one context or 3")


def _refuses(action: Callable[[], object], algorithm: Algorithm, what: str) -> None:
    before, message = json.dumps(algorithm.to_dict()), None
    try:
        action()
    except (ValueError, TypeError) as error:
        message = str(error)
    assert message, f"{what} must raise ValueError or TypeError, and say why"
    assert json.dumps(algorithm.to_dict()) == before, f"{what}: state changed although an error was raised"


def check_pool(kind: Kind, problem: ContextualProblem) -> None:
    """Rows of a finite pool that come as features are decided on like the pool with `available`.

    Which of equally good candidates is played, and what a random number stands for, depends on the order in which they
    are visited: the contextual run is made to visit them in the pool's order, with the pool's random numbers for
    agents, which are others in every contextual ask. Nothing is pending, since that closes
    candidates of a pool and none of a round; and the pool is the example that prior scales come from.
    """
    pool = np.random.default_rng(8).uniform(-1.0, 1.0, (30, 6))
    blocks = {"a": pool[:, :3], "b": pool[:, 3:4], "c": pool[:, 4:]}
    arguments = arguments_for_class(kind) | {"norm_bound": 1.0}
    models = ModelClass.from_blocks({name: block.shape[1] for name, block in blocks.items()}, example=pool)
    fresh = kind(models, Candidates(), **arguments)
    arguments |= {name: getattr(fresh, name) for name in kind.settings}  # some defaults are others here
    fixed = kind(ModelClass.from_matrices(blocks, intercept=False), FiniteSet(list(range(30))), **arguments)
    few: IntArray = np.arange(30)
    place = fixed._listed.position
    fresh._agent_rng = lambda: fixed._agent_rng()  # type: ignore[method-assign]
    fresh._visiting_order = lambda k, n: np.argsort(place[few])  # type: ignore[method-assign]
    for step in range(25):
        few = np.sort(np.random.default_rng([step]).choice(30, 2 + step, replace=False))
        a, b = fixed.ask(available=few), fresh.ask(features=pool[few], ids=few)
        assert (a.x, a.model, a.explored) == (b.x, b.model, b.explored), f"round {step}"
        assert abs(a.propensity - b.propensity) < 1e-9
        fixed.tell(a, reward(step, a.index))
        fresh.tell(b, reward(step, a.index))
    few = np.arange(30)  # all of them are looked at for the best
    if kind.name != "uniform":  # which recommends a candidate that it has seen
        assert fixed.best().index == fresh.best(features=pool).index
