"""Certificates of designs where they are not tight, so that they must be computed and not assumed."""

from math import log

import numpy as np
import pytest

from alexp.decision import first_order
from alexp.decision.designs import DOptimal, EOptimal, Uniform
from alexp.decision.semidefinite import block_eigenvalues, e_optimal
from alexp.problem import FiniteSet, Matrices, ModelClass

LINE = np.array([[1.0, -1.0], [1.0, 0.5], [1.0, 1.0]])  # rows (1, x)


def test_unfinished_d_optimal_designs_know_their_distance():
    """Rows (1, x) on -1, 0, 1: half the mass on each end has det 1; a start elsewhere is off by a known amount."""
    rows = np.array([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.9]])
    for iterations in (1, 2, 3):
        found = first_order.d_optimal(rows, tol=1e-12, max_iterations=iterations)
        moment = sum(w * np.outer(f, f) for w, f in zip(found.weights, rows, strict=True))
        leverage = max(float(f @ np.linalg.solve(moment, f)) for f in rows)
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(moment)[1])
        assert found.log_determinant_gap == pytest.approx(2 * log(leverage / 2), abs=1e-12)
        assert found.log_determinant + found.log_determinant_gap >= -1e-12  # the best is log 1
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 4))
    best = first_order.d_optimal(rows, tol=1e-9).log_determinant
    rough = first_order.d_optimal(rows, tol=1e-12, max_iterations=2)
    assert rough.log_determinant < best - 0.01
    assert rough.log_determinant + rough.log_determinant_gap >= best


def test_inverse_moment_bound_by_hand():
    """S = diag(1, 1/2) for half the mass at 0 and a quarter at each end: Z = diag(1, 2)/3, largest at the ends: 1."""
    rows = np.array([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]])
    weights = np.array([0.25, 0.5, 0.25])
    assert first_order.inverse_moment_bound(rows, weights) == pytest.approx(1.0)
    # S = diag(1, 0.1): Z = diag(1, 10)/11, and the rows with x = 3 give (1 + 90)/11
    rows = np.array([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 3.0]])
    weights = np.array([0.05, 0.9, 0.05, 0.0])
    assert first_order.inverse_moment_bound(rows, weights) == pytest.approx(91 / 11)


def test_trivial_bound_and_dual_value_by_hand():
    rows = np.array([[1.0, 2.0], [3.0, 1.0]])
    assert first_order.trivial_bound(rows) == 4.0  # min(10/2, max(min) over columns: min(9, 4))
    assert first_order.trivial_bound(np.array([[3.0, 2.0], [3.0, 2.0]])) == 4.0
    assert first_order.trivial_bound(np.array([[3.0, 0.0], [0.0, 3.0]])) == 4.5
    assert first_order.dual_value(rows, np.array([[0.5, 0.25], [0.25, 0.5]])) == pytest.approx(5.0 + 1.5)


def test_second_moment_and_eigenvalues_by_hand():
    weights = np.array([0.2, 0.3, 0.5])
    expected = np.array([[1.0, 0.45], [0.45, 0.775]])  # -0.2 + 0.15 + 0.5, 0.2 + 0.075 + 0.5
    assert first_order.second_moment(LINE, weights) == pytest.approx(expected)
    lowest = (1.775 - np.sqrt(0.225**2 + 4 * 0.45**2)) / 2
    assert first_order.smallest_eigenvalue(LINE, weights) == pytest.approx(lowest)
    found = block_eigenvalues(LINE, weights, [np.array([1]), np.array([0, 1])], np.array([2.0, 3.0]))
    assert found == pytest.approx([0.775 / 4, lowest / 9])


def test_designs_say_what_they_attain():
    models = ModelClass(Matrices({"f": LINE}), [[0], [1]], scales=[1.0, 2.0])
    domain = FiniteSet(range(3))
    uniform = Uniform().design(models, domain)
    moment = LINE.T @ LINE / 3
    assert uniform.weights.tolist() == [1 / 3] * 3
    assert uniform.value == pytest.approx(np.linalg.eigvalsh(moment)[0])
    assert uniform.upper_bound >= 1.0  # C_min of (1, x) with both ends is 1
    assert uniform.gap == pytest.approx(uniform.upper_bound - uniform.value)
    d = DOptimal().design(models, domain)
    assert d.weights == pytest.approx([0.5, 0.0, 0.5], abs=1e-3)
    assert d.criterion == "D"
    e = EOptimal().design(models, domain)
    assert (e.value, e.upper_bound) == pytest.approx((1.0, 1.0), abs=1e-5)
    wise = EOptimal(model_wise=True).design(models, domain)
    assert (wise.value, wise.upper_bound) == pytest.approx((0.25, 0.25), abs=1e-5)
    assert wise.columns.tolist() == [0, 1]


def test_exchange_moves_by_the_best_step():
    """log det along pi <- (1 - a) pi + a e_i is largest at the step taken, up or away."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        rows = rng.normal(size=(8, 3))
        weights = rng.dirichlet(np.full(8, 0.4))
        inverse = np.linalg.inv(first_order.second_moment(rows, weights))
        leverage = np.einsum("ij,jk,ik->i", rows, inverse, rows)
        chosen, step = first_order._exchange(leverage, weights, 3)

        def value(a, chosen=chosen, rows=rows, weights=weights):
            moved = (1 - a) * weights
            moved[chosen] += a
            if moved.min() < -1e-12:
                return -np.inf
            return np.linalg.slogdet(first_order.second_moment(rows, np.maximum(moved, 0.0)))[1]

        assert all(value(step) >= value(step * factor) - 1e-10 for factor in (0.0, 0.5, 0.9, 1.1, 1.5))
        far = max(leverage.max() - 3, 3 - leverage[weights > 0].min())
        assert max(leverage[chosen] - 3, 3 - leverage[chosen]) == pytest.approx(far)


def test_model_wise_designs_of_unequal_models():
    """Blocks of different sizes and scales: the value is the least over the blocks, the bound is above any design."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(25, 5))
    groups, scales = [np.array([0, 1]), np.array([2]), np.array([1, 3, 4])], np.array([1.0, 3.0, 0.5])
    found = e_optimal(rows, groups, scales)
    by_hand = min(
        np.linalg.eigvalsh(sum(w * np.outer(f[g], f[g]) for w, f in zip(found.weights, rows, strict=True)))[0] / s**2
        for g, s in zip(groups, scales, strict=True)
    )
    assert found.value == pytest.approx(by_hand)
    assert found.value <= found.upper_bound <= found.value * (1 + 1e-4)
    for _ in range(50):
        weights = rng.dirichlet(np.full(25, 0.2))
        assert block_eigenvalues(rows, weights, groups, scales).min() <= found.upper_bound
