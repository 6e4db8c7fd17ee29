"""The contextual part of the conformance suite: rounds of 2 to 50 candidates that were never seen before.

    @pytest.mark.parametrize(("check", "problem"), alexp.testing.contextual.cases(MyAlgorithm), ids=str)
    def test_mine(check, problem):
        check(MyAlgorithm, problem)

An algorithm that says in `needs_table` or `needs_ball` why it plays no contextual rounds is only checked to say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import State
from alexp.problem.domains import Arms, Candidates, Domain, FiniteSet
from alexp.problem.models import ModelClass
from alexp.testing import settings
from alexp.testing.amending import force, release, text_of
from alexp.testing.settings import Kind, arguments_for_class, refusal

__all__ = ["CHECKS", "PROBLEMS", "ContextualProblem", "cases"]

# -- problems: features passed by the caller, maps of candidates, and arms ------------------------------------


class Crossed:
    """A contextual dictionary of the suite: all products of a context (3,) with two numbers of each candidate.

    Candidates are pairs of numbers, or names of arms, whose numbers come from the length of their names.
    """

    n_columns = 6
    names = tuple(f"c{i}x{k}" for k in range(2) for i in range(3))
    example_rows: FloatArray | None = None

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """(n, 6) products."""
        own = np.array([_numbers(one) for one in candidates], dtype=np.float64)
        return np.asarray(np.hstack([own[:, :1] * np.asarray(context), own[:, 1:] * np.asarray(context)]))

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of a candidate alone."""
        raise TypeError("features are those of a round")

    def to_dict(self) -> None:
        """It is passed again."""


def _numbers(candidate: Action) -> tuple[float, float]:
    if isinstance(candidate, str):
        return 0.25 * len(candidate), (-1.0) ** len(candidate)
    return float(candidate[0]), float(candidate[1])


@dataclass(frozen=True)
class ContextualProblem:
    """Models, a domain, and the rounds that are played on them.

    Attributes
    ----------
    name : what it is called in reports.
    present : the arguments of `ask` of a round.
    arguments : passed to the constructor.
    """

    name: str
    models: ModelClass
    make_domain: Callable[[], Domain]
    present: Callable[[np.random.Generator], State]
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def round(self, step: int) -> State:
        """The arguments of `ask` in round `step`; the same each time."""
        return self.present(np.random.default_rng([17, step]))

    def make(self, kind: Kind, **arguments: object) -> Algorithm:
        """An algorithm on this problem."""
        every = arguments_for_class(kind) | {"norm_bound": 1.0} | dict(self.arguments) | arguments
        return kind(self.models, self.make_domain(), **every)

    def again(self, saved: Algorithm) -> Algorithm:
        """The run, saved and loaded."""
        return type(saved).from_dict(saved.to_dict(problem=False), self.models, saved.domain)


class ProblemCheck(Protocol):
    """A function that raises an AssertionError unless the class conforms."""

    __name__: str

    def __call__(self, kind: Kind, problem: ContextualProblem) -> None:
        """Run the check."""


def reward(step: int, index: int) -> float:
    """The reward of candidate `index` in round `step`; no model explains it."""
    return float(np.cos(step + index / 5.0) + 0.1 * np.sin(37.0 * index))


def _features(rng: np.random.Generator) -> State:
    n = int(rng.integers(2, 51))
    return {"features": rng.uniform(-1.0, 1.0, (n, 6)), "ids": [f"item {k}" for k in rng.permutation(n)]}


def _candidates(rng: np.random.Generator) -> State:
    n = int(rng.integers(2, 51))
    return {"context": rng.uniform(-1.0, 1.0, 3), "candidates": [tuple(pair) for pair in rng.uniform(-1, 1, (n, 2))]}


def _context(rng: np.random.Generator) -> State:
    return {"context": rng.uniform(-1.0, 1.0, 3)}


_EXAMPLE = np.random.default_rng(5).uniform(-1.0, 1.0, (20, 6))
_BLOCKS = ModelClass.from_blocks({"a": 3, "b": 1, "c": 2}, example=_EXAMPLE)
_PAIRS = ModelClass(Crossed(), [[0, 1, 2], [3, 4], [0, 3, 5], [5]], intercept=True, scales=[1.0, 2.0, 0.5, 1.0])
_PER_ARM = ModelClass.per_arm({"a": [0, 1], "b": [2], "c": [0, 1, 2]}, arms=4)

PROBLEMS: tuple[ContextualProblem, ...] = (
    ContextualProblem("features", _BLOCKS, Candidates, _features),
    ContextualProblem("context and candidates, minimised", _PAIRS, Candidates, _candidates, {"direction": "minimize"}),
    ContextualProblem("arms", _PAIRS, lambda: Arms(["one", "four", "fifteen", "a million"]), _context),
    ContextualProblem("models per arm", _PER_ARM, lambda: Arms(["one", "four", "fifteen", "a million"]), _context),
)


def refuses(kind: Kind, problem: ContextualProblem) -> None:
    """A class that needs a table or a ball raises, with the reason, when it is constructed."""
    message = refusal(lambda: problem.make(kind), ValueError)
    assert message, f"{kind.__name__} needs a table or a ball and takes {problem}"
    assert (kind.needs_table or kind.needs_ball) in message


# -- asks: randomness, batches, symmetries, wrong input, a pool that comes as features ------------------------


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
    settings.refuses(action, algorithm, what, ValueError, TypeError)


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


# -- saving, and external observations ------------------------------------------------------------------------


def check_save_and_load(kind: Kind, problem: ContextualProblem) -> None:
    """A run that is saved and loaded at every step, with pending trials, continues unchanged."""
    straight, broken = problem.make(kind), problem.make(kind)
    late: list[tuple[int, int]] = []
    for step in range(14):
        round_ = problem.round(step)
        a, b = straight.ask(**round_), broken.ask(**round_)
        assert a == b
        broken = problem.again(broken)
        assert [t.id for t in broken.pending()] == [t.id for t in straight.pending()]
        if step % 3 == 1:
            late.append((step, a.id))
        else:
            for algorithm in (straight, broken):
                algorithm.tell(a.id, reward(step, a.index))
        if step in (6, 11):
            when, trial = late.pop(0)
            for algorithm in (straight, broken):
                algorithm.tell(trial, reward(when, algorithm.trial(trial).index))
        if step == 8:
            _, trial = late.pop()
            for algorithm in (straight, broken):
                algorithm.abandon(trial)
        broken = problem.again(broken)
    assert json.dumps(straight.to_dict()) == json.dumps(broken.to_dict())
    round_ = problem.round(77)
    assert np.array_equal(straight.policy(**round_), broken.policy(**round_))
    assert straight.ask(2, **round_) == broken.ask(2, **round_)


def check_observed(kind: Kind, problem: ContextualProblem) -> None:
    """Logged data become trials, with their propensity if it is known, and are saved with the others."""
    algorithm = problem.make(kind, log_features="all")
    for step in range(6):
        round_ = problem.round(step)
        propensity = 0.25 if step % 2 else None
        trial = algorithm.observe(1, reward(step, 1), propensity=propensity, **round_)
        assert trial.index == 1
        assert trial.model is None
        assert trial.propensity == propensity or (propensity is None and np.isnan(trial.propensity))
        algorithm.ask(**round_)
        algorithm = problem.again(algorithm)
    assert algorithm.n_told == 6
    algorithm.amend(2, 0.125)
    frame = algorithm.log_frame()
    assert frame["reward"][2] == 0.125
    assert frame["propensity"][2] == 0.25
    assert all(
        rows.shape == (n, problem.models.n_columns) for rows, n in zip(frame["features"], frame["n"], strict=True)
    )
    algorithm.best(**problem.round(0))


# -- amending, interrupts, runs that keep no features ---------------------------------------------------------


_WRONG = 2  # the trial whose reward is told wrong, or not at all


def check_amend(kind: Kind, problem: ContextualProblem) -> None:
    """An amended run equals a run that was told the right rewards at once, with the same actions; so does a retracted.

    Rewards come late and in other orders, trials are pending and abandoned, and the run is saved and loaded.
    """
    for off in (2.5, None):
        amended, right = problem.make(kind), problem.make(kind)
        _play(amended, problem, 2.5)
        amended = problem.again(amended)
        played = [amended.trial(k) for k in range(amended.n_asked)]
        if off is None:
            amended.retract(_WRONG)
        else:
            amended.amend(_WRONG, reward(_WRONG, amended.trial(_WRONG).index))
        force(right, played)
        _play(right, problem, 0.0 if off is not None else None)
        release(right)
        assert text_of(right, "state") == text_of(amended, "state"), "the correction left a trace"
        assert right.n_told == amended.n_told
        round_ = problem.round(40)
        assert right.ask(2, **round_) == amended.ask(2, **round_)


def _play(algorithm: Algorithm, problem: ContextualProblem, off: float | None) -> None:
    for step in range(9):
        trial = algorithm.ask(available=[0, 1] if step == 4 else None, **problem.round(step))
        if step == _WRONG and off is None:
            algorithm.abandon(trial.id)
        elif step not in (1, 3, 5):
            algorithm.tell(trial.id, reward(step, trial.index) + (off or 0.0) * (step == _WRONG))
        if step == 6:
            algorithm.tell(3, reward(3, algorithm.trial(3).index))
            algorithm.abandon(5)


def check_repair(kind: Kind, problem: ContextualProblem) -> None:
    """An interrupted state is computed again from the log, with its offers."""
    whole, torn = problem.make(kind), problem.make(kind)
    for algorithm in (whole, torn):
        _play(algorithm, problem, 0.0)
    torn._torn = True
    round_ = problem.round(30)
    assert whole.ask(**round_) == torn.ask(**round_)
    assert text_of(whole) == text_of(torn)
    torn._changing = True
    assert text_of(whole) == text_of(torn)


def check_none_kept(kind: Kind, problem: ContextualProblem) -> None:
    """With log_features="none" decisions are the same, rows are dropped with the reward, and amendments are refused."""
    plain, bare = problem.make(kind), problem.make(kind, log_features="none")
    for step in range(8):
        round_ = problem.round(step)
        a, b = plain.ask(**round_), bare.ask(**round_)
        assert a == b
        bare = problem.again(bare)
        if step % 3:
            plain.tell(a.id, reward(step, a.index))
            bare.tell(b.id, reward(step, b.index))
    assert json.dumps(plain.state()) == json.dumps(bare.state())
    assert len(json.dumps(bare.to_dict())) < len(json.dumps(plain.to_dict()))
    frame = bare.log_frame()
    assert frame["context"][frame["reward"].notna()].isna().all()
    for action in (lambda: bare.amend(1, 0.5), lambda: bare.retract(1)):
        assert "log_features" in refusal(action, ValueError), "a correction needs what was not kept"
    assert np.array_equal(plain.policy(**round_), bare.policy(**round_))


CHECKS: tuple[ProblemCheck, ...] = (
    check_repeats_with_seed,
    check_policy,
    check_batches,
    check_direction,
    check_save_and_load,
    check_observed,
    check_amend,
    check_repair,
    check_none_kept,
    check_wrong_input,
)


def cases(kind: Kind) -> list[tuple[ProblemCheck, ContextualProblem]]:
    """All checks with all problems for a class; for one that needs a table or a ball, that it says so."""
    if kind.needs_table or kind.needs_ball:
        return [(refuses, problem) for problem in PROBLEMS]
    return [(check, problem) for problem in PROBLEMS for check in CHECKS] + [(check_pool, PROBLEMS[0])]
