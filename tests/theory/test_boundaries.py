"""Boundaries: the reference values, the orderings between curves, and the laws of scale."""

import numpy as np
import pytest
from scipy.special import zeta

from alexp.theory import boundaries as b

REFERENCE = {0.0: (2.726, 11.188, 127.405), 1.0: (9.997, 21.424, 137.908), 4.0: (37.212, 64.275, 174.076)}
TIMES = np.concatenate([[1e-3, 0.5], np.geomspace(1, 1e12, 60)])


@pytest.mark.parametrize("c", REFERENCE)
def test_stitched_reference_values(c):
    assert b.stitched_boundary([1.0, 10.0, 1e3], 0.05, c=c) == pytest.approx(REFERENCE[c], abs=5e-4)


def test_stitched_with_other_parameters_by_hand():
    # The defaults of the reference implementation: s = 1.4, eta = 2.
    v, alpha, c, m = 7.0, 0.025, 0.5, 0.3
    level = 1.4 * np.log(np.log(2 * v / m)) + np.log(zeta(1.4) / (alpha * np.log(2) ** 1.4))
    k1, k2 = (2**0.25 + 2**-0.25) / np.sqrt(2), (np.sqrt(2) + 1) / 2
    expected = np.sqrt(k1**2 * v * level + (k2 * c * level) ** 2) + k2 * c * level
    assert float(b.stitched_boundary(v, alpha, c, 1.4, 2.0, m)) == pytest.approx(expected)


def test_stitched_is_flat_below_m_and_scales():
    assert float(b.stitched_boundary(0.0, 0.1, m=5.0)) == float(b.stitched_boundary(5.0, 0.1, m=5.0))
    base = b.stitched_boundary(TIMES, 0.1, c=0.7, m=2.0)
    assert b.stitched_boundary(9 * TIMES, 0.1, c=2.1, m=18.0) == pytest.approx(3 * base)


@pytest.mark.parametrize("c", [0.0, 0.3, 1.0, 4.0, 40.0, 400.0])
@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.5, 0.99])
def test_simplified_never_falls_below_stitched(c, alpha):
    assert np.all(b.simplified_boundary(TIMES, alpha, c) >= b.stitched_boundary(TIMES, alpha, c))


@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.5])
def test_paper_curve_is_valid_without_scale_and_not_with_it(alpha):
    assert np.all(b.paper_boundary(TIMES, alpha) >= b.stitched_boundary(TIMES, alpha))
    assert float(b.paper_boundary(10.0, 0.05, c=40.0)) == pytest.approx(603.5, abs=0.05)
    assert float(b.stitched_boundary(10.0, 0.05, c=40.0)) == pytest.approx(623.5, abs=0.05)


def test_normal_mixture_is_tightest_where_tuned():
    alpha, v = 0.05, 250.0
    best = b.normal_mixture_rho(v, alpha)
    values = [float(b.normal_mixture_boundary(v, alpha, best * f)) for f in (0.5, 0.9, 1.0, 1.1, 2.0)]
    assert values[2] <= min(values) * 1.001
    assert values[2] < float(b.stitched_boundary(v, alpha / 2))
    assert float(b.normal_mixture_boundary(1e12, alpha, best)) > float(b.stitched_boundary(1e12, alpha / 2))


def test_special_cases_are_the_general_curve():
    t = np.array([1, 10, 1000])
    assert b.azuma_boundary(t, 0.01, 0.1) == pytest.approx(b.stitched_boundary(t * 1e-4, 0.1, m=1e-4))
    assert b.bernoulli_boundary(t, 0.1) == pytest.approx(b.stitched_boundary(t / 4, 0.05, m=0.25))
    assert b.bernoulli_bernstein_boundary(t, 0.1) == pytest.approx(b.stitched_boundary(t, 0.05, c=1 / 3))
    assert b.squared_noise_boundary(t, 1.0, 0.1, "printed") == pytest.approx(b.paper_boundary(4 * t, 0.1, 4.0))
    assert np.all(b.squared_noise_boundary(t, 1.0, 0.1) < b.squared_noise_boundary(t, 1.0, 0.1, "printed"))
    assert b.self_normalised_boundary(2.0, 0.5, 0.1) == pytest.approx(0.5 * np.sqrt(2 + 2 * np.log(10)))


def test_count_radius_covers_the_stitched_bernstein_curve_and_its_rate():
    gamma = np.geomspace(0.1, 1e9, 50)
    assert np.all(b.exploration_count_radius(gamma, 0.1) >= b.bernoulli_bernstein_boundary(gamma, 0.05))
    t = np.array([1e8, 1e12])
    assert np.diff(np.log(b.exploration_count_radius(t**0.75, 0.1)))[0] / np.log(1e4) == pytest.approx(3 / 8, abs=0.02)


def test_mgf_of_squared_gaussians_is_below_the_sharp_sub_gamma_bound():
    x = np.linspace(0, 0.4999, 500)
    assert np.all(-x - 0.5 * np.log1p(-2 * x) <= x**2 / (1 - 2 * x) + 1e-15)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: b.stitched_boundary(1.0, 0.0), "alpha"),
    (lambda: b.stitched_boundary(1.0, 0.1, s=1.0), "s and eta"),
    (lambda: b.stitched_boundary(-1.0, 0.1), "variance"),
    (lambda: b.stitched_boundary(1.0, 0.1, c=-1.0), "c must"),
    (lambda: b.squared_noise_boundary(1.0, 1.0, 0.1, "loose"), "constants"),
])  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
