"""Certificates from the shape of the noise: densities, least squares and statements against slow, obvious twins."""

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from alexp.estimation import shape
from alexp.estimation.checking import Rewards
from alexp.problem import ModelClass

SIZES = {"a": 2, "b": 3, "c": 1}


def problem(seed, n=40, intercept=True):
    rng = np.random.default_rng(seed)
    maps = {name: rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d) for name, d in SIZES.items()}
    models = ModelClass.from_matrices(maps, intercept=intercept)
    table = np.hstack(list(maps.values()))
    theta = rng.standard_normal(3) / maps["b"].std(axis=0)
    return rng, models, table, maps["b"] @ theta + 7.0 * intercept


def told(rng, table, rewards, t, noise=0.3):
    index = rng.integers(len(table), size=t)
    return Rewards(index, rewards[index] + noise * rng.standard_normal(t), table[index])


def followed(models, table, data, size=None):
    ledger = shape.ShapeLedger(models, table.T, size)
    ledger.catch_up(data)
    ledger.look(1e-300)  # all models
    return ledger


def root_weights(t):
    return np.sqrt(np.where(np.arange(t) < shape.FIRST, shape.FIRST_WEIGHT, 1.0))


def slow_models_log_density(models, table, data, t0):
    """Of the rewards after the first t0, given these: dense multivariate t-densities.

    A flat constant leaves the density of n - 1 contrasts, and 1 / sqrt(n) for the mean.
    """
    t, lead = len(data), models.intercept
    first = data.rewards[:t0]
    origin = first.mean() if lead else 0.0
    y = (data.rewards - origin) / np.sqrt(np.mean((first - origin) ** 2))
    centre = table.mean(axis=0) if lead else np.zeros(table.shape[1])
    rows = (data.rows - centre) / np.sqrt(np.mean((table - centre) ** 2, axis=0))

    def joint(n):
        logs = []
        contrasts = helmert(n) if lead else np.eye(n)
        for group in models.groups:
            for ratio in shape.RATIOS:
                cov = rows[:n, group] @ rows[:n, group].T / group.size + ratio * np.eye(n)
                cov = contrasts @ cov @ contrasts.T  # df = 2 and scale K are what IG(1, 1) makes of N(0, s^2 K)
                logs.append(multivariate_t(np.zeros(len(cov)), cov, df=2.0).logpdf(contrasts @ y[:n]))
        return logsumexp(logs) - 0.5 * lead * np.log(n)

    return joint(t) - joint(t0)


@pytest.mark.parametrize("intercept", [True, False])
def test_log_density_is_that_of_dense_student_processes(intercept, monkeypatch):
    monkeypatch.setattr(shape, "RATIOS", np.array([1e-2, 1.0]))
    rng, models, table, rewards = problem(1, intercept=intercept)
    data = told(rng, table, rewards, 14)
    ledger = followed(models, table, data)
    now = shape.log_sum(ledger._log_densities(ledger._components)) - ledger._before[0]
    assert now == pytest.approx(slow_models_log_density(models, table, data, shape.FIRST), abs=1e-4)


def test_the_rival_is_a_mixture_of_dense_student_processes_and_blocks_do_not_matter():
    rng = np.random.default_rng(11)
    columns, y, index = rng.standard_normal((3, 20)), rng.standard_normal(9), np.array([0, 4, 4, 7, 2, 0, 9, 5, 4])
    one, blocks = shape.FreeProcesses(columns), shape.FreeProcesses(columns)
    for k in range(9):
        one.absorb(columns[:, index[k]], int(index[k]), y[k])
    for part in (slice(0, 2), slice(2, 3), slice(3, 9)):
        blocks.absorb(columns[:, index[part]].T, index[part], y[part])
    x = ((columns - columns.mean(axis=1)[:, None]) / columns.std(axis=1)[:, None])[:, index].T
    linear, squares = x @ x.T / 3.0, np.square(x[:, None] - x)
    logs = []
    for smooth in (np.exp(-0.5 * squares / 0.4).mean(axis=2), np.exp(-0.5 * squares.mean(axis=2) / 0.5)):
        for ratio in (1e-3, 3e-2, 1.0):
            for effect in (0.0, 0.3):
                cov = 3.0 * linear + smooth + 1.0 + effect * (index[:, None] == index) + ratio * np.eye(9)
                logs.append(multivariate_t(np.zeros(9), cov, df=2.0).logpdf(y))
    assert one.log_density == pytest.approx(logsumexp(logs) - np.log(12.0), abs=1e-8)
    assert blocks.log_density == pytest.approx(one.log_density, abs=1e-10)


def test_what_is_never_learned_any_more_is_still_predicted(monkeypatch):
    monkeypatch.setattr("alexp.estimation.checking.MOST_TRAINED", 4)
    rng = np.random.default_rng(12)
    columns, y, index = rng.standard_normal((2, 20)), rng.standard_normal(9), np.arange(9)
    one, blocks = shape.FreeProcesses(columns), shape.FreeProcesses(columns)
    for k in range(9):
        one.absorb(columns[:, k], k, y[k])
    blocks.absorb(columns[:, :3].T, index[:3], y[:3])
    blocks.absorb(columns[:, 3:9].T, index[3:], y[3:])
    assert blocks.n_trained == 4
    assert blocks.log_density == pytest.approx(one.log_density, abs=1e-10)


def test_every_prediction_is_a_density():
    """A_t, as a function of the last reward, integrates to A_(t-1)."""
    rng, models, table, rewards = problem(2)
    data = told(rng, table, rewards, 9)
    before = followed(models, table, Rewards(data.indices[:-1], data.rewards[:-1], data.rows[:-1])).log_density
    unit = float(followed(models, table, data).units.size[-1])
    # y = centre + unit sinh(u): tails are heavy.
    u = np.linspace(-25.0, 25.0, 4001)
    values = np.sinh(u)
    logs = []
    for value in values:
        changed = Rewards(data.indices, np.append(data.rewards[:-1], data.rewards[0] + unit * value), data.rows)
        logs.append(followed(models, table, changed).log_density)
    total = np.trapezoid(np.exp(np.array(logs) - before) * np.cosh(u), u)
    assert total == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("intercept", [True, False])
def test_least_squares_and_ranks_are_those_of_lstsq(intercept):
    rng, _, table, rewards = problem(3, intercept=intercept)
    maps = {"twice": np.column_stack([table[:, 0], table[:, 0], table[:, 1]]), "all": table[:, :5]}
    models = ModelClass.from_matrices(maps, intercept=intercept)
    table = np.hstack(list(maps.values()))
    data = told(rng, table, rewards, 30)
    ledger = followed(models, table, data)
    unit = float(ledger.units.size[-1])
    roots = root_weights(30)
    for j, group in enumerate(models.groups):
        phi = data.rows[:, group]
        phi = roots[:, None] * (np.column_stack([phi, np.ones(len(phi))]) if intercept else phi)
        fit, _, _, _ = np.linalg.lstsq(phi / np.abs(phi).max(axis=0), roots * data.rewards, rcond=None)
        rest = roots * data.rewards - phi / np.abs(phi).max(axis=0) @ fit
        assert ledger.residuals[j] * unit**2 == pytest.approx(rest @ rest, rel=1e-6)
        assert ledger.ranks[j] == np.linalg.matrix_rank(phi / np.abs(phi).max(axis=0))


def test_bands_are_the_extremes_over_the_ellipsoid():
    rng, models, table, rewards = problem(4)
    data = told(rng, table, rewards, 30)
    ledger = followed(models, table, data)
    delta, unit = 0.05, float(ledger.units.size[-1])
    radius = float(ledger.radii(np.array([1]), delta)[0])
    lower, upper = ledger.fits(delta).at(1, table.T, radius)
    roots, n = root_weights(30), 30 - shape.FIRST
    phi = roots[:, None] * np.column_stack([data.rows[:, models.groups[1]], np.ones(30)])
    at = np.column_stack([table[:, models.groups[1]], np.ones(len(table))])
    fit = np.linalg.lstsq(phi, roots * data.rewards, rcond=None)[0]
    rest = roots * data.rewards - phi @ fit
    limit = n / (2.0 * np.pi * np.e) * np.exp(-(2.0 / n) * (np.log(delta) + ledger.log_density)) * unit**2
    width = np.sqrt(np.einsum("nd,de,ne->n", at, np.linalg.inv(phi.T @ phi), at) * (limit - rest @ rest))
    assert lower == pytest.approx(at @ fit - width, rel=1e-6)
    assert upper == pytest.approx(at @ fit + width, rel=1e-6)
    e_value = ledger.log_density + 0.5 * n * np.log(2.0 * np.pi * np.e * rest @ rest / n / unit**2)
    assert ledger.largest[1] >= e_value - 1e-9


def test_the_first_rewards_make_an_e_value():
    """(1 - w)^(t0/2) exp(w / 2 sum of e^2), e standard normal, has mean one: a numerical integral, one reward."""
    e = np.linspace(-12.0, 12.0, 20001)
    factor = np.sqrt(1.0 - shape.FIRST_WEIGHT) * np.exp(0.5 * shape.FIRST_WEIGHT * e**2)
    assert np.trapezoid(factor * np.exp(-0.5 * e**2) / np.sqrt(2.0 * np.pi), e) == pytest.approx(1.0)
    rng, models, table, rewards = problem(13)
    ledger = followed(models, table, told(rng, table, rewards, 20))
    models_gain = shape.log_sum(ledger._log_densities(ledger._components)) - ledger._before[0]
    cost = 0.5 * shape.FIRST * np.log(1.0 - shape.FIRST_WEIGHT)
    assert ledger.log_density == pytest.approx(models_gain + np.log(1.0 - shape.RIVAL) + cost, abs=0.2)


@pytest.mark.parametrize(("factor", "offset"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e6), (-1e3, -5e4)])
def test_units_and_offset_of_rewards_do_not_matter(factor, offset):
    rng, models, table, rewards = problem(5)
    data = told(rng, table, rewards, 30)
    other = Rewards(data.indices, factor * data.rewards + offset, data.rows)
    one, two = followed(models, table, data), followed(models, table, other)
    assert two.largest == pytest.approx(one.largest, rel=1e-5, abs=1e-5)
    members = np.arange(3)
    radii = one.radii(members, 0.05), two.radii(members, 0.05)
    for j in range(3):
        lower, upper = one.fits(0.05).at(j, table.T, radii[0][j])
        low, high = two.fits(0.05).at(j, table.T, radii[1][j])
        ends = np.sort(factor * np.array([lower, upper]) + offset, axis=0)
        assert np.array([low, high]) == pytest.approx(ends, rel=1e-4, abs=1e-4 * abs(factor))


def test_nothing_is_said_of_a_model_with_as_many_coefficients_as_rewards():
    rng, models, table, rewards = problem(6)
    for t in range(shape.FIRST, shape.FIRST + 4):
        ledger = followed(models, table, told(rng, table, rewards, t))
        assert 1 in ledger.plausible(0.05)
    assert ledger.n_counted <= 4


def test_equal_first_rewards_fix_no_unit():
    rng, models, table, rewards = problem(7)
    data = told(rng, table, rewards, 20)
    data.rewards[:8] = 3.0
    ledger = followed(models, table, data)
    assert ledger.n_counted == 11  # the ninth is the first that differs
    data.rewards[:] = 3.0
    assert followed(models, table, data).n_counted == 0


def test_a_column_that_varies_late_is_not_forgotten():
    """A column that is zero for all typical candidates, and not for one that is measured later, is a coefficient."""
    rng = np.random.default_rng(10)
    rare = np.zeros(40)
    rare[39] = 1.0
    table = np.column_stack([rng.standard_normal(40), rare])
    models = ModelClass.from_matrices({"both": table, "other": rng.standard_normal((40, 1))})
    whole = np.hstack([table, rng.standard_normal((40, 1))])
    rewards = table @ [1.0, 50.0]
    index = np.append(rng.integers(39, size=14), np.full(6, 39))
    data = Rewards(index, rewards[index] + 0.1 * rng.standard_normal(20), whole[index])
    ledger = followed(models, whole[:30], data)
    assert 0 in ledger.plausible(0.05)
    assert ledger.ranks[0] == 3


def test_a_range_bounds_what_no_reward_speaks_of():
    rng, models, table, rewards = problem(8)
    few = np.repeat(np.arange(2), 15)  # two candidates only
    data = Rewards(few, rewards[few] + 0.1 * rng.standard_normal(30), table[few])
    free = followed(models, table, data)
    size = float(np.ptp(rewards))
    kept = followed(models, table, data, size)
    _, upper = free.fits(0.05).at(1, table.T, float(free.radii(np.array([1]), 0.05)[0]))
    assert np.isinf(upper[2:]).all()
    lower, upper = kept.fits(0.05).at(1, table.T, float(kept.radii(np.array([1]), 0.05)[0]))
    assert np.isfinite(upper).all()
    assert np.all((lower <= rewards) & (rewards <= upper))


def test_bands_hold_all_that_fits_and_stays_within_the_range():
    """Coefficients that leave the least squares, and whose rewards are as far from constant as B allows."""
    rng, models, table, rewards = problem(8)
    few = np.repeat(np.arange(2), 15)
    data = Rewards(few, rewards[few] + 0.1 * rng.standard_normal(30), table[few])
    size = 3.0 * float(rewards.std())
    ledger = followed(models, table, data, size)
    lower, upper = ledger.fits(0.05).at(1, table.T, float(ledger.radii(np.array([1]), 0.05)[0]))
    features = table[:, models.groups[1]] / table[:, models.groups[1]].std(axis=0)
    first, second = (data.rewards[shape.FIRST :][few[shape.FIRST :] == k].mean() for k in range(2))
    step, spread = features[1] - features[0], features - features.mean(axis=0)
    beta = step * (second - first) / (step @ step)  # meets both means
    for free in rng.standard_normal((50, 3)):
        free -= step * (free @ step) / (step @ step)  # changes neither
        a, b, c = (np.mean((spread @ u) * (spread @ v)) for u, v in ((free, free), (free, beta), (beta, beta)))
        theta = beta + (np.sqrt(b * b - a * (c - size**2)) - b) / a * free
        values = first + (features - features[0]) @ theta
        assert values.std() == pytest.approx(size)
        assert np.all((lower <= values) & (values <= upper))


def test_true_model_and_bands_are_kept_and_wrong_models_go():
    """200 runs, looked at after every reward; with probability .999 at most 20 of 200 fail if each fails with .05."""
    lost, left = 0, []
    for seed in range(200):
        rng, models, table, rewards = problem([9, seed])
        noise = 0.3 * rewards.std()
        ledger, failed = shape.ShapeLedger(models, table.T), False
        for t in range(1, 41):
            best = int(np.argmax(rewards + rewards.std() * rng.standard_normal(len(table))))  # adaptive enough
            ledger._see(t, best, rewards[best] + noise * rng.standard_normal(), table[best])
            ledger.look(0.05)
            if ledger.n_counted < 2:
                continue
            failed |= 1 not in ledger.plausible(0.05)
            lower, upper = ledger.fits(0.05).at(1, table.T, float(ledger.radii(np.array([1]), 0.05)[0]))
            failed |= bool(np.any((rewards < lower) | (rewards > upper)))
        lost += failed
        left.append(ledger.plausible(0.05).size)
    assert lost <= 20
    assert np.median(left) == 1


@pytest.mark.parametrize(("outside", "noise"), [(0.0, 5.0), (3.0, 0.3)])
def test_statements_do_not_depend_on_when_one_asked(outside, noise):
    rng, models, table, rewards = problem(12)
    data = told(rng, table, rewards + outside * np.cos(9.0 * np.arange(40)), 70, noise)
    once, often = shape.ShapeLedger(models, table.T), shape.ShapeLedger(models, table.T)
    for t in range(1, 71):
        often.catch_up(Rewards(data.indices[:t], data.rewards[:t], data.rows[:t]))
        often.look(1e-300)
    once.catch_up(data)
    once.look(1e-300)
    assert once.history == often.history
    assert len(once.history) < 60
    np.testing.assert_array_equal(once.largest, often.largest)


def test_what_is_left_out_between_looks_makes_statements_weaker_only():
    """Between looks of the schedule: models of little weight, and those ruled out already, are not computed."""
    rng, models, table, rewards = problem(14)
    data = told(rng, table, rewards, 31)
    ledger = followed(models, table, data)  # the last look of the schedule was after 27
    ledger.look(0.05)
    assert ledger._weighty.model.size < ledger._components.model.size
    parts = shape.log_sum(ledger._log_densities(ledger._weighty))
    everything = shape.log_sum(ledger._log_densities(ledger._components))
    assert everything - 0.1 < parts < everything
    gone = np.flatnonzero(ledger.lasting > np.log(20.0))
    assert gone.size
    np.testing.assert_array_equal(ledger.largest[gone], ledger.lasting[gone])
    at_20, at_1000 = ledger.plausible(0.05), 1e-3
    ledger.look(at_1000)
    assert set(at_20) <= set(ledger.plausible(at_1000))
    assert ledger._looked_at == (31, at_1000)
