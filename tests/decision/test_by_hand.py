"""Schedules, widths, losses, mirror descent, weights, suggestions and index rules: one value by hand for each."""

from math import exp, log, sqrt

import numpy as np
import pytest

from alexp.decision.omd import log_barrier_omd
from alexp.decision.schedules import ReleasedSchedules, Schedules, anytime_lasso_lambda
from alexp.decision.suggestions import Suggestions
from alexp.decision.weights import exponential_weights
from alexp.decision.widths import model_radii, ucb_width
from alexp.rivals.losses import LossScale
from alexp.rules import IDS, UCB

# -- schedules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "iterated"), [(1, 0.0), (2, 0.0), (3, log(log(3))), (20, log(log(20)))])
def test_anytime_lasso_lambda(size, iterated):
    w = log(2 * 7 / 0.05) + iterated
    root = sqrt(1 + 12 / 1.4142135623730951 * w + 5 / 1.4142135623730951 * sqrt(size * w))
    assert anytime_lasso_lambda(25, 0.3, 7, size, 0.05) == pytest.approx(0.6 / 5 * root, rel=1e-12)


def test_schedules():
    schedules = Schedules(gamma=0.6, eta=1.5, lam=0.2, delta=0.05)
    assert schedules.gamma_t(81) == pytest.approx(0.2)  # 81^(1/4) = 3
    assert schedules.eta_t(9, 0.25) == pytest.approx(1.5 / 0.75)
    assert schedules.eta_t(9) == pytest.approx(0.5)
    w = log(2 * 7 / 0.05) + log(log(3))
    root = sqrt(1 + 12 / sqrt(2) * w + 5 / sqrt(2) * sqrt(3 * w))
    assert schedules.lambda_t(25, 0.3, 7, 3) == pytest.approx(0.2 * 0.6 / 5 * root)
    assert Schedules(gamma=3.5).gamma_t(81) == 1.0
    assert Schedules(gamma=3.5).gamma_t(200) < 1.0


def test_defaults_are_the_documented_ones():
    assert Schedules() == Schedules(gamma=0.003, eta=3.0, lam=0.009, delta=0.1)
    assert ReleasedSchedules() == ReleasedSchedules(gamma=0.003, eta=3.0, lam=0.009, delta=0.1, horizon=100)


def test_released_schedules():
    released = ReleasedSchedules(gamma=0.6, eta=1.5, lam=0.2, delta=0.05, horizon=36)
    assert released.gamma_t(1) == released.gamma_t(30) == pytest.approx(0.1)
    assert released.eta_t(5, 0.25) == pytest.approx(1.0)
    w = log(8 * 7 / 0.05)
    root = sqrt(1 + 12 / sqrt(2) * w + 5 / sqrt(2) * sqrt(3 * w))
    assert released.lambda_t(25, 0.3, 7, 3) == pytest.approx(0.2 * 8 * 0.3 / 5 * root)
    assert ReleasedSchedules(gamma=100.0, horizon=9).gamma_t(2) == 1.0


# -- widths --------------------------------------------------------------------------------------------------------


def test_ucb_width():
    # 0.5^2 (3 + 2 log(1/delta)) + 0.2^2 x 10^2 with delta = e^-3: 0.25 x 9 + 4
    assert float(ucb_width(3.0, 0.2, 0.5, 10.0, exp(-3))) == pytest.approx(sqrt(6.25))


def test_model_radii():
    # sigma^2 = 1/4: E = (1 + 1, 2 + 0.5, 9 + 0.25); weights exp(-2 E)
    mixture = -0.5 * log((exp(-4) + exp(-5) + exp(-18.5)) / 3)
    found = model_radii([1.0, 2.0, 9.0], [4.0, 2.0, 1.0], 0.2, 0.5, 7.5, exp(-3))
    assert found == pytest.approx([mixture + 1.5 + 2.25 - loss for loss in (1.0, 2.0, 9.0)])
    assert found[2] < 0 < found[1]


# -- losses --------------------------------------------------------------------------------------------------------


def test_loss_scale():
    assert LossScale.of(None, 2.0, 0.5) == LossScale(-3.5, 3.5)
    scale = LossScale.of((1.0, 5.0), 2.0, 0.5)
    assert [scale(y) for y in (5.0, 4.0, 1.0, 0.0, 9.0)] == [0.0, 0.25, 1.0, 1.0, 0.0]
    flipped = LossScale.of((1.0, 5.0), 2.0, 0.5, sign=-1.0)  # rewards -5..-1 are what the master sees
    assert flipped == LossScale(-5.0, -1.0)
    assert flipped(-2.0) == 0.25


# -- mirror descent and weights ------------------------------------------------------------------------------------


def test_log_barrier_omd():
    # From (1/2, 1/2) with losses (3/2, 0) and rates (2, 1): 1/q = (2 + 2 (3/2 - x), 2 - x). With y = 2 - x the sum
    # 1/(2y + 1) + 1/y = 1 gives 2 y^2 - 2 y - 1 = 0, y = (1 + sqrt 3)/2.
    y = (1 + sqrt(3)) / 2
    assert log_barrier_omd([0.5, 0.5], [1.5, 0.0], [2.0, 1.0]) == pytest.approx([1 / (2 * y + 1), 1 / y], abs=1e-13)
    # from (1/4, 3/4) with losses (1, 0) and rate 1: 1/(5 - x) + 1/(4/3 - x) = 1
    x = ((5 + 4 / 3 - 2) - sqrt((5 + 4 / 3 - 2) ** 2 - 4 * (5 * 4 / 3 - 5 - 4 / 3))) / 2
    assert log_barrier_omd([0.25, 0.75], [1.0, 0.0], 1.0) == pytest.approx([1 / (5 - x), 1 / (4 / 3 - x)], abs=1e-13)


def test_exponential_weights():
    found = exponential_weights(np.array([0.0, 2.0, 4.0]), 0.5 * log(3))
    assert found == pytest.approx([1 / 13, 3 / 13, 9 / 13])


# -- suggestions ---------------------------------------------------------------------------------------------------


def draws(policies, j, n=3000):
    rng = np.random.default_rng(5)
    return np.bincount([policies.draw(j, rng) for _ in range(n)], minlength=policies.n_candidates) / n


def test_suggestions_certain_with_a_spread():
    policies = Suggestions.certain(np.array([2, 0]), 4, spread=0.2)
    values = np.array([1.0, 2.0, 5.0, 10.0])
    assert policies.expectation(values) == pytest.approx([0.8 * 5 + 0.2 * 4.5, 0.8 * 1 + 0.2 * 4.5])
    assert policies.mass(2) == pytest.approx([0.85, 0.05])
    assert policies.mass(3) == pytest.approx([0.05, 0.05])
    assert draws(policies, 0) == pytest.approx([0.05, 0.05, 0.85, 0.05], abs=0.03)


def test_suggestions_samples():
    policies = Suggestions.samples(np.array([[1, 3], [0, 0]]), 4)
    assert policies.expectation(np.array([1.0, 2.0, 5.0, 10.0])) == pytest.approx([6.0, 1.0])
    assert policies.mass(0) == pytest.approx([0.0, 1.0])
    assert policies.mass(3) == pytest.approx([0.5, 0.0])
    assert draws(policies, 0) == pytest.approx([0, 0.5, 0, 0.5], abs=0.04)
    assert draws(policies, 1).tolist() == [1, 0, 0, 0]


def test_suggestions_distributions():
    policies = Suggestions.distributions([np.array([0.0, 0.25, 0.75]), np.array([1.0, 0.0, 0.0])], 3)
    assert policies.expectation(np.array([4.0, 8.0, 12.0])) == pytest.approx([11.0, 4.0])
    assert policies.mass(2) == pytest.approx([0.75, 0.0])
    table = np.array([[1.0, 2.0, 3.0], [4.0, 8.0, 12.0]])
    assert policies.expected_features(table) == pytest.approx(np.array([[2.75, 11.0], [1.0, 4.0]]))
    assert draws(policies, 0) == pytest.approx([0, 0.25, 0.75], abs=0.04)


def test_merged_suggestions_keep_the_spread_with_its_agent():
    """Agents 3, 0 and 2 spread a half, a quarter and nothing, given as crowds in that order; agent 1 is certain."""
    parts = [
        Suggestions.certain(np.array([1]), 4, spread=0.5),
        Suggestions.certain(np.array([2]), 4, spread=0.25),
        Suggestions.samples(np.array([[0, 1], [3, 3]]), 4),
    ]
    merged = Suggestions.merged(parts, [np.array([3]), np.array([0]), np.array([1, 2])])
    assert merged.spread.tolist() == [0.25, 0.0, 0.0, 0.5]
    assert merged.mass(3) == pytest.approx([0.0625, 0.0, 1.0, 0.125])
    values = np.array([0.0, 4.0, 8.0, 12.0])
    assert merged.expectation(values) == pytest.approx([0.75 * 8 + 0.25 * 6, 2.0, 12.0, 0.5 * 4 + 0.5 * 6])
    assert draws(merged, 3) == pytest.approx([0.125, 0.625, 0.125, 0.125], abs=0.04)
    assert draws(merged, 2).tolist() == [0, 0, 0, 1]


# -- index rules ---------------------------------------------------------------------------------------------------


class Known:
    """A belief with these means and deviations."""

    n_told, is_exact, is_honest = 0, False, False

    def __init__(self, mean, std, noise_variance):
        self.mean, self.std, self.noise_variance = mean, std, noise_variance

    def first_best(self, round, score):
        scores = score(self.mean, self.std)
        return int(np.argmax(scores)), float(scores.max())


def upper_confidence(mean, std, beta):
    return UCB(beta).play(Known(mean, std, 1.0), None).position


def information_directed(mean, std, beta, noise_variance):
    return IDS(beta).play(Known(mean, std, noise_variance), None).position


def test_upper_confidence():
    mean, std = np.array([1.0, 0.0, 0.5]), np.array([0.1, 0.6, 0.35])
    assert [upper_confidence(mean, std, beta) for beta in (0.0, 1.9, 2.1)] == [0, 0, 1]
    assert upper_confidence(np.array([1.0, 1.0]), np.zeros(2), 1.0) == 0  # the first of equals


def test_information_directed():
    # beta = 1, noise variance 1: highest = max(1.5, 1.75) = 1.75; regret (0.75, 1.25), information log(1 + std^2)
    mean, std = np.array([1.0, 0.5]), np.array([0.5, 1.25])
    ratios = 0.75**2 / log(1.25), 1.25**2 / log(1 + 1.5625)  # 2.52 and 1.66
    assert ratios[1] < ratios[0]
    assert information_directed(mean, std, 1.0, 1.0) == 1
    # With a noise variance of 0.01 the information is log(26) and log(157.25): 0.173 and 0.309.
    assert information_directed(mean, std, 1.0, 0.01) == 0
    # With beta = 0 the best mean has no regret.
    assert information_directed(mean, std, 0.0, 1.0) == 0
    # Nothing to learn at the first two, where the mean is best; only the third brings information.
    assert information_directed(np.array([3.0, 2.0, 0.0]), np.array([0.0, 0.0, 0.1]), 1.0, 1.0) == 2
    assert information_directed(np.array([1.0, 3.0, 2.0]), np.zeros(3), 1.0, 1.0) == 1
    assert information_directed(np.array([1.0, 0.9, 0.0]), np.array([0.0, 0.5, 0.5]), 1.0, 0.1) == 1
