"""Algorithms that forget: no certificates, the log replays, drift is followed, and standing still costs little."""

import warnings

import numpy as np
import pytest

import alexp

pytestmark = pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")

DOMAIN = alexp.Interval(-1.0, 1.0, resolution=21)
MODELS = alexp.ModelClass.legendre(degree=3, size=2)
STATED = {"noise_std": 0.2, "reward_bound": 2.0}


def mixture(**settings):
    return alexp.EvidenceMixture(MODELS, DOMAIN, **({"random_state": 0} | settings))


def linucb(**settings):
    return alexp.LinUCB(MODELS, DOMAIN, model=0, **({"random_state": 0} | settings))  # constant and slope


def peak(t, period):
    """Where the reward is largest in round t: it jumps between both ends."""
    return 0.8 if (t // period) % 2 == 0 else -0.8


def regret(opt, steps, period, seed):
    noise, total = np.random.default_rng([seed, 3]), 0.0
    for t in range(steps):
        trial = opt.ask()
        total += abs(0.8) - trial.x * peak(t, period)
        opt.tell(trial, trial.x * peak(t, period) + 0.2 * noise.standard_normal())
    return total


@pytest.mark.parametrize("make", [mixture, linucb])
def test_nothing_is_certified(make):
    opt = make(forget=0.95, **STATED)
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, trial.x)
    assert not opt.certifies
    for ask in (opt.plausible_models, opt.check_models, lambda: opt.confidence(0.0)):
        with pytest.raises(alexp.NotCertified, match=r"forget=0\.95 is for rewards that drift"):
            ask()
    report = opt.stop_report()
    assert not report.certified
    assert "forget" in report.reason
    assert report.epsilon >= 0.0


@pytest.mark.parametrize("make", [mixture, linucb])
def test_stored_amended_and_made_anew_are_the_same(make):
    opt = make(forget=0.9)
    for k in range(12):
        trial = opt.ask()
        opt.tell(trial, trial.x + 0.1 * k)
    again = type(opt).from_dict(opt.to_dict(), models=MODELS)
    assert again.forget == 0.9
    fresh = make(forget=0.9)
    for trial in (opt.trial(k) for k in range(12)):
        fresh.observe(trial.index, 7.0 if trial.id == 3 else trial.x + 0.1 * trial.id)
    for run in (opt, again):
        run.amend(3, 7.0)
    assert opt.best() == again.best()
    assert opt.best().value == pytest.approx(fresh.best().value, rel=1e-12)
    assert opt.ask() == again.ask()


def test_the_order_of_rewards_matters():
    one, other = mixture(forget=0.8), mixture(forget=0.8)
    rewards = [(5, 0.0), (10, 1.0), (15, 0.5), (5, 1.0)]  # candidates 5 and 15 are -0.5 and 0.5
    for index, y in rewards:
        one.observe(index, y)
    for index, y in reversed(rewards):
        other.observe(index, y)
    assert one.predict(-0.5)[0] != pytest.approx(other.predict(-0.5)[0], rel=1e-3)


@pytest.mark.parametrize("make", [mixture, linucb])
def test_without_it_nothing_changes(make):
    one, other = make(), make(forget=None)
    for _ in range(10):
        first, second = one.ask(), other.ask()
        assert first == second
        one.tell(first, first.x)
        other.tell(second, second.x)


@pytest.mark.parametrize(("make", "forget"), [(mixture, 0.9), (linucb, 0.9)])
def test_drift_is_followed(make, forget):
    """Rewards whose best end changes every 40 rounds; ten seeds."""
    kept = [regret(make(random_state=seed), 160, 40, seed) for seed in range(10)]
    left = [regret(make(random_state=seed, forget=forget), 160, 40, seed) for seed in range(10)]
    assert np.mean(left) < 0.6 * np.mean(kept)


def test_standing_still_costs_little():
    """Rewards that never change: the regret of forgetting is bounded by what a hundred rewards can tell."""
    kept = np.array([regret(mixture(random_state=seed), 150, 1000, seed) for seed in range(10)])
    left = np.array([regret(mixture(random_state=seed, forget=0.99), 150, 1000, seed) for seed in range(10)])
    assert left.mean() < kept.mean() + 0.02 * 150


def test_no_warning_of_noise_where_rewards_are_known_to_drift():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regret(mixture(forget=0.9, noise_std=0.2, reward_bound=2.0), 70, 10, 0)
