"""Expected improvement under a mixture, against numerical integration, and the rule that plays by it."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, t

import alexp
from alexp.decision.selection import expected_improvement
from alexp.estimation.posteriors import Component


def integral(distribution, mean, std, incumbent):
    return quad(lambda y: (y - incumbent) * distribution.pdf((y - mean) / std) / std, incumbent, np.inf, limit=200)[0]


@pytest.mark.parametrize("freedom", [2.0, 5.0, 60.0, np.inf])
def test_equals_the_integral(freedom):
    distribution = norm() if freedom == np.inf else t(freedom)
    mean, variance = np.array([0.0, 1.5, -2.0, 0.3]), np.array([1.0, 0.2, 0.5, 1e-4])
    parts = [Component(0.3, 0, 0, mean, variance), Component(0.7, 1, 0, mean[::-1], variance[::-1])]
    found = expected_improvement(parts, 4, 0.4, freedom)
    alone = np.array([integral(distribution, m, np.sqrt(v), 0.4) for m, v in zip(mean, variance, strict=True)])
    np.testing.assert_allclose(found, 0.3 * alone + 0.7 * alone[::-1], rtol=1e-5)


def test_nothing_uncertain_improves_by_what_is_known():
    parts = [Component(1.0, 0, 0, np.array([1.0, 3.0]), np.zeros(2))]
    np.testing.assert_allclose(expected_improvement(parts, 2, 2.0, 7.0), [0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(expected_improvement(parts, 2, 2.0, np.inf), [0.0, 1.0], atol=1e-12)


def test_the_goal_decides_what_is_not_said():
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=20)
    found = {}
    for goal in ("sum", "best"):
        for repeats in (True, False):
            opt = alexp.EvidenceMixture(models, domain, goal=goal, repeats=repeats)
            found[goal, repeats] = opt.rule, opt.power
    assert found == {
        ("sum", True): ("ids", 1.0),
        ("sum", False): ("ucb", 0.5),
        ("best", True): ("ei", 1.0),
        ("best", False): ("ei", 0.25),
    }
    assert alexp.EvidenceMixture(models, domain, goal="best", rule="ucb").rule == "ucb"
    with pytest.raises(ValueError, match="goal must be one of"):
        alexp.EvidenceMixture(models, domain, goal="fast")


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("stated", [{}, {"noise_std": 0.05}, {"noise_std": 0.05, "reward_bound": 2.0}])
def test_plays_the_largest_improvement_over_the_best_reward(stated, direction):
    """The packed route: components one by one from the fits, by hand."""
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=25)
    sign = 1.0 if direction == "maximize" else -1.0
    opt = alexp.EvidenceMixture(models, domain, rule="ei", direction=direction, random_state=0, **stated)
    rewards = {index: 0.9 - 1.1 * float(domain[index]) ** 2 for index in (2, 7, 9, 14, 20, 23)}
    for index, reward in rewards.items():
        opt.observe(index, sign * reward)
    mixture, weights, choices = opt._mixture, opt._weights(), opt._everything.choices
    assert opt.incumbent() == max(rewards.values())
    gains = np.zeros(len(choices))
    for cell, bank in enumerate(mixture.grid.cells):
        for j in range(models.n_models):
            mean = bank.mean(j, choices.table.T)
            std = np.sqrt(mixture.noise_variances()[cell, j]) * bank.width(j, choices.table.T)
            z = (mean - opt.incumbent()) / std
            if np.isinf(mixture.freedom):
                own = (mean - opt.incumbent()) * norm.cdf(z) + std * norm.pdf(z)
            else:
                nu = mixture.freedom
                own = (mean - opt.incumbent()) * t(nu).cdf(z) + std * (nu + z**2) / (nu - 1) * t(nu).pdf(z)
            gains += weights[cell, j] * own
    assert opt.ask().index == choices.indices[int(np.argmax(gains))]


def test_noise_makes_the_best_mean_the_incumbent():
    models, domain = alexp.ModelClass.legendre(2, 2), alexp.Interval(resolution=10)
    opt = alexp.EvidenceMixture(models, domain, rule="ei", noise_std=1.0, reward_bound=1.0, random_state=0)
    for index, y in ((1, 2.5), (5, -1.0), (8, 0.3)):
        opt.observe(index, y)
    means = [opt.predict(domain[index])[0] for index in (1, 5, 8)]
    assert opt.incumbent() == pytest.approx(max(means))
    assert opt.incumbent() < 2.5
