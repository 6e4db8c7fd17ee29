"""Expected improvement: the tabulated form against the closed one, and what decides it."""

from math import inf

import numpy as np
import pytest
from scipy import integrate, stats

from alexp.estimation.mixture.mixture import expected_excess, expected_improvement
from alexp.estimation.posteriors import Component


@pytest.mark.parametrize("freedom", [3.0, 7.0, 52.0, inf])
def test_the_closed_form_is_the_integral(freedom: float) -> None:
    law = stats.norm() if freedom == inf else stats.t(freedom)
    for z in (-4.0, -1.0, 0.0, 2.0):
        value, _ = integrate.quad(lambda x, z=z: (z + x) * law.pdf(x), -z, np.inf)
        assert expected_excess(np.array([z]), freedom)[0] == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("freedom", [3.0, 7.0, 52.0, inf])
def test_the_table_equals_the_closed_form(freedom: float) -> None:
    rng = np.random.default_rng(0)
    mean, variance = 3.0 * rng.standard_normal(2000), rng.uniform(size=2000) ** 4
    found = expected_improvement([Component(1.0, 0, 0, mean, variance)], 2000, [2.0], freedom, 1.4)
    std = 1.4 * np.sqrt(variance)
    exact = std * expected_excess((mean - 2.0) / std, freedom)
    near = mean - 2.0 > -5.0 * std
    np.testing.assert_allclose(found[near], exact[near], rtol=1e-4)
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_no_variance_leaves_what_is_certain_and_units_do_not_matter() -> None:
    mean = np.array([-1.0, 0.5, 3.0])
    sure = expected_improvement([Component(1.0, 0, 0, mean, np.zeros(3))], 3, [1.0], 5.0)
    np.testing.assert_allclose(sure, [0.0, 0.0, 2.0], atol=1e-12)
    variance = np.array([0.1, 0.2, 0.3])
    plain = expected_improvement([Component(1.0, 0, 0, mean, variance)], 3, [1.0], 5.0)
    unit = 2.0**-40
    small = expected_improvement([Component(1.0, 0, 0, unit * mean, unit**2 * variance)], 3, [unit], 5.0)
    np.testing.assert_array_equal(small, unit * plain)


def test_every_component_has_its_own_incumbent_and_share() -> None:
    mean, variance = np.array([1.0, 2.0]), np.array([0.5, 0.1])
    parts = [Component(0.25, 0, 0, mean, variance), Component(0.75, 0, 1, mean[::-1], variance)]
    both = expected_improvement(parts, 2, [0.0, 5.0], inf)
    alone = [expected_improvement([part], 2, [at], inf) for part, at in zip(parts, [0.0, 5.0], strict=True)]
    np.testing.assert_allclose(both, alone[0] + alone[1])
