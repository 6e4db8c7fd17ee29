"""The canonical minimiser: the same for any order of columns, groups, members and rows, and the one of least norm."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.polynomial import legendre

from alexp.estimation.lasso import group_lasso
from alexp.estimation.lasso.group_lasso import GroupLasso
from tests.estimation.group_lasso_twin import bound, explicit_gap, filled, flat, lambda_max

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


@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_no_order_matters(regime):
    """In 300 problems of all kinds; where it is all subsets, listing them leads to the other solver."""
    for seed in range(150 if regime == "gram" else 60):
        rows, y, groups, weights, size, intercept, lam = instance(seed)
        oracle = GroupLasso(regime=regime)
        if size is None:
            path = oracle.bind_groups(rows.shape[1], *flat(groups), weights, intercept)
        else:
            path = oracle.bind_groups(rows.shape[1], None, None, None, intercept, size)
        fit = filled(path, rows, y).solve(lam)
        other, back = reordered(seed, rows, y, groups, weights, intercept, regime=regime)
        again = other.solve(lam)
        scale = np.abs(fit.beta).max(initial=1e-300)
        np.testing.assert_allclose(again.beta[back] / scale, fit.beta / scale, atol=2e-6, err_msg=str(seed))
        assert again.intercept == pytest.approx(fit.intercept, abs=1e-5 * (scale + np.abs(y).max()))


def ridge_rows(rows, y, groups, weights, lam):
    """Rows sqrt(eps_i) e_i that make the minimiser unique, as the definition has them."""
    least = np.full(rows.shape[1], np.inf)
    for group, weight in zip(groups, np.ones(len(groups)) if weights is None else weights, strict=True):
        least[group] = np.minimum(least[group], weight)
    mu = lam * len(y)
    least[np.isinf(least)] = 0.0
    return np.diag(np.sqrt(4e-3 * mu**2 / (y @ y)) * least)


@pytest.mark.parametrize("seed", range(42))
def test_equals_the_plain_problem_with_the_ridge_as_rows(seed):
    """Whatever is smaller, support or data: rows that are there and rows that are only meant say the same."""
    rows, y, groups, weights, size, intercept, lam = instance(seed)
    if intercept:  # projected out, as the solver does it
        rows, y = rows - rows.mean(axis=0), y - y.mean()
    p = rows.shape[1]
    if size is None:
        path = GroupLasso().bind_groups(p, *flat(groups), weights)
    else:
        path = GroupLasso().bind_groups(p, None, None, subset_size=size)
    fit = filled(path, rows, y).solve(lam)
    more = np.vstack([rows, ridge_rows(rows, y, groups, weights, lam)]), np.concatenate([y, np.zeros(p)])
    share = lam * len(y) / (len(y) + p)
    assert explicit_gap(*more, groups, weights, False, share, path, fit) <= 2e-12
    twin = filled(bound(groups, p, weights, tol=1e-13), *more).solve(share)
    scale = np.abs(twin.beta).max(initial=1e-300)
    np.testing.assert_allclose(fit.beta / scale, twin.beta / scale, atol=2e-6)


@pytest.mark.parametrize("seed", range(42))
def test_hardly_worse_than_any_minimiser_and_no_longer(seed):
    """Its objective is within half a thousandth of the least one, its norm that of the shortest, nearly."""
    rows, y, groups, weights, _, intercept, lam = instance(seed)
    path = filled(bound(groups, rows.shape[1], weights, intercept, canonical=True), rows, y)
    fit = path.solve(lam)
    assert explicit_gap(rows, y, groups, weights, intercept, lam, path, fit) <= 1.1e-3
    lengths = np.diag(ridge_rows(rows, y, groups, weights, lam))
    for order in range(3):
        other, back = reordered(order, rows, y, groups, weights, intercept)
        other.spec = GroupLasso(tol=1e-12, canonical=False)
        other._share = np.zeros(rows.shape[1])
        any_other = other.solve(lam).beta[back]
        assert np.linalg.norm(lengths * fit.beta) <= np.linalg.norm(lengths * any_other) * (1.0 + 1e-6)


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
        np.testing.assert_allclose(fit.beta, beta.value, atol=2e-3 * np.abs(beta.value).max())
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
    rows, y, groups, *_ = instance(0)
    path = filled(GroupLasso(tol=1e-3).bind_groups(rows.shape[1], *flat(groups)), rows, y)
    fine = path.solve(0.01)
    assert fine.gap <= 1e-12
    monkeypatch.setattr(group_lasso, "_FINE", 1e-3)
    asked = path.solve(0.01)
    assert 1e-12 < asked.gap <= 1e-3
    assert asked.iterations < fine.iterations
    monkeypatch.setattr(group_lasso, "_FINE", 0.0)
    assert path.solve(0.01).iterations <= asked.iterations + 12


def test_columns_of_no_group_stay_zero():
    path = filled(GroupLasso().bind_groups(4, *flat([[0, 2]])), np.ones((2, 4)), [1.0, 1.0])
    beta = path.solve(0.01).beta
    assert beta[1] == beta[3] == 0.0
    assert beta[0] == pytest.approx(beta[2]) != 0.0
