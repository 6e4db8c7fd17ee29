"""Algorithms that forget: no certificates, the log replays, drift is followed, and standing still costs little."""

import warnings

import numpy as np
import pytest

import alexp
from alexp.estimation.mixture.half_lives import _SWITCH as SWITCH

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


# -- several half-lives ------------------------------------------------------------------------------------------

SEVERAL = (0.9, 0.98, 1.0)


def contextual(**settings):
    models = alexp.ModelClass.from_blocks({"a": 2, "b": 2})
    return alexp.EvidenceMixture(models, alexp.Candidates(), **({"random_state": 0} | settings))


def drifting(opt, rounds, period):
    """Regret where the coefficients of the first block change their signs every `period` rounds."""
    rng, total = np.random.default_rng(4), 0.0
    for t in range(rounds):
        rows = rng.standard_normal((5, 4))
        values = rows[:, 0] * (1.0 if (t // period) % 2 == 0 else -1.0)
        trial = opt.ask(features=rows)
        opt.tell(trial, float(values[trial.index]) + 0.3 * rng.standard_normal())
        total += values.max() - values[trial.index]
    return total


def test_shares_are_the_products_of_predictive_densities():
    """A slow twin: every mixture alone, its predictive density by quadrature-free sums over its components."""
    from scipy.stats import t as student

    opt = contextual(forget=SEVERAL, rule="ucb")
    alone = [contextual(forget=None if one == 1.0 else one, rule="ucb") for one in SEVERAL]
    rng, shares = np.random.default_rng(1), np.full(3, 1.0 / 3.0)
    for step in range(25):
        rows = rng.standard_normal((3, 4))
        index, y = int(rng.integers(3)), float(rng.standard_normal() + rows[0, 0])
        densities = []
        for one in alone:
            mixture = one._mixture
            weights, total = mixture.weights(), 0.0
            for part in mixture.components(weights, alexp.extend.Choices(None, rows[index][:, None].copy()), least=0.0):
                scale = np.sqrt(part.variance[0] + mixture.noise_variances[part.cell, part.model])
                total += part.share * student.pdf(y, mixture.freedom, part.mean[0], scale)
            densities.append(total)
        if step >= 2:
            shares = shares * np.array(densities) / (shares @ densities)
            shares = (1.0 - SWITCH) * shares + SWITCH / 3
        for one in (opt, *alone):
            one.observe(index, y, features=rows)
        assert list(opt.forget_probabilities) == list(SEVERAL)
        np.testing.assert_allclose(list(opt.forget_probabilities.values()), shares, rtol=1e-6)
    weights = opt._mixture.weights()
    assert weights.sum() == pytest.approx(1.0)
    rows = rng.standard_normal((4, 4))
    mean, std = opt.predict(features=rows)
    parts = np.array([one.predict(features=rows) for one in alone])
    np.testing.assert_allclose(mean, shares @ parts[:, 0], rtol=1e-9)
    expected = shares @ (parts[:, 1] ** 2 + parts[:, 0] ** 2) - mean**2
    np.testing.assert_allclose(std**2, expected, rtol=1e-8)
    chances = [one._mixture.chances(one.belief.weights, choices(rows), np.random.default_rng(0)) for one in alone]
    own = opt._mixture.chances(opt.belief.weights, choices(rows), np.random.default_rng(0))
    assert own.sum() == pytest.approx(1.0)
    assert np.abs(own - shares @ chances).max() < 0.05  # other draws


def choices(rows):
    return alexp.extend.Choices(None, np.ascontiguousarray(rows.T))


def test_half_lives_follow_what_happens():
    jumping, still = contextual(forget=SEVERAL), contextual(forget=SEVERAL)
    best = min(drifting(contextual(forget=one), 240, 40) for one in (0.9, 0.98))
    assert drifting(jumping, 240, 40) < min(1.5 * best, 0.6 * drifting(contextual(), 240, 40))
    drifting(still, 240, 1000)
    assert still.forget_probabilities[1.0] > jumping.forget_probabilities[1.0]


@pytest.mark.parametrize("rule", ["matching", "ucb", "ids", "thompson"])
def test_several_half_lives_are_saved_and_amended(rule):
    opt = contextual(forget=SEVERAL, rule=rule)
    drifting(opt, 15, 5)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict())
    opt.amend(7, 0.5)
    again.amend(7, 0.5)
    rows = np.random.default_rng(2).standard_normal((5, 4))
    assert opt.policy(features=rows).tolist() == again.policy(features=rows).tolist()
    assert opt.to_dict() == again.to_dict()
    assert not opt.certifies
    broken = opt.to_dict()
    broken["state"]["mixture"]["shares"] = [2.0, 0.0, 0.0]
    broken.pop("digest")
    with pytest.raises(ValueError, match="shares"):
        alexp.EvidenceMixture.from_dict(broken)


def test_half_lives_on_a_table_of_candidates():
    opt = mixture(forget=(0.9, 1.0), goal="best")
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, -((trial.x - 0.3) ** 2))
    low, high = opt.credible(0.3)
    assert (low <= high).all()
    assert opt.hindsight([0, 1]).log_odds.shape == (9, 2)
    assert opt.probabilities.sum() == pytest.approx(1.0)
    assert opt.noise_estimate > 0.0


@pytest.mark.parametrize("wrong", [(), (0.9,), (0.9, 0.9), (0.9, 1.1), (0.0, 0.9), "0.9", (0.9, None)])
def test_wrong_half_lives_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="forget"):
        contextual(forget=wrong)
    with pytest.raises(ValueError, match="needs several"):
        contextual(forget=0.9).forget_probabilities  # noqa: B018
