"""Dictionaries: values one can write down, maps, and the intervals of Legendre polynomials."""

from math import cos, pi, sin

import numpy as np
import pytest
from scipy.special import eval_legendre
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import alexp


def test_legendre():
    # On [0, 4] the point 3 is 1/2: P_2 = (3/4 - 1)/2, P_3 = (5/8 - 3/2)/2.
    assert alexp.Legendre(3, 0.0, 4.0)([3.0])[0].tolist() == [1.0, 0.5, -0.125, -0.4375]
    assert alexp.Legendre(0)([3.0]).tolist() == [[1.0]]


def test_legendre_equals_scipy_and_is_exactly_even_or_odd():
    x = alexp.Interval(resolution=501).points
    table = alexp.Legendre(12)(x)
    for k in range(13):
        np.testing.assert_allclose(table[:, k], eval_legendre(k, x), atol=1e-13)
        assert np.array_equal(table[:, k], (-1) ** k * table[::-1, k])


def test_legendre_off_its_interval():
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(0.0, 100.0, 11)
    with pytest.raises(ValueError, match=r"live on \[-1, 1\].* pass lower=0, upper=100"):
        alexp.ALExp(models, domain)
    alexp.ALExp(alexp.ModelClass.legendre(3, 2, lower=0.0, upper=100.0), domain)
    alexp.ALExp(models, alexp.Interval(-0.5, 0.5, 11))


def test_fourier():
    angle = 2 * pi / 5 * 0.7
    expected = [1.0, cos(angle), sin(angle), cos(2 * angle), sin(2 * angle)]
    assert alexp.Fourier(2, period=5.0)([0.7])[0] == pytest.approx(expected)
    assert alexp.Fourier(2).names == ["1", "cos1", "sin1", "cos2", "sin2"]


def test_polynomial():
    assert alexp.Polynomial(2, dim=2)([[2.0, 3.0]]).tolist() == [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]


def test_random_fourier():
    one, two = (alexp.RandomFourier(50, dim=2, lengthscale=s, seed=3) for s in (1.0, 2.0))
    x = np.array([[0.4, -0.6]])
    assert two(2.0 * x) == pytest.approx(one(x))  # a point twice as far at twice the length
    many = alexp.RandomFourier(200_000, dim=1, lengthscale=0.7, seed=0)
    a, b = many([[0.0]])[0], many([[0.5]])[0]
    assert a @ a == pytest.approx(1.0, abs=0.02)  # the kernel is one at no distance
    assert a @ b == pytest.approx(np.exp(-0.5 * (0.5 / 0.7) ** 2), abs=0.02)


def test_maps_take_callables_and_transformers():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 2))
    scaler = StandardScaler().fit(x)
    cubic = PolynomialFeatures(3).fit(x)
    models = alexp.ModelClass.from_maps({"scaled": scaler, "cubic": cubic, "norm": lambda x: np.linalg.norm(x, axis=1)})
    assert models.n_models == 3
    with pytest.raises(ValueError, match="not been evaluated"):
        _ = models.n_columns
    table = models.matrix(alexp.FiniteSet(x))
    assert table.shape == (30, 2 + 10 + 1)
    assert [g.size for g in models.groups] == [2, 10, 1]
    np.testing.assert_array_equal(models.features(0, x), scaler.transform(x))


def test_maps_on_an_interval_get_vectors_and_transformers_get_columns():
    poly = PolynomialFeatures(2).fit([[0.0]])
    models = alexp.ModelClass.from_maps({"line": lambda x: x, "poly": poly})
    assert models.matrix(alexp.Interval(resolution=7)).shape == (7, 4)
