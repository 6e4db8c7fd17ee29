"""Hypervolume against grids that are counted, and its expected growth against posterior draws."""

from functools import partial

import numpy as np
import pytest

from alexp.decision.hypervolume import (
    expected_improvement,
    free_boxes,
    hypervolume,
    non_dominated,
    reference_point,
)
from alexp.estimation.mixture.mixture import expected_excess, expected_excesses
from alexp.estimation.posteriors import Component


def counted(points, reference, most):
    """The slow twin for whole numbers: unit cells above the reference that some point dominates."""
    axes = [np.arange(low, most) for low in reference]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(reference))  # lower corners
    covered = (points[:, None, :] >= cells[None] + 1).all(axis=2).any(axis=0)
    return int(covered.sum())


@pytest.mark.parametrize("n_objectives", [2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_the_volume_is_that_of_the_cells_that_are_counted(n_objectives, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 9, (int(rng.integers(1, 12)), n_objectives)).astype(float)
    reference = rng.integers(0, 4, n_objectives).astype(float)
    assert hypervolume(points, reference) == counted(points, reference, 9)
    front = points[non_dominated(points)]
    assert hypervolume(front, reference) == hypervolume(points, reference)
    for k, one in enumerate(points):
        beaten = any((other >= one).all() and (other > one).any() for other in points)
        assert non_dominated(points)[k] == (not beaten)


def test_no_point_and_no_point_above_the_reference_have_no_volume():
    assert hypervolume(np.empty((0, 2)), np.zeros(2)) == 0.0
    assert hypervolume(np.array([[1.0, -1.0]]), np.zeros(2)) == 0.0


@pytest.mark.parametrize("n_objectives", [2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_free_boxes_are_disjoint_and_hold_what_no_point_dominates(n_objectives, seed):
    rng = np.random.default_rng(100 + seed)
    points, reference = rng.random((6, n_objectives)), np.full(n_objectives, 0.1)
    boxes = free_boxes(points, reference)
    for one in 0.1 + 1.1 * rng.random((200, n_objectives)):
        inside = ((one > boxes.lower) & (one <= boxes.upper)).all(axis=1)
        dominated = (points >= one).all(axis=1).any()
        assert inside.sum() == (0 if dominated else 1)


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_a_known_point_adds_what_the_volume_grows_by(n_objectives):
    rng = np.random.default_rng(7)
    points, reference = rng.random((8, n_objectives)), np.full(n_objectives, -0.1)
    new = rng.random((30, n_objectives)) * 1.3 - 0.2

    def excess(k, levels):
        return np.maximum(new[:, k] - levels[:, None], 0.0)

    gains = expected_improvement(free_boxes(points, reference), [partial(excess, k) for k in range(n_objectives)])
    before = hypervolume(points, reference)
    right = [hypervolume(np.vstack([points, one]), reference) - before for one in new]
    np.testing.assert_allclose(gains, right, atol=1e-12)


@pytest.mark.parametrize(("freedom", "draws"), [(np.inf, 400_000), (7.0, 400_000)])
def test_the_expected_growth_is_the_mean_over_posterior_draws(freedom, draws):
    rng = np.random.default_rng(3)
    points, reference = np.array([[0.2, 1.0], [0.8, 0.6], [1.2, 0.1]]), np.array([-0.5, -0.5])
    shares = [np.array([0.3, 0.7]), np.array([0.6, 0.4])]
    means, variances = rng.normal(0.6, 0.4, (2, 2, 3)), rng.uniform(0.05, 0.5, (2, 2, 3))  # objective, part, choice

    def excess(k, levels):
        parts = [Component(shares[k][c], 0, c, means[k, c], variances[k, c]) for c in range(2)]
        return expected_excesses(iter(parts), 3, levels, freedom, width=1.5)

    gains = expected_improvement(free_boxes(points, reference), [partial(excess, k) for k in range(2)])
    before, drawn = hypervolume(points, reference), np.empty((3, 2, draws))
    for choice in range(3):
        for k in range(2):
            part = rng.choice(2, draws, p=shares[k])
            noise = rng.standard_normal(draws) if freedom == np.inf else rng.standard_t(freedom, draws)
            drawn[choice, k] = means[k, part, choice] + 1.5 * np.sqrt(variances[k, part, choice]) * noise
        grown = np.zeros(draws)
        boxes = free_boxes(points, reference)
        for low, high in zip(boxes.lower, boxes.upper, strict=True):
            sides = np.clip(np.minimum(drawn[choice], high[:, None]) - low[:, None], 0.0, None)
            grown += sides[0] * sides[1]
        some = drawn[choice, :, :50].T
        slow = [hypervolume(np.vstack([points, one]), reference) - before for one in some]
        np.testing.assert_allclose(grown[:50], slow, atol=1e-9)
        error = grown.std() / np.sqrt(draws)
        assert abs(gains[choice] - grown.mean()) < 4.0 * error + 1e-4 * grown.mean(), (gains[choice], grown.mean())


@pytest.mark.parametrize("freedom", [np.inf, 3.0, 40.0])
def test_the_kernel_of_excesses_equals_the_formula(freedom):
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(0.0, 3.0, 40), rng.uniform(1e-4, 4.0, 40)
    variance[:2] = 0.0
    levels = np.array([-200.0, -3.0, 0.0, 1.5, 40.0])
    found = expected_excesses(iter([Component(1.0, 0, 0, mean, variance)]), 40, levels, freedom, width=2.0)
    std = 2.0 * np.sqrt(variance[2:])
    right = np.array([std * expected_excess((mean[2:] - level) / std, freedom) for level in levels])
    np.testing.assert_allclose(found[:, 2:], right, rtol=2e-4, atol=1e-12)
    np.testing.assert_allclose(found[:, :2], np.maximum(mean[:2] - levels[:, None], 0.0), atol=1e-12)


def test_the_reference_point_is_a_tenth_of_the_range_below_the_worst():
    values = np.array([[0.0, 5.0, 0.0, 2.0], [10.0, 5.0, 0.0, 4.0]])
    np.testing.assert_allclose(reference_point(values), [-1.0, 4.5, -1.0, 1.8])
