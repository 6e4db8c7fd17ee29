"""Steps of two rounds: who plays, what is learnt, and what the master is told."""

import numpy as np
import pytest

import alexp
from alexp.decision import log_barrier_omd

MODELS, DOMAIN = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=30)
STATED = {"noise_std": 0.1, "reward_bound": 1.0, "random_state": 2}


def made(**settings):
    return alexp.SmoothedCorral(MODELS, DOMAIN, **({"horizon": 200} | settings), **STATED)


def reward(trial):
    return float(np.sin(3.0 * trial.x))


def loss(y):
    return (1.3 - y) / 2.6  # rewards are scaled from +-(1 + 3 * 0.1)


def test_second_rounds_repeat_the_agent_with_a_policy_it_had():
    opt, lessons = made(), {j: [] for j in range(MODELS.n_models)}
    table, some_past = MODELS.matrix(DOMAIN), 0
    for _ in range(40):
        first = opt.ask()
        assert not first.explored
        lessons[first.model].append((table[first.index], reward(first)))
        opt.tell(first, reward(first))
        second = opt.ask()
        assert (second.model, second.explored) == (first.model, True)
        places = set()
        for known in range(len(lessons[first.model])):
            agent = alexp.LinUCB(MODELS, DOMAIN, model=first.model, noise_std=0.1, reward_bound=1.0)
            agent._log, agent._candidates = opt._log, opt._candidates  # the same visiting order decides ties
            for row, y in lessons[first.model][:known]:
                agent._pool.update(row, y)
            policy = agent._pool.suggest(opt._everything, np.random.default_rng(0))
            places.add(int(opt._everything.indices[policy.atoms[0]]))
        assert second.index in places, "no policy that it ever had"
        some_past += len(places) > 1
        before = [len(rows) for rows in opt._lessons]
        opt.tell(second, reward(second))
        assert [len(rows) for rows in opt._lessons] == before, "second rounds teach nobody"
    assert some_past > 3


def test_the_master_learns_from_second_rounds_alone():
    opt, q = made(), np.full(MODELS.n_models, 0.1)
    rates, rho = np.full(10, np.sqrt(10 / 200)), np.full(10, 20.0)
    for _ in range(25):
        first = opt.ask()
        opt.tell(first, reward(first))
        mixed = (1 - 1 / 200) * q + 1 / 2000
        np.testing.assert_allclose(opt.probabilities, mixed, atol=1e-12)
        second = opt.ask()
        opt.tell(second, reward(second))
        losses = np.zeros(10)
        losses[second.model] = 2.0 * loss(reward(second)) / mixed[second.model]
        q = log_barrier_omd(q, losses, rates)
        inverse = 1.0 / ((1 - 1 / 200) * q + 1 / 2000)
        grown = inverse > rho
        rho[grown], rates[grown] = 2.0 * inverse[grown], rates[grown] * np.exp(1 / np.log(200))


def test_exp3p():
    opt, gains = made(master="exp3p"), np.zeros(10)
    beta = np.sqrt(np.log(10) / (100 * 10))  # 100 steps of two rounds, ten agents
    p = 1.05 * np.sqrt(10 * np.log(10) / 100)
    for _ in range(25):
        weights = np.exp(0.95 * beta * (gains - gains.max()))
        q = (1 - p) * weights / weights.sum() + p / 10
        np.testing.assert_allclose(opt.probabilities, q, atol=1e-12)
        first = opt.ask()
        opt.tell(first, reward(first))
        second = opt.ask()
        opt.tell(second, reward(second))
        gains += ((1.0 - loss(reward(second))) * (np.arange(10) == second.model) + beta) / q


def test_rounds_that_are_given_up_are_asked_for_again():
    opt = made()
    first = opt.ask()
    opt.abandon(first)
    assert not opt.ask().explored
    second = opt.ask()
    assert second.explored
    opt.abandon(second)
    again = opt.ask()
    assert (again.model, again.explored) == (second.model, True)
    assert not opt.ask().explored
    opt.observe(3, 0.2)
    assert opt.ask().explored  # what was measured elsewhere is no part of a step


def test_settings():
    assert made(regret=50.0).eta == pytest.approx(1.0 / (40 * 50 * np.log(200)))
    assert made(regret=1e-6).eta == pytest.approx(np.sqrt(10 / 200))
    with pytest.raises(ValueError, match="data_mode"):
        made(data_mode="shared")
    with pytest.raises(ValueError, match="master"):
        made(master="exp4")
    with pytest.raises(TypeError, match="horizon"):
        alexp.SmoothedCorral(MODELS, DOMAIN)
