"""Logistic regressions for rewards that are 0 or 1, beside twins that integrate numerically."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from alexp.estimation.mixture.bernoulli import (
    BEHIND,
    CONSTANT,
    FREE,
    PENDING,
    SCALES,
    BernoulliMixture,
    LogitGrid,
    absorb,
    probabilities,
)
from alexp.problem.candidates import NOTHING, Choices, Pending
from alexp.problem.models import ModelClass

GROUPS = (np.array([0, 1, 1, 2, 3]), np.array([0, 2, 5]))
DIVISORS = np.array([1.0, 2.0])


def sigmoid(eta):
    return 1.0 / (1.0 + np.exp(-eta))


def choices(rows):
    return Choices(None, np.ascontiguousarray(rows.T))


def grid(intercept=True, **options):
    return LogitGrid(4, *GROUPS, DIVISORS, SCALES, intercept, **options)


class Twin:
    """One component: moments of the logit by quadrature, the covariance as a matrix."""

    def __init__(self, prior):
        self.mean, self.covariance, self.log_evidence = np.zeros(prior.size), np.diag(prior**2), 0.0

    def update(self, x, y):
        m, v = x @ self.mean, x @ self.covariance @ x
        eta = m + np.sqrt(v) * np.linspace(-12.0, 12.0, 20_001)
        density = np.exp(-0.5 * ((eta - m) ** 2) / v)
        likelihood = sigmoid(eta if y else -eta)
        tilted = density * likelihood
        first = (tilted * eta).sum() / tilted.sum()
        second = (tilted * (eta - first) ** 2).sum() / tilted.sum()
        step = self.covariance @ x / v
        self.log_evidence += np.log(tilted.sum() / density.sum())
        self.mean = self.mean + step * (first - m)
        self.covariance = self.covariance - np.outer(step, step) * (v - second)


@pytest.mark.parametrize(("m", "v"), [(0.0, 1.0), (-5.0, 0.1), (3.0, 4.0), (-8.0, 1.0), (0.5, 1e-6)])
def test_moments_of_a_probability(m, v):
    points, weights = hermegauss(200)
    p = sigmoid(m + np.sqrt(v) * points)
    weights = weights / weights.sum()
    mean, variance = probabilities(np.array([[m]]), np.array([[v]]))
    assert mean[0, 0] == pytest.approx(weights @ p, abs=1e-8)
    assert variance[0, 0] == pytest.approx(weights @ p**2 - (weights @ p) ** 2, abs=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
def test_posteriors_are_those_of_the_twin(intercept):
    rng = np.random.default_rng(0)
    fits = grid(intercept)
    rows, rewards = rng.normal(size=(30, 4)), (rng.random(30) < 0.3).astype(float)
    at = rng.normal(size=(5, 4))
    for row, y in zip(rows, rewards, strict=True):
        fits.update(row, y)
    evidence = fits.evidence(lambda *_: np.zeros(0))
    for j, own in enumerate((np.array([0, 1]), np.array([1, 2, 3]))):
        for cell, scale in enumerate(SCALES):
            lead = np.ones((30 + 5, int(intercept)))
            x = np.hstack([lead, np.vstack([rows, at])[:, own]])
            prior = np.r_[np.full(int(intercept), CONSTANT), np.full(own.size, scale / DIVISORS[j])]
            twin = Twin(prior)
            for features, y in zip(x[:30], rewards, strict=True):
                twin.update(features, y)
            assert evidence[cell, j] == pytest.approx(twin.log_evidence, abs=1e-6)
            means, roots = fits.roots(cell, np.array([j]), choices(at))
            assert means[0] == pytest.approx(x[30:] @ twin.mean, abs=1e-5)
            assert roots[0] @ roots[0].T == pytest.approx(x[30:] @ twin.covariance @ x[30:].T, abs=1e-5)


def test_arms_are_regressions_of_their_own():
    """Two arms of three columns: each is the grid that has seen its rewards alone."""
    rng = np.random.default_rng(1)
    columns, offsets = np.array([0, 1, 3, 4, 0, 2, 3, 5]), np.array([0, 4, 8])
    both = LogitGrid(6, columns, offsets, np.ones(2), SCALES, True, arm_blocks=(2, 3))
    alone = [LogitGrid(2, np.array([0, 1]), np.array([0, 1, 2]), np.ones(2), SCALES, True) for _ in range(2)]
    for _ in range(40):
        arm, features, y = int(rng.integers(2)), rng.normal(size=2), float(rng.random() < 0.4)
        row = np.zeros(6)
        row[3 * arm : 3 * arm + 3] = [1.0, *features]
        both.update(row, y)
        alone[arm].update(features, y)
    evidence = sum(one.evidence(lambda *_: np.zeros(0)) for one in alone)
    assert both.evidence(lambda *_: np.zeros(0)) == pytest.approx(evidence, abs=1e-10)
    at = rng.normal(size=2)
    rows = np.zeros((2, 6))
    rows[0, :3] = rows[1, 3:] = [1.0, *at]
    weights = np.full((3, 2), 1.0 / 6.0)
    mean, variance = both.moments(weights, weights, choices(rows))
    for arm in range(2):
        own = alone[arm].moments(weights, weights, choices(at[None]))
        assert (mean[arm], variance[arm]) == pytest.approx((own[0][0], own[1][0]), abs=1e-12)


def test_correlated_arms_are_one_regression_with_that_prior():
    """Beside a twin whose coefficients of two arms have the prior covariance [[1, rho], [rho, 1]]."""
    rng, rho = np.random.default_rng(3), 0.8
    models = ModelClass.per_arm({"all": [0, 1]}, 2, intercept=False, correlation=rho)
    fits = LogitGrid(4, models.columns_flat, models.offsets, np.ones(1), (1.0,), False)
    twin = Twin(np.ones(4))
    twin.covariance = np.kron([[1.0, rho], [rho, 1.0]], np.eye(2))
    for _ in range(25):
        context, arm, y = rng.normal(size=2), int(rng.integers(2)), float(rng.random() < 0.4)
        fits.update(models.offered(context, None)[arm], y)
        twin.update(np.kron(np.eye(2)[arm], context), y)
    at = rng.normal(size=2)
    means, roots = fits.roots(0, np.array([0]), choices(models.offered(at, None)))
    seen = np.kron(np.eye(2), at)
    assert fits.evidence(lambda *_: np.zeros(0))[0, 0] == pytest.approx(twin.log_evidence, abs=1e-6)
    assert means[0] == pytest.approx(seen @ twin.mean, abs=1e-5)
    assert roots[0] @ roots[0].T == pytest.approx(seen @ twin.covariance @ seen.T, abs=1e-5)


def test_components_that_are_left_behind_learn_no_more():
    fits, rng = LogitGrid(2, np.array([0, 1]), np.array([0, 1, 2]), np.ones(2), (1.0,), True), np.random.default_rng(4)
    for _ in range(200):
        row = rng.normal(size=2)
        fits.update(row, float(rng.random() < sigmoid(3.0 * row[0])))
    evidence = fits.evidence(lambda *_: np.zeros(0))
    assert evidence[0, 0] - evidence[0, 1] == BEHIND
    before = fits.roots(0, np.array([0, 1]), choices(np.ones((1, 2))))[0]
    restored = LogitGrid(2, np.array([0, 1]), np.array([0, 1, 2]), np.ones(2), (1.0,), True)
    restored.restore(fits.state())
    for one in (fits, restored):
        one.update(np.ones(2), 0.0)
        after = one.roots(0, np.array([0, 1]), choices(np.ones((1, 2))))[0]
        assert after[0, 0] < before[0, 0]
        assert after[1, 0] == before[1, 0]


def test_roots_of_an_arm_with_several_choices():
    columns, offsets = np.arange(6), np.array([0, 6])
    fits = LogitGrid(6, columns, offsets, np.ones(1), (1.0,), False, arm_blocks=(2, 3))
    rng = np.random.default_rng(2)
    rows = np.zeros((5, 6))
    rows[:4, :3], rows[4, 3:] = rng.normal(size=(4, 3)), rng.normal(size=3)
    _, roots = fits.roots(0, np.array([0]), choices(rows))
    assert roots[0] @ roots[0].T == pytest.approx(rows @ rows.T, abs=1e-10)


def test_pending_rows_shrink_variances_only():
    fits, row = grid(), np.array([1.0, -1.0, 0.5, 2.0])
    fits.update(-row, 1.0)
    weights = np.full((3, 2), 1.0 / 6.0)
    before = fits.moments(weights, weights, choices(row[None]))
    pending = Pending(np.array([5]), np.array([-1]), row[None])
    while_pending = fits.moments(weights, weights, choices(row[None]), pending)
    assert while_pending[1] < 0.8 * before[1]
    again = fits.moments(weights, weights, choices(row[None]), NOTHING)
    assert again[0] == before[0]
    assert again[1] == before[1]


def test_a_pending_row_is_neither_a_click_nor_a_miss():
    row, means, diagonals = np.array([[1.0, -1.0]]), np.array([[0.4, 0.1]]), np.ones((1, 2))
    factor, evidence = np.zeros(1), np.array([-3.0])
    absorb(row, np.array([2]), np.array([0]), PENDING, means, diagonals, factor, evidence)
    assert means.tolist() == [[0.4, 0.1]]
    assert evidence.tolist() == [-3.0]
    assert row[0] ** 2 @ diagonals[0] < 2.0


def test_free_columns_have_the_prior_of_a_constant():
    fits = LogitGrid(2, np.array([0, 1]), np.array([0, 2]), np.ones(1), (0.5,), False, free=np.array([0]))
    _, roots = fits.roots(0, np.array([0]), choices(np.array([[FREE, 0.0], [0.0, 1.0]])))
    assert roots[0] @ roots[0].T == pytest.approx(np.diag([CONSTANT**2, 0.25]))


def test_far_logits_stay_finite():
    fits = grid()
    for y in (1.0, 0.0) * 20:
        fits.update(np.full(4, 1e3), y)
    evidence = fits.evidence(lambda *_: np.zeros(0))
    weights = np.full((3, 2), 1.0 / 6.0)
    mean, variance = fits.moments(weights, weights, choices(np.full((1, 4), -1e4)))
    assert np.isfinite(evidence).all()
    assert evidence[1:] == pytest.approx(evidence.max() - BEHIND)  # large coefficients contradict these rewards
    assert 0.0 <= mean[0] <= 1.0
    assert np.isfinite(variance).all()


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.02, 0.005])
def test_intervals_cover(rate):
    """Nominal 90% intervals at new points after some 30 successes: within 5%. docs/clicks.md has the whole form."""
    held = []
    for seed in range(60 if rate > 0.01 else 25):
        rng = np.random.default_rng([7, seed])
        theta = rng.normal(size=3) / np.sqrt(3.0)
        level = np.log(rate / (1.0 - rate))
        columns, offsets = np.array([0, 1, 2, 3, 4, 5]), np.array([0, 3, 6])
        mixture = BernoulliMixture(6, columns, offsets, np.full(2, np.sqrt(3.0)), True, free=None, scale_grid=SCALES)
        rows = rng.normal(size=(round(25 / rate), 6))
        for row in rows:
            mixture.update(row, float(rng.random() < sigmoid(level + row[:3] @ theta)))
        at = rng.normal(size=(50, 6))
        low, high = mixture.interval(mixture.weights(), choices(at), 0.9)
        p = sigmoid(level + at[:, :3] @ theta)
        held.append(np.mean((low <= p) & (p <= high)))
    print(f"rate {rate}: {np.mean(held):.3f} +- {np.std(held) / np.sqrt(len(held)):.3f}")
    assert np.mean(held) == pytest.approx(0.9, abs=0.05)
