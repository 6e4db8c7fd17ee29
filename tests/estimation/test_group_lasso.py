"""The group Lasso against oracles: a slow twin, celer, its own certificate recomputed, and equivalent problems."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from alexp.estimation.lasso.group_lasso import ConvergenceWarning, GroupLasso, LassoFit

from .group_lasso_twin import (
    all_subsets,
    bound,
    explicit_gap,
    filled,
    fista,
    flat,
    lambda_max,
    legendre_instance,
    odd_instance,
    rounding_of_gap,
    weak_lambda,
)


def fitted(rows, fit):
    return rows @ fit.beta + fit.intercept


def same_fit(rows, y, a, b, tol):
    """Fitted values of two tol-certified solutions differ by at most sqrt(2 tol P) each (strong convexity)."""
    scale = np.linalg.norm(y) + 1e-300
    return np.linalg.norm(fitted(rows, a) - fitted(rows, b)) <= 4.0 * np.sqrt(tol) * scale


@pytest.mark.parametrize("regime", ["gram", "rows"])
@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_accelerated_proximal_gradient(regime, seed):
    rng = np.random.default_rng(seed)
    t, n_columns = int(rng.integers(5, 40)), int(rng.integers(3, 15))
    rows = rng.normal(size=(t, n_columns))
    groups = [rng.choice(n_columns, rng.integers(1, 4), replace=False) for _ in range(20)]
    weights = rng.uniform(0.5, 2.0, 20)
    y = rows[:, groups[0]].sum(axis=1) + 0.1 * rng.normal(size=t)
    lam = rng.choice([0.02, 0.2, 0.7]) * lambda_max(rows, y, groups, weights)
    fit = filled(bound(groups, n_columns, weights, tol=1e-11, regime=regime), rows, y).solve(lam)
    expected = fista(rows, y, groups, lam, weights)
    np.testing.assert_allclose(rows @ fit.beta, expected, atol=2e-5 * np.linalg.norm(y))


@pytest.mark.parametrize("size", [2, 3, 8])
def test_agrees_with_celer(size):
    celer = pytest.importorskip("celer")
    rows, y, groups = legendre_instance(10, size, 60, seed=size, noise=0.05)
    columns, _ = flat(groups)
    lam = 0.05 * lambda_max(rows, y, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = celer.GroupLasso(groups=size, alpha=lam, tol=1e-10, fit_intercept=False, max_iter=200)
        other.fit(np.asfortranarray(rows[:, columns]), y)
    fit = filled(bound(groups, 11, tol=1e-10), rows, y).solve(lam)
    np.testing.assert_allclose(rows @ fit.beta, rows[:, columns] @ other.coef_, atol=2e-4 * np.linalg.norm(y))


@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_thousands_of_odd_instances_are_certified(regime):
    worst = 0.0
    for seed in range(5000):
        rng = np.random.default_rng(seed if regime == "gram" else 100_000 + seed)
        rows, y, groups, weights, intercept = odd_instance(rng)
        path = filled(bound(groups, rows.shape[1], weights, intercept, regime=regime), rows, y)
        top = lambda_max(rows, y, groups, weights, intercept)
        lam = top * 10.0 ** rng.uniform(-6.0, 0.3) if top > 0.0 else 1.0
        fit = path.solve(lam)
        assert fit.gap <= 1e-6, seed
        # The warm start of a neighbouring problem leads to the same function.
        warm = path.solve(1.5 * lam, fit)
        assert warm.gap <= 1e-6, seed
        if seed % 2 == 0:
            gap = explicit_gap(rows, y, groups, weights, intercept, lam, path, fit)
            worst = max(worst, gap)
            assert gap <= 1.01e-6 + rounding_of_gap(rows, y, groups, weights, lam, fit), seed
    assert worst > 1e-8  # the recomputation does see solutions that are only just good enough


def test_odd_instances_of_all_subsets_are_certified():
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        rows, y, _, _, intercept = odd_instance(rng)
        n_columns = rows.shape[1]
        size = int(rng.integers(1, n_columns + 1)) if rng.random() < 0.5 else min(n_columns, int(rng.integers(1, 4)))
        path = filled(all_subsets(n_columns, size, 10.0 ** rng.uniform(-2, 2), intercept), rows, y)
        top = subset_lambda_max(rows, y, size, path, intercept)
        lam = top * 10.0 ** rng.uniform(-6.0, 0.3) if top > 0.0 else 1.0
        fit = path.solve(lam)
        assert fit.gap <= 1e-6, seed
        assert path.solve(1.5 * lam, fit).gap <= 1e-6, seed
        total = np.zeros(n_columns)
        for j, theta in path.group_coefficients(fit).items():
            total[path.members(j)] += theta
        np.testing.assert_allclose(total, fit.beta, rtol=1e-12, err_msg=str(seed))
        if seed % 3 == 0 and path.n_groups <= 2000:
            groups = [path.members(j) for j in range(path.n_groups)]
            weights = np.full(path.n_groups, path._groups.weights[0])
            gap = explicit_gap(rows, y, groups, weights, intercept, lam, path, fit)
            assert gap <= 1.01e-6 + rounding_of_gap(rows, y, groups, weights, lam, fit), seed


def subset_lambda_max(rows, y, size, path, intercept):
    if intercept:
        rows, y = rows - rows.mean(axis=0), y - y.mean()
    return np.linalg.norm(np.sort(np.abs(rows.T @ y))[-size:]) / len(y) / path._groups.weights[0]


@pytest.mark.parametrize(("degree", "size"), [(10, 2), (10, 3), (10, 8), (20, 3)])
@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_tight_tolerance_along_the_papers_path(degree, size, regime):
    rows, y, groups = legendre_instance(degree, size, 60, seed=size)
    path = bound(groups, degree + 1, tol=1e-12, regime=regime)
    fit = None
    for t in range(1, 61):
        path.append(rows[t - 1], y[t - 1])
        for factor in (1.0, 1e-3):
            lam = factor * weak_lambda(t, len(groups), size)
            fit = path.solve(lam, fit)
            if t % 7 == 1:
                gap = explicit_gap(rows[:t], y[:t], groups, None, False, lam, path, fit)
                noise = rounding_of_gap(rows[:t], y[:t], groups, None, lam, fit)
                assert gap <= 1.01e-12 + noise, (t, factor)
                assert factor < 1.0 or gap <= 2e-12


def test_tight_tolerance_on_odd_instances():
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        rows, y, groups, weights, intercept = odd_instance(rng)
        path = filled(bound(groups, rows.shape[1], weights, intercept, tol=1e-12), rows, y)
        top = lambda_max(rows, y, groups, weights, intercept)
        fit = path.solve(top * 10.0 ** rng.uniform(-4.0, 0.3) if top > 0.0 else 1.0)
        assert fit.gap <= 1e-12, seed


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_all_subsets_equal_the_explicit_groups(size):
    n_columns = 10
    for seed in range(10):
        rows, y, groups = legendre_instance(n_columns - 1, size, 25, seed)
        listed = filled(bound(groups, n_columns, np.full(len(groups), 1.7), tol=1e-10), rows, y)
        implied = GroupLasso(tol=1e-10, canonical=False).bind_groups(n_columns, None, None, [1.7], subset_size=size)
        filled(implied, rows, y)
        lam = 0.01 * lambda_max(rows, y, groups)
        a, b = listed.solve(lam), implied.solve(lam)
        assert same_fit(rows, y, a, b, 1e-10)
        # Group indices mean the same subsets, so either fit warms the other.
        assert listed.solve(lam, b).iterations == 0
        assert implied.solve(lam, a).iterations == 0
        for j in b.groups:
            np.testing.assert_array_equal(implied.members(j), groups[j])


def test_a_class_too_large_to_list():
    rng = np.random.default_rng(0)
    path = GroupLasso().bind_groups(200, None, None, subset_size=5)
    assert path.n_groups == 2_535_650_040
    theta, fit = rng.normal(size=5), None
    for t in range(1, 81):
        row = rng.normal(size=200)
        path.append(row, row[[3, 50, 51, 120, 199]] @ theta + 0.01 * rng.normal())
        fit = path.solve(0.01 / np.sqrt(t), fit)
    assert fit.gap <= 1e-6
    top = np.argsort(-np.abs(fit.beta))[:5]
    assert set(top) == {3, 50, 51, 120, 199}


def test_many_explicit_groups():
    rng = np.random.default_rng(1)
    n_columns, n_groups, t = 60, 300_000, 40
    columns = np.argsort(rng.random((n_groups, n_columns)), axis=1)[:, :3].astype(np.int64)
    rows = rng.normal(size=(t, n_columns))
    y = rows[:, columns[7]] @ [1.0, -2.0, 0.5] + 0.01 * rng.normal(size=t)
    path = GroupLasso().bind_groups(n_columns, columns.ravel(), 3 * np.arange(n_groups + 1))
    fit = filled(path, rows, y).solve(0.01)
    assert fit.gap <= 1e-6
    g = rows.T @ (y - rows @ fit.beta)
    assert np.sqrt((g[columns] ** 2).sum(axis=1)).max() <= 1.001 * 0.01 * t


@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_group_sizes_from_1_to_50(regime):
    rng = np.random.default_rng(2)
    groups = [rng.choice(80, size, replace=False) for size in range(1, 51)]
    rows = rng.normal(size=(60, 80))
    y = rows[:, groups[20]] @ rng.normal(size=21) + 0.1 * rng.normal(size=60)
    weights = np.sqrt(np.arange(1.0, 51.0))
    path = filled(bound(groups, 80, weights, tol=1e-9, regime=regime), rows, y)
    for factor in (0.5, 0.05, 1e-3):
        lam = factor * lambda_max(rows, y, groups, weights)
        fit = path.solve(lam)
        assert explicit_gap(rows, y, groups, weights, False, lam, path, fit) <= 1.1e-9


def test_regimes_agree_also_after_the_rows_were_compressed():
    rng = np.random.default_rng(3)
    groups = [np.array([i, (i + 1) % 6]) for i in range(6)]
    for intercept in (False, True):
        gram = bound(groups, 6, intercept=intercept, tol=1e-11, regime="gram")
        rows_kept = bound(groups, 6, intercept=intercept, tol=1e-11, regime="rows")
        rows = rng.normal(size=(100, 6)) + 1.0
        y = rows[:, 0] - rows[:, 1] + 5.0 + 0.1 * rng.normal(size=100)
        for t in range(100):
            gram.append(rows[t], y[t])
            rows_kept.append(rows[t], y[t])
            a, b = gram.solve(0.01), rows_kept.solve(0.01)
            assert same_fit(rows[: t + 1], y[: t + 1], a, b, 1e-11)
        assert rows_kept._n_rows < 100


def test_intercept_equals_explicit_centring():
    rows, y, groups = legendre_instance(8, 2, 40, seed=4)
    y = y + 100.0
    lam = 0.01
    fit = filled(bound(groups, 9, intercept=True, tol=1e-11), rows, y).solve(lam)
    centred = rows - rows.mean(axis=0)
    other = filled(bound(groups, 9, tol=1e-11), centred, y - y.mean()).solve(lam)
    np.testing.assert_allclose(fitted(rows, fit), centred @ other.beta + y.mean(), atol=1e-6)
    residual = y - fitted(rows, fit)
    assert abs(residual.mean()) <= 1e-10


def test_a_repeated_group_changes_no_fitted_value():
    rows, y, groups = legendre_instance(10, 3, 30, seed=5)
    lam = 0.02 * lambda_max(rows, y, groups)
    once = filled(bound(groups, 11, tol=1e-11), rows, y).solve(lam)
    twice = filled(bound(groups + groups[::5], 11, tol=1e-11), rows, y).solve(lam)
    assert same_fit(rows, y, once, twice, 1e-11)


def test_weights_are_a_change_of_units():
    """Scaling group j by 1/w_j and dropping the weight gives the same fitted values."""
    rng = np.random.default_rng(6)
    groups = [np.arange(3 * j, 3 * j + 3) for j in range(5)]
    weights = rng.uniform(0.2, 5.0, 5)
    rows = rng.normal(size=(20, 15))
    y = rows[:, :3].sum(axis=1) + 0.1 * rng.normal(size=20)
    lam = 0.05 * lambda_max(rows, y, groups, weights)
    a = filled(bound(groups, 15, weights, tol=1e-11), rows, y).solve(lam)
    scaled = rows / np.repeat(weights, 3)
    b = filled(bound(groups, 15, tol=1e-11), scaled, y).solve(lam)
    np.testing.assert_allclose(rows @ a.beta, scaled @ b.beta, atol=2e-5 * np.linalg.norm(y))
    np.testing.assert_array_equal(a.groups, b.groups)


def test_above_lambda_max_and_on_zero_rewards_the_answer_is_exactly_zero():
    rows, y, groups = legendre_instance(6, 2, 10, seed=7)
    path = filled(bound(groups, 7), rows, y)
    fit = path.solve(1.0001 * lambda_max(rows, y, groups))
    assert not fit.beta.any()
    assert fit.gap == 0.0
    assert fit.groups.size == 0
    assert path.solve(0.9 * lambda_max(rows, y, groups)).beta.any()
    silent = filled(bound(groups, 7), rows, np.zeros(10))
    warm = silent.solve(0.01, path.solve(0.01))
    assert not silent.solve(0.01).beta.any()
    assert np.abs(warm.beta).max() <= 1e-6


def test_coefficients_of_the_groups_add_up():
    rows, y, groups = legendre_instance(10, 3, 40, seed=8)
    path = filled(bound(groups, 11), rows, y)
    fit = path.solve(weak_lambda(40, len(groups), 3))
    theta = path.group_coefficients(fit)
    assert list(theta) == fit.groups.tolist()
    total = np.zeros(11)
    for (j, coefficients), eta in zip(theta.items(), fit.magnitudes, strict=True):
        total[groups[j]] += coefficients
        assert np.linalg.norm(coefficients) == pytest.approx(eta, rel=1e-2)
    np.testing.assert_allclose(total, fit.beta, rtol=1e-12)


def test_too_few_iterations_end_at_a_larger_lambda():
    rows, y, groups = legendre_instance(10, 3, 40, seed=9)
    path = filled(bound(groups, 11, max_iter=1), rows, y)
    with pytest.warns(ConvergenceWarning, match="certified"):
        fit = path.solve(1e-4)
    assert fit.lam > 1e-4
    assert fit.gap <= 1e-6


def test_warm_start_in_a_flat_valley():
    """Round 303 of a run on Legendre subsets (s = 3, noise 0.1): steps used to jump to and fro without an end."""
    stored = np.load(Path(__file__).parent / "data" / "valley.npz")
    path = GroupLasso().bind_groups(11, None, None, subset_size=3)
    state = {key: stored[key] for key in ("mean", "rho", "xt", "z", "gram")}
    n = int(stored["n_observations"])
    path.restore(state | {"n_observations": n, "weight": float(n)})
    lam = float(stored["lam"])
    start = LassoFit(stored["beta"], 0.0, stored["groups"], stored["magnitudes"], lam, 0.0, 0)
    fit = path.solve(lam, start)
    assert fit.gap <= 1e-6
    assert fit.iterations < 20
