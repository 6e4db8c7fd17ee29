import numpy as np
import pytest

import alexp
from alexp.decision import Agent, exponential_weights
from alexp.decision.agents import Crowd
from alexp.decision.pool import AgentPool
from alexp.decision.schedules import ReleasedSchedules, anytime_lasso_lambda
from alexp.decision.suggestions import Suggestions
from alexp.problem import CandidateTable


def choices(n=40, models=None, seed=0):
    models = models if models is not None else alexp.ModelClass.legendre(4, 2)
    order = np.random.default_rng(seed).permutation(n)
    return models, CandidateTable(models, alexp.Interval(resolution=n), order).round()


def pool_with_data(agent, rounds=12, **kwargs):
    models, everything = choices(**kwargs)
    pool = AgentPool(agent, models, noise_std=0.1, norm_bound=2.0)
    rng = np.random.default_rng(1)
    rows, y = [], []
    for _ in range(rounds):
        k = int(rng.integers(len(everything.choices)))
        rows.append(everything.choices.table[:, k])
        y.append(float(np.sin(3 * everything.choices.table[1, k]) + 0.1 * rng.standard_normal()))
        pool.update(rows[-1], y[-1])
    return models, everything, pool, np.array(rows), np.array(y)


def posterior(models, j, table, rows, y, ridge):
    """GetPosterior of the paper, with lambda-tilde squared on the diagonal."""
    s = models.groups[j]
    phi, x = rows[:, s], table[s].T
    gram = phi @ phi.T + ridge**2 * np.eye(len(y))
    cross = x @ phi.T
    mean = cross @ np.linalg.solve(gram, y)
    variance = np.sum(x * x, axis=1) - np.sum(cross * np.linalg.solve(gram, cross.T).T, axis=1)
    return mean, np.sqrt(np.maximum(variance, 0.0))


@pytest.mark.parametrize(("beta", "ridge"), [(2.0, 0.1), (0.0, 0.5), (1.0, 1.0)])
def test_ucb_maximises_mean_plus_beta_bound_sigma(beta, ridge):
    models, everything, pool, rows, y = pool_with_data(alexp.UCB(beta, ridge))
    policies = pool.suggest(everything, np.random.default_rng(0))
    for j in range(models.n_models):
        mean, std = posterior(models, j, everything.choices.table, rows, y, ridge)
        score = mean + beta * 2.0 * std
        assert score[policies.atoms[j]] >= score.max() - 1e-9


def test_theory_width_is_the_confidence_radius():
    agent = alexp.UCB(beta="theory", ridge=0.3, delta=0.05)
    models, everything, pool, rows, y = pool_with_data(agent)
    policies = pool.suggest(everything, np.random.default_rng(0))
    for j in range(models.n_models):
        s = models.groups[j]
        v = rows[:, s].T @ rows[:, s] + 0.3**2 * np.eye(s.size)
        width = np.sqrt(0.1**2 * (np.linalg.slogdet(v / 0.09)[1] + 2 * np.log(1 / 0.05)) + 0.09 * 4.0)
        mean, std = posterior(models, j, everything.choices.table, rows, y, 0.3)
        score = mean + width * std / 0.3
        assert score[policies.atoms[j]] >= score.max() - 1e-9


def test_greedy_and_epsilon_greedy_agree_on_the_atom():
    _, everything, greedy, _, _ = pool_with_data(alexp.Greedy(0.1))
    _, _, epsilon, _, _ = pool_with_data(alexp.EpsilonGreedy(0.25, 0.1))
    one, two = (p.suggest(everything, np.random.default_rng(0)) for p in (greedy, epsilon))
    assert np.array_equal(one.atoms, two.atoms)
    assert np.allclose(two.mass(int(two.atoms[3]))[3], 0.75 + 0.25 / 40)
    values = np.arange(40.0)
    np.testing.assert_allclose(two.expectation(values), 0.75 * values[one.atoms] + 0.25 * values.mean())


def test_thompson_draws_follow_the_posterior():
    """The frequency of a draw's maximiser equals its probability under N(mean, (scale B ridge)^2 V^-1)."""
    agent = alexp.ThompsonSampling(ridge=0.5, scale=1.5, draws=4000)
    models, everything, pool, rows, y = pool_with_data(agent, n=5)
    policies = pool.suggest(everything, np.random.default_rng(3))
    rng = np.random.default_rng(4)
    for j in (0, 4, 9):
        s = models.groups[j]
        v = rows[:, s].T @ rows[:, s] + 0.25 * np.eye(s.size)
        mean = np.linalg.solve(v, rows[:, s].T @ y)
        theta = rng.multivariate_normal(mean, (1.5 * 2.0 * 0.5) ** 2 * np.linalg.inv(v), size=20_000)
        exact = np.bincount(np.argmax(theta @ everything.choices.table[s], axis=1), minlength=5) / 20_000
        drawn = np.array([policies.mass(k)[j] for k in range(5)])
        assert np.abs(exact - drawn).max() < 5 * np.sqrt(0.25 / 4000 + 0.25 / 20_000), (exact, drawn)


def test_suggestions_draw_what_they_state():
    rows = [np.array([0.2, 0.8, 0.0]), np.array([0.0, 0.0, 1.0])]
    policies = Suggestions.distributions(rows, 3)
    rng = np.random.default_rng(0)
    drawn = np.bincount([policies.draw(0, rng) for _ in range(4000)], minlength=3) / 4000
    assert np.abs(drawn - rows[0]).max() < 5 * np.sqrt(0.16 / 4000)
    np.testing.assert_allclose(policies.expectation(np.array([1.0, 2.0, 3.0])), [1.8, 3.0])
    table = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(policies.expected_features(table), np.array(rows) @ table.T)


def test_merging_restores_the_order_of_the_models():
    first = Suggestions.certain(np.array([5, 6]), 9)
    second = Suggestions.samples(np.array([[1, 2], [3, 4]]), 9)
    merged = Suggestions.merged([first, second], [np.array([1, 3]), np.array([0, 2])])
    values = np.arange(9.0)
    np.testing.assert_allclose(merged.expectation(values), [1.5, 5.0, 3.5, 6.0])


def test_own_agents_are_checked():
    class Wrong(Agent):
        ridge = 0.1

        def __init__(self, answer):
            self.answer = answer

        def policy(self, view):
            return self.answer

    models, everything = choices()
    for answer in (40, -1, 0.5, np.ones(40), np.full(39, 1 / 39)):
        pool = AgentPool(Wrong(answer), models, 0.1, 1.0)
        with pytest.raises((ValueError, TypeError), match="policy"):
            pool.suggest(everything, np.random.default_rng(0))
    with pytest.raises(TypeError, match="must implement policy"):
        Agent().policy(None)
    crowd_fields = set(Crowd.__dataclass_fields__)
    assert {"fits", "models", "choices", "rng"} <= crowd_fields


@pytest.mark.parametrize(
    "build",
    [
        lambda: alexp.UCB(beta=-1.0),
        lambda: alexp.UCB(beta="practice"),
        lambda: alexp.UCB(ridge=0.0),
        lambda: alexp.Greedy(ridge=float("nan")),
        lambda: alexp.EpsilonGreedy(epsilon=1.5),
        lambda: alexp.ThompsonSampling(draws=0),
    ],
)
def test_agents_check_their_settings(build):
    with pytest.raises(ValueError, match="beta|ridge|epsilon|draws"):
        build()


def test_schedules_follow_the_printed_rates():
    schedules = alexp.Schedules(gamma=0.5, eta=2.0, lam=0.1, delta=0.2)
    assert schedules.gamma_t(1) == 0.5
    assert schedules.gamma_t(16) == 0.25
    assert alexp.Schedules(gamma=7.0).gamma_t(16) == 1.0
    assert schedules.eta_t(4, reward_bound=2.0) == 0.5
    w = np.log(2 * 55 / 0.2) + np.log(np.log(3))
    printed = 2 * 0.3 / np.sqrt(7) * np.sqrt(1 + 12 / np.sqrt(2) * w + 5 / np.sqrt(2) * np.sqrt(3 * w))
    assert np.isclose(schedules.lambda_t(7, 0.3, 55, 3), 0.1 * printed, rtol=1e-14)
    assert np.isclose(anytime_lasso_lambda(1, 1.0, 1, 1, 0.1), anytime_lasso_lambda(4, 2.0, 1, 1, 0.1))
    with pytest.raises(ValueError, match="t must be at least 1"):
        schedules.gamma_t(0)


def test_released_schedules_have_the_constants_of_the_code():
    released = ReleasedSchedules(gamma=0.1, eta=10.0, horizon=100)
    assert released.gamma_t(1) == released.gamma_t(50) == 0.01
    assert released.eta_t(3) == 1.0
    assert np.isclose(released.lambda_t(1, 0.01, 55, 2), 0.0067, atol=5e-5)
    assert np.isclose(released.lambda_t(1, 0.01, 165, 3), 0.0072, atol=5e-5)


def test_exponential_weights_survive_extreme_scores():
    q = exponential_weights(np.array([1e300, -1e300, 1e300]), 1.0)
    assert q.tolist() == [0.5, 0.0, 0.5]
