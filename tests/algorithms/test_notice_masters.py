"""Masters over agents against replicas with loops: who plays, what the agent plays, and with which probability."""

from math import log, sqrt

import numpy as np
import pytest

import alexp

from .plain import Ridge, best_of, problem, reward

NOISE, BOUND, RIDGE, BETA = 0.2, 2.0, 0.3, 1.5
AGENT = alexp.UCB(beta=BETA, ridge=RIDGE)


class OwnAgents:
    """UCB agents, each with a history of its own."""

    def __init__(self, models, table):
        self.models, self.table = models, table
        self.data = [[] for _ in range(models.n_models)]

    def action(self, j, allowed):
        columns, scale = self.models.groups[j], self.models.scales[j]
        fit = Ridge(self.table, columns, scale, RIDGE, self.data[j], self.models.intercept)
        return best_of(fit.mean + BETA * BOUND * RIDGE * fit.norm, allowed)


def own(kind, seed=0, intercept=False, **settings):
    models, domain, table = problem(seed, intercept=intercept)
    opt = kind(
        models,
        domain,
        noise_std=NOISE,
        reward_bound=BOUND,
        agents=AGENT,
        data_mode="own",
        random_state=seed,
        **(kind.example | settings),
    )
    return opt, OwnAgents(models, table)


@pytest.mark.parametrize("kind", [alexp.Corral, alexp.D3RB, alexp.ED2RB])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("restricted", [(), (0, 3, 6, 9), (0, 2, 4, 6, 8)], ids=["", "some-restricted", "every-other"])
def test_agents_with_data_of_their_own_plan_again(kind, intercept, restricted):
    """After every reward of its own, and on other candidates, an agent plays what its own data say; not otherwise."""
    opt, agents = own(kind, intercept=intercept)
    changes, last = 0, {}
    if intercept:  # a flat posterior has no best action
        for index in (1, 8):
            opt.observe(index, reward(index))
            for data in agents.data:
                data.append((index, reward(index)))
    for number in range(40):
        available = [number % 12, (number + 5) % 12, (number + 7) % 12] if number % 10 in restricted else None
        allowed = opt.choosable(None if available is None else np.array(available))
        trial = opt.ask(available=available)
        expected = agents.action(trial.model, allowed)
        assert trial.index == expected
        if available is None:
            changes += last.get(trial.model, expected) != expected
            last[trial.model] = expected
        if number % 4:  # some rewards stay out
            opt.tell(trial, reward(trial.index))
            agents.data[trial.model].append((trial.index, reward(trial.index)))
    assert changes > 2  # otherwise nothing was tested


def test_agents_that_draw_lots_draw_again():
    """An agent that has learnt nothing still draws anew once the master has."""
    models, domain, _ = problem()
    agents = alexp.ThompsonSampling(ridge=RIDGE, scale=2.0, draws=1)
    opt = alexp.Corral(models, domain, agents=agents, data_mode="own", horizon=60, random_state=0)
    played = set()
    for _ in range(60):
        trial = opt.ask()
        if trial.model == 0:
            played.add(trial.index)  # never told: agent 0 learns nothing
        else:
            opt.tell(trial, reward(trial.index))
    assert len(played) > 2


class Balance:
    """D3RB and ED2RB as printed: counts, means and potentials."""

    def __init__(self, order, d_min, delta, width, estimating, newcomers):
        m = len(order)
        self.order, self.d_min, self.delta, self.width, self.estimating = order, d_min, delta, width, estimating
        self.n, self.total = np.zeros(m), np.zeros(m)
        self.d, self.potential = np.full(m, d_min), np.zeros(m)
        self.newcomers, self.clipped = newcomers, 0

    def next(self):
        fresh, old = ([j for j in self.order if (self.n[j] == 0) == new] for new in (True, False))
        if fresh and len(old) <= self.newcomers * self.n.sum():
            return fresh[0]
        return min(old, key=lambda j: (self.potential[j], self.order.index(j)))

    def conf(self, j):
        n = self.n[j]
        return self.width * sqrt(log(len(self.order) * log(max(n, np.e)) / self.delta) / n)

    def tell(self, j, gain):
        self.n[j] += 1
        self.total[j] += gain
        played = [i for i in range(len(self.order)) if self.n[i]]
        lead = max(self.total[i] / self.n[i] - self.conf(i) for i in played)
        short = lead - self.total[j] / self.n[j] - self.conf(j)
        root = sqrt(self.n[j])
        if not self.estimating:
            if self.total[j] / self.n[j] + self.d[j] / root + self.conf(j) < lead:
                self.d[j] *= 2
            self.potential[j] = self.d[j] * root
            return
        potential = max(self.d_min, root * short) * root
        before = self.potential[j]
        if before > 0:
            self.clipped += not before <= potential <= 2 * before
            potential = min(max(potential, before), 2 * before)
        self.potential[j] = potential


def balancing(kind, seed, newcomers=1.0):
    models, domain, _ = problem()
    return kind(
        models,
        domain,
        noise_std=NOISE,
        reward_bound=BOUND,
        agents=AGENT,
        d_min=0.02,
        delta=0.05,
        width=0.05,
        newcomers=newcomers,
        loss_range=(-1.0, 3.0),
        random_state=seed,
    )


@pytest.mark.parametrize("kind", [alexp.D3RB, alexp.ED2RB])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("newcomers", [1.0, 0.04])
def test_regret_balancing_round_by_round(kind, seed, newcomers):
    """Rewards depend on the model, in runs long enough for coefficients to double and potentials to be clipped."""
    first, order = balancing(kind, seed), []
    for _ in range(3):
        trial = first.ask()
        first.tell(trial, 1.0)
        order.append(trial.model)
    assert sorted(order) == [0, 1, 2]  # each plays once first
    opt = balancing(kind, seed, newcomers)
    plain = Balance(order, 0.02, 0.05, 0.05, kind is alexp.ED2RB, newcomers)
    rng = np.random.default_rng(seed)
    for number in range(150):
        trial = opt.ask()
        assert trial.model == plain.next(), number
        assert opt.probabilities.tolist() == [float(j == trial.model) for j in range(3)]
        # the first agent is good, then bad, then good again
        value = (2.5, 0.0, 1.0)[trial.model] if number % 60 < 30 else (-1.5, 0.5, 1.0)[trial.model]
        value += 0.2 * rng.standard_normal()
        opt.tell(trial, value)
        plain.tell(trial.model, float(np.clip((value + 1.0) / 4.0, 0.0, 1.0)))
    if newcomers == 1.0:  # else one agent plays alone for so long that little is to be balanced
        assert plain.clipped > 3 if kind is alexp.ED2RB else plain.d.max() > 0.02


def test_equals_play_in_an_order_of_the_seeds():
    models, domain, _ = problem()
    first = {alexp.D3RB(models, domain, random_state=seed).ask().model for seed in range(12)}
    assert first == {0, 1, 2}
