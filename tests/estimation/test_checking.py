"""The e-process against slow twins: processes by whole covariance matrices, the null by constrained least squares."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import alexp
from alexp.estimation import checking
from alexp.estimation.checking import EFFECTS, FACTORS, SCALES, Alternative, Ledger, Monitor, Rewards
from alexp.estimation.credible import residual_noise
from alexp.estimation.factory import posteriors

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((25, 6)) * np.array([1.0, 5.0, 0.2, 1.0, 0.0, 1.0]) + 0.3
INDICES = RNG.integers(0, 12, 20)
REWARDS = TABLE[INDICES, 0] + 0.3 * RNG.standard_normal(20)
NOISE, SIZE = 0.2, 1.3


def models_on(table, groups, intercept=False):
    dictionary = alexp.ModelClass.from_matrices({"f": table}).dictionary
    return alexp.ModelClass(dictionary, groups, intercept=intercept)


def told(n=20, table=TABLE):
    return Rewards(INDICES[:n], REWARDS[:n], table[INDICES[:n]])


def log_density(indices, rewards, centred, first):
    """The mixture's log density of the rewards from `first` on, given those before, from covariance matrices."""
    columns = TABLE - TABLE.mean(axis=0) * centred
    squares = (columns**2).mean(axis=0)
    alive = squares > 1e-9
    columns = columns[:, alive] / np.sqrt(squares[alive])
    kernel = columns @ columns.T / alive.sum() + 1.0
    seen, same, logs = kernel[np.ix_(indices, indices)], indices[:, None] == indices, []
    for scale, factor, effect in product(SCALES, FACTORS, EFFECTS):
        k = (scale * SIZE) ** 2 * seen + (effect * SIZE) ** 2 * same + (factor * NOISE) ** 2 * np.eye(len(indices))
        whole = multivariate_normal(np.zeros(len(k)), k).logpdf(rewards)
        past = multivariate_normal(np.zeros(first), k[:first, :first]).logpdf(rewards[:first]) if first else 0.0
        logs.append(whole - past)
    return logsumexp(logs) - np.log(len(logs))


@pytest.mark.parametrize("centred", [False, True])
def test_the_rival_is_a_mixture_of_gaussian_processes(centred):
    rival = Alternative(np.ascontiguousarray(TABLE.T), SIZE, NOISE, centred)
    for t, (index, y) in enumerate(zip(INDICES, REWARDS, strict=True), 1):
        found = rival.absorb(TABLE[index], int(index), y, counted=t > 2)
        if t > 2:
            assert found == pytest.approx(log_density(INDICES[:t], REWARDS[:t], centred, 2), abs=1e-7)


def test_the_rival_stops_learning_and_goes_on_predicting(monkeypatch):
    """After MOST_TRAINED rewards predictions no longer change, and the product is still one of densities."""
    monkeypatch.setattr(checking, "MOST_TRAINED", 5)
    rival = Alternative(np.ascontiguousarray(TABLE.T), SIZE, NOISE, False)
    for index, y in zip(INDICES[:6], REWARDS[:6], strict=True):
        rival.absorb(TABLE[index], int(index), y)
    assert rival.n_trained == 5
    before = rival.log_density
    grid = np.linspace(-60.0, 60.0, 40_001)
    masses = []
    for y in grid[::200]:  # the density of the next reward, which must not depend on what was looked at
        twin = Alternative(np.ascontiguousarray(TABLE.T), SIZE, NOISE, False)
        for index, value in zip(INDICES[:6], REWARDS[:6], strict=True):
            twin.absorb(TABLE[index], int(index), value)
        masses.append(np.exp(twin.absorb(TABLE[3], 3, y) - before))
    assert np.trapezoid(masses, grid[::200]) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_null_is_never_underestimated(intercept):
    """log E_j is at most that of the constrained maximum likelihood, and not far below it, bound broken or not."""
    models = models_on(TABLE, [[0, 3], [1, 2], [0, 1, 5]], intercept)
    norms = np.array([2.0, 1.5, 0.3])
    monitor = Monitor(models, np.ascontiguousarray(TABLE.T), NOISE, norms, lambda known: SIZE)
    monitor.catch_up(told())
    first = int(intercept)
    best = np.full(3, -np.inf)
    for t in range(1 + first, 21):
        shifted = REWARDS[:t] - (REWARDS[0] if intercept else 0.0)
        density = log_density(INDICES[:t], shifted, intercept, first)
        for j, group in enumerate(models.groups):
            phi, y = TABLE[INDICES[first:t]][:, group], REWARDS[first:t]

            def loss(theta, phi=phi, y=y):
                rest = y - phi @ theta
                return float(np.sum((rest - rest.mean() * intercept) ** 2))

            ball = {"type": "ineq", "fun": lambda theta, s=norms[j]: s**2 - theta @ theta}
            found = minimize(loss, np.zeros(len(group)), constraints=[ball], method="SLSQP", tol=1e-10).fun
            likelihood = -0.5 * len(y) * np.log(2 * np.pi * NOISE**2) - found / (2 * NOISE**2)
            best[j] = max(best[j], density - likelihood)
    largest = monitor._null.largest
    assert np.all(largest <= best + 1e-6)
    assert np.all(largest >= np.where(best > 10.0, 0.7 * best, best - 0.5 - 1e-6))
    assert np.sum(best > 10.0) == 2
    assert monitor.log_e_value == largest.min()
    assert monitor._history[-1][1] == pytest.approx(density, abs=1e-7)
    assert monitor.rejected(0.05).tolist() == np.flatnonzero(largest > np.log(3 / 0.05)).tolist() == [1, 2]


def test_a_monitor_catches_up_in_any_portions_and_starts_again_when_the_past_changes():
    models = models_on(TABLE, [[0, 3], [1, 2]])
    whole, parts = (
        Monitor(models, np.ascontiguousarray(TABLE.T), NOISE, np.ones(2), lambda known: SIZE) for _ in range(2)
    )
    whole.catch_up(told())
    for n in (3, 3, 11, 20):
        parts.catch_up(told(n))
    assert parts.log_e_value == whole.log_e_value
    assert parts._smallest == whole._smallest
    changed = Rewards(INDICES, np.where(np.arange(20) == 4, 7.0, REWARDS), TABLE[INDICES])
    parts.catch_up(changed)
    fresh = Monitor(models, np.ascontiguousarray(TABLE.T), NOISE, np.ones(2), lambda known: SIZE)
    fresh.catch_up(changed)
    assert parts.log_e_value == fresh.log_e_value != whole.log_e_value
    parts.catch_up(told(7))  # and when something was taken back
    again = Monitor(models, np.ascontiguousarray(TABLE.T), NOISE, np.ones(2), lambda known: SIZE)
    again.catch_up(told(7))
    assert parts.log_e_value == again.log_e_value


def test_late_times_are_thinned_out():
    models = models_on(TABLE, [[0, 3]])
    monitor = Monitor(models, np.ascontiguousarray(TABLE.T), NOISE, np.ones(1), lambda known: SIZE)
    rng = np.random.default_rng(1)
    indices = rng.integers(0, 25, 1200)
    rewards = TABLE[indices][:, [0, 3]] @ [0.5, 0.5] + NOISE * rng.standard_normal(1200)
    monitor.catch_up(Rewards(indices, rewards, TABLE[indices]))
    times = [t for t, _ in monitor._history]
    assert times[:1000] == list(range(1, 1001))
    assert 5 < len(times[1000:]) < 15
    assert monitor.contradicted_at(0.05) is None


def test_absurd_rewards_are_contradictions_not_errors():
    models = models_on(TABLE, [[0, 3], [1, 2]])
    for size in (1e9, 1e140):
        monitor = Monitor(models, np.ascontiguousarray(TABLE.T), 1e-9, np.ones(2), lambda known: SIZE)
        monitor.catch_up(Rewards(INDICES, size * REWARDS, TABLE[INDICES]))
        assert monitor.contradicted_at(0.05) == 1
        assert not np.isnan(monitor.log_e_value)


def test_the_ledger_has_the_natural_ridge():
    models = models_on(TABLE, [[0, 3], [1, 2]])
    ledger = Ledger(models, 0.5, np.array([2.0, 4.0]))
    ledger.catch_up(told())
    np.testing.assert_allclose(ledger.ridge, [0.25, 0.125])
    plain = posteriors(models, ledger.ridge)
    for index, y in zip(INDICES, REWARDS, strict=True):
        plain.update(TABLE[index], y)
    np.testing.assert_array_equal(ledger.fits.residuals(), plain.residuals())


def test_residual_noise_is_that_of_the_best_model():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((40, 6))
    rewards = rows[:, 1] - rows[:, 2] + 0.1 * rng.standard_normal(40) + 3.0
    models = models_on(TABLE, [[0, 3], [1, 2], [2, 5]], True)
    phi = np.column_stack([np.ones(40), rows[:, [1, 2]]])
    rest = rewards - phi @ np.linalg.lstsq(phi, rewards, rcond=None)[0]
    assert residual_noise(models, rows, rewards) == pytest.approx(np.sqrt(rest @ rest / 37))
    assert residual_noise(models, rows[:13], rewards[:13]) is None  # too few to tell
