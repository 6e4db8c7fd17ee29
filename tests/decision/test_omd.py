from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alexp.decision.omd import log_barrier_omd


def slow_twin(p, losses, rates):
    """Bisection in exact rational arithmetic on the multiplier of the printed equation."""
    p, losses, rates = ([Fraction(float(v)) for v in values] for values in (p, losses, rates))
    low, high = min(losses), max(losses)
    poles = [loss + 1 / (rate * prob) for loss, rate, prob in zip(losses, rates, p, strict=True)]

    def terms(xi):
        return [1 / (1 / prob + rate * (loss - xi)) for prob, rate, loss in zip(p, rates, losses, strict=True)]

    for _ in range(140):
        middle = Fraction((low + high) / 2).limit_denominator(10**45)
        if middle < min(poles) and sum(terms(middle)) <= 1:
            low = middle
        else:
            high = middle
    values = [float(value) for value in terms(low)]
    return np.array(values) / sum(values)


def random_problem(rng, m, scale):
    p = rng.dirichlet(np.full(m, 0.3)) + 1e-9
    return p / p.sum(), scale * rng.standard_normal(m), 10.0 ** rng.uniform(-3, 2, m)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("m", [2, 7])
def test_equals_exact_bisection(m, scale):
    rng = np.random.default_rng(int(scale * 1000) + m)
    for _ in range(3):
        p, losses, rates = random_problem(rng, m, scale)
        np.testing.assert_allclose(log_barrier_omd(p, losses, rates), slow_twin(p, losses, rates), rtol=0, atol=1e-10)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 200), st.floats(-4, 8), st.integers(0, 10**6))
def test_solves_the_printed_equation(m, log_scale, seed):
    p, losses, rates = random_problem(np.random.default_rng(seed), m, 10.0**log_scale)
    q = log_barrier_omd(p, losses, rates)
    assert abs(q.sum() - 1.0) < 1e-12
    assert np.all(q > 0.0)
    # 1/q_j - 1/p_j = rate_j (loss_j - xi) for one xi: eliminate it with the heaviest coordinate.
    xi = losses - (1.0 / q - 1.0 / p) / rates
    spread = 1.0 / (rates * q) + 1.0 / (rates * p) + np.abs(losses)
    heavy = int(np.argmin(spread))
    assert np.all(np.abs(xi - xi[heavy]) <= 1e-10 * (spread + spread[heavy]))


def test_losses_matter_up_to_a_constant():
    p, losses, rates = random_problem(np.random.default_rng(0), 12, 1.0)
    np.testing.assert_allclose(log_barrier_omd(p, losses + 5.0, rates), log_barrier_omd(p, losses, rates), atol=1e-12)
    np.testing.assert_allclose(log_barrier_omd(p, 7.0, rates), p, atol=1e-12)


def test_the_loser_loses():
    q = log_barrier_omd(np.full(4, 0.25), [0.0, 1.0, 0.0, 0.0], 0.5)
    assert q[1] < 0.25 < q[0] == q[2] == q[3]


def test_equal_rates_do_not_depend_on_the_order_of_losses():
    rng = np.random.default_rng(1)
    steps = rng.uniform(0, 50, (6, 9)) * (rng.random((6, 9)) < 0.2)
    forward = backward = np.full(9, 1.0 / 9.0)
    for row, mirrored in zip(steps, steps[::-1], strict=True):
        forward, backward = log_barrier_omd(forward, row, 0.3), log_barrier_omd(backward, mirrored, 0.3)
    np.testing.assert_allclose(forward, backward, atol=1e-12)


def test_many_distributions_at_once():
    rng = np.random.default_rng(2)
    problems = [random_problem(rng, 6, 3.0) for _ in range(5)]
    stacked = log_barrier_omd(*(np.stack(parts) for parts in zip(*problems, strict=True)))
    for row, (p, losses, rates) in zip(stacked, problems, strict=True):
        np.testing.assert_allclose(row, log_barrier_omd(p, losses, rates), atol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.6], [0.0, 0.0], 1.0), "p must sum to one"),
        (([0.0, 1.0], [0.0, 0.0], 1.0), "p must be positive"),
        (([0.5, 0.5], [0.0, float("nan")], 1.0), "losses must be finite"),
        (([0.5, 0.5], [0.0, 1.0], [1.0, 0.0]), "rates must be positive"),
        (([0.5, 0.5], [0.0, 1.0, 2.0], 1.0), "must broadcast"),
        ((0.5, 1.0, 1.0), "shape"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        log_barrier_omd(*arguments)
