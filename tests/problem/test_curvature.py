"""Bounds on second derivatives, held against finite differences."""

import numpy as np
import pytest

import alexp
from alexp.problem.curvature import curvature_bounds


@pytest.mark.parametrize(
    ("dictionary", "interval"),
    [
        (alexp.Legendre(6), alexp.Interval(-1.0, 1.0)),
        (alexp.Legendre(5, 0.0, 10.0), alexp.Interval(2.0, 10.0)),
        (alexp.Fourier(3, period=2.0), alexp.Interval(-1.0, 1.0)),
        (alexp.Polynomial(5), alexp.Interval(-2.0, 1.0)),
        (alexp.RandomFourier(8, lengthscale=0.3, seed=1), alexp.Interval(-5.0, 5.0)),
    ],
    ids=["legendre", "shifted", "fourier", "polynomial", "random"],
)
def test_second_derivatives_stay_within(dictionary, interval):
    bounds, step = curvature_bounds(dictionary, interval), 1e-4
    x = np.linspace(interval.lower + step, interval.upper - step, 4001)
    second = (dictionary(x + step) - 2 * dictionary(x) + dictionary(x - step)) / step**2
    largest = np.abs(second).max(axis=0)
    assert np.all(largest <= bounds * (1 + 1e-6) + 1e-5)
    assert np.all(largest[bounds > 0] >= 0.5 * bounds[bounds > 0])  # and are not much too large


def test_unknown_families():
    assert curvature_bounds(alexp.Legendre(3), alexp.Interval(-2.0, 1.0)) is None  # beyond where |P_n| <= 1
    assert curvature_bounds(alexp.Polynomial(2, dim=2), alexp.Interval()) is None
    maps = alexp.ModelClass.from_maps({"line": lambda x: x[:, None]}, example=np.zeros(1))
    assert curvature_bounds(maps.dictionary, alexp.Interval()) is None
