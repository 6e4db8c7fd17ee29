"""SquareCB, FS-SCB, O2CS-EW, ETS and the evidence mixture: their formulas with NumPy, through what users see."""

from math import log, sqrt

import numpy as np
import pytest

import alexp
from alexp.testing import again

from .plain import Ridge, best_of, fits, problem, reward

NOISE, BOUND = 0.2, 2.0
DATA = [(3, 0.5), (7, -1.0), (3, 0.7), (10, 0.2), (0, -0.4)]


def told(kind, data=DATA, seed=0, intercept=False, **settings):
    models, domain, table = problem(seed, intercept=intercept)
    opt = kind(models, domain, noise_std=NOISE, reward_bound=BOUND, random_state=seed, **settings)
    for index, value in data:
        opt.observe(index, value)
    return opt, models, table


class Forecasts:
    """Vovk-Azoury-Warmuth forecasts of all models before each reward, and exponential weights on their losses."""

    def __init__(self, models, table, data, bound):
        self.losses, self.aggregate, seen = np.zeros(models.n_models), [], []
        for step, (index, value) in enumerate(data):
            y = bound(step + 1)
            now = fits(models, table, NOISE / BOUND, seen)
            forecast = np.array([np.clip(f.mean[index] / (1 + f.norm[index] ** 2), -y, y) for f in now])
            self.aggregate.append((index, float(self.weights(y) @ forecast)))
            self.losses += (value - forecast) ** 2
            seen.append((index, value))

    def weights(self, y):
        q = np.exp(-(self.losses - self.losses.min()) / (8 * y**2))
        return q / q.sum()


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("arms", ["all", "suggestions"])
def test_squarecb_probabilities(arms, intercept):
    opt, models, table = told(alexp.SquareCB, gain=1.3, arms=arms, intercept=intercept, agents=alexp.UCB(1.5, 0.3))
    estimate = Ridge(table, range(5), 1.0, NOISE / BOUND, DATA, intercept).mean
    for available in (None, [1, 4, 6, 8, 9]):
        allowed = np.arange(12) if available is None else np.array(available)
        if arms == "suggestions":
            agents = fits(models, table, 0.3, DATA)
            allowed = np.unique([best_of(f.mean + 1.5 * BOUND * 0.3 * f.norm, allowed) for f in agents])
        k, gamma = allowed.size, 1.3 * sqrt(allowed.size * 6) / BOUND
        assert k > 1
        p = {int(a): 1 / (k + gamma * (estimate[allowed].max() - estimate[a])) for a in allowed}
        best = best_of(estimate, allowed)
        p[best] = 1 - sum(value for a, value in p.items() if a != best)
        for trial in again(opt, 30, available):
            assert trial.propensity == pytest.approx(p[trial.index])


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_fs_scb_weights_and_recommendation(intercept):
    data = DATA[1:] if intercept else DATA
    opt, models, table = told(alexp.FSSCB, data, intercept=intercept)
    if intercept:  # no forecast before the first reward: its loss is the model's own business, not tested here
        mean = sum(q * f.mean for q, f in zip(opt.probabilities, fits(models, table, 0.1, data), strict=True))
    else:
        y = BOUND + 3 * NOISE
        q = Forecasts(models, table, data, lambda t: y).weights(y)
        assert opt.probabilities == pytest.approx(q)
        mean = sum(w * f.mean for w, f in zip(q, fits(models, table, 0.1, data), strict=True))
    assert opt.best().index == int(np.argmax(mean))
    assert opt.best().value == pytest.approx(mean.max())


@pytest.mark.parametrize("delta", [0.1, 0.02])
def test_o2cs_width_weights_and_choice(delta):
    opt, models, table = told(alexp.O2CSEW, delta=delta, scale=0.7)

    def bound(t):
        return BOUND + NOISE * sqrt(2 * log(4 * t * (t + 1) / delta))

    plain, now = Forecasts(models, table, DATA, bound), bound(len(DATA) + 1)
    assert opt.probabilities == pytest.approx(plain.weights(now))
    determinants = [f.log_determinant for f in fits(models, table, NOISE / BOUND, DATA)]
    regret = 8 * now**2 * log(3) + now**2 * max(determinants) + NOISE**2
    distance = 2 * regret + 8 * NOISE**2 * log(2 / delta)
    whole = Ridge(table, range(5), 1.0, NOISE / BOUND, plain.aggregate)
    norm = NOISE / BOUND * BOUND / 0.5  # the smallest scale is 0.5
    width = 0.7 * sqrt(distance + norm**2 - whole.loss)
    assert whole.loss > 1e-3
    assert opt.width() == pytest.approx(width)
    for available in (None, [1, 4, 6, 8]):
        allowed = np.arange(12) if available is None else np.array(available)
        assert again(opt, 1, available)[0].index == best_of(whole.mean + width * whole.norm, allowed)


def test_o2cs_recommends_with_the_constant():
    opt, models, table = told(alexp.O2CSEW, [(i, 5.0 + v) for i, v in DATA], intercept=True)
    now = fits(models, table, NOISE / BOUND, [(i, 5.0 + v) for i, v in DATA])
    mean = sum(q * f.mean for q, f in zip(opt.probabilities, now, strict=True))
    assert opt.best().value == pytest.approx(mean.max())
    assert opt.best().index == int(np.argmax(mean))


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_ets_takes_the_group_that_would_enter_first(intercept):
    """lambda so large that nothing is selected: the largest ||Phi_j'y|| / scale_j; the scales turn the order around."""
    models, domain, table = problem(intercept=intercept)
    opt = alexp.ETS(
        models, domain, noise_std=NOISE, reward_bound=BOUND, n_explore=6, lam=1e6, agent=alexp.UCB(1.5, 0.3),
        random_state=0,
    )  # fmt: skip
    data = []
    for _ in range(6):
        trial = opt.ask()
        data.append((trial.index, reward(trial.index)))
        opt.tell(trial, data[-1][1])
    played = opt.ask()
    y = np.array([value for _, value in data])
    y = y - y.mean() if intercept else y
    phi = table[[i for i, _ in data]]
    plain = [np.linalg.norm(phi[:, g].T @ y) for g in models.groups]
    scaled = [value / s for value, s in zip(plain, models.scales, strict=True)]
    assert int(np.argmax(plain)) != int(np.argmax(scaled))
    first = models.groups[int(np.argmax(scaled))]
    assert opt.selected.tolist() == first.tolist()
    fit = Ridge(table, first, 1.0, 0.3, data, intercept)
    assert played.index == best_of(fit.mean + 1.5 * BOUND * 0.3 * fit.norm, np.arange(12))


def test_mixture_explores_at_its_rate():
    """gamma t^(-1/3): 0.6 / 2 in the eighth round, spread over twelve candidates."""
    opt, _, _ = told(alexp.EvidenceMixture, [*DATA, (1, 0.3), (2, 0.0)], gamma=0.6)
    stated = {round(t.propensity, 9) for t in again(opt, 200)}
    assert stated == {round(0.3 / 12, 9), round(0.3 / 12 + 0.7, 9)}
    assert np.mean([t.explored for t in again(opt, 2000)]) == pytest.approx(0.3, abs=5 * sqrt(0.21 / 2000))


def test_mixture_predicts_in_the_users_direction():
    up, _, _ = told(alexp.EvidenceMixture)
    down, _, _ = told(alexp.EvidenceMixture, [(i, -v) for i, v in DATA], direction="minimize")
    for x in ("item 2", "item 7"):
        mean, std = up.predict(x)
        assert abs(mean) > 0.01
        assert down.predict(x) == pytest.approx((-mean, std))
    assert down.best().index == up.best().index
    assert down.best().value == pytest.approx(-up.best().value)


def test_mixture_predicts_the_average_of_its_models():
    """One noise level, one scale: evidence weights by hand, within plus between models."""
    opt, models, table = told(alexp.EvidenceMixture, light=True)
    now = [
        Ridge(table, g, s * sqrt(len(g)), NOISE / BOUND, DATA)
        for g, s in zip(models.groups, models.scales, strict=True)
    ]
    evidence = np.array([-f.loss / (2 * NOISE**2) - 0.5 * f.log_determinant for f in now])
    q = np.exp(evidence - evidence.max())
    q /= q.sum()
    assert opt.probabilities == pytest.approx(q)
    means, variances = np.array([f.mean for f in now]), np.array([(NOISE * f.norm) ** 2 for f in now])
    mean = q @ means
    variance = q @ (variances + (means - mean) ** 2)
    for index in range(12):
        assert opt.predict(f"item {index}") == pytest.approx((mean[index], sqrt(variance[index])))
