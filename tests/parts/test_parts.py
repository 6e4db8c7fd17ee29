"""Candidates in parts decide as candidates in one memory do, whatever the parts and whatever they lose."""

import json

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.common.ties import TIE
from alexp.parts.program import BLOCK, Node, Tied, UpperFront, plan
from alexp.problem.candidates import AllBut, ComputedOrder
from tests.common import ties_twin
from tests.parts.holding import held, linear_rewards, mixture, play, tables

RULES = [
    {},
    {"rule": "ucb"},
    {"rule": "ids", "noise_std": 0.1, "reward_bound": 3.0},
    {"goal": "best"},
    {"goal": "best", "repeats": False},
    {"rule": "thompson"},
]


@pytest.mark.parametrize("settings", RULES, ids=str)
def test_decisions_are_those_of_one_memory(settings):
    given = tables()
    rewards, n = linear_rewards(given), 400
    alone, parts = mixture(given, n, **settings), mixture(held(given), n, **settings)
    assert type(alone._mixture.grid) is type(parts._mixture.grid)
    rounds = 200 if settings == {} else 30
    assert play(parts, rewards, rounds) == play(alone, rewards, rounds)
    np.testing.assert_allclose(parts.probabilities, alone.probabilities, atol=1e-10)
    assert parts.best().index == alone.best().index
    np.testing.assert_allclose(parts.predict(17), alone.predict(17), rtol=1e-7)


def with_twins(rng):
    """Tables in which every candidate has two more of the same features, in single precision in part."""
    order = rng.permutation(np.tile(np.arange(70), 3))
    return {name: np.ascontiguousarray(values[order]) for name, values in tables(70).items()}


@pytest.mark.parametrize("kernels", ["linear", "auto"])
@pytest.mark.parametrize("settings", RULES, ids=str)
def test_ties_go_as_in_one_memory(settings, kernels):
    """Candidates of equal features, whose numbers differ in their last bits, in parts as anywhere."""
    given = with_twins(np.random.default_rng(4))
    rewards, n = linear_rewards(given), 210
    alone, parts = (mixture(one, n, kernels, **settings) for one in (given, held(given, 4)))
    found = [play(one, rewards, 25) for one in (alone, parts)]
    assert found[0] == found[1]
    assert alone.best().index == parts.best().index


@pytest.mark.parametrize("tie", [TIE, 0.0])
def test_the_first_of_the_best_is_found_part_by_part(tie):
    rng = np.random.default_rng(5)
    for _ in range(200):
        scores = rng.choice(rng.standard_normal(3), 60) * (1.0 + 10.0 ** rng.uniform(-16, -9) * rng.random(60))
        visited, found = rng.permutation(60), Tied.none()
        for some in np.array_split(rng.permutation(60), 5):
            found = found.joined(Tied.of(scores[some], visited[some], tie, found.top), tie)
            assert found.values.size < 30
        in_order = scores[np.argsort(visited)]
        assert found.first(tie) == (ties_twin.first_best(in_order) if tie else int(np.argmax(in_order)))


@pytest.mark.parametrize("kernels", ["auto", {"a": alexp.kernels.Tanimoto(), "b": ["linear", alexp.kernels.RBF()]}])
def test_kernels_are_those_of_one_memory(kernels):
    given = tables(200)
    given["a"] = (given["a"] > 0.5).astype(np.float32)
    rewards = linear_rewards(given)
    alone, parts = mixture(given, 200, kernels), mixture(held(given), 200, kernels)
    assert parts.models.names == alone.models.names
    assert play(parts, rewards, 30) == play(alone, rewards, 30)
    np.testing.assert_allclose(parts.probabilities, alone.probabilities, atol=1e-9)


def test_plates_failures_and_restrictions_are_those_of_one_memory():
    given = tables()
    rewards, found = linear_rewards(given), []
    for opt in (mixture(given, 400, goal="best"), mixture(held(given), 400, goal="best")):
        own = []
        opt.observe(8, float(rewards[8]))
        for _ in range(4):
            plate = opt.ask(5)
            own += [trial.index for trial in plate]
            for trial in plate[:3]:
                opt.tell(trial, float(rewards[trial.index]))
            opt.fail(plate[3], "broke")
        own.append(opt.ask(available=[3, 4, 5, 399]).index)
        own.append(opt.best().index)
        found.append(own)
    assert found[0] == found[1]
    assert all(len(set(found[0][k : k + 5])) == 5 for k in range(0, 20, 5))


def test_rewards_that_repeat_exactly_are_those_of_one_memory():
    given = tables()
    rewards = linear_rewards(given)
    alone, parts = mixture(given, 400), mixture(held(given), 400)
    assert play(parts, rewards, 60, noise=0.0) == (one := play(alone, rewards, 60, noise=0.0))
    assert len(set(one)) < len(one)  # some were played again


def test_a_part_that_is_lost_is_computed_again_and_changes_nothing():
    given = tables()
    rewards = linear_rewards(given)
    expected = play(mixture(given, 400), rewards, 150)
    rows = held(given)
    engine = rows["a"].device
    parts = mixture(rows, 400)

    def lose(t):
        if t % 7 == 3:
            engine.lose(t % 3)

    assert play(parts, rewards, 150, before=lose) == expected
    assert engine.lost > 20


def test_a_step_is_one_reduction_and_looks_at_one_row():
    given = tables()
    rewards, rows = linear_rewards(given), held(given)
    parts = mixture(rows, 400, rule="ucb")
    play(parts, rewards, 3)
    before = rows["a"].device.n_runs
    trial = parts.ask()
    assert rows["a"].device.n_runs == before + 1
    parts.tell(trial, 1.0)
    assert rows["a"].device.n_runs == before + 3  # the row of each matrix


def test_what_nothing_needs_any_more_is_dropped():
    given = tables()
    rows = held(given)
    parts = mixture(rows, 400)
    play(parts, linear_rewards(given), 20)
    engine = rows["a"].device
    assert all(len(stored) == 2 for stored in engine.stored)  # values of two models
    assert [values.shape for values in engine.parts[0].values[min(engine.stored[0])]] == [(2, 5, 133)]


def test_values_are_kept_in_blocks_when_parts_are_larger():
    rng = np.random.default_rng(0)
    given = {"a": rng.standard_normal((2 * BLOCK + 7, 16))}
    rewards = linear_rewards(given)
    alone, parts = mixture(given, len(rewards)), mixture(held(given, 1), len(rewards))
    assert play(parts, rewards, 12) == play(alone, rewards, 12)
    np.testing.assert_array_equal(np.asarray(held(given, 1)["a"]), given["a"])


def test_runs_are_saved_and_continued_with_the_same_models():
    given = tables()
    rewards = linear_rewards(given)
    expected = play(mixture(given, 400), rewards, 30)
    models = alexp.ModelClass.from_matrices(held(given))
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(range(400)), random_state=3)
    rng, found = np.random.default_rng(7), []
    for t in range(30):
        if t == 17:
            state = json.loads(json.dumps(opt.to_dict()))
            with pytest.raises(ValueError, match="models"):
                alexp.EvidenceMixture.from_dict(state)
            opt = alexp.EvidenceMixture.from_dict(state, models=models)
        trial = opt.ask()
        found.append(trial.index)
        opt.tell(trial, float(rewards[trial.index] + 0.1 * rng.standard_normal()))
    assert found == expected


def test_amended_rewards_are_as_if_they_had_been_told():
    given = tables()
    wrong, right = mixture(held(given), 400), mixture(held(given), 400)
    for t, value in enumerate([0.3, 50.0, 0.1]):
        for opt, reward in ((wrong, value), (right, 0.5 if t == 1 else value)):
            opt.observe(t, reward)
    wrong.amend(1, 0.5)
    np.testing.assert_allclose(wrong.probabilities, right.probabilities, rtol=1e-12)
    assert wrong.ask().index == right.ask().index


def test_features_of_other_candidates_and_wrong_numbers_are_refused():
    given = tables()
    with pytest.raises(ValueError, match="same candidates"):
        alexp.ModelClass.from_matrices({"a": held(given)["a"], "b": held(given)["b"]})
    given["b"][301, 3] = np.nan
    with pytest.raises(ValueError, match=r"features 'b' has nan at row 301, column 3; features must be finite"):
        alexp.ModelClass.from_matrices(held(given))
    given["b"][301, 3] = 1e200
    with pytest.raises(ValueError, match="must not exceed"):
        alexp.ModelClass.from_matrices(held(given))


def test_what_needs_all_candidates_in_one_memory_is_refused():
    given = tables()
    named = alexp.FiniteSet(pd.DataFrame({"x": np.arange(400) // 4}))
    opt = alexp.EvidenceMixture(alexp.ModelClass.from_matrices(held(given)), named, random_state=3)
    with pytest.raises(ValueError, match="in parts"):
        opt.ask(2, at_most={"x": 1})
    with pytest.raises(ValueError, match="in parts"):
        opt.ask(scores=True)
    with pytest.raises(ValueError, match="ALExp computes in the memory of the CPU"):
        alexp.ALExp(alexp.ModelClass.from_matrices(held(given)), alexp.FiniteSet(range(400)))
    opt.observe(0, 1.0)
    with pytest.raises(TypeError, match="one number per candidate"):
        opt.belief.moments(opt._everything).mean + np.ones(400)


def test_an_order_that_is_computed_is_a_permutation():
    for n in (1, 2, 10, 63**2):
        order = ComputedOrder.drawn(n, np.random.default_rng(n))
        visited = order[np.arange(n)]
        assert sorted(visited.tolist()) == list(range(n))
        np.testing.assert_array_equal(order.position[visited], np.arange(n))
    large = ComputedOrder.drawn(63**5, np.random.default_rng(0))
    some = np.array([0, 1, 10**8, 63**5 - 1])
    np.testing.assert_array_equal(large[large.position[some]], some)


def test_rounds_of_all_but_some_find_their_candidates():
    given = tables(50)
    opt = mixture(held(given), 50)
    listed = opt._listed
    round_ = listed.round(AllBut(50, np.array([3, 11, 49])))
    left = [round_.candidate(k) for k in range(len(round_))]
    assert sorted(left) == sorted(set(range(50)) - {3, 11, 49})
    assert [round_.position_of(candidate) for candidate in left] == list(range(47))
    assert round_.position_of(11) is None
    np.testing.assert_array_equal(left, [c for c in listed.order[np.arange(50)] if c not in (3, 11, 49)])


def test_a_program_writes_only_to_what_nothing_else_needs():
    stored = Node("zeros", (), (2,))
    stored.live = 1
    cov = Node("zeros", (), (2,))
    moved = Node("moved", (stored, cov), (np.ones(2),))
    again = Node("moved", (moved, cov), (np.ones(2),))
    steps = {step.number: step for step in plan([again], {stored.number: stored}, True).steps}
    assert not steps[moved.number].in_place  # `stored` is an array of the run
    assert steps[again.number].in_place
    stored.live, moved.live = 0, 1
    program = plan([again], {stored.number: stored}, True)
    steps = {step.number: step for step in program.steps}
    assert steps[moved.number].in_place
    assert not steps[again.number].in_place  # `moved` stays
    assert program.kept == {moved.number}
    assert program.dropped == {stored.number}


def undominated(one, two):
    """Points that no other one equals or exceeds in both, the slow way."""
    wins = (one[:, None] >= one) & (two[:, None] >= two) & ((one[:, None] > one) | (two[:, None] > two))
    return np.flatnonzero(~wins.any(axis=0))


@pytest.mark.parametrize("kind", ["random", "curve", "ties"])
def test_a_front_has_the_points_that_no_other_exceeds(kind):
    rng = np.random.default_rng(2)
    one, two = rng.standard_normal((2, 700))
    if kind == "curve":  # all of them: more than there is room for at first
        two = -one
    if kind == "ties":
        one, two = np.round(one), np.round(two)
    visited = rng.permutation(700)
    front = UpperFront()
    for low in range(0, 700, 90):
        part = slice(low, low + 90)
        assert front.extend(one[part], two[part], visited[part]) is None
    places, *values = front.by_visit()
    expected = {}
    for k in undominated(one, two):
        expected.setdefault((one[k], two[k]), []).append(visited[k])
    assert dict(zip(zip(*values, strict=True), places, strict=True)) == {k: min(v) for k, v in expected.items()}
    assert (np.diff(places) > 0).all()
    assert front.extend(np.array([0.0, np.nan]), np.zeros(2), np.arange(2)) == 1


@pytest.mark.parametrize("rule", ["ucb", "ids"])
def test_rules_of_mean_and_deviation_take_one_reduction(rule):
    given = tables()
    rows = held(given)
    parts = mixture(rows, 400, rule=rule)
    play(parts, linear_rewards(given), 3)
    before = rows["a"].device.n_runs
    parts.ask()
    assert rows["a"].device.n_runs == before + 1


def test_a_product_for_one_reward_is_not_written():
    values, rows = Node("zeros", (), (2,)), (("features",), np.ones((1, 3)), np.zeros(1))
    product = Node("product", (), rows)
    moved = Node("moved", (values, product), ("gain", "total", None))
    program = plan([moved], {values.number: values}, True)
    assert [step.name for step in program.steps] == ["moved by product"]
    assert program.steps[0].constants == (*rows, "gain", "total", None)
    product.live = 1  # an array of the run
    assert [step.name for step in plan([moved], {values.number: values}, True).steps] == ["product", "moved"]
