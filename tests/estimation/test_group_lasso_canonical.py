"""The canonical minimiser: the same for any order of columns, groups, members and rows, and the one of least norm."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial import legendre

from alexp.estimation.lasso import group_lasso
from alexp.estimation.lasso.group_lasso import GroupLasso
from tests.estimation.group_lasso_twin import bound, explicit_gap, filled, flat, lambda_max, least_norm, least_weights

KINDS = ("plain", "ends", "repeated rows", "collinear", "one row", "wide", "constant")


def instance(seed):
    """Rows, rewards, groups, weights, size of the subsets (None: other groups), intercept, lambda."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    t, p = int(rng.integers(2, 25)), int(rng.integers(2, 8))
    if kind == "one row":
        t = 1
    if kind == "wide":
        t, p = 3, 9
    rows = rng.standard_normal((t, p))
    if kind == "ends":  # where all polynomials are 1 or -1
        rows = legendre.legvander(rng.choice([-1.0, 1.0, 0.5], size=t), p - 1)
    if kind == "repeated rows":
        rows = rows[rng.integers(0, max(1, t // 3), size=t)]
    if kind == "collinear":
        rows[:, -1] = -2.0 * rows[:, 0]
    if kind == "constant":
        rows[:, 0] = 1.0
    y = rows @ rng.standard_normal(p) + 0.1 * rng.standard_normal(t)
    size = int(rng.integers(1, p + 1)) if seed % 2 else None
    if size is not None:
        groups, weights = [list(group) for group in itertools.combinations(range(p), size)], None
    else:
        n_groups = int(rng.integers(1, 7))
        groups = [rng.permutation(p)[: rng.integers(1, p + 1)].tolist() for _ in range(n_groups)]
        weights = rng.uniform(0.5, 2.0, n_groups) if seed % 4 else None
    intercept = kind != "one row" and bool(rng.random() < 0.3)
    lam = lambda_max(rows, y, groups, weights, intercept) * float(rng.choice([0.5, 0.05, 0.003]))
    return rows, y, groups, weights, size, intercept, lam or 1.0


def reordered(seed, rows, y, groups, weights, intercept, **options):
    """The same problem with columns, groups, their members and the rows in another order; how to undo the columns."""
    rng = np.random.default_rng(seed)
    columns, models, times = (rng.permutation(n) for n in (rows.shape[1], len(groups), len(y)))
    back = np.argsort(columns)
    moved = [[int(back[i]) for i in rng.permutation(groups[j])] for j in models]
    path = bound(
        moved, rows.shape[1], None if weights is None else weights[models], intercept, canonical=True, **options
    )
    return filled(path, rows[times][:, columns], y[times]), back


def posed(seed, **options):
    """A path that holds the problem, by the solver for subsets where it is one of subsets."""
    rows, y, groups, weights, size, intercept, _ = instance(seed)
    oracle = GroupLasso(**options)
    if size is None:
        return filled(oracle.bind_groups(rows.shape[1], *flat(groups), weights, intercept), rows, y)
    return filled(oracle.bind_groups(rows.shape[1], None, None, None, intercept, size), rows, y)


@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_no_order_matters(regime):
    """In 300 problems of all kinds; where it is all subsets, listing them leads to the other solver."""
    for seed in range(150 if regime == "gram" else 60):
        rows, y, groups, weights, _, intercept, lam = instance(seed)
        fit = posed(seed, regime=regime).solve(lam)
        other, back = reordered(seed, rows, y, groups, weights, intercept, regime=regime)
        again = other.solve(lam)
        scale = np.abs(fit.beta).max(initial=1e-300)
        np.testing.assert_allclose(again.beta[back] / scale, fit.beta / scale, atol=2e-6, err_msg=str(seed))
        assert again.intercept == pytest.approx(fit.intercept, abs=1e-5 * (scale + np.abs(y).max()))


@pytest.mark.parametrize(("seed", "share"), [(155, 1e-4), (1317, 0.3), (1499, 1e-4)])
def test_a_last_step_that_moves_much_is_followed_by_another(seed, share):
    """Where only the ridge bends F, the gap is below 1e-12 before beta is where it should be."""
    rows, y, groups, weights, _, intercept, _ = instance(seed)
    lam = share * lambda_max(rows, y, groups, weights, intercept)
    fit = posed(seed).solve(lam)
    for order in range(10):
        other, back = reordered(order, rows, y, groups, weights, intercept)
        np.testing.assert_allclose(other.solve(lam).beta[back], fit.beta, atol=1e-6 * np.abs(fit.beta).max())


@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_the_gap_is_that_of_the_problem_as_stated(regime):
    """Not of the one with a ridge: recomputed from theta alone, it is what the fit says, and below ``tol``."""
    for seed in range(400 if regime == "gram" else 100):
        rows, y, groups, weights, _, intercept, lam = instance(seed)
        path = posed(seed, regime=regime)
        fit = path.solve(lam)
        gap = explicit_gap(rows, y, groups, weights, intercept, lam, path, fit)
        assert fit.lam == lam
        assert fit.gap <= 1e-6
        assert gap == pytest.approx(fit.gap, rel=1e-3, abs=1e-11), seed


@pytest.mark.parametrize("tol", [1e-3, 1e-9, 1e-12])
def test_the_gap_is_below_any_tolerance(tol):
    for seed in range(60):
        rows, y, groups, weights, _, intercept, lam = instance(seed)
        path = posed(seed, tol=tol)
        fit = path.solve(lam)
        assert fit.lam == lam
        assert fit.gap <= tol
        assert explicit_gap(rows, y, groups, weights, intercept, lam, path, fit) <= tol + 1e-12


def test_it_is_the_minimiser_of_least_norm():
    """Of the problem as stated, in 300 problems of all kinds, found among the groups that any minimiser may use."""
    several = 0
    for seed in range(300):
        rows, y, groups, weights, _, intercept, lam = instance(seed)
        beta = posed(seed).solve(lam).beta
        if intercept:
            rows, y = rows - rows.mean(axis=0), y - y.mean()
        some = filled(bound(groups, rows.shape[1], weights, tol=1e-13), rows, y).solve(lam).beta
        best = least_norm(rows, groups, weights, lam * len(y), some, y - rows @ some)
        scale = np.abs(best).max(initial=1e-300)
        several += np.abs(some - best).max() > 1e-5 * scale
        np.testing.assert_allclose(beta / scale, best / scale, atol=5e-6, err_msg=str(seed))
    assert several >= 1  # minimisers that are not the one


@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_no_start_matters(regime):
    """Nor does another minimiser to start from, which has a gap of zero, nor the fit at another lambda."""
    rows, y = legendre.legvander(np.array([1.0, -1.0, 0.5, 1.0]), 5), np.array([1.0, -0.3, 0.2, 0.9])
    groups = [list(group) for group in itertools.combinations(range(6), 2)]
    lam = 0.01 * lambda_max(rows, y, groups)
    for path in (
        GroupLasso(regime=regime).bind_groups(6, None, None, subset_size=2),
        GroupLasso(regime=regime).bind_groups(6, *flat(groups)),
    ):
        cold = filled(path, rows, y).solve(lam)
        plain = filled(GroupLasso(1e-13, regime=regime, canonical=False).bind_groups(6, *flat(groups)), rows, y)
        other = plain.solve(lam, replace(cold, groups=np.array([1]), magnitudes=np.array([1.0])))
        assert np.abs(other.beta - cold.beta).max() > 1e-3
        for start in (other, path.solve(50.0 * lam), path.solve(0.02 * lam), cold):
            np.testing.assert_allclose(path.solve(lam, start).beta, cold.beta, atol=2e-6)


def ridge_rows(rows, groups, weights, mu, kappa, total):
    """Rows sqrt(eps_i) e_i that make the minimiser unique, as the definition has them."""
    strength = kappa * mu / 2.0 ** np.ceil(np.log2(total)) if total > 0.0 else 0.0
    return np.diag(np.sqrt(strength) * least_weights(rows.shape[1], groups, weights))


@pytest.mark.parametrize("seed", range(42))
def test_equals_the_plain_problem_with_the_ridge_as_rows(seed, monkeypatch):
    """Whatever is smaller, support or data: rows that are there and rows that are only meant say the same."""
    monkeypatch.setattr(group_lasso, "_KAPPA", 1e-3)  # two thousand times what it is, to be seen
    rows, y, groups, weights, size, intercept, lam = instance(seed)
    if intercept:  # projected out, as the solver does it
        rows, y = rows - rows.mean(axis=0), y - y.mean()
    p, mu = rows.shape[1], lam * len(y)
    if size is None:
        path = GroupLasso(tol=2e-3).bind_groups(p, *flat(groups), weights)
    else:
        path = GroupLasso(tol=2e-3).bind_groups(p, None, None, subset_size=size)
    fit = filled(path, rows, y).solve(lam)
    theta = path.group_coefficients(fit)
    total = sum((1.0 if weights is None else weights[j]) * np.linalg.norm(block) for j, block in theta.items())
    more = np.vstack([rows, ridge_rows(rows, groups, weights, mu, 1e-3, total)]), np.concatenate([y, np.zeros(p)])
    share = mu / (len(y) + p)
    assert explicit_gap(*more, groups, weights, False, share, path, fit) <= 2e-12
    twin = filled(bound(groups, p, weights, tol=1e-13), *more).solve(share)
    scale = np.abs(twin.beta).max(initial=1e-300)
    np.testing.assert_allclose(fit.beta / scale, twin.beta / scale, atol=2e-6)


def test_least_norm_by_conic_programming():
    """min ||beta|| over all minimisers, of which there are many, by a solver for cones."""
    cp = pytest.importorskip("cvxpy")
    apart = []
    for seed, points in enumerate(([1.0], [1.0, -1.0], [1.0, -1.0, -1.0])):  # where polynomials are 1 or -1
        rows, y = legendre.legvander(np.array(points), 5), np.random.default_rng(seed).standard_normal(len(points))
        groups = [list(group) for group in itertools.combinations(range(6), 2)]
        lam = 0.05 * lambda_max(rows, y, groups)
        path = filled(GroupLasso().bind_groups(6, None, None, subset_size=2), rows, y)
        fit, one = path.solve(lam), filled(bound(groups, 6, tol=1e-13), rows, y)
        some = one.solve(lam)
        size = sum(float(np.linalg.norm(block)) for block in one.group_coefficients(some).values())
        theta = [cp.Variable(2) for _ in groups]
        beta = sum(np.eye(6)[:, group] @ block for group, block in zip(groups, theta, strict=True))
        limits = [rows @ beta == rows @ some.beta, sum(cp.norm(block) for block in theta) <= size * (1.0 + 1e-8)]
        cp.Problem(cp.Minimize(cp.sum_squares(beta)), limits).solve(solver="CLARABEL")
        apart.append(np.linalg.norm(some.beta - beta.value) / np.linalg.norm(beta.value))
        np.testing.assert_allclose(fit.beta, beta.value, atol=1e-4 * np.abs(beta.value).max())
    assert max(apart) > 0.1  # others are elsewhere


def test_one_reward_where_all_columns_are_equal():
    """At x = 1 all polynomials are: the least norm has all coefficients alike, however the groups are given."""
    groups = [list(group) for group in itertools.combinations(range(6), 2)]
    for path in (
        GroupLasso().bind_groups(6, None, None, subset_size=2),
        GroupLasso().bind_groups(6, *flat(groups)),
        GroupLasso().bind_groups(6, *flat(groups[::-1])),
    ):
        beta = filled(path, np.ones((1, 6)), [1.0]).solve(0.01).beta
        np.testing.assert_allclose(beta, beta.mean(), rtol=1e-7)
        assert 6.0 * beta[0] == pytest.approx(1.0 - 0.01 / np.sqrt(2.0), abs=1e-5)


def test_equal_columns_share_alike_and_others_by_their_weights():
    rows, y = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0]]), [1.0, 2.5]
    beta = filled(GroupLasso().bind_groups(3, *flat([[0], [1], [2]])), rows, y).solve(0.01).beta
    assert beta[0] == pytest.approx(beta[1], rel=1e-6)
    one = filled(GroupLasso().bind_groups(3, *flat([[0], [1], [2]]), [1.0, 2.0, 1.0]), rows, y).solve(0.01).beta
    assert one[1] == 0.0


def test_the_units_of_models_do_not_matter():
    """Weights divide features: a model of large features and large weight is one of unit features."""
    rng = np.random.default_rng(3)
    rows, y = rng.standard_normal((4, 6)), rng.standard_normal(4)
    units = np.repeat([8.0, 0.25, 1.0], 2)
    groups = [[0, 1], [2, 3], [4, 5]]
    scaled = filled(GroupLasso().bind_groups(6, *flat(groups), units[::2]), rows * units, y).solve(0.01).beta
    plain = filled(GroupLasso().bind_groups(6, *flat(groups)), rows, y).solve(0.01).beta
    np.testing.assert_allclose(scaled * units, plain, atol=1e-9)


def test_scaling_by_powers_of_two_changes_no_bit():
    rows, y, groups, *_ = instance(1)
    fits = []
    for unit in (1.0, 2.0**40, 2.0**-40):
        path = filled(GroupLasso().bind_groups(rows.shape[1], *flat(groups)), rows, unit * y)
        fits.append(path.solve(unit * 0.02).beta / unit)
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])


def test_solves_finer_than_asked_for_but_insists_on_tol_only(monkeypatch):
    """Where digits are lacking for the finer gap, a few steps are made for it and no more."""
    paths = [(posed(seed, tol=1e-3), instance(seed)[-1]) for seed in range(40)]
    fine = [path.solve(lam).iterations for path, lam in paths]
    monkeypatch.setattr(group_lasso, "_FINE", 1e-3)
    asked = [path.solve(lam).iterations for path, lam in paths]
    assert sum(asked) < sum(fine)
    assert max(np.subtract(fine, asked)) <= 4
    monkeypatch.setattr(group_lasso, "_FINE", 0.0)
    assert max(np.subtract([path.solve(lam).iterations for path, lam in paths], asked)) <= 12


def test_columns_of_no_group_stay_zero():
    path = filled(GroupLasso().bind_groups(4, *flat([[0, 2]])), np.ones((2, 4)), [1.0, 1.0])
    beta = path.solve(0.01).beta
    assert beta[1] == beta[3] == 0.0
    assert beta[0] == pytest.approx(beta[2]) != 0.0
