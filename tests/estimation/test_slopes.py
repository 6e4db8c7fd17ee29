"""Slopes of a preferred sign, against posteriors integrated over the slope on a fine grid."""

import numpy as np
import pytest
from scipy.stats import norm

import alexp
from alexp.estimation.mixture.making import prefer
from alexp.estimation.onepass.regressions import PREFERENCE, rising_column
from alexp.problem.candidates import Choices
from alexp.problem.kernels import Linear, Matern, Rising

RNG = np.random.default_rng(3)
X, M = RNG.standard_normal((20, 2)), RNG.standard_normal(20)
TOLD = [4, 7, 1, 12, 7]
EVERYTHING = Choices(np.arange(20), np.column_stack([X, M]).T.copy())


def mixture(sign, rewards, intercept):
    """One model, one noise level, one scale: a Gaussian process with everything known but the function."""
    kernel = Matern(lengthscale=1.0).fitted(X).on([0, 1]) + Rising().on([2])
    models = alexp.ModelClass.from_matrices({"m": np.column_stack([X, M])}, kernels={"m": kernel}, intercept=intercept)
    opt = alexp.EvidenceMixture(
        models, alexp.FiniteSet(range(20)), noise_std=0.5, reward_bound=1.3, light=True, random_state=0
    )
    out = opt._mixture
    prefer(out, sign)
    for place, y in zip(TOLD, rewards, strict=False):
        out.update(np.append(X[place], M[place]), y, place)
    return out, kernel


def integrated(kernel, rewards, intercept, sign):
    """Mean at all candidates and evidence, up to what does not depend on the sign, over a grid of slopes."""
    t, scale = len(rewards), 1.3
    own, at = scale**2 * kernel.terms[0](np.column_stack([X, M]), np.column_stack([X, M])), TOLD[:t]
    own = own + (1e8 if intercept else 0.0)
    noisy = own[np.ix_(at, at)] + 0.25 * np.eye(t)
    slopes = np.linspace(-8.0, 8.0, 4001) * scale
    prior = norm.pdf(slopes, scale=scale) * (1.0 + PREFERENCE * sign * np.sign(slopes))
    rest = np.asarray(rewards)[:, None] - M[at][:, None] * slopes
    solved = np.linalg.solve(noisy, rest)
    logs = -0.5 * np.einsum("ts,ts->s", rest, solved)
    weights = prior * np.exp(logs - logs.max())
    means = M[:, None] * slopes + own[:, at] @ solved
    plain = norm.pdf(slopes, scale=scale) * np.exp(logs - logs.max())
    return means @ weights / weights.sum(), np.log(weights.sum() / plain.sum())


@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rewards", [[0.3, 1.0], [2.0, -1.0, 0.5, 0.1, 1.5]])
def test_means_and_evidence_are_those_of_a_prior_that_prefers_a_sign(sign, intercept, rewards):
    own, kernel = mixture(sign, rewards, intercept)
    mean, factor = integrated(kernel, rewards, intercept, sign)
    got = own.moments(own.weights(), EVERYTHING)[0]
    elsewhere = own.moments(own.weights(), Choices(None, EVERYTHING.table))[0]
    assert np.allclose(got, mean, atol=2e-3)
    assert np.allclose(elsewhere, got, atol=1e-9)
    few = own.values(own.weights(), Choices(np.array([3, 9]), EVERYTHING.table[:, [3, 9]].copy()), [], 0.0).mean[0]
    assert np.allclose(few, got[[3, 9]], atol=1e-9)
    without = mixture(0.0, rewards, intercept)[0]
    assert np.allclose(own.log_evidence() - without.log_evidence(), factor, atol=2e-3)


def test_before_the_first_reward_means_follow_the_column():
    for sign in (1.0, -1.0):
        mean = mixture(sign, [], True)[0].moments(np.ones((1, 1)), EVERYTHING)[0]
        assert np.allclose(mean, sign * PREFERENCE * np.sqrt(2.0 / np.pi) * 1.3 * M, atol=1e-9)


def test_draws_follow_the_column_as_well():
    own = mixture(1.0, [0.3, 1.0], True)[0]
    drawn = np.mean([own.draw(0, 0, np.random.default_rng(k), EVERYTHING) for k in range(800)], axis=0)
    mean = own.moments(own.weights(), EVERYTHING)[0]
    assert np.corrcoef(drawn, mean)[0, 1] > 0.99


def test_the_column_is_found_in_sums():
    assert rising_column(Rising()) == 0
    assert rising_column(Matern().on([0, 1]) + Rising().on([4])) == 4
    assert rising_column(Linear()) is rising_column(None) is None
