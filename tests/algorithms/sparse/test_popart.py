"""PopArt against a textbook twin, and the lengths of exploration that theory gives to it, to ESTC and to ETC."""

from math import log

import numpy as np
import pytest

import alexp
from alexp.rivals.popart import catoni_mean, popart

RNG = np.random.default_rng(3)
ROWS = RNG.standard_normal((25, 6)) / 2.0
THETA = np.array([1.0, 0.0, 0.0, -0.8, 0.0, 0.0])
MODELS, DOMAIN = alexp.ModelClass.from_matrices({"x": ROWS}, intercept=False), alexp.FiniteSet(list(range(25)))
BOUND = float(np.abs(ROWS @ THETA).max())
STATED = {"noise_std": 0.1, "reward_bound": BOUND, "random_state": 0}


def bisected(samples, alpha):
    """Catoni's mean by bisection."""
    low, high = samples.min(), samples.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        u = alpha * (samples - middle)
        total = np.sum(np.where(u > 0, 1.0, -1.0) * np.log(1.0 + np.abs(u) + u**2 / 2.0))
        low, high = (middle, high) if total > 0 else (low, middle)
    return 0.5 * (low + high)


def textbook(z, v, delta):
    n, p = z.shape
    term = log(2 * p / delta)
    alpha = np.sqrt(2 * term / (v * n * (1 + 2 * term / (n - 2 * term))))
    out = np.array([bisected(z[:, i], alpha) for i in range(p)])
    out[np.abs(out) <= np.sqrt(2 * v * term / (n - 2 * term))] = 0.0
    return out


def played(opt, n):
    env = alexp.Environment(DOMAIN, ROWS @ THETA, noise_std=0.1, random_state=5)
    run = alexp.simulate(opt, env, n)
    return run, np.array([trial.index for trial in run.trials])


def test_the_mean_resists_outliers_and_is_equivariant():
    samples = np.append(RNG.standard_normal(200), 1e4)
    assert abs(catoni_mean(samples, 0.1)) < 1.0 < 40.0 < samples.mean()
    assert catoni_mean(4.0 * samples, 0.025) == 4.0 * catoni_mean(samples, 0.1)
    assert catoni_mean(np.full(5, 2.5), 0.1) == 2.5
    with pytest.raises(ValueError, match="more than 8.0 samples"):
        popart(np.zeros((8, 2)), 1.0, 4.0)


@pytest.mark.parametrize(("warm", "n_explore"), [(False, None), (True, None), (True, 600)])
def test_explores_estimates_and_commits(warm, n_explore):
    opt = alexp.PopArt(MODELS, DOMAIN, horizon=2000, sparsity=2, warm=warm, n_explore=n_explore, **STATED)
    design = alexp.HOptimal().design(MODELS, DOMAIN)
    assert opt.h_squared == pytest.approx(design.value)
    term, sigma = log(2 * 6 / 0.05), 0.1
    if warm:
        n0 = int(4.0 * ((2 * sigma * 2000 / BOUND) ** 2 * design.value * term) ** (1 / 3))
    else:
        n0 = int(((2 * 2000 / BOUND) ** 2 * (BOUND**2 + sigma**2) * design.value * term) ** (1 / 3))
    n0 = n_explore or n0
    assert opt.n_exploring == n0 < 2000
    assert np.all(np.abs(opt.policy() - design.weights) < 1e-12)
    run, indices = played(opt, n0 + 5)
    assert [trial.explored for trial in run.trials] == [True] * n0 + [False] * 5
    q = np.linalg.inv(ROWS.T @ (design.weights[:, None] * ROWS))
    x, y = ROWS[indices[:n0]], run.rewards[:n0]
    half = n0 // 2 if warm else n0
    theta = textbook(x[:half] @ q * y[:half, None], (BOUND**2 + sigma**2) * design.value, 0.05)
    assert np.any(theta) == (n0 != 322)  # with fewer, no coefficient of the pilot passes the threshold
    if warm:
        z = x[half:] @ q * (y[half:] - x[half:] @ theta)[:, None] + theta
        theta = textbook(z, 2 * sigma**2 * design.value, 0.05)
    np.testing.assert_allclose(opt.fit.beta, theta, atol=1e-9)
    assert {0, 3} <= set(opt.fit.groups.tolist())
    if n0 != 322:  # where the pilot is not as good yet as its threshold assumes
        assert opt.fit.groups.tolist() == [0, 3]
    assert set(indices[n0:]) == {int(np.argmax(ROWS @ theta))}


def test_what_was_measured_elsewhere_does_not_count():
    opt = alexp.PopArt(MODELS, DOMAIN, horizon=2000, sparsity=2, n_explore=20, **STATED)
    for k in range(30):
        opt.observe(k % 25, 1.0)
    assert opt.ask().explored
    assert opt.best().value == 0.0  # it has seen nothing of its own
    again = alexp.PopArt.from_dict(opt.to_dict())
    assert again.ask().explored


def test_exploration_ends_with_the_horizon_and_lasts_as_long_as_the_estimate_needs():
    long = alexp.PopArt(MODELS, DOMAIN, horizon=40, sparsity=6, **STATED)
    assert long.n_exploring == 40
    short = alexp.PopArt(MODELS, DOMAIN, horizon=40, sparsity=6, n_explore=2, **STATED)
    assert short.n_exploring == int(np.ceil(2 * log(2 * 6 / 0.05))) + 1
    for wrong in ({"sparsity": 2}, {"horizon": 5}):
        with pytest.raises(TypeError, match="horizon|sparsity"):
            alexp.PopArt(MODELS, DOMAIN, **wrong)


def test_estc_explores_as_long_as_theory_says_and_solves_one_plain_lasso():
    c_min = alexp.EOptimal().design(MODELS, DOMAIN).value
    opt = alexp.ESTC(MODELS, DOMAIN, horizon=3000, sparsity=2, **STATED)
    n1 = int((2 * (2 * 0.1 * 3000 / (BOUND * c_min)) ** 2 * log(6)) ** (1 / 3))
    assert opt.n_exploring == n1 < 3000
    assert opt.lambda_1 == pytest.approx(2 * 0.1 * np.sqrt(log(6) / n1))
    run, indices = played(opt, n1 + 3)
    lasso = pytest.importorskip("sklearn.linear_model").Lasso(opt.lambda_1, fit_intercept=False, tol=1e-10)
    lasso.fit(ROWS[indices[:n1]], run.rewards[:n1])
    np.testing.assert_allclose(opt.fit.beta, lasso.coef_, atol=1e-4)
    assert opt.best().model is None
    with pytest.raises(ValueError, match="needs a table"):
        alexp.ESTC(alexp.ModelClass.from_blocks({"x": 3}), alexp.Candidates(), horizon=10, sparsity=1)
    with pytest.raises(TypeError, match="horizon"):
        alexp.ESTC(MODELS, DOMAIN, sparsity=1)


def test_etc_by_theory():
    models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=60)
    stated = {"noise_std": 0.1, "reward_bound": 2.0, "random_state": 0}
    opt = alexp.ETC(models, domain, n_explore="theory", horizon=500, sparsity=1, **stated)
    smallest = np.linalg.eigvalsh(models.matrix(domain).T @ models.matrix(domain) / 60)[0]
    assert opt.n_exploring == int((2 * (0.1 * 500 / (2.0 * smallest)) ** 2 * log(10)) ** (1 / 3))
    assert opt.relies_on == {"noise_std", "reward_bound"}
    li = alexp.ETC(models, domain, n_explore="li2022", horizon=500, sparsity=1, **stated)
    assert li.n_exploring == int(np.ceil((500**2 * (log(10) + 2)) ** (1 / 3)))
    assert li.lambda_1 == pytest.approx(0.009 * 4 * 0.1 * np.sqrt(log(10) / li.n_exploring))
    assert alexp.ETC.from_dict(li.to_dict()).n_exploring == li.n_exploring
    assert alexp.ETC(models, domain, n_explore="li2022", horizon=9, sparsity=4).n_exploring == 9
    assert "horizon" not in alexp.ETC(models, domain).to_dict()["settings"]  # states of plain runs stay what they were
    single = alexp.ModelClass.from_blocks({"a": 1, "b": 1, "c": 1})
    fresh = alexp.ETC(single, alexp.Candidates(), n_explore="li2022", horizon=64, sparsity=1)
    assert fresh.n_exploring == int(np.ceil((64**2 * log(3)) ** (1 / 3)))
    with pytest.raises(ValueError, match='use "li2022"'):
        alexp.ETC(single, alexp.Candidates(), n_explore="theory", horizon=64, sparsity=1)
    with pytest.raises(ValueError, match="needs horizon= and sparsity="):
        alexp.ETC(models, domain, n_explore="theory")
    with pytest.raises(ValueError, match="n_explore"):
        alexp.ETC(models, domain, n_explore="long")


def test_dependent_columns_explore_for_ever_by_theory_only_if_all_are_zero():
    twice = alexp.ModelClass.from_matrices({"x": np.hstack([ROWS, ROWS[:, :1]])}, intercept=False)
    opt = alexp.ETC(twice, DOMAIN, n_explore="theory", horizon=10**6, sparsity=1, **STATED)
    assert opt.n_exploring < 10**6
