"""The mixture that integrates the scale out against its slow twin: multivariate t evidence and moments, t x t."""

import numpy as np
import pytest
from scipy.stats import multivariate_t

from alexp.estimation.mixture.calibrating import trace_divisors
from alexp.estimation.mixture.mixture import StudentMixture
from alexp.estimation.ridge import bank as module
from alexp.problem.candidates import Choices

GROUPS = [[0, 1], [1, 2], [0, 2, 3], [3]]
RATIOS = (1e-4, 1e-2, 0.5)
DIVISORS = np.array([1.0, 2.0, 0.5, 3.0])


def make(intercept=False, groups=GROUPS, **settings):
    columns = np.concatenate(groups).astype(np.int64)
    offsets = np.cumsum([0] + [len(g) for g in groups]).astype(np.int64)
    divisors = DIVISORS[: len(groups)] if len(groups) <= 4 else np.ones(len(groups))
    return StudentMixture(4, columns, offsets, divisors, intercept, ratio_grid=RATIOS, **settings)


def data(t, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((t, 4)), 7.0 * rng.standard_normal(t)


def feed(mixture, rows, rewards):
    for row, y in zip(rows, rewards, strict=True):
        mixture.update(row, y)
    return mixture


def unit(rewards):
    return np.var(rewards) or np.mean(np.square(rewards)) or 1.0


def covariance(rows, j, ratio):
    """Covariance of t rewards in units of s^2."""
    phi = rows[:, GROUPS[j]] / DIVISORS[j]
    return phi @ phi.T + ratio * np.eye(len(rows))


def slow(rows, rewards, points):
    """Weights, means and variances of the noiseless rewards at the points: dense, one component after the other."""
    t, b0, a0 = len(rewards), unit(rewards), 1.0
    scores, means, variances, noises = [], [], [], []
    for ratio in RATIOS:
        for j, group in enumerate(GROUPS):
            k = covariance(rows, j, ratio)
            scores.append(multivariate_t(np.zeros(t), b0 / a0 * k, df=2 * a0).logpdf(rewards))
            cross = points[:, group] @ rows[:, group].T / DIVISORS[j] ** 2
            gain = cross @ np.linalg.inv(k)
            scale = (b0 + 0.5 * rewards @ np.linalg.solve(k, rewards)) / (a0 + 0.5 * t)
            own = np.sum((points[:, group] / DIVISORS[j]) ** 2, axis=1)
            means.append(gain @ rewards)
            variances.append(scale * (own - np.sum(gain * cross, axis=1)))
            noises.append(ratio * scale)
    weights = np.exp(np.array(scores) - max(scores))
    weights /= weights.sum()
    centre = weights @ np.array(means)
    spread = weights @ (np.array(variances) + (np.array(means) - centre) ** 2)
    return weights, centre, spread, weights @ np.array(noises)


@pytest.mark.parametrize("route", [True, False], ids=["coefficients", "candidates"])
@pytest.mark.parametrize("t", [1, 2, 5, 20])
def test_equals_the_multivariate_t(t, route):
    rows, rewards = data(t)
    points = data(30, seed=4)[0]
    mixture = feed(make(), rows, rewards)
    mixture.grid._by_coefficients = lambda *_: route
    weights, mean, variance, noise = slow(rows, rewards, points)
    got = mixture.moments(mixture.weights(), Choices(None, np.ascontiguousarray(points.T)))
    np.testing.assert_allclose(mixture.weights().ravel(), weights, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(got[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got[1], variance, rtol=1e-9, atol=1e-9)
    assert mixture.noise_variance(mixture.weights()) == pytest.approx(noise, rel=1e-9)


@pytest.mark.parametrize("t", [2, 3, 12])
def test_intercept_leaves_only_contrasts(t):
    """A flat prior of the constant is the evidence of t - 1 orthonormal contrasts, whatever the level."""
    rows, rewards = data(t)
    mixture = feed(make(intercept=True), rows, rewards + 1000.0)
    contrasts = np.linalg.qr(np.column_stack([np.ones(t), np.eye(t)[:, : t - 1]]))[0][:, 1:].T
    scores = [
        multivariate_t(
            np.zeros(t - 1), unit(rewards) * contrasts @ covariance(rows, j, ratio) @ contrasts.T, df=2.0
        ).logpdf(contrasts @ rewards)
        for ratio in RATIOS
        for j in range(4)
    ]
    weights = np.exp(np.array(scores) - max(scores))
    np.testing.assert_allclose(mixture.weights().ravel(), weights / weights.sum(), rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rewards", [[], [3.0], [3.0, 3.0, 3.0], [0.0, 0.0]], ids=str)
def test_degenerate_starts_are_finite_and_in_the_unit_of_the_rewards(rewards, intercept):
    rows, points = data(len(rewards))[0], np.ascontiguousarray(data(9, seed=4)[0].T)
    one, two = (feed(make(intercept), rows, np.array(rewards) * k) for k in (1.0, 2.0**30))
    np.testing.assert_array_equal(one.weights(), two.weights())
    (mean, variance), scaled = (m.moments(m.weights(), Choices(None, points)) for m in (one, two))
    assert np.all(np.isfinite(mean))
    assert np.all(variance > 0.0)
    if any(rewards):
        np.testing.assert_array_equal(scaled[0], mean * 2.0**30)
        np.testing.assert_array_equal(scaled[1], variance * 2.0**60)


def test_draws_have_the_component_distribution():
    """Draws of one component follow a t distribution: quantiles of many of them against the exact ones."""
    from scipy.stats import t as student

    rows, rewards = data(5)
    mixture, point = feed(make(), rows, rewards), np.ascontiguousarray(data(1, seed=3)[0].T)
    cell, model, df = 1, 2, 2 * (1.0 + 2.5)
    alone = np.zeros((len(RATIOS), len(GROUPS)))
    alone[cell, model] = 1.0
    mean, variance = (float(part[0]) for part in mixture.moments(alone, Choices(None, point)))
    rng = np.random.default_rng(0)
    draws = np.array([mixture.draw(cell, model, rng, Choices(None, point))[0] for _ in range(4000)])
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    below = np.array([np.mean(draws < mean + np.sqrt(variance) * student(df).ppf(q)) for q in levels])
    print(f"shares below the exact quantiles {levels}: {below}")
    assert np.all(np.abs(below - levels) < 4 * np.sqrt(levels * (1 - levels) / 4000))


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("intercept", [False, True])
def test_nothing_but_time_depends_on_sleep(monkeypatch, intercept, power):
    groups = [[a, b] for a in range(4) for b in range(a)] * 8
    eager = make(intercept, groups, power=power)
    monkeypatch.setattr(module, "_LAZY", 0)
    lazy = make(intercept, groups, power=power)
    rng, asleep, woken, before = np.random.default_rng(0), 0, 0, 0
    for t in range(160):
        row = rng.standard_normal(4)
        # After 60 rounds the world changes: models long asleep have to come back.
        y = 50.0 * (row[0] - row[1] if t < 60 else row[2] + row[3]) + rng.standard_normal()
        for one in (lazy, eager):
            one.update(row, y)
        weights = lazy.weights()
        np.testing.assert_allclose(weights, eager.weights(), rtol=1e-9, atol=1e-13)
        now = sum(bank.n_models - bank.awake.size for bank in lazy.grid.cells)
        asleep, woken, before = max(asleep, now), woken + max(before - now, 0), now
        assert lazy.noise_variance(weights) == pytest.approx(eager.noise_variance(eager.weights()), rel=1e-9)
    print(f"{asleep} of {3 * len(groups)} asleep at most, {woken} woken")
    assert asleep > len(groups)
    assert woken > 0
    for one, two in zip(lazy.state()["grid"], eager.state()["grid"], strict=True):
        np.testing.assert_array_equal(one["factor"], two["factor"])


def test_divisors_make_the_mean_square_one():
    rng = np.random.default_rng(0)
    table = np.vstack([rng.standard_normal((3, 50)) + 2.0, np.full((1, 50), 0.1), np.zeros((1, 50))])
    columns, offsets = np.array([0, 1, 2, 3, 3, 4]), np.array([0, 2, 4, 5, 6])
    plain, centred = (trace_divisors(table, columns, offsets, intercept) for intercept in (False, True))
    own = [table[[0, 1]], table[[2, 3]], table[[3]], table[[4]]]
    squares = [np.mean(np.sum(rows**2, axis=0)) for rows in own]
    np.testing.assert_allclose(plain**2, [squares[0], squares[1], squares[2], 1.0])
    variances = [np.var(rows, axis=1).sum() for rows in own]
    np.testing.assert_allclose(centred**2, [variances[0], variances[1], 1.0, 1.0])
