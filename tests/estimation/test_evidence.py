"""The evidence oracle: weights by numerical integration over the noise, and the aggregate they give."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from alexp.estimation.estimate import Estimate
from alexp.estimation.mixture.evidence import Evidence

COLUMNS, OFFSETS = np.array([0, 1, 1, 2, 0]), np.array([0, 2, 4, 5])


def filled(oracle=None, t=6, intercept=False, scale=1.0, weights=None):
    rng = np.random.default_rng(0)
    path = (oracle or Evidence()).bind_groups(3, COLUMNS, OFFSETS, weights, intercept)
    rows = rng.standard_normal((t, 3))
    rewards = scale * (rows[:, 1] - rows[:, 2] + 0.3 * rng.standard_normal(t) + 2.0 * intercept)
    for row, y in zip(rows, rewards, strict=True):
        path.append(row, y)
    return path, rows, rewards


def weights_of(fit):
    weights = np.zeros(3)
    weights[fit.groups] = fit.magnitudes
    return weights


def test_weights_integrate_the_noise_out():
    path, rows, rewards = filled(Evidence(ridges=(0.3,)))
    evidence = []
    for j in range(3):
        phi = rows[:, COLUMNS[OFFSETS[j] : OFFSETS[j + 1]]]
        shape = np.eye(len(rows)) + phi @ phi.T / 0.3**2

        def density(log_noise, shape=shape):
            return multivariate_normal(np.zeros(len(rows)), np.exp(2 * log_noise) * shape).pdf(rewards)

        evidence.append(quad(density, -6.0, 4.0, limit=200)[0])
    np.testing.assert_allclose(weights_of(path.solve(1.0)), np.array(evidence) / np.sum(evidence), rtol=1e-6)


def test_aggregate_is_the_weighted_sum_of_ridge_fits():
    path, rows, rewards = filled(Evidence(ridges=(0.3,)), weights=np.array([1.0, 2.0, 0.5]))
    fit, beta = path.solve(1.0), np.zeros(3)
    for j, divisor in enumerate([1.0, 2.0, 0.5]):
        own = COLUMNS[OFFSETS[j] : OFFSETS[j + 1]]
        penalty = (0.3 * divisor) ** 2 * np.eye(own.size)
        phi = rows[:, own]
        beta[own] += weights_of(fit)[j] * np.linalg.solve(phi.T @ phi + penalty, phi.T @ rewards)
    np.testing.assert_allclose(fit.beta, beta, rtol=1e-10)


def test_scale_of_the_rewards_does_not_matter():
    one, two = filled()[0].solve(1.0), filled(scale=1024.0)[0].solve(1024.0)
    np.testing.assert_array_equal(weights_of(one), weights_of(two))
    np.testing.assert_array_equal(1024.0 * one.beta, two.beta)


def test_intercept_absorbs_an_offset():
    fit = filled(t=60, intercept=True)[0].solve(1.0)
    assert abs(fit.intercept - 2.0) < 0.2
    np.testing.assert_allclose(fit.beta, [0.0, 1.0, -1.0], atol=0.2)


def test_state_round_trip_and_perfect_fits():
    path, *_ = filled()
    again = Evidence().bind_groups(3, COLUMNS, OFFSETS)
    again.restore(path.state())
    one, two = path.solve(1.0), Estimate.from_state(again.solve(1.0).state())
    np.testing.assert_array_equal(one.beta, two.beta)
    zero = Evidence().bind_groups(3, COLUMNS, OFFSETS)
    zero.append([1.0, 2.0, 3.0], 0.0)
    assert np.isclose(weights_of(zero.solve(1.0)).sum(), 1.0)
    assert np.all(zero.solve(1.0).beta == 0.0)


def test_bad_input():
    with pytest.raises(ValueError, match="ridges"):
        Evidence(ridges=())
    with pytest.raises(ValueError, match="ridges"):
        Evidence(ridges=(0.0,))
    with pytest.raises(ValueError, match="no observations"):
        Evidence().bind_groups(3, COLUMNS, OFFSETS).solve(1.0)
