"""Balancing and EXP4LS against their formulas, written out once more."""

import numpy as np
import pytest

import alexp

MODELS, DOMAIN = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=30)
STATED = {"noise_std": 0.1, "reward_bound": 1.0, "random_state": 2}


def bound(n, d=2, scale=1.0):
    return scale * np.sqrt(d * n * np.log(n**1.5 + np.e) ** 3)


def conf(n, m, width, delta=0.05):
    return width * np.sqrt(np.log(m * np.log(np.maximum(n, np.e)) / delta) / n)


@pytest.mark.parametrize("rule", ["balance", "eliminate", "dynamic"])
def test_whose_turn_it_is(rule):
    settings = {"rule": rule, "scale": 0.02, "width": 0.05}
    opt = alexp.Balancing(MODELS, DOMAIN, **settings, **STATED)
    m, order = MODELS.n_models, opt._order
    n, s, active, turns = np.zeros(m), np.zeros(m), np.ones(m, dtype=bool), []
    rng = np.random.default_rng(0)
    for t in range(120):
        if t < m:
            expected = order[t]
        else:
            cost = bound(n, scale=0.02)
            if rule == "balance":
                cost = n * np.max((s + bound(n, scale=0.02)) / n) - s
            elif rule == "eliminate":
                cost = np.where(active, cost, np.inf)
            else:
                cost = np.where(fine, cost, np.inf)  # noqa: F821
            expected = order[np.argmin(cost[order])]
        trial = opt.ask()
        assert trial.model == expected, f"round {t}"
        assert opt.policy()[trial.index] >= 0.0
        reward = 0.8 * (trial.model % 3 == 0) - 0.5 + 0.05 * rng.standard_normal()
        opt.tell(trial, reward)
        n[expected] += 1
        s[expected] += (reward + 1.3) / 2.6  # rewards are scaled from +-(1 + 3 * 0.1)
        turns.append(int(expected))
        if n.min() > 0:
            u, c = s / n, conf(n, m, 0.05)
            fine = u + bound(n, scale=0.02) / n + c >= np.max(u - c)
            active &= fine
    late = turns[60:]
    if rule != "balance":
        assert all(turn % 3 == 0 for turn in late[-20:]), "who is certainly worse should not play"
    assert opt.probabilities.max() == 1.0


def test_large_bounds_rule_nobody_out_and_small_models_play_more():
    models = alexp.ModelClass(alexp.Legendre(4), [[0], [0, 1, 2, 3]])
    opt = alexp.Balancing(models, DOMAIN, rule="dynamic", **STATED)
    counts = np.zeros(2)
    for _ in range(60):
        trial = opt.ask()
        counts[trial.model] += 1
        opt.tell(trial, 0.9 if trial.model else -0.9)
    assert counts[0] > 1.5 * counts[1]
    np.testing.assert_allclose(opt.bounds(), [bound(counts[0], 1), bound(counts[1], 4)])
    assert opt.bounds()[0] == pytest.approx(opt.bounds()[1], rel=0.15)


def test_settings_of_balancing():
    with pytest.raises(ValueError, match="rule"):
        alexp.Balancing(MODELS, DOMAIN, rule="random")
    with pytest.raises(ValueError, match="scale"):
        alexp.Balancing(MODELS, DOMAIN, scale=0.0)


def test_returns_by_least_squares():
    opt = alexp.EXP4LS(MODELS, DOMAIN, agents=alexp.EpsilonGreedy(0.2), **STATED)
    table, expected = MODELS.matrix(DOMAIN), np.zeros(MODELS.n_models)
    for t in range(12):
        policies = opt._decision(opt._everything).policies
        place = opt._listed.position
        p = np.array([policies.mass(int(place[i])) for i in range(30)])  # (N, M)
        total = opt.policy()
        v = table.T @ (total[:, None] * table)
        trial = opt.ask()
        weights = opt.schedules.eta_t(max(t, 1), 1.0) * expected
        q = np.exp(weights - weights.max()) / np.exp(weights - weights.max()).sum()
        gamma = opt.schedules.gamma_t(t + 1)
        np.testing.assert_allclose(total, gamma / 30 + (1 - gamma) * p @ q, atol=1e-12)
        reward = float(np.sin(3.0 * trial.x))
        opt.tell(trial, reward)
        expected += (p.T @ table) @ np.linalg.pinv(v) @ table[trial.index] * reward
        np.testing.assert_allclose(opt.cumulative_returns, expected, rtol=1e-7, atol=1e-9)


def test_returns_are_unbiased():
    """In one and the same situation the estimates average to the agents' expected rewards."""
    opt = alexp.EXP4LS(MODELS, DOMAIN, agents=alexp.EpsilonGreedy(0.5), **STATED)
    table, theta = MODELS.matrix(DOMAIN), np.array([0.3, -0.5, 0.0, 0.2, 0.1])
    decision = opt._decision(opt._everything)
    order = opt._listed.order
    values, chances = (table @ theta)[order], decision.chances
    found = np.zeros(MODELS.n_models)
    for position in range(30):
        proposal = type("Drawn", (), {"position": position})
        found += chances[position] * values[position] * opt._note(decision, proposal)
    np.testing.assert_allclose(found, decision.policies.expectation(values), atol=1e-10)
