"""The evidence mixture against slow twins: marginal likelihoods, moments by definition, both routes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.posteriors import Component, NotFiniteError
from alexp.estimation.ridge import bank as module
from alexp.problem.candidates import Choices

GROUPS = [[0, 1], [1, 2], [0, 2, 3], [3]]
NOISE, BOUND = 0.3, 2.0
GRIDS = {"noise_grid": (1 / 3, 1.0, 3.0), "scale_grid": (1.0, 4.0)}


def make(groups=GROUPS, intercept=False, divisors=None, noise=NOISE, **grids):
    columns = np.concatenate(groups).astype(np.int64)
    offsets = np.cumsum([0] + [len(g) for g in groups]).astype(np.int64)
    divisors = np.ones(len(groups)) if divisors is None else np.asarray(divisors)
    return Mixture(4, columns, offsets, divisors, intercept, noise_std=noise, norm_bound=BOUND, **(grids or GRIDS))


def data(t, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((t, 4)), rng.standard_normal(t)


def feed(mixture, rows, rewards):
    for row, y in zip(rows, rewards, strict=True):
        mixture.update(row, y)
    return mixture


def normalised(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def slow_fits(rows, rewards, groups=GROUPS, intercept=False, constant_sd=None, divisors=None):
    """Mean and covariance of the coefficients (constant last) of every component, and its log evidence."""
    out = []
    for a in GRIDS["noise_grid"]:
        for b in GRIDS["scale_grid"]:
            for j, group in enumerate(groups):
                s, phi = a * NOISE, np.asarray(rows)[:, group] / (1.0 if divisors is None else divisors[j])
                prior = np.full(len(group), (b * BOUND) ** 2)
                if intercept:
                    phi, prior = np.column_stack([phi, np.ones(len(phi))]), np.append(prior, constant_sd**2)
                marginal = phi * prior @ phi.T + s**2 * np.eye(len(phi))
                gain = (prior[:, None] * phi.T) @ np.linalg.inv(marginal)
                mean, covariance = gain @ rewards, np.diag(prior) - gain @ (phi * prior)
                evidence = multivariate_normal(np.zeros(len(phi)), marginal).logpdf(rewards)
                out.append((mean, covariance, evidence))
    return out


def slow_moments(fits, points, groups=GROUPS, intercept=False, divisors=None):
    """Law of total variance over all components, written out."""
    weights = normalised(np.array([fit[2] for fit in fits]))
    means, variances = [], []
    for k, (mean, covariance, _) in enumerate(fits):
        j = k % len(groups)
        phi = points[:, groups[j]] / (1.0 if divisors is None else divisors[j])
        if intercept:
            phi = np.column_stack([phi, np.ones(len(phi))])
        means.append(phi @ mean)
        variances.append(np.einsum("ni,ij,nj->n", phi, covariance, phi))
    centre = weights @ np.array(means)
    return weights, centre, weights @ (np.array(variances) + (np.array(means) - centre) ** 2)


@pytest.mark.parametrize("t", [1, 3, 12])
def test_weights_are_marginal_likelihoods(t):
    rows, rewards = data(t)
    mixture = feed(make(), rows, rewards)
    expected = normalised(np.array([fit[2] for fit in slow_fits(rows, rewards)]))
    np.testing.assert_allclose(mixture.weights().ravel(), expected, rtol=1e-9, atol=1e-14)


def test_intercept_is_the_limit_of_a_wide_prior():
    rows, rewards = data(8)
    rewards = rewards + 5.0
    mixture = feed(make(intercept=True), rows, rewards)
    fits = slow_fits(rows, rewards, intercept=True, constant_sd=300.0)
    points = data(6, seed=9)[0]
    weights, mean, variance = slow_moments(fits, points, intercept=True)
    np.testing.assert_allclose(mixture.weights().ravel(), weights, rtol=1e-3, atol=1e-9)
    for route in (True, False):
        got = moments(mixture, points, route)
        np.testing.assert_allclose(got[0], mean, rtol=1e-3)
        np.testing.assert_allclose(got[1], variance, rtol=1e-3)


def moments(mixture, points, by_coefficients):
    mixture._by_coefficients = lambda *_: by_coefficients
    return mixture.moments(mixture.weights(), Choices(None, np.ascontiguousarray(points.T)))


@pytest.mark.parametrize("route", [True, False], ids=["coefficients", "candidates"])
@pytest.mark.parametrize("t", [0, 1, 10])
@pytest.mark.parametrize("divisors", [None, [1.0, 2.0, 0.5, 3.0]])
def test_moments_follow_the_law_of_total_variance(t, route, divisors):
    rows, rewards = data(t) if t else (np.zeros((1, 4)), np.zeros(1))
    mixture = feed(make(divisors=divisors), rows[:t], rewards[:t])
    fits = slow_fits(rows, rewards, divisors=divisors)
    if t == 0:  # a zero row tells nothing about coefficients; prior weights are equal
        fits = [(mean, covariance, 0.0) for mean, covariance, _ in fits]
    points = data(1100, seed=4)[0]  # more than two blocks of candidates
    _, mean, variance = slow_moments(fits, points, divisors=divisors)
    got = moments(mixture, points, route)
    np.testing.assert_allclose(got[0], mean, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(got[1], variance, rtol=1e-8, atol=1e-12)


def test_threads_do_not_change_the_result(monkeypatch):
    rows, rewards = data(6)
    points = data(900, seed=4)[0]
    alone = moments(feed(make(), rows, rewards), points, by_coefficients=False)
    monkeypatch.setattr(module, "_THREADED_CANDIDATES", 0)
    together = feed(make(), rows, rewards)
    for bank in together.grid.cells:
        bank._threads = 3
    for one, two in zip(alone, moments(together, points, by_coefficients=False), strict=True):
        np.testing.assert_array_equal(one, two)


def test_tiny_noise_keeps_small_variances():
    """At noise 1e-7 the variance at a measured point is 1e-14; the safe route has to be taken, and is exact."""
    mixture = make([[0], [1]], noise=1e-7, noise_grid=(1.0,), scale_grid=(1.0,))
    feed(mixture, [[1.0, 1.0, 0, 0]] * 4, [1.0] * 4)
    mean, variance = mixture.moments(
        mixture.weights(), Choices(None, np.array([[1.0, 2.0], [1.0, 0.0], [0, 0], [0, 0]]))
    )
    np.testing.assert_allclose(variance[0], 1e-14 / 4, rtol=1e-6)
    np.testing.assert_allclose([mean[1], variance[1]], [1.0, 1.0], rtol=1e-6)  # models say 2 and 0: all disagreement


def test_duplicated_models_change_no_prediction():
    rows, rewards = data(7)
    points = np.ascontiguousarray(data(30, seed=2)[0].T)
    single, double = feed(make(), rows, rewards), feed(make(GROUPS + GROUPS), rows, rewards)
    once, twice = (mixture.moments(mixture.weights(), Choices(None, points)) for mixture in (single, double))
    for one, two in zip(once, twice, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10)


def test_draws_have_the_component_distribution():
    rows, rewards = data(5)
    mixture, point = feed(make(), rows, rewards), np.ascontiguousarray(data(1, seed=3)[0].T)
    cell, model = 3, 2
    fits = slow_fits(rows, rewards)
    mean, covariance, _ = fits[cell * len(GROUPS) + model]
    phi = point[GROUPS[model], 0]
    rng = np.random.default_rng(0)
    draws = np.array([mixture.draw(cell, model, rng, Choices(None, point))[0] for _ in range(4000)])
    error = np.sqrt(phi @ covariance @ phi / draws.size)
    print(f"mean {draws.mean():.4f} +- {error:.4f}, expected {phi @ mean:.4f}")
    assert abs(draws.mean() - phi @ mean) < 5 * error
    assert abs(draws.var() / (phi @ covariance @ phi) - 1.0) < 5 * np.sqrt(2 / draws.size)


@pytest.mark.parametrize("intercept", [False, True])
def test_envelope_and_gaps_equal_their_definition(intercept):
    rows, rewards = data(9)
    bank = feed(make(intercept=intercept), rows, rewards).grid.cells[2]
    points = data(700, seed=5)[0]
    active, radii, table = np.array([0, 2, 3]), np.array([0.5, 1.5, 0.0]), np.ascontiguousarray(points.T)
    low = np.array([bank.mean(j, points) - r * bank.width(j, points) for j, r in zip(active, radii, strict=True)])
    high = np.array([bank.mean(j, points) + r * bank.width(j, points) for j, r in zip(active, radii, strict=True)])
    band = bank.envelope(active, radii, table)
    np.testing.assert_allclose(band.lower, low.min(axis=0), rtol=1e-12)
    np.testing.assert_allclose(band.upper, high.max(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(band.model, active[high.argmax(axis=0)])
    gaps, estimates = bank.largest_gaps(active, radii, table, 17)
    design = np.column_stack([np.ones(9), rows]) if intercept else rows
    for k, j in enumerate(active):
        chosen = [0] + [1 + i for i in GROUPS[j]] if intercept else GROUPS[j]
        penalty = np.diag([0.0] * intercept + [float(bank._ridge[j]) ** 2] * len(GROUPS[j]))
        inverse = np.linalg.inv(design[:, chosen].T @ design[:, chosen] + penalty)[int(intercept) :, int(intercept) :]
        delta = (points - points[17])[:, GROUPS[j]]
        means = bank.mean(j, points) - bank.mean(j, points)[17]
        widths = np.sqrt(np.einsum("ni,ij,nj->n", delta, inverse, delta))
        np.testing.assert_allclose(gaps[k], np.max(means + radii[k] * widths), rtol=1e-9)
        np.testing.assert_allclose(estimates[k], means.max(), rtol=1e-9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("what", ["mean", "variance"])
def test_components_that_are_not_finite_are_refused_by_name(what, wrong):
    sound = Component(0.5, 0, 3, np.zeros(4), np.ones(4))
    sound.check()
    with pytest.raises(NotFiniteError, match=f"the {what} of model 3 is not a finite number"):
        sound._replace(**{what: np.array([1.0, wrong, 0.0, 2.0])}).check()
