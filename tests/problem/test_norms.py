"""From |r| <= B to ||theta_j|| <= S_j: the claim on random rewards, the formula by singular values, and the edges."""

import numpy as np
import pytest

import alexp
from alexp.problem.norms import norm_bounds


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
