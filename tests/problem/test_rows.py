"""Columns that are constant up to rounding, far from zero, huge or tiny: their units and their origin."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import alexp
from alexp.kernels import Linear, Matern
from alexp.problem.kernels import kernel_from_dict
from alexp.problem.matrices import SMALL, Block
from alexp.problem.rows import column_scales, column_units, rounding

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, 40).astype(np.float64)


def column(values, dtype=np.float64):
    return np.stack([RNG.standard_normal(len(values)), values], axis=1).astype(dtype)


def test_ordinary_columns_have_their_standard_deviation_to_the_last_bit():
    x = (RNG.standard_normal((200, 6)) + 5.0) * 10.0 ** np.arange(-3, 3)
    mean = x.sum(axis=0) / len(x)
    assert column_scales(x) == tuple(np.sqrt(np.square(x - mean).sum(axis=0) / len(x)).tolist())
    assert column_units(x).origin() is None


@pytest.mark.parametrize(
    ("values", "varies"),
    [
        (np.where(BITS > 0, 0.1 + 0.2, 0.3), False),  # one rounding apart
        (1.0 + 1e-13 * BITS, False),
        (1.0 + 1e-11 * BITS, True),
        (0.1 + 1e-9 * BITS, True),
        (np.full(40, 7.3), False),
        (np.zeros(40), False),
        (1e-300 * BITS, True),
        (5e-324 * BITS, False),  # a rounding of zero
        (1e100 * BITS, True),
    ],
)
def test_what_is_constant_in_double_precision(values, varies):
    assert (column_scales(column(values))[1] > 0.0) is varies
    if varies:
        exact = np.std((values / np.abs(values).max()).astype(np.longdouble)) * np.abs(values).max()
        assert column_scales(column(values))[1] == pytest.approx(float(exact), rel=1e-4)


@pytest.mark.parametrize(
    ("dtype", "step", "varies"),
    [
        (np.float32, 2.0**-23, False),
        (np.float32, 2.0**-20, True),
        (np.float16, 2.0**-10, False),
        (np.float16, 2.0**-7, True),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_tables_in_less_precision_are_constant_to_their_own_rounding(dtype, step, varies, sparse):
    if sparse and dtype is np.float16:
        pytest.skip("CSR has no half precision")
    table = column(1.0 + step * BITS, dtype)
    assert table[:, 1].max() > table[:, 1].min()  # another number, all the same
    assert (column_scales(csr_array(table) if sparse else table)[1] > 0.0) is varies


def test_rounding_is_that_of_the_stored_numbers():
    assert rounding(np.zeros((1, 1))) == 1e-13
    assert rounding(np.zeros((1, 1), np.float32)) == np.finfo(np.float32).eps
    assert rounding(np.zeros((1, 1), np.float16)) == np.finfo(np.float16).eps
    assert rounding(np.zeros((1, 1), np.int64)) == 1e-13


def test_columns_at_an_offset_of_1e12_vary_as_without_it():
    x = RNG.standard_normal((60, 4)) * [0.3, 1.0, 1.0, 3.0]
    far = x + 1e12  # four digits are left
    np.testing.assert_allclose(column_scales(far), column_scales(far - 1e12), rtol=1e-4)


def test_what_is_far_from_zero_for_its_spread_is_the_origin():
    x = RNG.standard_normal((50, 4)) + np.array([0.0, 500.0, 1e4, 0.0])
    x[:, 3] = 1e7  # constant
    assert np.flatnonzero(column_units(x).origin()).tolist() == [2]
    assert np.flatnonzero(column_units(x).origin(constants=True)).tolist() == [2, 3]
    assert column_units(x[:, :2]).origin(constants=True) is None
    assert column_units(x[:, 3:]).origin(constants=True) is None  # nothing varies beside it
    x[:, 3] = 1.0  # beside columns of its size a constant does no harm
    assert np.flatnonzero(column_units(x).origin(constants=True)).tolist() == [2]


@pytest.mark.parametrize("form", ["double", "single", "csr"])
def test_linear_kernel_of_far_columns_against_exact_numbers(form):
    x = RNG.standard_normal((30, 3)) * [1.0, 0.01, 1.0] + [0.0, 300.0, 4.0]
    x = x.astype(np.float32).astype(np.float64)
    table = {"double": x, "single": x.astype(np.float32), "csr": csr_array(x)}[form]
    kernel = Linear(standardize=True).fitted(table)
    assert kernel.means is not None
    assert np.flatnonzero(kernel.means).tolist() == [1]
    wide = x.astype(np.longdouble)
    z = (wide - np.array(kernel.means)) / wide.std(axis=0)
    np.testing.assert_allclose(kernel(x[:5], table), (z[:5] @ z.T).astype(float), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(kernel.diagonal(table), (z**2).sum(axis=1).astype(float), rtol=1e-10)
    again = kernel_from_dict(kernel.to_dict())
    assert again == kernel
    assert np.array_equal(again(x[:5], table), kernel(x[:5], table))


def test_means_of_linear_kernels_are_checked_and_stored():
    kernel = Linear(scales=(2.0, 0.5), means=(1.0, 0.0))
    assert kernel_from_dict(kernel.to_dict()) == kernel
    assert kernel(np.array([[3.0, 1.0]]), np.array([[5.0, 1.0]])).tolist() == [[6.0]]
    with pytest.raises(ValueError, match="means must be one finite number per column"):
        Linear(scales=(1.0, 1.0), means=(1.0,))
    with pytest.raises(ValueError, match="means must be one finite number per column"):
        Linear(scales=(1.0,), means=(np.inf,))


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-10, 1.0, 1e99])
def test_standardised_kernels_do_not_see_the_unit(size):
    x = RNG.standard_normal((20, 3))
    other = x * np.array([1.0, size, 1.0])
    for kernel in (Linear(standardize=True), Matern(2.5)):
        one, two = kernel.fitted(x), kernel.fitted(other)
        np.testing.assert_allclose(two(other, other), one(x, x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(two(other, csr_array(other)), one(x, x), rtol=1e-9, atol=1e-9)


def test_the_varying_part_of_a_block_leaves_constants_out():
    x = RNG.standard_normal((60, 3))
    assert Block(x).mean_square(True) == pytest.approx(x.var(axis=0).sum(), rel=1e-14)
    large = np.hstack([x, np.where(np.arange(60)[:, None] % 2, 1e16, 1e16 + 2.0)])  # one rounding
    assert Block(large).mean_square(True) == pytest.approx(x.var(axis=0).sum(), rel=1e-9)
    assert Block(np.full((5, 2), 0.1)).mean_square(True) == 0.0


@pytest.mark.parametrize("form", ["small", "large", "csr"])
def test_features_too_large_are_refused_with_their_place(form):
    rows = SMALL // 2 + 1 if form == "large" else 9
    table = np.zeros((rows, 2))
    table[7, 1] = -1e101
    with pytest.raises(ValueError, match=r"features 'a' has -1e\+101 at row 7, column 1; .* use other units"):
        alexp.ModelClass.from_matrices({"a": csr_array(table) if form == "csr" else table})
