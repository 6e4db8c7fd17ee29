"""Regret bounds: the exponential-weights lemmas on random sequences, monotonicity, rates, and the first table."""

import itertools

import numpy as np
import pytest

from alexp.theory import regret


def weights(scores):
    w = np.exp(scores - scores.max())
    return w / w.sum()


@pytest.mark.parametrize("seed", range(20))
def test_exponential_weights_lemmas(seed):
    rng = np.random.default_rng(seed)
    n, m, scale = 60, 5, rng.choice([0.1, 1.0, 30.0])
    returns = scale * (rng.normal(size=(n, m)) + rng.normal(size=m))
    if seed % 2:  # an adversary: the last leader always does badly
        for t in range(1, n):
            returns[t, np.argmax(returns[:t].sum(axis=0))] = -scale
    rate = 1.0 / np.abs(returns).max() / np.sqrt(np.arange(1, n + 1))
    q = np.array([weights(rate[t] * returns[:t].sum(axis=0)) for t in range(n)])
    ahead = np.array([weights(rate[t] * returns[: t + 1].sum(axis=0)) for t in range(n)])
    best = returns.sum(axis=0).max()
    squares = (q * returns**2).sum(axis=1)
    assert best - (q * returns).sum() <= regret.exponential_weights_bound(rate, m, squares) + 1e-9
    fast = 100.0 * rate  # looking ahead needs no small steps
    ahead_fast = np.array([weights(fast[t] * returns[: t + 1].sum(axis=0)) for t in range(n)])
    assert best - (ahead * returns).sum() <= regret.look_ahead_bound(rate, m) + 1e-9
    assert best - (ahead_fast * returns).sum() <= regret.look_ahead_bound(fast, m) + 1e-9


def test_rates_must_not_increase():
    with pytest.raises(ValueError, match="rates"):
        regret.look_ahead_bound([0.1, 0.2], 3)


def test_complexity_by_hand():
    w = np.log(55 / 0.1)
    assert regret.lasso_complexity(55, 2, 0.1, 0.3) == pytest.approx(0.3 * np.sqrt(1 + np.sqrt(2 * w) + w))
    w = np.log(165 / 0.1) + np.log(np.log(8))
    assert regret.lasso_complexity(165, 8, 0.1, 1.0) == pytest.approx(np.sqrt(1 + np.sqrt(8 * w) + w))


PROBLEM = {"n_models": 55, "dimension": 2, "delta": 0.1, "noise_std": 0.1, "norm_bound": 1.0, "c_min": 0.3}


def test_formal_rate_grows_like_three_quarters_and_logarithmically_in_models():
    n = np.array([1e10, 1e12])
    total = regret.regret_rate(n, **PROBLEM).sum
    assert np.log(total[1] / total[0]) / np.log(100) == pytest.approx(0.75, abs=0.03)
    sizes = [10, 10**3, 10**9]
    totals = [regret.regret_rate(1e6, **{**PROBLEM, "n_models": m}).sum[0] for m in sizes]
    assert totals[2] < 12 * totals[0]
    assert all(a < b for a, b in itertools.pairwise(totals))


def test_formal_rate_by_hand():
    bound = regret.regret_rate(100.0, **PROBLEM, constants=(1.0, 0, 0, 0, 0, 1.0))
    assert bound.sum[0] == pytest.approx(100**0.75)
    with pytest.raises(ValueError, match="six"):
        regret.regret_rate(1.0, **PROBLEM, constants=(1.0,))


def test_explicit_bound_is_trivial_early_and_sublinear_late():
    bound = regret.regret_bound(3_000_000, 4, 1, 0.1, noise_std=0.05, norm_bound=1.0, c_min=1.0, gamma=1.0)
    table = bound.to_dataframe()
    assert next(iter(table.columns)) == "n"
    assert table["total"].iloc[100] == table["trivial"].iloc[100]
    late = table.iloc[[1_000_000, 2_999_999]]
    assert np.all(late["total"] < late["trivial"])
    growth = np.log(late["sum"].iloc[1] / late["sum"].iloc[0]) / np.log(late["n"].iloc[1] / late["n"].iloc[0])
    assert growth < 0.9
    assert np.all(np.diff(table["total"]) > -1e-9)


@pytest.mark.parametrize(("name", "worse"), [("c_min", 0.1), ("noise_std", 0.5), ("n_models", 50), ("delta", 0.01)])
def test_explicit_bound_is_monotone(name, worse):
    problem = {"n_models": 4, "dimension": 1, "delta": 0.1, "noise_std": 0.05, "norm_bound": 1.0, "c_min": 1.0}
    easy = regret.regret_bound(200_000, **problem).sum
    hard = regret.regret_bound(200_000, **{**problem, name: worse}).sum
    assert np.all(hard >= easy - 1e-9)


def test_the_first_table_as_a_figure():
    figure, table = regret.plot_rates(horizon=1000)
    assert len(figure.axes[0].lines) == table["curve"].nunique() == 4
    by_curve = {name: part.set_index("n_models")["rate"] for name, part in table.groupby("curve")}
    growth = {name: float(part.iloc[-1] / part.iloc[0]) for name, part in by_curve.items()}
    assert growth["ALExp, log M"] < 100 < 1000 < growth["black-box selection, poly M (needs n)"]
    assert growth["ALExp, concatenation normalised: poly M"] > 1e6
    with pytest.raises(ValueError, match="n_models"):
        regret.compare_rates([1])
