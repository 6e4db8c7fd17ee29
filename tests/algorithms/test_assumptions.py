"""Warnings: once per cause, where something was stated or is assumed, and not where all is well."""

import warnings

import numpy as np
import pytest

import alexp
from alexp.algorithms.assumptions import quietly

N = 60


def problem(seed=0, feature=1.0, sizes=(3, 3, 4)):
    rng = np.random.default_rng(seed)
    maps = {f"m{k}": feature * rng.standard_normal((N, size)) for k, size in enumerate(sizes)}
    theta = rng.standard_normal(sizes[1])
    rewards = maps["m1"] @ theta
    return alexp.ModelClass.from_matrices(maps), alexp.FiniteSet(list(range(N))), rewards / np.abs(rewards).max()


def run(kind, seed=0, rounds=40, scale=1.0, noise=0.1, feature=1.0, extra=(), **stated):
    """All messages of one run."""
    models, domain, rewards = problem(seed, feature)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opt = kind(models, domain, random_state=seed, **stated)
        for _ in range(rounds):
            trial = opt.ask()
            opt.tell(trial, scale * (rewards[trial.index] + noise * rng.standard_normal()))
        for value in extra:
            opt.tell(opt.ask(), value)
    assert all(issubclass(w.category, alexp.AssumptionWarning) for w in caught)
    assert all(w.filename == __file__ for w in caught)  # it points to the caller
    return [str(w.message) for w in caught]


RELYING = [alexp.ALExp, alexp.LMUCB, alexp.LinUCB, alexp.EXP4IX]


@pytest.mark.parametrize("kind", RELYING)
def test_wrong_units(kind):
    found = run(kind, scale=100.0)
    assert len(found) == 2
    assert "reward_bound=1 (not given; assumed)" in found[0]
    assert "noise_std=0.1 (not given; assumed)" in found[1]
    found = run(kind, scale=100.0, noise_std=10.0)
    assert len(found) == 1
    assert "should be" in found[0]
    assert run(kind, scale=100.0, noise_std=10.0, reward_bound=100.0) == []


@pytest.mark.parametrize("kind", RELYING)
@pytest.mark.parametrize(("noise", "words"), [(0.5, "larger"), (0.01, "smaller")])
def test_wrong_noise(kind, noise, words):
    (found,) = run(kind, noise=noise, noise_std=0.1, reward_bound=3.0)
    assert words in found
    assert "noise_std=0.1 (given)" in found


@pytest.mark.parametrize("kind", RELYING)
def test_features_that_do_not_go_with_the_bounds(kind):
    (found,) = run(kind, feature=1e-3, noise_std=0.1, reward_bound=1.5)
    assert "norm_bound=1.5 (not given; reward_bound stands in for it)" in found
    (found,) = run(kind, feature=1e4, noise_std=0.1, reward_bound=1.5, rounds=0)
    assert "at least" in found
    assert run(kind, feature=1e-3, noise_std=0.1, reward_bound=1.5, norm_bound=1500.0) == []


def test_who_relies_on_nothing_does_not_warn():
    wrong = {"scale": 100.0, "feature": 1e-3}
    assert run(alexp.UniformRandom, **wrong, noise_std=0.1, reward_bound=1.0) == []
    assert run(alexp.EvidenceMixture, **wrong, noise_std=None) == []
    (found,) = run(alexp.ETC, **wrong)
    assert "noise_std" in found


def test_a_range_of_its_own_takes_the_place_of_the_bound():
    wide = {"scale": 100.0, "noise_std": 10.0, "norm_bound": 1.0}
    assert len(run(alexp.EXP4IX, **wide)) == 1
    assert run(alexp.EXP4IX, **wide, loss_range=(-150.0, 150.0)) == []


def test_slips_of_the_pen():
    found = run(alexp.UniformRandom, extra=(72.4, 0.3, -724.0))
    assert len(found) == 1  # after the first one, the second is within ten ranges
    assert "72.4 is far outside" in found[0]
    assert run(alexp.UniformRandom, extra=(72.4,), reward_bound=80.0) == []  # as large as was stated


def test_one_candidate_alone_says_nothing_about_others():
    models, domain, _ = problem()
    opt = alexp.UniformRandom(models, domain, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(20):
            opt.observe(step % 2, 0.5 + 0.001 * step)
        opt.observe(7, 5.0)
    for index in range(8, 12):
        opt.observe(index, 5.0)
    with pytest.warns(alexp.AssumptionWarning, match="far outside"):
        opt.observe(3, -100.0)
    restored = alexp.UniformRandom.from_dict(opt.to_dict())
    with pytest.warns(alexp.AssumptionWarning, match="-100 to 5;"):
        restored.observe(3, 5000.0)


def test_all_is_well():
    """Well-specified runs of every kind: at most one in fifty warns."""
    counts = [
        len(run(kind, seed, 64, noise_std=0.1, reward_bound=1.0))
        for kind in (alexp.ALExp, alexp.LMUCB, alexp.LinUCB)
        for seed in range(25)
    ]
    print(f"{np.count_nonzero(counts)} of {len(counts)} runs warned")
    assert np.count_nonzero(counts) <= 0.02 * len(counts)


def test_a_warning_turned_into_an_error_leaves_the_reward_told():
    models, domain, _ = problem()
    opt = alexp.LMUCB(models, domain, noise_std=0.1, reward_bound=1.0, random_state=0)
    trial = opt.ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(alexp.AssumptionWarning):
            opt.tell(trial, 50.0)
    assert opt.n_told == 1
    assert opt.pending() == []


def test_what_was_warned_of_is_not_repeated_when_restored():
    models, domain, _ = problem(feature=1e-3)
    with pytest.warns(alexp.AssumptionWarning, match="norm_bound"):
        opt = alexp.LMUCB(models, domain, noise_std=0.1, reward_bound=1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alexp.LMUCB.from_dict(opt.to_dict())
        with quietly():
            opt.tell(opt.ask(), 1e6)


@pytest.mark.parametrize("stated", [{}, {"reward_bound": 1.0}, {"noise_std": 0.5, "reward_bound": 1.0}])
@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_clicks_are_no_reason_to_warn(rate, stated):
    """Rewards of zero and one, also before the first one: neither slips of the pen nor too little noise."""
    rng = np.random.default_rng(3)
    models = alexp.ModelClass.legendre(degree=3, size=2, intercept=True)
    opt = alexp.EvidenceMixture(models, alexp.Interval(-1.0, 1.0, resolution=20), random_state=0, **stated)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(130):
            opt.tell(opt.ask(), int(rng.random() < rate))
