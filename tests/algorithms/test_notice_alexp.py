"""ALExp against a slow replica of Algorithm 1: propensities, returns and probabilities round by round."""

from math import log, sqrt

import numpy as np
import pytest

import alexp
from alexp.problem.candidates import NOTHING
from alexp.testing import again

from .plain import best_of, fits, problem, reward

NOISE, BOUND, RIDGE, BETA = 0.2, 2.0, 0.3, 1.5
GAMMA, ETA, LAM, DELTA = 0.8, 0.7, 0.05, 0.2


class Plain:
    """Algorithm 1 with loops. What it takes from the library: the group Lasso and the design's weights."""

    def __init__(self, models, domain, table, returns="as-printed", clip=False, exploration=None):
        self.models, self.table, self.data = models, table, []
        self.lasso = alexp.GroupLasso(tol=1e-12).bind(models)
        self.returns, self.clip = np.zeros(models.n_models), clip
        self.retrospective, self.scored = returns == "retrospective", 0
        self.played = []  # one list of M actions per reward
        pi = alexp.Uniform() if exploration is None else exploration
        self.pi = pi.design(models, domain).weights

    def tell(self, index, value):
        self.data.append((index, value))
        self.lasso.append(self.table[index], value)

    def lambda_t(self, t):
        m, d = self.models.n_models, self.models.dimension
        w = log(2 * m / DELTA) + (max(log(log(d)), 0.0) if d > 1 else 0.0)
        return LAM * 2 * NOISE / sqrt(t) * sqrt(1 + 12 / sqrt(2) * w + 5 / sqrt(2) * sqrt(d * w))

    def policies(self, allowed):
        return [best_of(f.mean + BETA * BOUND * RIDGE * f.norm, allowed) for f in self.fits(allowed)]

    def fits(self, allowed):
        return fits(self.models, self.table, RIDGE, self.data, allowed)

    def estimate(self):
        fit = self.lasso.solve(self.lambda_t(len(self.data)))
        values = self.table @ fit.beta + fit.intercept
        return np.clip(values, -BOUND, BOUND) if self.clip else values

    def look(self, allowed):
        """Returns of all agents if the next round is played on `allowed`, and what they would play."""
        actions = self.policies(allowed)
        fresh = len(self.data) - self.scored
        if fresh == 0:
            return self.returns, actions, self.played
        played = self.played + [actions] * fresh
        if self.retrospective:
            values = self.estimate()
            return np.array([sum(values[round_[j]] for round_ in played) for j in range(len(actions))]), actions, played
        return self.returns + fresh * self.estimate()[actions], actions, played

    def weights(self, returns):
        scores = ETA / (BOUND * sqrt(max(len(self.data), 1))) * returns
        q = np.exp(scores - scores.max())
        return q / q.sum()

    def ask(self, allowed):
        """Probability of every candidate in this round."""
        self.returns, actions, self.played = self.look(allowed)
        self.scored = len(self.data)
        q, p = self.weights(self.returns), np.zeros(self.table.shape[0])
        gamma = min(1.0, GAMMA / (len(self.data) + 1) ** 0.25)
        pi = self.pi[allowed] if self.pi[allowed].sum() > 0 else np.ones(len(allowed))
        p[allowed] += gamma * pi / pi.sum()
        for j, action in enumerate(actions):
            p[action] += (1 - gamma) * q[j]
        return p, actions


def pair(seed=0, intercept=False, **settings):
    models, domain, table = problem(seed, intercept=intercept)
    plain = Plain(
        models,
        domain,
        table,
        settings.get("returns", "as-printed"),
        settings.get("clip_returns", False),
        settings.get("exploration"),
    )
    opt = alexp.ALExp(
        models,
        domain,
        noise_std=NOISE,
        reward_bound=BOUND,
        agents=alexp.UCB(beta=BETA, ridge=RIDGE),
        schedules=alexp.Schedules(gamma=GAMMA, eta=ETA, lam=LAM, delta=DELTA),
        oracle=alexp.GroupLasso(tol=1e-12),
        random_state=seed,
        **settings,
    )
    return opt, plain


EVERYONE = np.arange(12)
ROUNDS = [None, [1, 4, 7, 9], None, [0, 2, 3], [5, 11], None, [3, 6, 8, 10], None]


@pytest.mark.parametrize("look", [False, True], ids=["", "looked-at"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"exploration": alexp.DOptimal()},
        {"returns": "retrospective"},
        {"clip_returns": True},
        {"returns": "retrospective", "exploration": alexp.DOptimal()},
        {"intercept": True},
    ],
    ids=lambda s: "+".join(map(str, s)) or "plain",
)
def test_rounds_as_in_the_pseudo_code(settings, look):
    """Full and restricted rounds mixed, with zero to two rewards in between; looking ahead changes nothing."""
    scale = 4.0 if settings.get("clip_returns") else 1.0  # estimates beyond the bound on both sides
    opt, plain = pair(**settings)
    opt._pending_now = lambda: NOTHING  # pending trials do not count, as in the pseudo-code: it has none
    for number, available in enumerate(ROUNDS):
        allowed = EVERYONE if available is None else np.array(available)
        if look:
            returns, _, _ = plain.look(EVERYONE)
            assert opt.cumulative_returns == pytest.approx(returns, abs=1e-7)
            assert opt.probabilities == pytest.approx(plain.weights(returns), abs=1e-8)
        p, actions = plain.ask(allowed)
        for trial in [opt.ask(available=available) for _ in range(4)]:
            assert trial.propensity == pytest.approx(p[trial.index], abs=1e-8)
            assert trial.explored or trial.index == actions[trial.model]
        returns, _, _ = plain.look(EVERYONE)
        assert opt.probabilities == pytest.approx(plain.weights(returns), abs=1e-8)
        for waiting in opt.pending()[: number % 3]:
            value = scale * reward(waiting.index)
            opt.tell(waiting, value)
            plain.tell(waiting.index, value)
    assert opt.n_told > 5


def test_clipping_works_on_both_sides():
    opt, plain = pair(clip_returns=True)
    for index in range(12):
        opt.observe(index, -10.0)
        plain.tell(index, -10.0)
    raw = np.array([plain.table @ plain.lasso.solve(plain.lambda_t(12)).beta])
    assert raw.min() < -BOUND
    low = pair(clip_returns=True)[0]
    low.observe(3, -50.0)
    assert low.cumulative_returns.min() >= -BOUND - 1e-12
    high = pair(clip_returns=True)[0]
    high.observe(3, 50.0)
    assert high.cumulative_returns.max() <= BOUND + 1e-12


def test_first_round_explores_with_gamma_one():
    """gamma_1 = gamma itself: with gamma = 0.8 about four of five first asks explore, and the propensity says so."""
    opt, _ = pair(seed=3)
    trials = again(opt, 2000)
    assert np.mean([trial.explored for trial in trials]) == pytest.approx(0.8, abs=5 * sqrt(0.16 / 2000))
    lonely = [t for t in trials if t.explored and t.propensity < 0.2]
    assert lonely
    assert min(t.propensity for t in trials) == pytest.approx(0.8 / 12)


def test_an_agents_own_view_has_its_std_in_the_units_of_the_reward():
    seen = []

    class Looks(alexp.Agent):
        ridge = RIDGE

        def policy(self, view):
            seen.append((view.model, view.mean.copy(), view.std.copy(), view.features.copy(), view.n_observations))
            return 0

    models, domain, table = problem()
    opt = alexp.ALExp(models, domain, noise_std=NOISE, reward_bound=BOUND, agents=Looks(), random_state=0)
    data = [(3, 0.5), (7, -1.0), (3, 0.7)]
    for index, value in data:
        opt.observe(index, value)
    opt.ask()
    assert [model for model, *_ in seen] == [0, 1, 2]
    for model, mean, std, features, n in seen:
        assert n == 3
        order = [int(np.flatnonzero((table == row).all(axis=1))[0]) for row in features]
        fit = fits(models, table, RIDGE, data)[model]
        assert mean == pytest.approx(fit.mean[order])
        assert std == pytest.approx(BOUND * RIDGE * fit.norm[order])
