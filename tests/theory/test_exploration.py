"""Eigenvalues of explored data: rates, arithmetic, and the perturbation step by brute force."""

import numpy as np
import pytest

from alexp.theory import exploration


def test_expected_explorations():
    assert exploration.expected_explorations(3, 0.5) == pytest.approx(np.cumsum(0.5 * np.array([1, 2, 3]) ** -0.25))
    assert exploration.expected_explorations(2, 1.5) == pytest.approx([1.0, 2.0])


def test_entrywise_closeness_bounds_the_quadratic_form_on_the_cone():
    """|b'(A - B)b| <= 16 s d max|A - B| for b in the cone with unit norm on J, groups of size d."""
    rng = np.random.default_rng(3)
    n_groups, size, sparsity = 5, 3, 2
    worst = 0.0
    for _ in range(2000):
        difference = rng.choice([-1.0, 1.0], size=(15, 15))
        difference = np.triu(difference) + np.triu(difference, 1).T
        b = rng.normal(size=(n_groups, size))
        inside = b[:sparsity]
        b[:sparsity] = inside / np.linalg.norm(inside)
        outside = np.linalg.norm(b[sparsity:], axis=1).sum()
        b[sparsity:] *= 3.0 * np.linalg.norm(b[:sparsity], axis=1).sum() / outside
        worst = max(worst, abs(b.ravel() @ difference @ b.ravel()))
    equal = np.full((n_groups, size), 1.0)
    equal[:sparsity] /= np.sqrt(sparsity * size)
    equal[sparsity:] *= 3 * np.sqrt(sparsity) / (np.sqrt(size) * (n_groups - sparsity))
    assert worst <= 16 * sparsity * size
    assert equal.sum() ** 2 == pytest.approx(16 * sparsity * size)  # and the constant is attained


def test_kappa_bound_has_the_printed_rate_and_a_burn_in():
    t = np.arange(1, 2_000_001, dtype=float)
    gamma = exploration.expected_explorations(2_000_000, 1.0)
    bound = exploration.kappa_lower_bound(t, gamma, 1.0, 20, 1, entry_bound=1.0, delta=0.1, sparsity=1)
    start = exploration.burn_in(bound)
    assert bound[0] == 0.0
    assert 10_000 < start < 2_000_000  # positive at last, but hardly useful
    assert np.all(np.diff((bound * t)[start:]) > 0)
    radius = exploration.explored_entries_radius(gamma, 20, 1.0, 0.1)
    assert np.log(radius[-1] / radius[20_000 - 1]) / np.log(100) == pytest.approx(3 / 8, abs=0.03)
    assert exploration.burn_in(np.zeros(3)) is None


def test_matrix_bound_is_earlier_than_entries_for_one_small_model():
    t = np.arange(1, 200_001, dtype=float)
    gamma = exploration.expected_explorations(200_000, 1.0)
    entries = exploration.kappa_lower_bound(t, gamma, 0.25, 2, 2, 1.0, 0.1, sparsity=1)
    matrix = exploration.explored_lambda_min_bound(gamma, 0.25, 0.5, 2, 1.0, 0.1)
    assert exploration.burn_in(matrix) < 1000
    assert exploration.burn_in(entries) is None or exploration.burn_in(entries) > 10 * exploration.burn_in(matrix)


def test_slack_scales_with_the_features():
    base = exploration.explored_lambda_min_slack([1.0, 50.0], 0.5, 3, 1.0, 0.1, n_models=4)
    assert exploration.explored_lambda_min_slack([1.0, 50.0], 4.5, 3, 3.0, 0.1, n_models=4) == pytest.approx(9 * base)
