"""Rewards that come out the same whenever a candidate is measured again: learned once, and known from then on."""

import json

import numpy as np
import pytest

import alexp
from alexp.algorithms.mixture.replays import Replays, replayed
from alexp.estimation.mixture import making
from alexp.kernels import Matern

N = 60
PLACES = np.random.default_rng(5).uniform(-1.0, 1.0, (N, 2))
EXACT = np.cos(3.0 * PLACES[:, 0]) + PLACES[:, 1] + 0.4 * np.random.default_rng(6).standard_normal(N)
LINEAR = alexp.ModelClass.from_matrices({"a": PLACES, "b": PLACES**2})
KERNELS = alexp.ModelClass.from_matrices({"a": PLACES}, kernels={"a": [Matern(), Matern(lengthscale=0.3)]})
TABLE = alexp.FiniteSet(np.arange(N))
BOTH = pytest.mark.parametrize("models", [LINEAR, KERNELS], ids=["linear", "kernels"])


def told(models, pairs, **settings):
    opt = alexp.EvidenceMixture(models, TABLE, random_state=0, **settings)
    for candidate, reward in pairs:
        opt.observe(candidate, float(reward))
    return opt


def exact(*candidates):
    return [(candidate, EXACT[candidate]) for candidate in candidates]


def expectations(opt):
    """Of the models, whatever is known of single candidates."""
    round_ = opt._everything
    mean, variance = opt._mixture.moments(opt._weights(), round_.wide)
    return np.concatenate([mean, variance, opt.probabilities, [opt.noise_estimate]])


@BOTH
def test_the_same_reward_again_is_not_learned(models):
    once, again = told(models, exact(3, 8, 20, 41, 7)), told(models, exact(3, 8, 3, 20, 41, 20, 3, 7))
    np.testing.assert_array_equal(expectations(again), expectations(once))
    assert (again.n_told, again._mixture.n_observations) == (8, 5)


@BOTH
@pytest.mark.parametrize(
    "stated", [{"noise_std": 0.2}, {"reward_bound": 3.0}, {"rule": "thompson"}, {"goal": "best"}], ids=str
)
def test_it_is_where_something_is_stated_or_another_rule_decides(models, stated):
    assert told(models, exact(3, 8, 3, 20), **stated)._mixture.n_observations == 4


def test_it_is_on_an_interval():
    opt = alexp.EvidenceMixture(alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=9))
    for index in (2, 5, 2):
        opt.observe(index, 0.5)
    assert opt._mixture.n_observations == 3


@BOTH
def test_what_was_measured_is_known_and_the_rest_is_as_models_expect(models):
    opt = told(models, exact(3, 8, 20, 41, 7, 20))
    variance = expectations(opt)[N : 2 * N][np.argsort(opt._everything.indices)]
    mean, std = (np.array(column) for column in zip(*(opt.predict(x) for x in range(N)), strict=True))
    measured = np.isin(np.arange(N), [3, 8, 20, 41, 7])
    np.testing.assert_array_equal(mean[measured], EXACT[measured])
    np.testing.assert_array_equal(std[measured], 0.0)
    np.testing.assert_allclose(std[~measured] ** 2, variance[~measured], rtol=1e-8)


def test_the_largest_upper_bound_is_played():
    opt = told(LINEAR, exact(3, 8, 20, 41, 7, 20))
    assert opt.rule == "ids"
    beta = np.sqrt(4.0 + 0.25 * np.log(7))
    bounds = [mean + beta * std for mean, std in (opt.predict(x) for x in range(N))]
    assert opt.ask().index == int(np.argmax(bounds))


@BOTH
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_another_reward_of_a_candidate_brings_all_of_them_back(models, direction):
    pairs = [*exact(3, 8, 3, 20, 3, 41, 8), (20, EXACT[20] + 0.01), *exact(7, 3)]
    opt = told(models, pairs, direction=direction)
    all_learned = alexp.EvidenceMixture(models, TABLE, random_state=0, direction=direction)
    all_learned._replays = Replays(False)
    for candidate, reward in pairs:
        all_learned.observe(candidate, float(reward))
    np.testing.assert_allclose(expectations(opt), expectations(all_learned), rtol=1e-8, atol=1e-10)
    assert opt._mixture.n_observations == len(pairs)
    mean, std = opt.predict(3)
    assert std > 0.0
    assert mean != EXACT[3]


def play(opt, rewards, n):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, rewards(trial.index, trial.id))
    return [opt.trial(k).index for k in range(opt.n_asked)]


def saved_and_loaded(opt):
    return alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())), opt.models, opt.domain)


def as_measured(index, trial):
    return float(EXACT[index])


def noisy_from_25(index, trial):
    return float(EXACT[index] + (0.1 * np.sin(trial) if trial >= 25 else 0.0))


@BOTH
@pytest.mark.parametrize("rewards", [as_measured, noisy_from_25])
@pytest.mark.parametrize("stop", [20, 30])
def test_a_saved_run_goes_on_bit_for_bit(models, rewards, stop):
    whole, first = (alexp.EvidenceMixture(models, TABLE, random_state=1) for _ in range(2))
    actions = play(whole, rewards, 40)
    assert len(set(actions)) < 40  # some were measured again
    play(first, rewards, stop)
    second = saved_and_loaded(first)
    assert play(second, rewards, 40 - stop) == actions
    np.testing.assert_array_equal(expectations(second), expectations(whole))


def test_a_state_in_which_all_were_learned_goes_on_learning():
    old = alexp.EvidenceMixture(LINEAR, TABLE, random_state=1)
    old._replays = Replays(False)  # as versions did that held nothing back
    for candidate, reward in exact(3, 8, 3, 20, 3):
        old.observe(candidate, float(reward))
    new = saved_and_loaded(old)
    new.observe(8, float(EXACT[8]))
    assert new._mixture.n_observations == 6
    assert not new._replays.known


def test_a_corrected_reward_is_a_run_that_had_it_from_the_start():
    opt, other = (alexp.EvidenceMixture(LINEAR, TABLE, random_state=1) for _ in range(2))
    for candidate in (3, 8, 3, 20):
        opt.observe(candidate, float(EXACT[candidate]))
    opt.amend(2, 0.123)
    for candidate, reward in [*exact(3, 8), (3, 0.123), *exact(20)]:
        other.observe(candidate, float(reward))
    np.testing.assert_array_equal(expectations(opt), expectations(other))


@BOTH
def test_looking_back_counts_as_learning_did(models):
    opt = told(models, exact(3, 8, 20, 3, 41, 7, 3, 20, 11))
    seen = opt.hindsight([0, 1])
    log_odds = np.log(opt.probabilities[1] / opt.probabilities[0])
    np.testing.assert_allclose(seen.log_odds[-1, 1], log_odds, rtol=1e-6, atol=1e-9)
    assert np.all(seen.log_odds[4] == seen.log_odds[3])


def test_plates_do_not_ask_for_what_is_known_and_others_are_asked_once():
    opt = told(LINEAR, exact(3, 8, 20, 41, 7, 20))
    bound = max(EXACT[candidate] for candidate in (3, 8, 20, 41, 7))
    plate = [trial.index for trial in opt.ask(4)]
    new = [index for index in plate if index not in (3, 8, 20, 41, 7)]
    assert len(set(new)) == len(new) >= 2
    assert all(opt.predict(index)[0] + 3.0 * opt.predict(index)[1] > bound for index in new)


def test_clicks_agree_by_chance_and_soon_differ():
    rng = np.random.default_rng(3)
    chances = rng.uniform(0.1, 0.6, N)
    opt = alexp.EvidenceMixture(LINEAR, TABLE, random_state=0)
    for _ in range(60):
        trial = opt.ask()
        opt.tell(trial, float(rng.random() < chances[trial.index]))
    assert not opt._replays.known
    assert opt._mixture.n_observations == 60


def test_replayed_is_what_holding_would_have_led_to():
    rng = np.random.default_rng(0)
    for differs in (False, True):
        candidates = rng.integers(6, size=30)
        rewards = candidates.astype(float)
        rewards[20] += differs
        one = Replays(True)
        held = 0
        for candidate, reward in zip(candidates.tolist(), rewards.tolist(), strict=True):
            held += one.hold(candidate, reward)
            held -= len(one.release())
        two = replayed(candidates, rewards, True)
        assert len(one) == len(two) == held
        assert one.known == two.known
        assert one.learned(candidates).sum() == 30 - held
    assert len(replayed(candidates, rewards, False)) == 0


def regret(seed, models, watched):
    rng = np.random.default_rng(seed)
    rewards = np.cos(3.0 * PLACES[:, 0]) + PLACES[:, 1] + 0.6 * rng.standard_normal(N)
    opt = alexp.EvidenceMixture(models, TABLE, random_state=seed)
    if not watched:
        opt._replays = Replays(False)
    return sum(float(rewards.max() - rewards[index]) for index in play(opt, lambda i, _: float(rewards[i]), 80))


@BOTH
def test_less_is_lost_on_tables_that_no_model_explains(models):
    pairs = np.array([[regret(seed, models, watched) for watched in (True, False)] for seed in range(40)])
    logs = np.log(pairs[:, 0] / pairs[:, 1])
    ratio, error = np.exp(logs.mean()), logs.std() / np.sqrt(len(logs))
    print(f"held back / learned: {ratio:.2f} [{ratio * np.exp(-2 * error):.2f}, {ratio * np.exp(2 * error):.2f}]")
    assert ratio * np.exp(2 * error) < 1.0


def test_a_state_of_another_form_is_learned_from_rewards_without_those_held_back(monkeypatch):
    wide = alexp.ModelClass.from_matrices({"a": PLACES @ np.random.default_rng(1).standard_normal((2, 70))})
    monkeypatch.setattr(making, "takes_one_pass", lambda *_: True)
    kept = told(wide, exact(3, 8, 3, 20, 41, 20))
    monkeypatch.setattr(making, "takes_one_pass", lambda *_: False)
    packed = saved_and_loaded(kept)
    assert type(packed._mixture.grid) is not type(kept._mixture.grid)
    assert packed._mixture.n_observations == 4
    np.testing.assert_allclose(expectations(packed), expectations(kept), rtol=1e-6, atol=1e-8)
    assert packed.predict(20) == (EXACT[20], 0.0)
