import numpy as np
import pytest

from alexp.ope import sequences
from alexp.ope._kernels import mixture_crossings, planned_crossings
from alexp.ope.sequences import CONSTANT, METHODS, STAKES, Payoffs, lower_sequence
from tests.ope import twins


def heavy(rng, n, chance=0.05):
    """Weights that are mostly zero and have mean 1."""
    return rng.binomial(1, chance, n) / chance * rng.random(n) * 2.0


@pytest.fixture
def payoffs():
    rng = np.random.default_rng(3)
    w = heavy(rng, 700)
    y = rng.binomial(1, 0.6, 700)
    return np.stack([w * y, w * (y - 0.5) + 0.5], axis=1)


def test_mixture_crossings_are_those_of_the_wealth(payoffs):
    lows = np.array([0.0, 21.0])
    means = np.linspace(0.02, 0.98, 40)
    found = mixture_crossings(payoffs, lows, STAKES, means, 20.0)
    slow = [twins.first_time(twins.mixture_wealth(payoffs, lows, STAKES, m), 20.0) for m in means]
    assert found.tolist() == slow
    assert 0 < np.count_nonzero(found < 700) < 40  # some are rejected, some are not


def test_planned_crossings_are_those_of_the_wealth(payoffs):
    plan = 0.3 / np.sqrt(np.arange(1, 701))
    means = np.linspace(0.02, 0.98, 40)
    found = planned_crossings(payoffs[:, 0].copy(), 0.0, plan, 0.5, means, 20.0)
    slow = [twins.first_time(twins.planned_wealth(payoffs[:, 0], 0.0, plan, 0.5, m), 20.0) for m in means]
    assert found.tolist() == slow
    assert 0 < np.count_nonzero(found < 700) < 40


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("zeros", "same"), [(1500, True), (4000, False)])
def test_wealth_that_is_given_up_as_ruined_only_delays(zeros, same):
    """A comeback from 1e-200 is not waited for: bounds may then come later than they could, never earlier."""
    payoffs = np.concatenate([np.zeros(zeros), np.full(2000, 5.0)])[:, None]
    means = np.array([0.2, 0.5, 0.9])
    found = mixture_crossings(payoffs, np.zeros(1), STAKES, means, 20.0)
    slow = [twins.first_time(twins.mixture_wealth(payoffs, [0.0], STAKES, m), 20.0) for m in means]
    assert zeros < found.min() <= found.max() < zeros + 2000
    assert (found.tolist() == slow) == same
    assert np.all(found >= slow)


def test_bounds_are_where_the_wealth_reaches_the_goal(payoffs):
    lows = np.array([0.0, 21.0])
    bounds = lower_sequence(Payoffs(payoffs, lows, 0.0), 0.05, "betting")
    last = bounds[-1]
    step = 1.0 / 129 / 49
    assert twins.mixture_wealth(payoffs, lows, STAKES, last).max() >= 20.0
    assert twins.mixture_wealth(payoffs, lows, STAKES, last + 1.01 * step).max() < 20.0


def test_wealth_falls_with_the_mean(payoffs):
    lows = np.array([0.0, 21.0])
    wealth = [twins.mixture_wealth(payoffs, lows, STAKES, m) for m in np.linspace(0.01, 0.99, 30)]
    assert np.all(np.diff(wealth, axis=0) <= 1e-12)


def test_bernstein_is_its_formula(payoffs):
    for column, low in ((0, 0.0), (1, 21.0)):
        found = lower_sequence(Payoffs(payoffs[:, [column]], np.array([low]), 0.0), 0.05, "bernstein")
        assert found == pytest.approx(np.maximum(twins.bernstein(payoffs[:, column], low, 0.05), 0.0), abs=1e-10)


def test_drifting_bounds_are_where_the_wealth_reaches_the_goal():
    rng = np.random.default_rng(5)
    x = heavy(rng, 3000, 0.3) * rng.binomial(1, 0.7, 3000)
    bound = lower_sequence(Payoffs(x[:, None], np.zeros(1), 0.0), 0.05, "drifting")[-1]
    guesses = np.clip(sequences._moments(x)[0], 0.0, 1.0)
    at = twins.drifting_wealth(x, guesses, 0.0, CONSTANT, bound)
    assert 0.3 < bound < 0.7
    assert np.log(20.0) <= at <= np.log(20.0) + 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_sequences_only_know_the_past(payoffs, method):
    def bounds(values):
        return lower_sequence(Payoffs(values, np.array([0.0, 21.0]), 0.0), 0.05, method)

    changed = payoffs.copy()
    changed[400:] = 0.0
    # The finer grid of means lies around the last bound; before that, bounds are exact up to the coarse one.
    assert bounds(changed)[:400] == pytest.approx(bounds(payoffs)[:400], abs=1.0 / 129)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_hold_at_all_moments_and_are_of_use(method):
    """300 sequences with heavy payoffs: at most 5% may ever be above the mean."""
    rng = np.random.default_rng(11)
    missed, last = 0, []
    for _ in range(300):
        x = heavy(rng, 600) * rng.binomial(1, 0.5, 600)
        bounds = lower_sequence(Payoffs(x[:, None], np.zeros(1), 0.0), 0.05, method)
        missed += bool(np.any(bounds > 0.5))
        last.append(bounds[-1])
    print(f"{method}: {missed} of 300 missed, mean bound {np.mean(last):.3f}")
    assert missed <= 15
    assert np.mean(last) >= {"betting": 0.2, "hedged": 0.05, "bernstein": 0.0, "drifting": 0.04}[method]


def test_drifting_bounds_follow_means_that_change():
    rng = np.random.default_rng(7)
    means = np.where(np.arange(4000) < 1500, 0.9, 0.1)
    truth = np.cumsum(means) / np.arange(1, 4001)
    steady = moving = 0
    for _ in range(20):
        x = Payoffs(rng.binomial(1, means).astype(float)[:, None], np.zeros(1), 0.0)
        moving += bool(np.any(lower_sequence(x, 0.05, "drifting") > truth))
        steady += bool(np.any(lower_sequence(x, 0.05, "betting") > truth))
    assert moving <= 1
    assert steady == 20  # what "one distribution throughout" is needed for


def test_nothing_gives_nothing():
    assert lower_sequence(Payoffs(np.zeros((0, 1)), np.zeros(1), 0.0), 0.05, "betting").size == 0
