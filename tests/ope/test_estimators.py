import json

import numpy as np
import pytest

from alexp import ope
from alexp.ope.estimators import GROWTH
from alexp.ope.log import Ragged
from alexp.ope.sequences import Bets, running_level
from tests.ope import obp_fixture, twins

RANGE = (0.0, 1.0)


def uniform_log(n=300, arms=4, seed=0, **columns):
    rng = np.random.default_rng(seed)
    index = rng.integers(arms, size=n)
    return ope.Log(rng.binomial(1, 0.2 + 0.15 * index), np.full(n, 1.0 / arms), index, arms, **columns)


def skewed(n=400, arms=5, seed=1):
    """A log with different propensities, its policy and predictions in [0, 1]."""
    rng = np.random.default_rng(seed)
    chances = 0.1 / arms + 0.9 * rng.dirichlet(np.ones(arms), size=n)
    index = np.array([rng.choice(arms, p=p) for p in chances])
    means = rng.random((n, arms))
    log = ope.Log(
        rng.binomial(1, means[np.arange(n), index]),
        chances[np.arange(n), index],
        index,
        arms,
        probabilities=chances,
    )
    return log, rng.dirichlet(np.full(arms, 0.5), size=n), np.clip(means + 0.2 * rng.standard_normal(means.shape), 0, 1)


# -- values ------------------------------------------------------------------------------------------------------


def our_numbers():
    found, even = obp_fixture.problem(), obp_fixture.uniform()
    log = ope.Log(found["reward"], found["pscore"], found["action"], 5)
    policy, q = found["action_dist"], found["predicted"]
    return {
        "ips": ope.ips(log, policy).value,
        "snips": ope.snips(log, policy).value,
        "dm": ope.dm(log, policy, model=q).value,
        "dr": ope.dr(log, policy, model=q).value,
        "replay": ope.replay(ope.Log(even["reward"], even["pscore"], even["action"], 5), even["action_dist"]).value,
    }


def test_values_are_those_of_open_bandit_pipeline():
    stored = json.loads(obp_fixture.FIXTURE.read_text(encoding="utf-8"))
    assert our_numbers() == pytest.approx(stored, abs=1e-10)


def test_values_are_those_of_its_formulas():
    found, even = obp_fixture.problem(), obp_fixture.uniform()
    a, y, p, pi, q = (found[name] for name in ("action", "reward", "pscore", "action_dist", "predicted"))
    rows = np.arange(len(a))
    w = pi[rows, a] / p
    known = np.average(q, weights=pi, axis=1)
    same = even["action_dist"][rows, even["action"]] == 1
    assert our_numbers() == pytest.approx(
        {
            "ips": (w * y).mean(),
            "snips": (w * y / w.mean()).mean(),
            "dm": known.mean(),
            "dr": (known + w * (y - q[rows, a])).mean(),
            "replay": even["reward"][same].mean(),
        },
        abs=1e-12,
    )


def test_values_are_those_of_the_installed_open_bandit_pipeline():
    pytest.importorskip("obp")
    assert our_numbers() == pytest.approx(obp_fixture.numbers(obp_fixture.load_obp()), abs=1e-10)


def test_clipped_weights_give_less_and_keep_the_interval_right():
    log, policy, _ = skewed()
    plain, clipped = ope.ips(log, policy, reward_range=RANGE), ope.ips(log, policy, clip=2.0, reward_range=RANGE)
    w = np.minimum(policy[np.arange(400), log.index] / log.propensities, 2.0)
    assert clipped.value == pytest.approx((w * log.rewards).mean(), abs=1e-12)
    assert clipped.value < plain.value
    assert clipped.largest_weight == 2.0 < plain.largest_weight
    assert clipped.lower <= clipped.value <= clipped.upper


def test_ips_and_dr_are_unbiased_and_dm_is_not():
    rng = np.random.default_rng(2)
    means, policy, wrong = np.array([0.2, 0.8]), np.array([0.3, 0.7]), np.array([0.9, 0.1])
    values = {"ips": [], "dr": [], "dm": []}
    for _ in range(400):
        index = (rng.random(50) < 0.25).astype(int)
        log = ope.Log(rng.binomial(1, means[index]), np.where(index == 1, 0.25, 0.75), index, 2)
        values["ips"].append(ope.ips(log, [policy] * 50).value)
        values["dr"].append(ope.dr(log, [policy] * 50, model=[wrong] * 50).value)
        values["dm"].append(ope.dm(log, [policy] * 50, model=[wrong] * 50).value)
    truth = policy @ means
    for name in ("ips", "dr"):
        assert abs(np.mean(values[name]) - truth) < 3.5 * np.std(values[name]) / 20.0
    assert abs(np.mean(values["dm"]) - truth) > 0.2


# -- predictions -------------------------------------------------------------------------------------------------


def with_rows(n=150, arms=3, columns=4, seed=8):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, arms, columns))
    rows[:, :, 0] = 1.0
    index = rng.integers(arms, size=n)
    rewards = rows[np.arange(n), index] @ np.array([5.0, 1.0, -1.0, 0.0]) + 0.1 * rng.standard_normal(n)
    return ope.Log(rewards, np.full(n, 1.0 / arms), index, arms, features=rows), rows, index, rewards


def test_predictable_regression_is_the_slow_one():
    log, rows, index, rewards = with_rows()
    policy = np.full((150, 3), 1 / 3)
    slow = twins.predictable_ridge(rows, index, rewards, 2.0, GROWTH)
    assert ope.dm(log, policy, ridge=2.0).value == pytest.approx((policy * slow).sum(axis=1).mean(), abs=1e-9)
    w = 1.0
    expected = ((policy * slow).sum(axis=1) + w * (rewards - slow[np.arange(150), index])).mean()
    assert ope.dr(log, policy, ridge=2.0).value == pytest.approx(expected, abs=1e-9)


def test_predictions_need_the_features_of_all_candidates():
    policy = np.full((300, 4), 0.25)
    with pytest.raises(ValueError, match='log_features="all"'):
        ope.dr(uniform_log(), policy)
    with pytest.raises(ValueError, match="chosen ones only"):
        ope.dm(uniform_log(chosen=np.ones((300, 2))), policy)
    rows = uniform_log().with_features(lambda round_: np.eye(round_.n))
    assert ope.dr(rows, policy).value == pytest.approx(rows.rewards.mean(), abs=0.05)


# -- intervals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("difference", [False, True])
def test_payoffs_have_the_right_mean_and_bound(difference):
    """By enumeration of all actions: E x = v (or v_b - v_a) and x >= -low, whatever the reward in [0, 1]."""
    rng = np.random.default_rng(6)
    n, arms = 40, 4
    p = 0.01 + 0.96 * rng.dirichlet(np.full(arms, 0.3), size=n)
    p /= p.sum(axis=1, keepdims=True)
    pi = rng.dirichlet(np.full(arms, 0.3), size=n)
    change = pi - rng.dirichlet(np.full(arms, 0.3), size=n) if difference else pi
    q, r = rng.random((n, arms)), rng.random((n, arms))
    lengths = np.full(n, arms)

    def payoffs(action, rewards):
        bets = Bets(
            Ragged.of("change", change, lengths),
            np.full(n, action),
            p[:, action],
            rewards,
            Ragged.of("q", q, lengths),
            p.ravel() * 0.9,
            difference=difference,
        )
        return bets.payoffs()

    means = sum(p[:, [a]] * payoffs(a, r[:, a]).values for a in range(arms))
    assert means == pytest.approx(np.repeat((change * r).sum(axis=1)[:, None], means.shape[1], axis=1))
    for rewards in (np.zeros(n), np.ones(n)):
        for a in range(arms):
            found = payoffs(a, rewards)
            assert np.all(found.values >= -found.lows - 1e-9)
    assert found.values.shape[1] == 3
    assert np.ptp(found.values, axis=1).max() > 0.1  # the columns differ


def test_the_level_of_a_round_is_that_of_the_rounds_before():
    change = Ragged.of("change", np.full((3, 2), 0.5), np.full(3, 2))
    level = running_level(change, np.zeros(3, dtype=int), np.array([0.5, 0.25, 0.5]), np.array([1.0, 0.0, 1.0]))
    # weights 1, 2, 1: 1/2, then (1/2 + 1) / (1 + 1), then (1/2 + 1) / (1 + 3)
    assert level.values.tolist() == [0.5, 0.5, 0.75, 0.75, 0.375, 0.375]


def test_intervals_are_equivariant():
    log, policy, _ = skewed()
    moved = ope.Log(10.0 - 4.0 * log.rewards, log.propensities, log.index, log.n, probabilities=None)
    plain = ope.Log(log.rewards, log.propensities, log.index, log.n)
    one, two = ope.snips(plain, policy, reward_range=RANGE), ope.snips(moved, policy, reward_range=(6.0, 10.0))
    assert two.value == pytest.approx(10.0 - 4.0 * one.value)
    assert two.interval == pytest.approx((10.0 - 4.0 * one.upper, 10.0 - 4.0 * one.lower))


def test_sequences_narrow_and_end_in_the_interval():
    log, policy, q = skewed()
    for found in (
        ope.ips(log, policy, reward_range=RANGE),
        ope.dr(log, policy, model=q, reward_range=RANGE),
        ope.replay(uniform_log(), np.eye(4)[[1] * 300], reward_range=RANGE),
    ):
        assert np.all(np.diff(found.running_lower) >= 0.0)
        assert np.all(np.diff(found.running_upper) <= 0.0)
        assert found.interval == (found.running_lower[-1], found.running_upper[-1])
        assert found.lower <= found.value <= found.upper
        assert found.bounded
        assert not found.contradicted
        assert len(found.running_lower) == found.n_used


def test_without_a_range_there_is_no_interval():
    found = ope.ips(uniform_log(), np.full((300, 4), 0.25))
    assert found.interval == (-np.inf, np.inf)
    assert not found.bounded
    assert "state reward_range" in str(found)
    assert found.assumes == ()


def test_results_can_be_read():
    log, policy, _ = skewed()
    text = str(ope.ips(log, policy, reward_range=RANGE))
    for part in ("ips: value", "95% at every moment", "400 rounds used, 0 left out", "effective size", "in [0, 1]"):
        assert part in text
    other = np.roll(policy, 1, axis=1)
    text = str(ope.compare(log, other, policy, reward_range=RANGE))
    assert "difference 0.07" in text
    assert text.startswith("not yet: ")


def test_effective_size_of_the_loggers_own_policy_is_all_rounds():
    found = ope.ips(uniform_log(), np.full((300, 4), 0.25), reward_range=RANGE)
    assert found.effective_size == pytest.approx(300.0)
    assert (found.mean_weight, found.largest_weight) == (1.0, 1.0)
    assert found.value == pytest.approx(uniform_log().rewards.mean())


# -- comparing ---------------------------------------------------------------------------------------------------


def test_a_difference_is_the_difference():
    log, policy, q = skewed()
    other = np.roll(policy, 2, axis=1)
    for options in ({}, {"model": q}):
        one, two = ((ope.dr if options else ope.ips)(log, new, **options).value for new in (other, policy))
        there = ope.compare(log, other, policy, reward_range=RANGE, **options)
        back = ope.compare(log, policy, other, reward_range=RANGE, **options)
        assert there.value == pytest.approx(two - one, abs=1e-12)
        assert there.interval == pytest.approx((-back.upper, -back.lower))
        assert -1.0 <= there.lower <= there.upper <= 1.0


def test_equal_policies_do_not_differ():
    log, policy, _ = skewed()
    found = ope.compare(log, policy, policy, reward_range=RANGE)
    assert found.value == 0.0
    assert found.verdict == "not yet"
    assert found.lower <= 0.0 <= found.upper


# -- replay ------------------------------------------------------------------------------------------------------


def test_replay_with_a_bound_is_right_on_other_logs():
    rng = np.random.default_rng(4)
    n, means = 30_000, np.array([0.2, 0.8])
    index = (rng.random(n) < 0.25).astype(int)
    log = ope.Log(rng.binomial(1, means[index]), np.where(index == 1, 0.25, 0.75), index, 2)
    policy = np.tile([0.3, 0.7], (n, 1))
    found = ope.replay(log, policy, bound=2.8, reward_range=RANGE)
    assert found.value == pytest.approx(0.62, abs=0.02)
    assert found.n_accepted == pytest.approx(n / 2.8, rel=0.05)
    assert found.lower <= 0.62 <= found.upper
    assert f"{found.n_accepted} of them accepted" in str(found)
    with pytest.raises(ValueError, match="a uniform log"):
        ope.replay(log, policy)
    with pytest.raises(ValueError, match="bound must be at least"):
        ope.replay(log, policy, bound=2.0)


def test_replay_on_uniform_logs_of_changing_size_accepts_evenly():
    """Were rounds accepted with probability pi, those with few candidates would count too much."""
    rng = np.random.default_rng(9)
    sizes = rng.choice([2, 8], size=20_000)
    index = (rng.random(20_000) * sizes).astype(int)
    rewards = np.where(sizes == 2, 1.0, 0.0)
    log = ope.Log(rewards, 1.0 / sizes, index, sizes)
    found = ope.replay(log, [np.full(n, 1.0 / n) for n in sizes])
    assert found.value == pytest.approx(0.5, abs=0.03)


def test_replay_without_agreement_says_so():
    log = ope.Log([1.0, 0.0], [0.5, 0.5], [0, 0], 2)
    with pytest.raises(ValueError, match="in none of 2 rounds"):
        ope.replay(log, [[0.0, 1.0]] * 2)
