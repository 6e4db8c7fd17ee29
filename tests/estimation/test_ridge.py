"""Ridge posteriors of all agents against dense linear algebra, exact arithmetic and the paper's kernel form."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

import alexp
from alexp.estimation.factory import linear_posteriors
from alexp.estimation.ridge import _kernels as kernels
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import Choices


def make_groups(rng, sizes, n_columns):
    groups = [rng.choice(n_columns, size, replace=False) for size in sizes]
    return groups, np.concatenate(groups).astype(np.int64), np.r_[0, np.cumsum(sizes)].astype(np.int64)


def filled(bank, rows, rewards):
    for row, reward in zip(rows, rewards, strict=True):
        bank.update(row, reward)
    return bank


def dense_posterior(rows, rewards, ridge, intercept):
    """Design matrix, V, theta (intercept first) by plain NumPy."""
    penalty = ridge**2 * np.eye(rows.shape[1])
    if intercept:
        rows = np.hstack([np.ones((len(rows), 1)), rows])
        penalty = np.pad(penalty, ((1, 0), (1, 0)))
    v = rows.T @ rows + penalty
    theta = np.linalg.solve(v, rows.T @ rewards)
    residual = np.sum((rewards - rows @ theta) ** 2) + theta @ penalty @ theta
    return v, theta, residual


@pytest.mark.parametrize("intercept", [False, True])
def test_posterior_matches_dense_linear_algebra_on_ragged_models(intercept):
    rng = np.random.default_rng(1)
    sizes = [*range(1, 13), 25, 50]
    groups, columns, offsets = make_groups(rng, sizes, 60)
    ridge = rng.uniform(0.2, 2.0, len(sizes))
    rows, rewards = rng.normal(size=(80, 60)), rng.normal(size=80) + 2.0
    bank = filled(RidgeBank(columns, offsets, ridge, intercept=intercept), rows, rewards)
    points = rng.normal(size=(40, 60))
    theta, intercepts = bank.coefficients()
    assert bank.n_observations == 80
    assert bank.n_models == len(sizes)
    for j, group in enumerate(groups):
        v, expected, residual = dense_posterior(rows[:, group], rewards, ridge[j], intercept)
        phi = np.hstack([np.ones((40, 1)), points[:, group]]) if intercept else points[:, group]
        np.testing.assert_allclose(theta[offsets[j] : offsets[j + 1]], expected[int(intercept) :], rtol=1e-10)
        np.testing.assert_allclose(intercepts[j], expected[0] if intercept else 0.0, rtol=1e-10)
        np.testing.assert_allclose(bank.mean(j, points), phi @ expected, rtol=1e-9, atol=1e-12)
        width = np.sqrt(np.einsum("ij,ij->i", phi @ np.linalg.inv(v), phi))
        np.testing.assert_allclose(bank.width(j, points), width, rtol=1e-10)
        np.testing.assert_allclose(bank.residuals()[j], residual, rtol=1e-11)
        log_determinant = np.linalg.slogdet(v)[1] - sizes[j] * math.log(ridge[j] ** 2)
        log_determinant -= math.log(80) if intercept else 0.0
        np.testing.assert_allclose(bank.log_determinants()[j], log_determinant, rtol=1e-10)


def test_kernel_form_of_the_paper():
    """mu = k'(K + ridge^2 I)^-1 y and sigma^2 = k(x,x) - k'(K + ridge^2 I)^-1 k, sigma = ridge * width."""
    rng = np.random.default_rng(2)
    rows, rewards, points = rng.normal(size=(15, 6)), rng.normal(size=15), rng.normal(size=(30, 6))
    group, ridge = np.array([4, 0, 3]), 0.4
    bank = filled(RidgeBank(group, np.array([0, 3]), ridge), rows, rewards)
    gram = rows[:, group] @ rows[:, group].T + ridge**2 * np.eye(15)
    cross = points[:, group] @ rows[:, group].T
    prior = np.sum(points[:, group] ** 2, axis=1)
    sigma = np.sqrt(prior - np.einsum("ij,ij->i", cross @ np.linalg.inv(gram), cross))
    np.testing.assert_allclose(bank.mean(0, points), cross @ np.linalg.solve(gram, rewards), rtol=1e-10)
    np.testing.assert_allclose(ridge * bank.width(0, points), sigma, rtol=1e-9)


def exact_solve(matrix, right):
    """Gaussian elimination over the rationals."""
    size = len(matrix)
    work = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(size):
        pivot = next(i for i in range(k, size) if work[i][k] != 0)
        work[k], work[pivot] = work[pivot], work[k]
        for i in range(k + 1, size):
            ratio = work[i][k] / work[k][k]
            work[i] = [a - ratio * b for a, b in zip(work[i], work[k], strict=True)]
    solution = [Fraction(0)] * size
    for k in range(size - 1, -1, -1):
        known = sum((work[k][i] * solution[i] for i in range(k + 1, size)), Fraction(0))
        solution[k] = (work[k][size] - known) / work[k][k]
    return solution


def exact_posterior(rows, rewards, ridge, points):
    """mu, s and rho^2 in exact rational arithmetic, rounded once at the end."""
    phi = [[Fraction(v) for v in row] for row in rows.tolist()]
    y = [Fraction(v) for v in rewards.tolist()]
    size = rows.shape[1]
    v = [
        [sum(r[a] * r[b] for r in phi) + (Fraction(ridge) ** 2 if a == b else 0) for b in range(size)]
        for a in range(size)
    ]
    moment = [sum(r[a] * t for r, t in zip(phi, y, strict=True)) for a in range(size)]
    theta = exact_solve(v, moment)
    means, squares = [], []
    for point in points.tolist():
        x = [Fraction(value) for value in point]
        means.append(float(sum(a * b for a, b in zip(x, theta, strict=True))))
        squares.append(float(sum(a * b for a, b in zip(x, exact_solve(v, x), strict=True))))
    residual = float(sum(t * t for t in y) - sum(a * b for a, b in zip(moment, theta, strict=True)))
    return np.array(means), np.sqrt(squares), residual


def test_features_of_very_different_scales_keep_relative_accuracy():
    rng = np.random.default_rng(3)
    scales = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])
    rows, points = rng.normal(size=(25, 5)) * scales, rng.normal(size=(12, 5)) * scales
    rewards = rows @ (rng.normal(size=5) / scales) + 0.1 * rng.normal(size=25)
    bank = filled(RidgeBank(np.arange(5), np.array([0, 5]), 1e-6), rows, rewards)
    mean, width, residual = exact_posterior(rows, rewards, 1e-6, points)
    np.testing.assert_allclose(bank.mean(0, points), mean, rtol=1e-11)
    np.testing.assert_allclose(bank.width(0, points), width, rtol=1e-13)
    np.testing.assert_allclose(bank.residuals()[0], residual, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_exactly_collinear_columns(scale):
    """Columns 0 and 2 are equal and 3 is twice 1: only the ridge separates them."""
    rng = np.random.default_rng(4)
    base, more = rng.normal(size=(40, 2)) * scale, rng.normal(size=(9, 2)) * scale
    rows = np.column_stack([base, base[:, 0], 2.0 * base[:, 1]])
    points = np.column_stack([more, more[:, 0], 2.0 * more[:, 1]])
    rewards = base @ np.array([1.0, -2.0]) / scale + 0.01 * rng.normal(size=40)
    bank = filled(RidgeBank(np.arange(4), np.array([0, 4]), 0.1), rows, rewards)
    mean, width, residual = exact_posterior(rows, rewards, 0.1, points)
    np.testing.assert_allclose(bank.mean(0, points), mean, rtol=1e-8)
    np.testing.assert_allclose(bank.width(0, points), width, rtol=1e-12)
    np.testing.assert_allclose(bank.residuals()[0], residual, rtol=1e-12)
    # A direction that was never seen: x = (1, 0, -1, 0) has width ||x|| / ridge.
    unseen = np.array([[1.0, 0.0, -1.0, 0.0]])
    error = abs(bank.width(0, unseen)[0] * 0.1 / math.sqrt(2.0) - 1.0)
    print(f"scale {scale:g}: relative error {error:.1e} in an unseen direction")
    assert error < 1e-13
    if scale == 1e6:
        # The case is hard: next to entries of 1e13 the Gram matrix has lost the ridge of 0.01.
        gram = rows.T @ rows + 0.01 * np.eye(4)
        assert abs(np.linalg.eigvalsh(gram)[0] / 0.01 - 1.0) > 0.01


def test_a_hundred_thousand_updates_do_not_drift():
    rng = np.random.default_rng(5)
    rows, rewards = rng.normal(size=(100_000, 4)), rng.normal(size=100_000)
    columns, offsets = np.array([0, 1, 2, 3, 2, 0]), np.array([0, 4, 6])
    bank = filled(RidgeBank(columns, offsets, np.array([1.0, 0.01]), intercept=True), rows, rewards)
    start = 0
    packed = bank.state()["factor"]
    for j, ridge in enumerate((1.0, 0.01)):
        group = columns[offsets[j] : offsets[j + 1]]
        penalty = np.pad(ridge * np.eye(len(group)), ((0, 0), (1, 1)))
        fresh = np.linalg.qr(
            np.vstack([penalty, np.column_stack([np.ones(100_000), rows[:, group], rewards])]), mode="r"
        )
        fresh *= np.sign(np.diag(fresh))[:, None]
        expected = fresh[np.triu_indices(len(fresh))]
        np.testing.assert_allclose(
            packed[start : start + len(expected)], expected, rtol=1e-12, atol=1e-12 * math.sqrt(100_000)
        )
        start += len(expected)


def test_intercept_is_an_explicit_column_without_penalty():
    """A constant column of size c under ridge r is penalised like r/c: huge c is the unpenalised limit."""
    rng = np.random.default_rng(6)
    rows, rewards = rng.normal(size=(30, 3)), rng.normal(size=30) + 7.0
    huge = 1e6
    free = filled(RidgeBank(np.arange(3), np.array([0, 3]), 0.5, intercept=True), rows, rewards)
    explicit = RidgeBank(np.array([3, 0, 1, 2]), np.array([0, 4]), 0.5)
    filled(explicit, np.column_stack([rows, np.full(30, huge)]), rewards)
    points = rng.normal(size=(20, 3))
    padded = np.column_stack([points, np.full(20, huge)])
    np.testing.assert_allclose(free.mean(0, points), explicit.mean(0, padded), rtol=1e-9)
    np.testing.assert_allclose(free.width(0, points), explicit.width(0, padded), rtol=1e-9)
    np.testing.assert_allclose(free.residuals(), explicit.residuals(), rtol=1e-9)
    np.testing.assert_allclose(free.coefficients()[0], explicit.coefficients()[0][1:], rtol=1e-9)
    shifted = filled(RidgeBank(np.arange(3), np.array([0, 3]), 0.5, intercept=True), rows, rewards + 100.0)
    np.testing.assert_allclose(shifted.mean(0, points), free.mean(0, points) + 100.0, rtol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_sampling_has_the_posterior_mean_and_covariance(intercept):
    """The draw is affine in the normals, so unit vectors reveal the covariance without any randomness."""
    rng = np.random.default_rng(7)
    sizes = [1, 4, 7]
    groups, columns, offsets = make_groups(rng, sizes, 9)
    rows, rewards = rng.normal(size=(20, 9)), rng.normal(size=20)
    bank = filled(RidgeBank(columns, offsets, 0.3, intercept=intercept), rows, rewards)
    theta = bank.coefficients()[0]
    scale = np.array([1.0, 2.0, 0.5])
    np.testing.assert_array_equal(bank.sample(np.zeros(12), scale), theta)
    np.testing.assert_array_equal(bank.sample(rng.normal(size=12), 0.0), theta)
    loadings = np.array([bank.sample(unit, scale) - theta for unit in np.eye(12)]).T
    covariance = loadings @ loadings.T
    for j, group in enumerate(groups):
        own = slice(offsets[j], offsets[j + 1])
        v, _, _ = dense_posterior(rows[:, group], rewards, 0.3, intercept)
        expected = scale[j] ** 2 * np.linalg.inv(v)[int(intercept) :, int(intercept) :]
        np.testing.assert_allclose(covariance[own, own], expected, rtol=1e-9, atol=1e-12)
        covariance[own, own] = 0.0
    np.testing.assert_array_equal(covariance, 0.0)  # models are independent


def test_before_any_observation():
    bank = RidgeBank(np.array([0, 1, 1]), np.array([0, 2, 3]), np.array([0.5, 2.0]))
    assert bank.n_observations == 0
    np.testing.assert_array_equal(bank.coefficients()[0], 0.0)
    np.testing.assert_array_equal(bank.residuals(), 0.0)
    np.testing.assert_array_equal(bank.log_determinants(), 0.0)
    np.testing.assert_allclose(bank.width(0, np.array([[3.0, 4.0]])), [10.0], rtol=1e-15)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_restored_bank_continues_bit_for_bit(intercept):
    rng = np.random.default_rng(8)
    _, columns, offsets = make_groups(rng, [1, 3, 3, 8], 10)
    rows, rewards = rng.normal(size=(30, 10)), rng.normal(size=30)
    original = filled(RidgeBank(columns, offsets, 0.7, intercept=intercept), rows[:13], rewards[:13])
    saved = original.state()
    copy = RidgeBank(columns, offsets, 0.7, intercept=intercept)
    copy.restore(saved)
    pickled = pickle.loads(pickle.dumps(original))
    for bank in (original, copy, pickled):
        filled(bank, rows[13:], rewards[13:])
        assert bank.n_observations == 30
        np.testing.assert_array_equal(bank.state()["factor"], original.state()["factor"])
    assert saved["n_observations"] == 13  # a state is a copy: later updates leave it alone
    again = RidgeBank(columns, offsets, 0.7, intercept=intercept)
    again.restore(saved)
    np.testing.assert_array_equal(again.state()["factor"], saved["factor"])


def test_memory_is_one_packed_triangle_per_model():
    bank = RidgeBank(np.tile(np.arange(3), 1000), np.arange(0, 3001, 3), 1.0)
    assert bank.state()["factor"].size == 10 * 1000


@njit
def length(a, b):
    return kernels.length(a, b)


def test_length_is_accurate_over_the_whole_range():
    rng = np.random.default_rng(9)
    for _ in range(2000):
        a, b = (float(v) for v in rng.normal(size=2) * 10.0 ** rng.uniform(-300, 300, 2))
        assert math.isclose(length(a, b), math.hypot(a, b), rel_tol=4e-16)
    assert length(0.0, 0.0) == 0.0
    assert length(-3e-200, 4e-200) == pytest.approx(5e-200, rel=4e-16)


@pytest.mark.parametrize(
    ("columns", "offsets", "ridge", "message"),
    [
        ([0, 1], [0, 1], 1.0, "offsets must start at 0"),
        ([0, 1], [1, 2], 1.0, "offsets must start at 0"),
        ([0, 1], [0, 2, 1, 2], 1.0, "never decrease"),
        ([], [0], 1.0, "at least one model"),
        ([0, -1], [0, 2], 1.0, "columns must not be negative"),
        ([0.0, 1.0], [0, 2], 1.0, "columns must be a vector of integers"),
        ([[0, 1]], [0, 2], 1.0, "columns must be a vector of integers"),
        ([0, 1], [0, 2], 0.0, "ridge must be positive"),
        ([0, 1], [0, 2], -1.0, "ridge must be positive"),
        ([0, 1], [0, 2], 1e-200, "between 1e-153 and 1e"),
        ([0, 1], [0, 2], np.inf, "ridge must hold finite"),
        ([0, 1], [0, 1, 2], np.ones(3), r"ridge must have shape \(2,\)"),
    ],
)
def test_bad_construction_is_refused(columns, offsets, ridge, message):
    with pytest.raises(ValueError, match=message):
        RidgeBank(np.array(columns), np.array(offsets), ridge)


def test_bad_observations_are_refused_before_anything_changes():
    bank = RidgeBank(np.array([0, 2]), np.array([0, 2]), 1.0)
    bank.update(np.ones(3), 1.0)
    before = bank.state()
    for row, y, message in (
        (np.ones(2), 1.0, "P >= 3"),
        (np.ones((3, 1)), 1.0, "shape"),
        (np.array([1.0, np.nan, 1.0]), 1.0, "row must hold finite"),
        (np.array([1.0, 1.0, -np.inf]), 1.0, "row must hold finite"),
        (np.ones(3), math.nan, "y must be a finite number"),
        (np.ones(3), math.inf, "y must be a finite number"),
    ):
        with pytest.raises(ValueError, match=message):
            bank.update(row, y)
    np.testing.assert_array_equal(bank.state()["factor"], before["factor"])
    assert bank.n_observations == 1


def test_bad_queries_and_states_are_refused():
    bank = RidgeBank(np.array([0, 2]), np.array([0, 2]), 1.0)
    with pytest.raises(IndexError, match=r"0\.\.0"):
        bank.mean(1, np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"\(n, P\) with P >= 3"):
        bank.width(0, np.ones(3))
    with pytest.raises(ValueError, match=r"normals must have shape \(2,\)"):
        bank.sample(np.ones(3), 1.0)
    with pytest.raises(ValueError, match=r"scale must have shape \(1,\)"):
        bank.sample(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="state lacks"):
        bank.restore({"n_observations": 3})
    with pytest.raises(ValueError, match=r"state\['factor'\] must have shape"):
        bank.restore({"factor": np.ones(3), "n_observations": 3})
    with pytest.raises(ValueError, match=r"n_observations'\] must be a whole number within 0"):
        bank.restore({"factor": np.ones(6), "n_observations": -1})
    with pytest.raises(ValueError, match="below the ridge"):
        bank.restore({"factor": np.zeros(6), "n_observations": 1})
    with pytest.raises(ValueError, match="threads must be at least 1"):
        RidgeBank(np.array([0]), np.array([0, 1]), 1.0, threads=0)


def test_some_of_the_models_are_what_they_are_among_all():
    """Scales of models go with them: a ridge is that of the features divided by the scale."""
    rng = np.random.default_rng(0)
    blocks = {name: rng.standard_normal((20, d)) for name, d in (("a", 2), ("b", 3), ("c", 1))}
    listed = alexp.ModelClass.from_matrices(blocks)
    models = alexp.ModelClass(listed.dictionary, listed.groups, listed.names, scales=[1.0, 5.0, 20.0])
    table, members = np.hstack(list(blocks.values())), np.array([2, 1])
    whole, some = linear_posteriors(models, 0.3), linear_posteriors(models, 0.3, members)
    for row in table[:6]:
        whole.update(row, float(row.sum()))
        some.update(row, float(row.sum()))
    choices = Choices(np.arange(20), np.ascontiguousarray(table.T))
    for k, j in enumerate(members):
        np.testing.assert_allclose(some.mean(k, choices), whole.mean(int(j), choices), rtol=1e-12)
        np.testing.assert_allclose(some.width(k, choices), whole.width(int(j), choices), rtol=1e-12)
