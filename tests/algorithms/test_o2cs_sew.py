"""SeqSEW as a forecaster of O2CS: the sampler has the right limit, and the set is right whatever it does."""

from math import log, sqrt

import numpy as np
import pytest

import alexp
from alexp.rivals.o2cs_sew import SparseWeights

SIGMA, P, N = 0.2, 6, 25


def by_quadrature(rows, y, eta, tau):
    """The mean of two coefficients, by sums over a fine grid that is finest at zero."""
    line = np.sinh(np.linspace(-9.0, 9.0, 601)) * (1.5 / np.sinh(9.0))
    width = np.gradient(line)
    u, v = np.meshgrid(line, line, indexing="ij")
    fit = -eta * sum((value - row[0] * u - row[1] * v) ** 2 for row, value in zip(rows, y, strict=True))
    prior = -4.0 * (np.log1p(np.abs(u) / tau) + np.log1p(np.abs(v) / tau))
    weight = np.exp(fit + prior - (fit + prior).max()) * np.outer(width, width)
    return np.array([(weight * u).sum(), (weight * v).sum()]) / weight.sum()


@pytest.mark.parametrize(("eta", "tau"), [(2.0, 0.3), (12.0, 0.05)])
def test_sweeps_have_the_posterior_as_their_limit(eta, tau):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((8, 2))
    y = rows @ [0.5, 0.05] + 0.2 * rng.standard_normal(8)
    weights = SparseWeights(2, 6)
    for row, value in zip(rows, y, strict=True):
        weights.learn(row, value, eta, tau, rng)
    weights.sweeps = 2000
    _, mean = weights.swept(np.zeros(2), eta, tau, np.random.default_rng(1))
    np.testing.assert_allclose(mean, by_quadrature(rows, y, eta, tau), atol=0.02)


def problem(seed):
    """Twenty vectors, rewards linear in two of six columns, and all pairs of columns as models."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((20, P)) / sqrt(P)
    theta = np.zeros(P)
    theta[rng.choice(P, 2, replace=False)] = 1.0 / sqrt(2.0)
    base = alexp.ModelClass.from_matrices({"x": table}, intercept=False)
    return table, theta, alexp.ModelClass.subsets(base.dictionary, 2)


@pytest.mark.parametrize("forecaster", ["sampled", "nothing", "noise"])
def test_the_set_holds_the_truth_at_all_times_whoever_forecasts(forecaster):
    """Also a forecaster that always says zero, and one that says anything: the set is then larger, and right."""
    missed, widths = 0, []
    for seed in range(15 if forecaster == "sampled" else 6):
        table, theta, models = problem(seed)
        opt = alexp.O2CSSEW(
            models, alexp.FiniteSet(table), sweeps=4, noise_std=SIGMA, norm_bound=1.0, reward_bound=1.0,
            random_state=seed,
        )  # fmt: skip
        rng, rows, forecasts, ok = np.random.default_rng(seed), [], [], True
        for _ in range(N):
            if forecaster != "sampled":
                opt._weights.mean = np.zeros(P) if forecaster == "nothing" else rng.standard_normal(P)
            trial = opt.ask()
            rows.append(table[trial.index])
            forecasts.append(float(np.clip(opt.coefficients() @ rows[-1], -1.0, 1.0)))
            opt.tell(trial, float(rows[-1] @ theta + SIGMA * rng.standard_normal()))
            x, f = np.array(rows), np.array(forecasts)
            distance = np.sum((f - x @ theta) ** 2)
            ok &= distance <= 2.0 * opt.regret() + 8.0 * SIGMA**2 * log(10.0)
            v = x.T @ x + SIGMA**2 * np.eye(P)
            off = np.linalg.solve(v, x.T @ f) - theta
            ok &= off @ v @ off <= opt.width() ** 2 * (1.0 + 1e-9)
        missed += not ok
        widths.append(opt.width())
    assert missed == 0  # delta is 0.1, and the inequality far from tight
    if forecaster == "sampled":
        assert np.median(widths) < 3.0  # and it says something: O2CS-EW has about 10 here


def test_the_measured_width_is_small_enough_to_learn_with_theorys_constants():
    ends = {}
    for kind, settings in ((alexp.O2CSSEW, {"sweeps": 8}), (alexp.O2CSEW, {}), (alexp.UniformRandom, {})):
        ends[kind] = []
        for seed in range(3):
            table, theta, models = problem(seed)
            domain = alexp.FiniteSet(table)
            opt = kind(models, domain, noise_std=SIGMA, norm_bound=1.0, reward_bound=1.0, random_state=seed, **settings)
            environment = alexp.Environment(domain, table @ theta, noise_std=SIGMA, random_state=seed)
            ends[kind].append(alexp.simulate(opt, environment, 100).regret[-1])
    means = {kind: np.mean(values) for kind, values in ends.items()}
    assert means[alexp.O2CSSEW] < 0.6 * means[alexp.O2CSEW]
    assert means[alexp.O2CSSEW] < 0.6 * means[alexp.UniformRandom]


def test_temperatures_and_what_is_refused():
    table, _, models = problem(0)
    domain = alexp.FiniteSet(table)
    runs = {}
    for temperature in ("noise", "printed"):
        opt = alexp.O2CSSEW(models, domain, temperature=temperature, sweeps=3, random_state=0)
        for k in range(5):
            opt.tell(opt.ask(), 0.5 + 0.1 * k)
        runs[temperature] = opt
    assert np.abs(runs["printed"].coefficients()).sum() < np.abs(runs["noise"].coefficients()).sum()
    wide = alexp.ModelClass.from_matrices({"x": np.eye(51)}, intercept=False)
    with pytest.raises(ValueError, match="at most 50 columns"):
        alexp.O2CSSEW(wide, alexp.FiniteSet(list(range(51))))
    for wrong in ({"temperature": "cold"}, {"sweeps": 1}, {"delta": 0.0}, {"scale": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            alexp.O2CSSEW(models, domain, **wrong)


def test_features_that_no_arithmetic_takes_together_leave_it_as_it_was():
    weights = SparseWeights(2, 6)
    before = weights.mean
    with np.errstate(all="ignore"):
        weights.learn(np.array([1e160, 1e160]), 1.0, 1.0, 0.5, np.random.default_rng(0))
    assert np.all(np.isfinite(weights.mean))
    np.testing.assert_array_equal(weights.mean, before)
