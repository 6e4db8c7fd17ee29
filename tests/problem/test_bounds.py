"""Norms of coefficients that a bound on the reward implies, and curvature of features."""

import numpy as np
import pytest

import alexp
from alexp.problem.bounds import curvature_bounds, norm_bounds


def models_of(table, groups, **settings):
    domain = alexp.FiniteSet(list(range(len(table))))
    return alexp.ModelClass(alexp.ModelClass.from_matrices({"f": table}).dictionary, groups, **settings), domain


@pytest.mark.parametrize("intercept", [False, True])
def test_no_reward_within_the_bound_needs_larger_coefficients(intercept):
    """Any reward that a model can give, scaled to |r| <= B, has coefficients within S_j; some come close."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((40, 6)) @ np.diag([1.0, 0.1, 3.0, 1.0, 0.01, 1.0]) + 0.5
    models, _ = models_of(table, [[0, 1], [1, 2, 3], [4, 5]], intercept=intercept, scales=[1.0, 2.0, 0.3])
    bounds, bound = norm_bounds(models, table.T, 2.5), 2.5
    assert bounds.determined.all()
    for j in range(3):
        phi, tightest = models.features(j, np.arange(40)), 0.0
        values, vectors = np.linalg.eigh((phi - intercept * phi.mean(axis=0)).T @ (phi - intercept * phi.mean(axis=0)))
        for theta in [*rng.standard_normal((300, phi.shape[1])), vectors[:, np.argmin(values)]]:
            reward = phi @ theta
            reward = reward - 0.5 * (reward.max() + reward.min()) if intercept else reward
            theta = theta * bound / np.abs(reward).max()
            tightest = max(tightest, np.linalg.norm(theta) / bounds.values[j])
        assert 0.3 < tightest <= 1.0


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("groups", [[[0, 1], [2, 3]], [[0, 1], [0, 2], [1, 2, 3], [3]]], ids=["apart", "shared"])
def test_formula(groups, intercept):
    rng = np.random.default_rng(1)
    table = rng.standard_normal((15, 4)) + 1.0
    models, _ = models_of(table, groups, intercept=intercept)
    expected = []
    for group in groups:
        phi = table[:, group] - intercept * table[:, group].mean(axis=0)
        expected.append(3.0 * np.sqrt(15) / np.linalg.svd(phi, compute_uv=False)[-1])
    np.testing.assert_allclose(norm_bounds(models, table.T, 3.0).values, expected, rtol=1e-9)


def test_directions_without_effect_do_not_count():
    """A repeated column, a zero column and, with an intercept, a one-hot code: the smallest coefficients count."""
    column = np.linspace(-1.0, 1.0, 9)
    table = np.column_stack([column, column, np.zeros(9), np.ones(9)])
    models, _ = models_of(table, [[0, 1], [0, 2], [2], [3]])
    found = norm_bounds(models, table.T, 1.0)
    rms = np.sqrt(np.mean(column**2))
    np.testing.assert_allclose(found.values, [1 / (np.sqrt(2) * rms), 1 / rms, 1.0, 1.0], rtol=1e-9)
    assert found.determined.tolist() == [False, False, False, True]
    code = np.tile(np.eye(3), (4, 1))
    models, _ = models_of(code, [[0, 1, 2]], intercept=True)
    assert norm_bounds(models, code.T, 1.0).values[0] == pytest.approx(np.sqrt(3.0))


def test_a_small_singular_value_means_a_large_bound():
    """1e-7 of the largest is lost in the eigenvalues of the Gram matrix and found in the features."""
    rng = np.random.default_rng(2)
    left, _, right = np.linalg.svd(rng.standard_normal((30, 3)), full_matrices=False)
    for smallest in (1e-3, 1e-7, 1e-10):
        table = left @ np.diag([1.0, 0.5, smallest]) @ right
        models, _ = models_of(table, [[0, 1, 2]])
        found = norm_bounds(models, table.T, 1.0)
        assert found.determined.all()
        assert found.values[0] == pytest.approx(np.sqrt(30) / smallest, rel=1e-3)
        assert found.values[0] >= np.sqrt(30) / smallest * (1 - 1e-6)


def test_units():
    """Features a thousand times smaller have coefficients a thousand times larger."""
    table = np.random.default_rng(3).standard_normal((20, 5))
    models, _ = models_of(table, [[0, 1], [2, 3, 4]])
    small, _ = models_of(table / 1024.0, [[0, 1], [2, 3, 4]])
    np.testing.assert_allclose(
        norm_bounds(small, table.T / 1024.0, 1.0).values, 1024.0 * norm_bounds(models, table.T, 1.0).values
    )


def test_more_features_than_candidates():
    table = np.random.default_rng(4).standard_normal((6, 10))
    models, _ = models_of(table, [list(range(10))])
    found = norm_bounds(models, table.T, 1.0)
    assert found.values[0] == pytest.approx(np.sqrt(6) / np.linalg.svd(table, compute_uv=False)[-1])
    assert not found.determined[0]


@pytest.mark.parametrize(
    ("dictionary", "interval"),
    [
        (alexp.Legendre(6), alexp.Interval(-1.0, 1.0)),
        (alexp.Legendre(5, 0.0, 10.0), alexp.Interval(2.0, 10.0)),
        (alexp.Fourier(3, period=2.0), alexp.Interval(-1.0, 1.0)),
        (alexp.Polynomial(5), alexp.Interval(-2.0, 1.0)),
        (alexp.RandomFourier(8, lengthscale=0.3, seed=1), alexp.Interval(-5.0, 5.0)),
    ],
    ids=["legendre", "shifted", "fourier", "polynomial", "random"],
)
def test_second_derivatives_stay_within(dictionary, interval):
    bounds, step = curvature_bounds(dictionary, interval), 1e-4
    x = np.linspace(interval.lower + step, interval.upper - step, 4001)
    second = (dictionary(x + step) - 2 * dictionary(x) + dictionary(x - step)) / step**2
    largest = np.abs(second).max(axis=0)
    assert np.all(largest <= bounds * (1 + 1e-6) + 1e-5)
    assert np.all(largest[bounds > 0] >= 0.5 * bounds[bounds > 0])  # and are not much too large


def test_unknown_families():
    assert curvature_bounds(alexp.Legendre(3), alexp.Interval(-2.0, 1.0)) is None  # beyond where |P_n| <= 1
    assert curvature_bounds(alexp.Polynomial(2, dim=2), alexp.Interval()) is None
    maps = alexp.ModelClass.from_maps({"line": lambda x: x[:, None]}, example=np.zeros(1))
    assert curvature_bounds(maps.dictionary, alexp.Interval()) is None
