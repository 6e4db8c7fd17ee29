"""Kernels against scikit-learn, brute force and their own definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from alexp.common.codec import pack, unpack
from alexp.kernels import RBF, Function, Linear, Matern, Precomputed, Product, Sum, Tanimoto
from alexp.problem._kernels import narrow_distances, narrow_products
from alexp.problem.kernels import kernel_from_dict
from alexp.problem.rows import squared_distances
from alexp.problem.shared_kernels import SharedKernels


def points(n=40, d=5, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * np.array([1.0, 10.0, 0.1, 3.0, 1.0])[:d]


def counts(n=30, d=12, seed=1):
    return np.random.default_rng(seed).poisson(0.4, (n, d)).astype(float)


def tanimoto_by_hand(x, z):
    out = np.empty((len(x), len(z)))
    for i, a in enumerate(x):
        for k, b in enumerate(z):
            both = sum(float(u * v) for u, v in zip(a, b, strict=True))
            either = sum(float(u * u) for u in a) + sum(float(v * v) for v in b) - both
            out[i, k] = both / either if either > 0 else 1.0
    return out


ALL = [
    Linear(),
    Linear(standardize=True).fitted(points()),
    Tanimoto(),
    Matern(0.5).fitted(points()),
    Matern(1.5, lengthscale=0.5).fitted(points()),
    Matern(2.5, lengthscale=(0.5, 1.0, 2.0, 4.0, 0.25)).fitted(points()),
    Matern(2.5, lengthscale=3.0, relative=False),
    RBF(0.7).fitted(points()),
    RBF(0.7, standardize=False).fitted(points()),
    Linear() + 0.5 * Matern(2.5).fitted(points()),
    Matern(2.5, relative=False).on([0, 3]) * RBF(2.0, relative=False).on([1]),
    2.0 * (Tanimoto() + Linear()) * Matern(1.5, relative=False),
]


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("lengthscale", [0.8, (0.5, 1.0, 2.0, 4.0, 0.25)])
def test_matern_is_that_of_scikit_learn(nu, lengthscale):
    reference = pytest.importorskip("sklearn.gaussian_process.kernels").Matern(length_scale=lengthscale, nu=nu)
    x, z = points(7), points(20, seed=3)
    own = Matern(nu, lengthscale=lengthscale, relative=False)
    np.testing.assert_allclose(own(x, z), reference(x, z), rtol=1e-12, atol=1e-300)


def test_rbf_and_linear_are_those_of_scikit_learn():
    reference = pytest.importorskip("sklearn.gaussian_process.kernels")
    x, z = points(7), points(20, seed=3)
    np.testing.assert_allclose(RBF(1.3, relative=False)(x, z), reference.RBF(1.3)(x, z), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(Linear()(x, z), reference.DotProduct(sigma_0=0.0)(x, z), rtol=1e-12)


def test_matern_by_its_closed_forms():
    r = np.array([0.0, 0.3, 1.0, 4.0])
    origin = np.zeros((1, 1))
    assert Matern(0.5, relative=False)(origin, r[:, None])[0] == pytest.approx(np.exp(-r), rel=1e-14)
    a = np.sqrt(3.0) * r
    assert Matern(1.5, relative=False)(origin, r[:, None])[0] == pytest.approx((1 + a) * np.exp(-a), rel=1e-14)
    a = np.sqrt(5.0) * r
    expected = (1 + a + a * a / 3) * np.exp(-a)
    assert Matern(2.5, relative=False)(origin, r[:, None])[0] == pytest.approx(expected, rel=1e-14)


def test_tanimoto_by_hand():
    x, z = counts(), counts(seed=2)
    z[3] = 0.0
    np.testing.assert_allclose(Tanimoto()(x, z), tanimoto_by_hand(x, z), rtol=1e-14)
    zeros = np.zeros((2, 12))
    assert np.array_equal(Tanimoto()(zeros, zeros), np.ones((2, 2)))
    assert np.array_equal(Tanimoto()(zeros[:1], x[x.any(axis=1)])[0], np.zeros(int(x.any(axis=1).sum())))


def test_tanimoto_of_real_numbers():
    x = points(10)
    np.testing.assert_allclose(Tanimoto()(x, x), tanimoto_by_hand(x, x), rtol=1e-12)


@pytest.mark.parametrize("kernel", [k for k in ALL if k.is_stationary], ids=str)
def test_equal_rows_are_exactly_alike(kernel):
    """Also where coordinates are huge, so that norms and inner products would cancel."""
    x = points() * 1e3 + 1e9
    assert np.array_equal(np.diag(kernel(x, x)), np.ones(len(x)))
    assert np.array_equal(kernel.diagonal(x), np.ones(len(x)))
    assert kernel(x[:1], np.vstack([x[1], x[0]]))[0, 1] == 1.0


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_the_diagonal_is_the_diagonal(kernel):
    x = np.abs(points())
    np.testing.assert_allclose(kernel.diagonal(x), np.diag(kernel(x, x)), rtol=1e-12)


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_one_point_at_a_time_is_all_at_once_bit_for_bit(kernel):
    """Whatever the block a row falls into: 30,000 rows are several blocks."""
    x, z = np.abs(points(3)), np.abs(points(30_000, seed=5))
    together = kernel(x, z)
    for i in range(3):
        assert np.array_equal(kernel(x[i : i + 1], z)[0], together[i])
    assert np.array_equal(kernel(x, z[12_345:12_347]), together[:, 12_345:12_347])


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_symmetric(kernel):
    x = np.abs(points())
    gram = kernel(x, x)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12, atol=1e-13)


rows = st.lists(
    st.lists(st.integers(-4, 4).map(float), min_size=3, max_size=3), min_size=2, max_size=12
).map(np.array)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(rows, st.sampled_from(range(6)), st.floats(0.1, 5.0))
def test_positive_semidefinite(x, which, scale):
    kernel = [
        Tanimoto(),
        Matern(0.5, lengthscale=scale, relative=False),
        Matern(2.5, lengthscale=scale).fitted(x),
        RBF(scale).fitted(x) + Linear(),
        Tanimoto() * Matern(1.5, lengthscale=scale, relative=False).on([2]),
        scale * Linear() * RBF(scale, relative=False),
    ][which]
    gram = kernel(x, x)
    assert np.linalg.eigvalsh(0.5 * (gram + gram.T))[0] >= -1e-10 * max(1.0, np.trace(gram))


# -- forms of tables ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ALL, ids=str)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows_are_dense_rows(kernel, form):
    z = counts(d=5) * np.array([1.0, 0.5, 3.0, 0.1, 1.0])
    x = z[:4]
    np.testing.assert_allclose(kernel(x, form(z)), kernel(x, z), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(form(z)), kernel.diagonal(z), rtol=1e-12)


def test_sparse_distances_of_close_rows_do_not_cancel():
    z = np.array([[1e6, 0.0, 1e-3], [1e6, 0.0, 2e-3], [1e6, 0.0, 1e-3]])
    found = squared_distances(z[:1], sp.csr_array(z))[0]
    assert found[0] == found[2] == 0.0
    assert found[1] == pytest.approx(1e-6, rel=1e-9)


def test_single_precision_and_files(tmp_path):
    z = points(500)
    np.save(tmp_path / "z.npy", z.astype(np.float32))
    mapped = np.load(tmp_path / "z.npy", mmap_mode="r")
    for kernel in ALL:
        exact = kernel(z[:2], z)
        same = kernel(z[:2], z.astype(np.float32).astype(float))
        np.testing.assert_allclose(kernel(z[:2], mapped), same, rtol=1e-12, atol=1e-14 * np.abs(same).max())
        np.testing.assert_allclose(kernel(z[:2], mapped), exact, rtol=2e-5, atol=2e-5 * np.abs(exact).max())


@pytest.mark.parametrize("d", [1, 7, 8, 29])
def test_compiled_distances_and_products(d):
    """The compiled loops against their plain twins; exactly zero for equal rows."""
    rng = np.random.default_rng(d)
    rows, weights = rng.standard_normal((50, d)).astype(np.float32), rng.uniform(0.1, 2.0, d)
    point, out = rows[7].astype(float), np.empty(50)
    narrow_distances(rows, point, weights, out)
    np.testing.assert_allclose(out, (((rows.astype(float) - point) * weights) ** 2).sum(axis=1), rtol=1e-13)
    assert out[7] == 0.0
    narrow_products(rows, point, out)
    np.testing.assert_allclose(out, (rows.astype(float) * point).sum(axis=1), rtol=1e-12, atol=1e-13)


def test_half_precision():
    z = points(60).astype(np.float16)
    for kernel in ALL:
        assert np.array_equal(kernel(points(1), z), kernel(points(1), z.astype(float)))


def test_columns_of_a_table_in_the_other_order():
    z = points(300)
    for kernel in ALL:
        assert np.array_equal(kernel(z[:2], np.asfortranarray(z)), kernel(z[:2], z))


def test_memory_is_bounded():
    import tracemalloc

    z = np.ones((200_000, 40), dtype=np.float32)
    tracemalloc.start()
    Matern(relative=False)(np.zeros((1, 40)), z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000 * 8 + 8e6  # the result and a few blocks; the table in double precision would be 64 MB


# -- what kernels share ------------------------------------------------------------------------------------------------


def test_shared_kernels_are_the_kernels_bit_for_bit():
    table = np.abs(np.hstack([points(700), points(700, 4, seed=9)]))
    groups = [np.arange(5)] * len(ALL) + [np.array([6, 8]), np.arange(9)]
    kernels = [None if k == Linear() else k for k in ALL] + [
        Matern(1.5, relative=False),
        Sum((Tanimoto().on(range(5)), 0.5 * Matern(0.5).fitted(points()).on(range(5)), Linear().on([7, 5]))),
    ]
    for form in (table, table.astype(np.float32), np.asfortranarray(table)):
        shared = SharedKernels(kernels, groups)(table[3], form)
        for j, (kernel, group) in enumerate(zip(kernels, groups, strict=True)):
            own = (kernel or Linear())(table[3:4, group], np.ascontiguousarray(form[:, group]))
            assert np.array_equal(shared[j], own[0])
    sparse = SharedKernels(kernels, groups)(table[3], sp.csr_array(table))
    np.testing.assert_allclose(sparse, SharedKernels(kernels, groups)(table[3], table), rtol=1e-9, atol=1e-12)


def test_what_is_shared_is_computed_once():
    calls = []

    def product(x, z):
        calls.append(len(z))
        return x @ z.T

    own = Function(product)
    SharedKernels([own, own + Tanimoto(), 2.0 * own], [np.arange(3)] * 3)(np.ones(3), np.eye(3))
    assert calls == [3]


def test_results_go_where_they_are_wanted():
    out = np.full((2, 5), np.nan)
    given_back = SharedKernels([None, Tanimoto()], [np.arange(3)] * 2)(np.ones(3), np.ones((5, 3)), out)
    assert given_back is out
    assert np.array_equal(out, np.array([[3.0] * 5, [1.0] * 5]))


# -- fitting -----------------------------------------------------------------------------------------------------------


def test_lengthscales_are_relative_to_the_median_distance():
    x = points(50)
    fitted = Matern(2.5, lengthscale=0.5).fitted(x)
    z = x / x.std(axis=0)
    distances = np.sqrt(((z[:, None] - z) ** 2).sum(axis=2))[np.triu_indices(50, 1)]
    assert fitted.unit == pytest.approx(np.median(distances), rel=1e-12)
    assert fitted.scales == pytest.approx(tuple(x.std(axis=0)), rel=1e-12)
    expected = Matern(2.5, lengthscale=0.5 * fitted.unit, relative=False)(z, z)
    np.testing.assert_allclose(fitted(x, x), expected, rtol=1e-10)
    assert fitted.fitted(2.0 * x) is fitted


def test_units_of_columns_do_not_matter():
    x = points(60)
    units = np.array([1e-6, 1.0, 7.0, 1e5, 0.1])
    for kernel in (Matern(1.5), RBF(), Linear(standardize=True)):
        np.testing.assert_allclose(
            kernel.fitted(x * units)(x[:3] * units, x * units), kernel.fitted(x)(x[:3], x), rtol=1e-9, atol=1e-9
        )


def test_constant_columns_do_not_count():
    x = points(60)
    more = np.hstack([x, np.full((60, 1), 0.1) * 3.0])
    for kernel in (Matern(2.5), RBF(), Linear(standardize=True)):
        fitted = kernel.fitted(more)
        assert fitted.scales[-1] == 0.0
        np.testing.assert_allclose(fitted(more, more), kernel.fitted(x)(x, x), rtol=1e-12)


def test_a_fit_to_many_rows_takes_some_of_them():
    x = np.random.default_rng(0).standard_normal((50_000, 3))
    assert Matern().fitted(x).unit == pytest.approx(Matern().fitted(x[:300]).unit, rel=0.1)
    assert Matern().fitted(x).unit == pytest.approx(Matern().fitted(sp.csr_array(x)).unit, rel=1e-12)


def test_equal_candidates_leave_the_unit_at_one():
    fitted = Matern().fitted(np.ones((4, 2)))
    assert fitted.unit == 1.0
    assert np.array_equal(fitted(np.ones((1, 2)), np.ones((4, 2))), np.ones((1, 4)))


def test_repeated_levels_do_not_make_the_median_zero():
    x = np.repeat([[0.0], [1.0], [3.0]], 50, axis=0)
    assert Matern(standardize=False).fitted(x).unit == 2.0


# -- algebra, equality, storage ----------------------------------------------------------------------------------------


def test_sums_and_products():
    x = np.abs(points())
    a, b = Matern(1.5, relative=False), Tanimoto()
    assert np.array_equal((a + b)(x, x), a(x, x) + b(x, x))
    assert np.array_equal((a * b)(x, x), a(x, x) * b(x, x))
    assert np.array_equal((3.0 * a)(x, x), 3.0 * a(x, x))
    assert (a * 3.0) == (3.0 * a)
    assert (2.0 * (3.0 * a)).factor == 6.0
    assert (a + b + a).terms == (a, b, a)
    assert (a * b * a).factors == (a, b, a)
    assert np.array_equal(a.on([1, 3])(x, x), a(x[:, [1, 3]], x[:, [1, 3]]))


def test_a_product_over_components_is_easy():
    x = points()
    components = Matern(2.5, lengthscale=0.5).on([0, 1], "base") * Matern(2.5, lengthscale=2.0).on([2, 3, 4], "ligand")
    fitted = components.fitted(x)
    one, two = x[:, :2], x[:, 2:]
    expected = Matern(2.5, lengthscale=0.5).fitted(one)(one, one) * Matern(2.5, lengthscale=2.0).fitted(two)(two, two)
    assert np.array_equal(fitted(x, x), expected)
    assert fitted.name == "Matern 5/2, 0.5 on base x Matern 5/2, 2 on ligand"


def test_equal_by_value():
    assert Matern(2.5, lengthscale=0.5) == Matern(2.5, lengthscale=0.5)
    assert Matern(2.5) != Matern(1.5) != RBF()
    assert hash(Matern().fitted(points())) == hash(Matern().fitted(points()))
    assert Precomputed(np.eye(3)) == Precomputed(np.eye(3)) != Precomputed(2 * np.eye(3))
    assert len({Tanimoto(), Tanimoto(), Linear(), Linear(standardize=True)}) == 3


@pytest.mark.parametrize("kernel", [*ALL, Precomputed(np.eye(3), "mine"), Matern().on([1], "x")], ids=str)
def test_stored_and_brought_back(kernel):
    again = kernel_from_dict(unpack(pack(kernel.to_dict())))
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert again.name == kernel.name


def test_code_is_not_stored():
    own = Function(lambda x, z: x @ z.T, "mine")
    assert own.to_dict() is None
    assert (own + Linear()).to_dict() is None
    assert (2.0 * own).to_dict() is None
    assert own.on([0]).to_dict() is None


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"kernel": "wavelet"}, "unknown kind of kernel 'wavelet'"),
        ({}, "unknown kind of kernel None"),
        (None, "unknown kind of kernel None"),
        ({"kernel": ["sum"]}, "unknown kind"),
        ({"kernel": "sum"}, "kernel 'sum' is damaged"),
        ({"kernel": "sum", "fields": 3}, "kernel 'sum' is damaged"),
        ({"kernel": "sum", "fields": {"terms": 3}}, "kernel 'sum' is damaged"),
        ({"kernel": "sum", "fields": {"terms": []}}, "kernel 'sum' is damaged"),
        ({"kernel": "matern", "fields": {"smoothness": 2.5}}, "kernel 'matern' is damaged"),
        ({"kernel": "matern", "fields": {"lengthscale": -1.0}}, "lengthscale must be positive"),
        (
            {"kernel": "scaled", "fields": {"kernel": {"kernel": "tanimoto", "fields": {}}, "factor": -1.0}},
            "factor of a kernel must be positive",
        ),
        ({"kernel": "function", "fields": {"function": "print"}}, "kernel 'function' is damaged"),
        ({"kernel": "precomputed", "fields": {"gram": [[1.0, 2.0], [2.0, 1.0]]}}, "positive semidefinite"),
        ({"kernel": "mine.RationalQuadratic", "fields": {}}, "import the module that defines it first"),
    ],
)
def test_damaged_storage(stored, message):
    with pytest.raises(ValueError, match=message):
        kernel_from_dict(stored)


def test_functions_of_the_users_own():
    x = points()
    own = Function(lambda x, z: (1.0 + x @ z.T) ** 2)
    np.testing.assert_allclose(own(x, x), (1.0 + x @ x.T) ** 2)
    np.testing.assert_allclose(own.diagonal(x), np.diag((1.0 + x @ x.T) ** 2))
    with pytest.raises(ValueError, match="must return shape \\(2, 40\\)"):
        Function(lambda x, z: z @ x.T, "turned")(x[:2], x)
    with pytest.raises(ValueError, match="not finite"):
        Function(lambda x, z: np.full((len(x), len(z)), np.nan))(x, x)
    assert own.fitted(x) is own
    for wrong, message in [
        (lambda x, z: -x @ z.T, "positive semidefinite"),
        (lambda x, z: x @ z.T + np.arange(len(z)), "must be symmetric"),
        (lambda x, z: np.zeros((len(x), len(z))), "must not be zero"),
    ]:
        with pytest.raises(ValueError, match=message):
            (Function(wrong) + Linear()).fitted(x)
    with pytest.raises(TypeError, match="callable as k\\(X, Z\\)"):
        Function(3.0)


def test_gram_matrices_of_the_users_own():
    gram = np.cov(np.random.default_rng(0).standard_normal((4, 9)))
    kernel = Precomputed(gram, "spectra")
    numbers = np.array([[3.0], [0.0], [3.0]])
    assert np.array_equal(kernel(numbers, numbers), gram[np.ix_([3, 0, 3], [3, 0, 3])])
    assert np.array_equal(kernel.diagonal(numbers), np.diag(gram)[[3, 0, 3]])
    rounded = gram + 1e-9 * np.arange(16.0).reshape(4, 4)
    assert np.array_equal(Precomputed(rounded).gram, Precomputed(rounded).gram.T)
    gram[0, 0] = 99.0
    assert kernel.gram[0, 0] != 99.0
    with pytest.raises(ValueError, match="one column of numbers, got 2"):
        kernel(np.zeros((1, 2)), np.zeros((1, 2)))
    for wrong in (4.0, -1.0, 0.5):
        with pytest.raises(ValueError, match="within 0..3"):
            kernel(np.array([[wrong]]), numbers)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite, its smallest eigenvalue is -1"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "nan at row 0, column 1"),
        (np.ones((2, 3)), "square"),
        (np.zeros((2, 2)), "must not be zero"),
    ],
)
def test_wrong_gram_matrices(gram, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(gram)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, (1.0, -2.0), ()])
@pytest.mark.parametrize("kind", [Matern, RBF])
def test_wrong_lengthscales(kind, value):
    with pytest.raises(ValueError, match="lengthscale must be"):
        kind(lengthscale=value)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="nu must be 0.5, 1.5 or 2.5, got 2"):
        Matern(2)
    with pytest.raises(TypeError, match="lengthscale"):
        Matern(lengthscale="long")
    with pytest.raises(ValueError, match="factor of a kernel must be positive"):
        -1.0 * Matern()
    with pytest.raises(TypeError):
        Matern() + 1.0
    with pytest.raises(ValueError, match="distinct numbers"):
        Matern().on([0, 0])
    with pytest.raises(ValueError, match="distinct numbers"):
        Matern().on([])
    with pytest.raises(TypeError, match="needs at least one kernel"):
        Product(())
    with pytest.raises(ValueError, match="relative to the candidates: use kernel.fitted"):
        Matern()(np.zeros((1, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="relative to the candidates: use kernel.fitted"):
        Linear(standardize=True)(np.zeros((1, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="got \\(1, 2\\) and \\(3, 4\\)"):
        Linear()(np.zeros((1, 2)), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="is for 2 columns, got 3"):
        Matern(lengthscale=(1.0, 2.0), relative=False)(np.zeros((1, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="only 2"):
        Linear().on([2])(np.zeros((1, 2)), np.zeros((1, 2)))
