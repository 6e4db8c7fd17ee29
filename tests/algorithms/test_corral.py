import numpy as np
import pytest
from scipy.optimize import brentq

import alexp
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.scenarios import SCENARIOS
from alexp_experiments.core.tasks import Task

MODELS, DOMAIN = alexp.ModelClass.legendre(5, 2), alexp.Interval(resolution=50)
M, N = MODELS.n_models, 40


def independent_omd(p, losses, rates):
    """The printed step: a root of sum 1/(1/p + rate (loss - xi)) = 1 between the smallest and the largest loss."""
    low = losses.min()
    pole = (losses + 1.0 / (rates * p)).min()
    high = min(losses.max(), pole - 1e-13 * abs(pole))

    def excess(xi):
        return np.sum(1.0 / (1.0 / p + rates * (losses - xi))) - 1.0

    xi = low if high <= low else brentq(excess, low, high, xtol=1e-15, rtol=1e-15, maxiter=500)
    q = 1.0 / (1.0 / p + rates * (losses - xi))
    return q / q.sum()


class Reference:
    """Corral after the corrected pseudo-code, fed with what an instance asked and was told."""

    def __init__(self, eta, gamma, horizon):
        self.p, self.rates, self.rho = np.full(M, 1 / M), np.full(M, eta), np.full(M, 2.0 * M)
        self.gamma, self.beta = gamma, np.exp(1.0 / np.log(horizon))

    @property
    def mixed(self):
        return (1 - self.gamma) * self.p + self.gamma / M

    def update(self, start, model, loss):
        losses = np.zeros(M)
        losses[model] = loss
        self.p = independent_omd(start, losses, self.rates)
        for j in range(M):
            if 1.0 / self.mixed[j] > self.rho[j]:
                self.rho[j] = 2.0 / self.mixed[j]
                self.rates[j] *= self.beta


def play(corral, reward, rounds=N):
    for _ in range(rounds):
        trial = corral.ask()
        y = reward(trial)
        yield trial, y
        corral.tell(trial, y)


def wavy(trial):
    return float(np.sin(3.0 * trial.x) + 0.1 * np.cos(40.0 * trial.x))


@pytest.mark.parametrize("eta", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("data_mode", ["own", "shared"])
def test_probabilities_equal_an_independent_corral(eta, data_mode):
    corral = alexp.Corral(
        MODELS, DOMAIN, horizon=N, eta=eta, gamma=0.02, data_mode=data_mode, noise_std=0.1, random_state=2
    )
    reference = Reference(eta, 0.02, N)
    for trial, y in play(corral, wavy):
        np.testing.assert_allclose(corral.probabilities, reference.mixed, rtol=0, atol=1e-8)
        loss = np.clip((1.3 - y) / 2.6, 0.0, 1.0)
        reference.update(reference.p, trial.model, loss / reference.mixed[trial.model])
    if eta == 5.0:
        assert reference.rates.max() > eta  # the growth of rates has been part of this


def test_released_code_variant():
    corral = alexp.Corral(MODELS, DOMAIN, horizon=N, eta=1.0, gamma=1e-4, variant="released-code", random_state=2)
    reference = Reference(1.0, 1e-4, N)
    for trial, y in play(corral, wavy, 20):
        np.testing.assert_allclose(corral.probabilities, reference.mixed, rtol=0, atol=1e-8)
        reference.update(reference.mixed, trial.model, -y / reference.mixed[trial.model] ** 2)
        reference.rho = reference.rho.astype(int).astype(float)
    assert corral.data_mode == "own"


def test_late_rewards_are_weighted_by_the_probability_of_their_own_round():
    corral = alexp.Corral(MODELS, DOMAIN, horizon=N, eta=0.4, gamma=0.0, random_state=0)
    reference = Reference(0.4, 0.0, N)
    late = corral.ask()
    drawn_with = reference.mixed[late.model]
    for trial, y in play(corral, wavy, 10):
        loss = np.clip((1.3 - y) / 2.6, 0.0, 1.0)
        reference.update(reference.p, trial.model, loss / reference.mixed[trial.model])
    corral.tell(late, 0.0)
    reference.update(reference.p, late.model, 0.5 / drawn_with)
    np.testing.assert_allclose(corral.probabilities, reference.mixed, atol=1e-8)
    assert abs(drawn_with - reference.mixed[late.model]) > 1e-3  # so it did matter


def test_propensity_counts_every_agent_that_suggests_the_action():
    corral = alexp.Corral(MODELS, DOMAIN, horizon=N, random_state=1)
    trial = corral.ask()  # without data all agents want an end of the interval, where all features are largest
    assert abs(trial.x) == 1.0
    assert trial.propensity > 1.5 / M


def test_own_data_trains_only_the_drawn_agent():
    corral = alexp.Corral(MODELS, DOMAIN, horizon=N, data_mode="own", random_state=0)
    trial = corral.ask()
    corral.tell(trial, 0.7)
    means = np.array([corral._pool.mean(j, MODELS.matrix(DOMAIN)) for j in range(M)])
    assert np.flatnonzero(np.abs(means).max(axis=1)).tolist() == [trial.model]


def test_measurements_from_elsewhere_train_agents_and_leave_the_weights():
    for mode in ("own", "shared"):
        corral = alexp.Corral(MODELS, DOMAIN, horizon=N, data_mode=mode, random_state=0)
        before = corral.probabilities
        corral.observe(7, 1.5)
        assert np.array_equal(corral.probabilities, before)
        assert all(np.abs(corral._pool.mean(j, MODELS.matrix(DOMAIN))).max() > 0.1 for j in range(M))


def test_loss_range_follows_the_direction():
    up = alexp.Corral(MODELS, DOMAIN, horizon=N, loss_range=(-1.0, 3.0), random_state=0)
    down = alexp.Corral(MODELS, DOMAIN, horizon=N, loss_range=(-3.0, 1.0), direction="minimize", random_state=0)
    for _ in range(10):
        a, b = up.ask(), down.ask()
        assert a == b
        up.tell(a, wavy(a))
        down.tell(b, -wavy(b))
    assert np.array_equal(up.probabilities, down.probabilities)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"data_mode": "mine"}, "data_mode must be one of 'own', 'shared'"),
        ({"variant": "fast"}, "variant must be one of 'corrected', 'released-code'"),
        ({"horizon": 1}, "horizon must be at least 2"),
        ({"eta": -1.0}, "eta must be positive"),
        ({"loss_range": (1.0, 1.0)}, "loss_range must be"),
        ({"loss_range": (1.0, 2.0, 3.0)}, "loss_range must be"),
    ],
)
def test_bad_settings(setting, message):
    with pytest.raises(ValueError, match=message):
        alexp.Corral(MODELS, DOMAIN, **({"horizon": 10} | setting))


def test_data_mode_matters_more_than_the_master():
    """Regret at s = 2, p = 10 over 20 seeds: about 30 with shared data, about 70 with own data."""
    scenario = SCENARIOS["easy"].with_(resolution=400)
    final = {
        name: np.array([r.regret[-1] for r in sweep(
            [Task(scenario, name, {}, seed) for seed in range(20)], workers=1, cache=None, progress=False)])
        for name in ("corral", "corral-own")
    }  # fmt: skip
    for name, low, high in (("corral", 18.0, 45.0), ("corral-own", 50.0, 95.0)):
        error = final[name].std(ddof=1) / np.sqrt(20)
        print(f"{name}: {final[name].mean():.1f} +- {error:.1f}")
        assert low < final[name].mean() < high
