"""Candidate effects against the dense Gaussian process they stand for."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from alexp.estimation.mixture.effects import EffectMixture
from alexp.estimation.mixture.mixture import Mixture
from alexp.problem.candidates import Choices

GROUPS = [[0, 1], [1, 2], [3]]
COLUMNS, OFFSETS = np.array([0, 1, 1, 2, 3]), np.array([0, 2, 4, 5])
NOISE, BOUND = 0.3, 2.0
GRIDS = {"noise_grid": (1.0, 3.0), "scale_grid": (1.0, 4.0)}
EFFECTS = (0.0, 0.2)
SHARED = {"noise_std": NOISE, "norm_bound": BOUND}
TABLE = np.random.default_rng(1).standard_normal((6, 4))
CANDIDATES = Choices(np.arange(6), TABLE.T.copy())
PLAYED = [0, 3, 3, 1, 3, 0, 5]
REWARDS = np.random.default_rng(2).standard_normal(7)


def make(intercept=False, divisors=None, effects=EFFECTS):
    divisors = np.ones(3) if divisors is None else divisors
    return EffectMixture(
        4, COLUMNS, OFFSETS, divisors, intercept, n_candidates=6, effect_grid=effects, **SHARED, **GRIDS
    )


def fed(mixture, order=range(7)):
    for k in order:
        mixture.update(TABLE[PLAYED[k]], REWARDS[k], PLAYED[k])
    return mixture


def slow(intercept, divisors):
    """Posterior mean, variance of the rewards of all six candidates and log evidence, component by component."""
    out = []
    for e in EFFECTS:
        for a in GRIDS["noise_grid"]:
            for b in GRIDS["scale_grid"]:
                for j, group in enumerate(GROUPS):
                    phi = TABLE[:, group] * (b * BOUND / divisors[j])
                    kernel = phi @ phi.T + (e * BOUND) ** 2 * np.eye(6)
                    if intercept:
                        kernel += (10.0 * b * BOUND / divisors[j]) ** 2
                    seen = kernel[np.ix_(PLAYED, PLAYED)] + (a * NOISE) ** 2 * np.eye(7)
                    gain = np.linalg.solve(seen, kernel[PLAYED]).T
                    evidence = multivariate_normal(np.zeros(7), seen).logpdf(REWARDS)
                    out.append((gain @ REWARDS, np.diag(kernel - gain @ kernel[PLAYED]), evidence))
    return out


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("divisors", [np.ones(3), np.array([1.0, 2.0, 0.5])])
def test_equals_the_dense_process(intercept, divisors):
    mixture = fed(make(intercept, divisors))
    means, variances, evidence = (np.array(part) for part in zip(*slow(intercept, divisors), strict=True))
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    np.testing.assert_allclose(mixture.weights().ravel(), weights, rtol=1e-8)
    mean = weights @ means
    variance = weights @ (variances + (means - mean) ** 2)
    got = mixture.moments(mixture.weights(), CANDIDATES)
    np.testing.assert_allclose(got[0], mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got[1], variance, rtol=1e-7)


def test_order_does_not_matter():
    forward, backward = fed(make()), fed(make(), reversed(range(7)))
    np.testing.assert_allclose(forward.weights(), backward.weights(), rtol=1e-9)
    np.testing.assert_allclose(
        forward.moments(forward.weights(), CANDIDATES),
        backward.moments(backward.weights(), CANDIDATES),
        rtol=1e-9,
    )


def test_no_effects_is_the_plain_mixture():
    with_none = fed(make(effects=(0.0,)))
    plain = fed(Mixture(4, COLUMNS, OFFSETS, np.ones(3), False, **SHARED, **GRIDS))
    np.testing.assert_allclose(with_none.weights(), plain.weights(), rtol=1e-9)
    for one, two in zip(
        with_none.moments(with_none.weights(), CANDIDATES),
        plain.moments(plain.weights(), CANDIDATES),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=1e-9)


def test_draws_have_the_posterior_of_the_component():
    mixture, cell, model = fed(make()), 5, 1
    mean, variance, _ = slow(False, np.ones(3))[cell * 3 + model]
    rng = np.random.default_rng(0)
    draws = np.array([mixture.draw(cell, model, rng, CANDIDATES) for _ in range(4000)])
    errors = np.sqrt(variance / len(draws))
    print("in standard errors:", ((draws.mean(axis=0) - mean) / errors).round(2))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * errors)
    assert np.all(np.abs(draws.var(axis=0) / variance - 1.0) < 5 * np.sqrt(2 / len(draws)))


def test_state_round_trip():
    mixture, again = fed(make(True)), make(True)
    again.restore(mixture.state())
    np.testing.assert_array_equal(mixture.weights(), again.weights())
    assert again.n_observations == 7
