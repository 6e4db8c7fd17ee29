"""Kernel posteriors against scikit-learn and closed forms, at every step, with repeats, and after being restored."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor, kernels as sk

from alexp.estimation.onepass.regressions import KernelRegression
from alexp.problem import ModelClass
from alexp.problem.candidates import Pending
from alexp.problem.kernels import RBF, Linear, Matern, Tanimoto
from tests.estimation.onepass.twins import candidates, dense, grid

N, RATIOS = 60, (1e-3, 0.1)
KERNELS = {
    "matern": Matern(2.5, lengthscale=0.8, relative=False),
    "rough": Matern(0.5, lengthscale=1.5, relative=False),
    "gauss": RBF(lengthscale=1.2, relative=False),
    "linear": Linear(standardize=True),
    "tanimoto": Tanimoto(),
    "sum": RBF(lengthscale=1.0, relative=False) + 0.5 * Matern(1.5, lengthscale=2.0, relative=False),
    "product": RBF(lengthscale=1.0, relative=False).on([0]) * Matern(1.5, lengthscale=2.0, relative=False).on([1, 2]),
}


class Tanimotos(sk.NormalizedKernelMixin, sk.Kernel):
    """The same formula, for scikit-learn."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        shared = X @ Y.T
        return shared / ((X**2).sum(1)[:, None] + (Y**2).sum(1) - shared)

    def is_stationary(self):
        return False


def twins():
    return {
        "matern": sk.Matern(0.8, nu=2.5),
        "rough": sk.Matern(1.5, nu=0.5),
        "gauss": sk.RBF(1.2),
        "linear": None,
        "tanimoto": Tanimotos(),
        "sum": sk.RBF(1.0) + 0.5 * sk.Matern(2.0, nu=1.5),
        "product": None,
    }


def problem(intercept):
    rng = np.random.default_rng(0)
    x = np.abs(rng.standard_normal((N, 3))).round(2) + 0.01
    x[31] = x[30]  # two candidates with equal features are one point
    models = ModelClass.from_matrices({"x": x}, kernels=list(KERNELS.values()), intercept=intercept)
    return x, models


def played(t):
    """Candidates in order: new ones, many repeats, and the twins 30 and 31."""
    rng = np.random.default_rng(1)
    out = [int(i) for i in rng.integers(N, size=t)]
    out[4:8], out[20:24], out[50:60] = [30, 31, 30, 30], [out[3]] * 4, [9] * 10
    return out


@pytest.mark.parametrize("intercept", [False, True])
def test_equals_scikit_learn_at_each_of_100_steps(intercept):
    x, models = problem(intercept)
    table = candidates(models, N)
    ridges = [np.full(models.n_models, ratio**0.5) for ratio in RATIOS]
    one = grid(models, table, ridges)
    rng = np.random.default_rng(2)
    indices, rewards = played(100), rng.standard_normal(100)
    grams = [models.gram(j, x, x) for j in range(models.n_models)]
    for t, (index, y) in enumerate(zip(indices, rewards, strict=True), 1):
        one.update(table.row(index), float(y), index)
        if t in (30, 99):
            two = grid(models, table, ridges)
            two.restore(one.state())
            one = two
        for j, (name, twin) in enumerate(twins().items()):
            family = one.families[j]
            for c, ratio in enumerate(RATIOS):
                mean, variance, residual, log_det = dense(grams[j], indices[:t], rewards[:t], ratio, intercept)
                np.testing.assert_allclose(family.mean[c], mean, rtol=0, atol=1e-8)
                np.testing.assert_allclose(family.variance[c], variance, rtol=0, atol=1e-8)
                np.testing.assert_allclose(family.regression.residuals[c], residual, rtol=1e-8, atol=1e-9)
                np.testing.assert_allclose(family.regression.log_determinants()[c], log_det, rtol=1e-8, atol=1e-8)
                if twin is not None and not intercept:
                    fit = GaussianProcessRegressor(twin, alpha=ratio, optimizer=None).fit(x[indices[:t]], rewards[:t])
                    centre, std = fit.predict(x, return_std=True)
                    np.testing.assert_allclose(family.mean[c], centre, rtol=0, atol=1e-8, err_msg=name)
                    np.testing.assert_allclose(family.variance[c], std**2, rtol=0, atol=1e-8, err_msg=name)


def out(table, indices):
    """Trials of these candidates whose rewards are pending."""
    return Pending(np.arange(len(indices)), np.array(indices), table.rows(np.array(indices)))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("told", [0, 1, 25])
def test_believes_as_if_told_what_was_expected(told, intercept):
    x, models = problem(intercept)
    table = candidates(models, N)
    one = grid(models, table, [np.full(models.n_models, 0.2)])
    rng = np.random.default_rng(3)
    indices = played(60)[:told]
    for index in indices:
        one.update(table.row(index), float(rng.standard_normal()), index)
    pending = [5, 17, 5, indices[-1] if indices else 30]
    before = [family.variance.copy() for family in one.families]
    matters = np.ones((1, models.n_models), dtype=bool)
    whole = one._with_fantasies(out(table, pending), matters)
    one._drop_fantasies()
    for k in range(1, 5):  # one more at a time is the same, bit for bit
        parts = one._with_fantasies(out(table, pending[:k]), matters)
    for j in range(models.n_models):
        assert np.array_equal(whole[j].variance, parts[j].variance)
        gram = models.gram(j, x, x)
        expected = dense(gram, [*indices, *pending], np.zeros(told + 4), 0.04, intercept)[1]
        np.testing.assert_allclose(whole[j].variance[0], expected, rtol=0, atol=1e-8)
        assert np.array_equal(one.families[j].variance, before[j])


def test_candidates_that_are_pending_are_compared_by_rows_that_are_known(monkeypatch):
    """Their similarities to points told are read off the kernel rows: the same numbers, to the last bit if k is
    symmetric to the last bit, which linear kernels are not."""
    _, models = problem(True)
    table = candidates(models, N)
    one = grid(models, table, [np.full(models.n_models, 0.2)])
    for k, index in enumerate(played(20)):
        one.update(table.row(index), float(k % 5), index)
    pending, matters = out(table, [5, 17, 40]), np.ones((1, models.n_models), dtype=bool)
    for told in [[1], [2, 3]]:
        one._drop_fantasies()
        known = one._with_fantasies(pending, matters)
        with monkeypatch.context() as patch:
            patch.delattr(KernelRegression, "_between")  # not needed
            one._drop_fantasies()
            one._with_fantasies(pending, matters)
        fantasies = [family.without_fantasies() for family in one.families]
        for row in pending.rows:  # as points of nowhere
            for j, own in enumerate(fantasies):
                own.absorb(one._told(j, row, None))
        for name, a, b in zip(models.names, known.values(), fantasies, strict=True):
            np.testing.assert_allclose(a.variance, b.variance, rtol=1e-12 if "linear" in name else 0)
        for index in told:
            one.update(table.row(index), 2.0, index)


def test_predicts_at_points_that_are_no_candidates():
    x, models = problem(True)
    table = candidates(models, N)
    one = grid(models, table, [np.full(models.n_models, 0.2)])
    for index in (3, 8, 8, 20):
        one.update(table.row(index), float(index), index)
    for family in one.families:
        mean, variance = family.at(x)
        np.testing.assert_allclose(mean, family.mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(variance, family.variance, rtol=0, atol=1e-9)


def test_draws_have_the_posterior_and_the_far_ones_stay_at_their_means(monkeypatch):
    x, models = problem(True)
    table = candidates(models, N)
    one = grid(models, table, [np.full(models.n_models, 0.3)])
    indices = [3, 8, 8, 20, 41]
    for index in indices:
        one.update(table.row(index), float(index % 7), index)
    choices, rng, j = table.everything.choices, np.random.default_rng(5), 0
    n = one.n_normals(j)
    assert n == N
    draws = np.array([one.draw(0, j, choices, rng.standard_normal(n), 0.3) for _ in range(4000)])
    mean, variance, *_ = dense(models.gram(j, x, x), indices, [float(i % 7) for i in indices], 0.09, True)
    mean, variance = mean[choices.indices], variance[choices.indices]
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(draws)))
    assert np.all(np.abs(draws.var(axis=0) / variance - 1.0) < 5 * np.sqrt(2 / len(draws)))
    for module in ("grid", "regressions"):
        monkeypatch.setattr(f"alexp.estimation.onepass.{module}.MOST_DRAWN", 10)
    few = one.draw(0, j, choices, rng.standard_normal(one.n_normals(j)), 0.3)
    moved = np.flatnonzero(np.abs(few - mean) > 1e-9)
    assert set(moved) == set(np.argsort(-(mean + 2 * np.sqrt(variance)))[:10])
