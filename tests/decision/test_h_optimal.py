import numpy as np
import pytest

import alexp
from alexp.decision.first_order import h_optimal

HARD = np.vstack([np.eye(4)[:1] / 2.0, [[1.0, *(row / 2.0)] for row in np.eye(3)]])  # Case 1 of Jang et al., p = 4


def largest(features, weights):
    return np.diag(np.linalg.inv(features.T @ (weights[:, None] * features))).max()


def models_of(features):
    return alexp.ModelClass.from_matrices({"x": features}, intercept=False), alexp.FiniteSet(range(len(features)))


def test_unit_vectors_are_played_alike():
    weights, value, bound = h_optimal(np.eye(5))
    np.testing.assert_allclose(weights, 0.2, atol=1e-3)
    assert (value, bound) == (pytest.approx(5.0, rel=1e-3), pytest.approx(5.0, rel=1e-3))
    weights, value, _ = h_optimal(np.diag([1.0, 0.5]))  # variances 1/pi_1 and 4/pi_2 are equal
    np.testing.assert_allclose(weights, [0.2, 0.8], atol=1e-3)
    assert value == pytest.approx(5.0, rel=1e-3)


def test_the_bracket_holds_and_is_closed():
    rng = np.random.default_rng(0)
    for features in (rng.standard_normal((30, 6)), HARD, rng.standard_normal((15, 4)) * [1.0, 1e3, 1e-2, 1.0]):
        weights, value, bound = h_optimal(features)
        assert value == pytest.approx(largest(features, weights))
        assert bound <= value <= bound * (1.0 + 1e-3)
        for _ in range(300):  # no other design is better than the bound
            other = rng.dirichlet(np.full(len(features), 0.3)) * 0.5 + 0.5 * weights
            assert largest(features, other) >= bound * (1.0 - 1e-9)


def test_the_published_value_of_the_hard_case():
    p = 10
    features = np.vstack([np.eye(p)[:1] / np.sqrt(p), [[1.0, *(row / np.sqrt(p))] for row in np.eye(p - 1)]])
    _, value, bound = h_optimal(features, tol=1e-5)
    assert np.sqrt(value) == pytest.approx(19.49, abs=0.005)
    assert bound == pytest.approx(value, rel=1e-5)


def test_on_models_with_a_constant_and_with_dependent_columns():
    models, domain = alexp.ModelClass.legendre(3, 1, intercept=True), alexp.Interval(resolution=41)
    with pytest.warns(UserWarning, match="5 columns have rank 4"):  # P_0 is the constant
        design = alexp.HOptimal().design(models, domain)
    assert design.columns.size == 4
    assert design.weights.sum() == pytest.approx(1.0)
    table, items = models_of(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="zero on the whole domain"):
        alexp.HOptimal().design(table, items)


def test_e_optimal_designs_are_solved_once_and_nobody_elses():
    models, domain = models_of(HARD)
    design = alexp.EOptimal().design(models, domain)
    kept, value = design.weights.copy(), design.value
    design.weights[:] = 0.0
    np.testing.assert_array_equal(alexp.EOptimal().design(models, domain).weights, kept)
    assert alexp.HOptimal().design(models, domain).lower_bound <= 1.0 / value  # H^2 <= 1 / C_min
