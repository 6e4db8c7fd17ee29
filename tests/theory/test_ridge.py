"""Ridge sets: closed forms against data, and the hull of bands over plausible models."""

import numpy as np
import pytest

from alexp.theory import ridge


def test_log_determinant_bound_holds_and_is_attained():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    actual = np.linalg.slogdet(np.eye(3) + rows.T @ rows / 0.5)[1]
    assert actual <= float(ridge.log_determinant_bound(200, 3, 0.5)) <= 1.05 * actual
    cycle = np.tile(np.eye(3), (50, 1))
    exact = np.linalg.slogdet(np.eye(3) + cycle.T @ cycle / 0.5)[1]
    assert float(ridge.log_determinant_bound(150, 3, 0.5)) == pytest.approx(exact)


def test_widths_are_ordered():
    level = np.array([0.0, 1.0, 10.0])
    assert np.all(ridge.ucb_width(level, 0.2, 0.3, 1.5, 0.1) < ridge.triangle_width(level, 0.2, 0.3, 1.5, 0.1))
    bound = ridge.ridge_radius_bound(200, 3, 0.7, 0.3, 1.5, 0.1)
    expected = ridge.ucb_width(ridge.log_determinant_bound(200, 3, 0.49), 0.7, 0.3, 1.5, 0.1)
    assert float(bound) == pytest.approx(float(expected))


def test_coefficient_radius():
    assert float(ridge.coefficient_radius(2.0, 4.0)) == 1.0
    with pytest.raises(ValueError, match="smallest_eigenvalue"):
        ridge.coefficient_radius(1.0, 0.0)


def test_band_is_the_hull_of_the_plausible_models():
    means, norms = np.array([[0.0, 1.0], [5.0, 5.0], [0.5, 0.0]]), np.full((3, 2), 0.1)
    band = ridge.plausible_band(means, norms, np.array([4.0, -1.0, 1.0]))
    assert band.lower == pytest.approx([-0.2, -0.1])
    assert band.upper == pytest.approx([0.6, 1.2])
    nothing = ridge.plausible_band(means, norms, np.full(3, -1.0))
    assert np.all(np.isinf(nothing.upper))
