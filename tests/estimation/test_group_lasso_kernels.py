"""The compiled pieces of the group Lasso against plain NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit

from alexp.estimation.lasso import _linalg, _solve_groups, _solve_subsets
from alexp.estimation.lasso._newton import Groups
from alexp.problem.groups import binomial_table


def positive_definite(rng, n):
    a = rng.normal(size=(n, 2 * n))
    return a @ a.T + np.eye(n)


@njit
def factor_and_solve(a, b, many, floor):
    n = b.size
    _linalg.cholesky(a, n, floor, np.empty(5 * n))
    _linalg.solve_factored(a, b, n)
    lower = many.copy()
    _linalg.solve_lower_many(a, lower, n)
    _linalg.solve_upper_many(a, many, n, np.empty(n))
    return lower


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 16, 33])
def test_cholesky_and_triangular_solves(n):
    rng = np.random.default_rng(n)
    a = positive_definite(rng, n)
    b, many = rng.normal(size=n), rng.normal(size=(n, 5))
    factor, x, upper = a.copy(), b.copy(), many.copy()
    lower = factor_and_solve(factor, x, upper, 1e-15)
    expected = np.linalg.cholesky(a)
    np.testing.assert_allclose(np.tril(factor), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-9)
    np.testing.assert_allclose(lower, np.linalg.solve(expected, many), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(upper, np.linalg.solve(expected.T, many), rtol=1e-9, atol=1e-12)


def test_cholesky_leaves_lost_directions_alone():
    a = np.ones((3, 3))
    b = np.ones(3)
    factor_and_solve(a, b, np.zeros((3, 1)), 1e-15)
    np.testing.assert_allclose(b, [1.0, 0.0, 0.0], atol=1e-15)


@njit
def dot_and_gram(rows, out):
    _linalg.add_gram(rows, rows.shape[0], out, rows.shape[1])
    return _linalg.dot(rows[0], rows[-1], rows.shape[1])


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (4, 8), (5, 9), (8, 30), (13, 4)])
def test_products(shape):
    rows = np.random.default_rng(0).normal(size=shape)
    out = np.zeros((shape[1], shape[1]))
    assert dot_and_gram(rows, out) == pytest.approx(rows[0] @ rows[-1])
    np.testing.assert_allclose(np.tril(out), np.tril(rows.T @ rows), atol=1e-12)


@njit
def is_acceptable(trial, value, slope, derivative):
    return _solve_groups.acceptable(trial, value, slope, derivative)


@pytest.mark.parametrize(
    ("trial", "slope", "wanted"),
    [
        (0.8, 0.0, True),  # a tenth of what the derivative promises is enough
        (0.95, 0.95, False),
        (1.5, 0.0, False),  # the objective would increase
        (1.0 + 5e-12, 0.8, True),  # within rounding the slope decides
        (1.0 + 5e-12, 0.95, False),
    ],
)
def test_steps_are_accepted_by_their_decrease(trial, slope, wanted):
    assert is_acceptable(trial, 1.0, slope, -1.0) is wanted


@njit
def minimise(h, c, low, damping):
    x = np.zeros(c.size)
    _solve_groups.bounded_quadratic(h, c, low, c.size, damping, x)
    return x


@pytest.mark.parametrize("seed", range(30))
def test_bounded_quadratic_satisfies_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 12))
    rank = int(rng.integers(1, k + 1))
    root = rng.normal(size=(k, rank))
    h, c, low = root @ root.T, rng.normal(size=k), -rng.exponential(size=k) * (rng.random(k) < 0.8)
    damping = 1e-6
    x = minimise(np.tril(h), c, low, damping)
    gradient = h @ x + damping * np.diag(h) * x + c
    scale = np.abs(c).max() + (np.abs(h) @ np.abs(x)).max()
    assert (x >= low).all()
    assert (gradient[x > low] == pytest.approx(0.0, abs=1e-9 * scale)) if (x > low).any() else True
    assert gradient.min() >= -1e-9 * scale


@njit
def minimise_in_cone(h, c, size, cost, damping, d, low, tau):
    x = np.zeros(c.size)
    return x, _solve_subsets.cone_quadratic(h, c, c.size, size, cost, damping, d, low, tau, x)


@pytest.mark.parametrize("seed", range(40))
def test_cone_quadratic_against_a_conic_solver(seed):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    size = int(rng.integers(1, k + 1))
    root = rng.normal(size=(k, k + 2))
    h = root @ root.T
    # The model is only ever used where its pull is positive and near the cost's.
    c, cost = rng.exponential(size=k), 0.3 * size
    tau = float(rng.choice([0.0, 1.0]))
    d = np.zeros(k)
    for subset in [rng.choice(k, size, replace=False) for _ in range(3)]:
        d[subset] += tau / 3.0
    low = 0.1 * d * (rng.random(k) < 0.3)
    x, rise = minimise_in_cone(np.tril(h), c, size, cost, 1e-9, d, low, tau)
    new, top = d + x, tau + rise
    assert (new >= low - 1e-12).all()
    assert (new <= top + 1e-12).all()
    assert new.sum() == pytest.approx(size * top, abs=1e-9)
    step, up = cvxpy.Variable(k), cvxpy.Variable()
    model = 0.5 * cvxpy.sum_squares(root.T @ step) - c @ step + cost * up
    inside = [d + step >= low, d + step <= tau + up, cvxpy.sum(d + step) == size * (tau + up)]
    best = cvxpy.Problem(cvxpy.Minimize(model), inside).solve(solver="CLARABEL")
    assert 0.5 * x @ h @ x - c @ x + cost * rise <= best + 1e-6 * (1.0 + abs(best))


def test_rows_rotate_into_the_triangular_factor():
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    rows[:, 2] = 0.0
    rows[:, 4] = rows[:, 1]
    xt, z, rho, gram = np.zeros((6, 6)), np.zeros(6), np.zeros(1), np.zeros((6, 6))
    for t, (row, value) in enumerate(zip(rows, y, strict=True), start=1):
        _linalg.rotate_in(xt, z, rho, gram, row, value)
        np.testing.assert_allclose(xt @ xt.T, rows[:t].T @ rows[:t], atol=1e-12)
        np.testing.assert_allclose(xt @ z, rows[:t].T @ y[:t], atol=1e-12)
        assert z @ z + rho[0] ** 2 == pytest.approx(y[:t] @ y[:t])
    np.testing.assert_allclose(gram, rows.T @ rows, atol=1e-12)
    assert not np.triu(xt, 1).any()


def test_centred_rows_have_the_centred_gram_matrix():
    rng = np.random.default_rng(2)
    rows, y, mean = rng.normal(size=(20, 3)) + 10.0, rng.normal(size=20), np.zeros(4)
    kept = [_linalg.centre_row(row, value, mean, t) for t, (row, value) in enumerate(zip(rows, y, strict=True), 1)]
    helmert = np.array([row for row, _ in kept])
    centred = rows - rows.mean(axis=0)
    np.testing.assert_allclose(helmert.T @ helmert, centred.T @ centred, atol=1e-10)
    np.testing.assert_allclose(helmert.T @ [v for _, v in kept], centred.T @ y, atol=1e-10)
    np.testing.assert_allclose(mean, [*rows.mean(axis=0), y.mean()])


@njit
def scan(g, groups, limit, taken, room):
    worst, which = np.empty(room), np.empty(room, dtype=np.int64)
    top, found = _solve_groups.worst_groups(g, groups, limit, taken, taken.size, worst, which)
    return top, which[:found]


def test_the_pass_over_groups_finds_the_worst():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 6, 200)
    columns = np.concatenate([rng.choice(30, size, replace=False) for size in sizes])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    groups = Groups(columns, offsets, rng.uniform(0.5, 2.0, 200))
    g = rng.normal(size=30)
    value = np.add.reduceat(g[columns] ** 2, offsets[:-1]) / groups.weights**2
    order = np.argsort(-value)
    top, which = scan(g, groups, value[order[50]], order[:3].copy(), 8)
    assert top == pytest.approx(value.max())
    np.testing.assert_array_equal(which, order[3:11])
    assert scan(g, groups, value[order[4]], order[:3].copy(), 8)[1].tolist() == [order[3]]


@njit
def rank(subset, binomial):
    return _solve_subsets.rank_subset(subset, binomial, subset.size)


@njit
def split(d, tau, binomial):
    return _solve_subsets.decompose(d, tau, binomial)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (5, 1), (6, 3), (7, 7), (9, 4)])
def test_ranks_are_lexicographic(n, size):
    table = binomial_table(n, size)
    subset = np.empty(size, dtype=np.int64)
    for j, expected in enumerate(itertools.combinations(range(n), size)):
        assert rank(np.array(expected), table) == j
        _solve_subsets.subset_of(j, table, size, subset)
        assert tuple(subset) == expected


@pytest.mark.parametrize("seed", range(50))
def test_decomposition_into_subsets_is_exact(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    size = int(rng.integers(1, n + 1))
    table = binomial_table(n, size)
    d = np.zeros(n)
    for _ in range(int(rng.integers(1, 6))):
        d[rng.choice(n, size, replace=False)] += rng.exponential()
    tau = d.sum() / size
    ids, eta = split(d, max(tau, d.max()), table)
    again, subset = np.zeros(n), np.empty(size, dtype=np.int64)
    for j, value in zip(ids, eta, strict=True):
        _solve_subsets.subset_of(j, table, size, subset)
        again[subset] += value
    np.testing.assert_allclose(again, d, atol=1e-13 * tau)
    assert eta.sum() == pytest.approx(tau)
    assert (np.diff(ids) > 0).all()
    assert ids.size <= n + 1
