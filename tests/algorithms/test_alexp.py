"""ALExp against an independent, slow reading of Algorithm 1, and its symmetries."""

import json
from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest

import alexp
from alexp.decision import Agent


def slow_group_lasso(phi_groups, y, lam, sweeps=200_000):
    """min (1/t)||y - Phi theta||^2 + 2 lam sum ||theta_j|| by plain proximal gradient with restarts (FISTA)."""
    phi = np.hstack(phi_groups)
    bounds = np.cumsum([0] + [g.shape[1] for g in phi_groups])
    t = len(y)
    step = t / np.linalg.norm(phi, 2) ** 2
    theta = momentum = np.zeros(phi.shape[1])
    k, previous = 1.0, np.inf
    for sweep in range(sweeps):
        z = momentum - step / t * phi.T @ (phi @ momentum - y)
        new = np.empty_like(z)
        for a, b in pairwise(bounds):
            norm = np.linalg.norm(z[a:b])
            new[a:b] = z[a:b] * max(0.0, 1.0 - step * lam / norm) if norm > 0 else 0.0
        if (momentum - new) @ (new - theta) > 0:
            k = 1.0
        k_next = (1.0 + sqrt(1.0 + 4.0 * k * k)) / 2.0
        momentum, theta, k = new + (k - 1.0) / k_next * (new - theta), new, k_next
        if sweep % 200 == 199:
            r = y - phi @ theta
            penalty = sum(np.linalg.norm(theta[a:b]) for a, b in pairwise(bounds))
            primal = 0.5 * r @ r + lam * t * penalty
            largest = max(np.linalg.norm(phi[:, a:b].T @ r) for a, b in pairwise(bounds))
            s = np.clip(y @ r / (r @ r), -lam * t / largest, lam * t / largest)
            gap = primal - (s * (y @ r) - 0.5 * s * s * (r @ r))
            if gap <= 1e-14 * primal or gap >= previous * 0.999 < 1e-11 * primal:
                break
            previous = gap
    return theta


def slow_alexp(features, indices, rewards, order, *, beta, ridge, eta, lam, delta, sigma, bound):
    """q after every observation, by dense linear algebra only; features is a list of (N, d_j)."""
    m, d = len(features), max(f.shape[1] for f in features)
    returns, q = np.zeros(m), []
    for t in range(1, len(indices) + 1):
        x, y = np.array(indices[:t]), np.array(rewards[:t])
        w = log(2 * m / delta) + (max(log(log(d)), 0.0) if d > 1 else 0.0)
        lam_t = lam * 2 * sigma / sqrt(t) * sqrt(1 + 12 / sqrt(2) * w + 5 / sqrt(2) * sqrt(d * w))
        theta = slow_group_lasso([f[x] for f in features], y, lam_t)
        estimate = np.hstack(features) @ theta
        for j, f in enumerate(features):
            gram = f[x] @ f[x].T + ridge**2 * np.eye(t)
            cross = f @ f[x].T
            mean = cross @ np.linalg.solve(gram, y)
            variance = np.sum(f * f, axis=1) - np.sum(cross * np.linalg.solve(gram, cross.T).T, axis=1)
            index = mean + beta * bound * np.sqrt(np.maximum(variance, 0.0))
            top = order[np.flatnonzero(index[order] >= index.max() - 1e-9 * bound)[0]]  # ties: first in visiting order
            returns[j] += estimate[top]
        scores = eta / (bound * sqrt(t)) * returns
        q.append(np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum())
    return np.array(q)


def shared_problem():
    models, domain = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=31)
    return models, domain, [models.features(j, domain.points) for j in range(models.n_models)]


def independent_problem():
    rng = np.random.default_rng(4)
    blocks = {f"m{j}": rng.standard_normal((25, d)) for j, d in enumerate([1, 3, 2, 4, 2])}
    models = alexp.ModelClass.from_matrices(blocks, intercept=False)
    return models, alexp.FiniteSet(list(range(25))), list(blocks.values())


@pytest.mark.parametrize("problem", [shared_problem, independent_problem])
def test_probabilities_equal_the_slow_reading_of_algorithm_1(problem):
    models, domain, features = problem()
    settings = alexp.Schedules(gamma=0.8, eta=2.0, lam=0.3, delta=0.1)
    opt = alexp.ALExp(
        models, domain, noise_std=0.1, reward_bound=2.0, random_state=5, schedules=settings,
        agents=alexp.UCB(beta=1.5, ridge=0.05), oracle=alexp.GroupLasso(tol=1e-12, canonical=False),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    truth = features[2] @ rng.standard_normal(features[2].shape[1])
    indices, rewards, q, explored = [], [], [], []
    for _ in range(18):
        trial = opt.ask()
        y = truth[trial.index] + 0.1 * rng.standard_normal()
        opt.tell(trial, y)
        indices.append(trial.index)
        rewards.append(y)
        explored.append(trial.explored)
        q.append(opt.probabilities)
    assert any(explored)
    assert not all(explored)
    slow = slow_alexp(
        features, indices, rewards, opt._candidates.order, beta=1.5, ridge=0.05,
        eta=2.0, lam=0.3, delta=0.1, sigma=0.1, bound=2.0,
    )  # fmt: skip
    worst = np.abs(np.array(q) - slow).max()
    assert worst < 1e-6, worst


def test_permuting_the_models_permutes_the_probabilities():
    """With certain exploration both runs play the same actions, whatever their models are called."""
    dictionary, domain = alexp.Legendre(5), alexp.Interval(resolution=41)
    groups = [[0, 1], [2], [1, 3, 4], [5, 2], [0, 4]]
    shuffle = [3, 0, 4, 2, 1]
    settings = {"noise_std": 0.1, "random_state": 1, "schedules": alexp.Schedules(gamma=1e9, lam=0.1)}
    oracle = alexp.GroupLasso(tol=1e-12)
    plain = alexp.ALExp(alexp.ModelClass(dictionary, groups), domain, oracle=oracle, **settings)
    moved = alexp.ALExp(alexp.ModelClass(dictionary, [groups[i] for i in shuffle]), domain, oracle=oracle, **settings)
    rng = np.random.default_rng(2)
    for _ in range(25):
        one, two = plain.ask(), moved.ask()
        assert one.index == two.index
        y = np.sin(3 * one.x) + 0.1 * rng.standard_normal()
        plain.tell(one, y)
        moved.tell(two, y)
        np.testing.assert_allclose(plain.probabilities[shuffle], moved.probabilities, atol=1e-8)


def test_a_duplicate_of_a_model_changes_no_fitted_value_at_equal_lambda():
    dictionary = alexp.Legendre(5)
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 30)
    rows, y = dictionary(x), np.cos(3 * x) + 0.1 * rng.standard_normal(30)
    fitted = []
    for groups in ([[0, 1], [2, 3], [4, 5]], [[0, 1], [2, 3], [4, 5], [2, 3]]):
        models = alexp.ModelClass(dictionary, groups)
        path = alexp.GroupLasso(tol=1e-12).bind_groups(6, models.columns_flat, models.offsets)
        for row, value in zip(rows, y, strict=True):
            path.append(row, value)
        fitted.append(rows @ path.solve(0.02).beta)
    np.testing.assert_allclose(fitted[0], fitted[1], atol=1e-6)


def test_unequal_sizes_and_scales_from_tiny_to_huge_work():
    rng = np.random.default_rng(6)
    n = 60
    blocks = {f"d{d}": rng.standard_normal((n, d)) * 10.0 ** rng.integers(-6, 7) for d in (1, 2, 5, 17, 50)}
    base = rng.standard_normal((n, 1))
    blocks["collinear"] = np.hstack([base, 2 * base, 1e6 * base])
    blocks["constant"] = np.ones((n, 2))
    opt = alexp.ALExp(alexp.ModelClass.from_matrices(blocks), alexp.FiniteSet(list(range(n))), random_state=0)
    truth = blocks["d2"] / np.abs(blocks["d2"]).max() @ [1.0, -1.0]
    for _ in range(40):
        trial = opt.ask()
        opt.tell(trial, truth[trial.index] + 0.1 * rng.standard_normal())
        assert np.all(np.isfinite(opt.probabilities))
        assert opt.fit.gap <= 1e-6
    assert np.isfinite(opt.best().value)


def test_duplicated_models_share_their_probability():
    models = alexp.ModelClass(alexp.Legendre(3), [[0, 1], [2, 3], [0, 1]])
    opt = alexp.ALExp(models, alexp.Interval(resolution=30), noise_std=0.1, random_state=2)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, trial.x)
        q = opt.probabilities
        assert q[0] == q[2]


def test_normalised_models_give_the_same_run_as_dividing_the_features():
    rng = np.random.default_rng(7)
    blocks = {"a": 5 * rng.standard_normal((20, 3)), "b": 0.1 * rng.standard_normal((20, 2))}
    domain = alexp.FiniteSet(list(range(20)))
    scaled = alexp.ModelClass.from_matrices(blocks).normalized(domain)
    divided = alexp.ModelClass.from_matrices({name: f / np.linalg.norm(f, axis=1).max() for name, f in blocks.items()})
    runs = [alexp.ALExp(m, domain, random_state=3, oracle=alexp.GroupLasso(1e-12)) for m in (scaled, divided)]
    for _ in range(15):
        one, two = (opt.ask() for opt in runs)
        assert one.index == two.index
        y = np.sin(one.index) + 0.1 * rng.standard_normal()
        for opt in runs:
            opt.tell(one.id, y)
        np.testing.assert_allclose(runs[0].probabilities, runs[1].probabilities, atol=1e-7)


def test_looking_does_not_touch():
    def run(look):
        opt = alexp.ALExp(*shared_problem()[:2], noise_std=0.1, random_state=8)
        for t in range(20):
            trials = opt.ask(3)
            for k, trial in enumerate(trials):
                if (t + k) % 4:
                    opt.tell(trial, np.sin(4 * trial.x))
                if look:
                    _ = opt.probabilities, opt.cumulative_returns, opt.fit
                    opt.best() if opt.n_told else None
        return json.dumps(opt.to_dict())

    assert run(True) == run(False)


def test_restricted_rounds_are_scored_on_the_set_they_are_played_on():
    models, domain, _ = shared_problem()
    opt = alexp.ALExp(models, domain, noise_std=0.1, random_state=9)
    trial = opt.ask()
    opt.tell(trial, 1.0)
    only = (trial.index + 10) % 31
    ahead = opt.cumulative_returns
    restricted = opt.ask(available=[only])
    estimate = models.columns(domain.points)[only] @ opt.fit.beta + opt.fit.intercept
    np.testing.assert_allclose(opt._returns, estimate, atol=1e-12)
    opt.abandon(restricted)
    opt.ask()  # what was computed ahead does not come back
    np.testing.assert_allclose(opt._returns, estimate, atol=1e-12)
    assert not np.allclose(ahead, opt._returns)


def test_several_rewards_between_asks_count_once_each():
    models, domain, _ = shared_problem()
    opt = alexp.ALExp(models, domain, noise_std=0.1, random_state=10)
    for trial in opt.ask(5):
        opt.tell(trial, float(np.cos(trial.x)))
    policies = opt._decision(opt._everything).play.otherwise.policies
    estimate = (models.columns(domain.points) @ opt.fit.beta)[opt._candidates.order]
    np.testing.assert_allclose(opt.cumulative_returns, 5 * policies.expectation(estimate), atol=1e-12)


class Cautious(Agent):
    """A user's own agent: soft-max over the posterior mean."""

    ridge = 0.1

    def policy(self, view):
        weights = np.exp((view.mean - view.mean.max()) / (view.std.mean() + 1e-9))
        return weights / weights.sum()


def test_heterogeneous_agents_and_users_own_agents():
    models, domain, _ = shared_problem()
    kinds = [alexp.UCB(), Cautious(), alexp.Greedy(), alexp.EpsilonGreedy(0.3), alexp.ThompsonSampling(draws=4)]
    agents = [kinds[j % 5] for j in range(models.n_models)]
    opt = alexp.ALExp(models, domain, noise_std=0.1, random_state=11, agents=agents)
    for _ in range(10):
        trial = opt.ask()
        opt.tell(trial, trial.x**2)
    policies = opt._decision(opt._everything).play.otherwise.policies
    total = sum(policies.mass(k) for k in range(31))
    np.testing.assert_allclose(total, 1.0)
    single = opt._pool.suggest(opt._candidates.round(), np.random.default_rng(0))
    for j, agent in enumerate(agents):
        if isinstance(agent, alexp.UCB):  # the pool numbers models correctly
            own = alexp.LinUCB(models, domain, model=j, random_state=11)
            for i in range(10):
                own.ask(available=[opt.trial(i).index])
                own.tell(i, opt.trial(i).x ** 2)
            assert own.ask().index == opt._candidates.order[single.atoms[single.offsets[j]]]
    with pytest.raises(ValueError, match="pass agents= again"):
        alexp.ALExp.from_dict(opt.to_dict())
    again = alexp.ALExp.from_dict(json.loads(json.dumps(opt.to_dict())), agents=agents)
    assert again.ask() == opt.ask()


def test_settings_are_checked():
    models, domain, _ = shared_problem()
    for agents in ([alexp.UCB()], {"P0+P1": alexp.UCB()}, "ucb"):
        with pytest.raises((ValueError, TypeError), match="agent"):
            alexp.ALExp(models, domain, agents=agents)
    for bad in ({"gamma": -1}, {"eta": float("nan")}, {"lam": 0.0}, {"delta": 1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            alexp.Schedules(**bad)
    with pytest.raises(TypeError, match="ModelClass"):
        alexp.ALExp("models", domain)


def test_recommendation_names_the_leading_model():
    models, domain, _ = shared_problem()
    env = alexp.SyntheticEnvironment(models, domain, noise_std=0.01, random_state=3)
    opt = alexp.ALExp(models, domain, noise_std=0.01, random_state=3)
    with pytest.raises(RuntimeError, match="at least one reward"):
        opt.best()
    alexp.simulate(opt, env, steps=40)
    best = opt.best()
    assert best.model == int(np.argmax(opt.probabilities))
    assert env.best_value - env.rewards[best.index] < 0.05
