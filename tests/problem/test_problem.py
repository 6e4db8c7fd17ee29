import numpy as np
import pandas as pd
import pytest
from scipy.special import eval_legendre
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import alexp
from alexp.problem import CandidateTable, Matrices
from alexp.problem.domains import domain_from_dict
from alexp.problem.storage import dictionary_from_dict


def test_interval_is_exactly_symmetric_and_includes_its_ends():
    x = alexp.Interval(-1.0, 1.0, resolution=2000).points
    assert x[0] == -1.0
    assert x[-1] == 1.0
    assert np.array_equal(x, -x[::-1])
    assert np.allclose(x, np.linspace(-1, 1, 2000))
    assert alexp.Interval(2.0, 3.0, resolution=1).points.tolist() == [2.5]


def test_legendre_equals_scipy_and_is_exactly_even_or_odd():
    x = alexp.Interval(resolution=501).points
    table = alexp.Legendre(12)(x)
    for k in range(13):
        np.testing.assert_allclose(table[:, k], eval_legendre(k, x), atol=1e-13)
        assert np.array_equal(table[:, k], (-1) ** k * table[::-1, k])


def test_paper_classes_have_the_sizes_of_the_paper():
    for size, n_models in ((2, 55), (3, 165), (8, 165), (9, 55)):
        assert alexp.ModelClass.legendre(degree=10, size=size).n_models == n_models


def test_subset_groups_and_names_follow_combinations():
    models = alexp.ModelClass.fourier(frequencies=2, size=2)
    assert models.names[1] == "1+sin1"
    assert list(models.names)[-1] == "cos2+sin2"
    assert [g.tolist() for g in models.groups[:2]] == [[0, 1], [0, 2]]
    assert models.dimension == 2
    with pytest.raises(IndexError, match="no model 10"):
        models.groups[10]


def test_box_candidates_fill_the_box_and_can_be_refined():
    box = alexp.Box([0, -1, 5], [1, 1, 6], resolution=100, seed=3)
    assert box.points.shape == (100 + 1 + 8, 3)
    assert np.all((box.points >= box.lower) & (box.points <= box.upper))
    assert np.array_equal(box.points, alexp.Box([0, -1, 5], [1, 1, 6], resolution=100, seed=3).points)
    finer = box.refined([0.5, 0.0, 5.5], per_level=16, levels=2)
    near = np.max(np.abs(finer.points[-16:] - [0.5, 0.0, 5.5]) / (box.upper - box.lower), axis=1)
    assert np.all(near <= 0.5 * 0.25**2 + 1e-12)
    assert alexp.Box(np.zeros(12), np.ones(12), resolution=64).n_candidates == 65
    with pytest.raises(ValueError, match="below upper"):
        alexp.Box([0, 1], [1, 1])


def test_finite_set_returns_the_users_own_rows():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    assert alexp.FiniteSet(frame)[1]["b"] == "y"
    assert alexp.FiniteSet(frame).locate(frame.iloc[1]) == 1
    assert alexp.FiniteSet(np.eye(3))[2].tolist() == [0, 0, 1]
    assert alexp.FiniteSet(np.eye(3)).locate(np.array([0.0, 0.0, 1.0])) == 2
    marker = object()
    assert alexp.FiniteSet([marker, 1])[0] is marker
    with pytest.raises(ValueError, match="must not be empty"):
        alexp.FiniteSet([])
    with pytest.raises(TypeError, match="array, a DataFrame or a list"):
        alexp.FiniteSet("abc")
    with pytest.raises(ValueError, match="one of the 2 candidates"):
        alexp.FiniteSet(["a", "b"]).locate("c")


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


def test_normalisation_gives_unit_maximum_norm():
    domain = alexp.Interval(resolution=101)
    models = alexp.ModelClass.legendre(5, 2).normalized(domain)
    norms = [np.linalg.norm(models.features(j, domain.points), axis=1).max() for j in range(models.n_models)]
    np.testing.assert_allclose(norms, 1.0)
    zero = alexp.ModelClass.from_matrices({"zero": np.zeros((3, 2)), "one": np.ones((3, 1))})
    with pytest.raises(ValueError, match="'zero' is zero on the whole domain"):
        zero.normalized(alexp.FiniteSet([1, 2, 3]))


def test_descriptions_rebuild_the_same_features():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}, index=["r1", "r2"])
    domains = [
        alexp.Interval(0, 2, 11),
        alexp.Box([0, 0], [1, 2], 16, seed=4).refined([[0.5, 0.5]], 8, 1),
        alexp.FiniteSet(["a", "b"]),
        alexp.FiniteSet(np.arange(6).reshape(3, 2)),
        alexp.FiniteSet(frame),
    ]
    for domain in domains:
        again = domain_from_dict(domain.to_dict())
        assert all(np.array_equal(again[i], domain[i]) for i in range(domain.n_candidates))
    x = np.linspace(0, 1, 5)
    for dictionary in (
        alexp.Legendre(3, 0.0, 2.0),
        alexp.Fourier(2, 3.0),
        alexp.Polynomial(3),
        alexp.RandomFourier(5, seed=2),
    ):
        assert np.array_equal(dictionary_from_dict(dictionary.to_dict())(x), dictionary(x))
    models = alexp.ModelClass.from_matrices({"a": np.eye(3), "b": np.ones((3, 2))}, intercept=True)
    again = alexp.ModelClass.from_dict(models.to_dict())
    assert list(again.names) == ["a", "b"]
    assert again.intercept
    assert np.array_equal(again.columns([2]), models.columns([2]))
    assert alexp.ModelClass.from_maps({"f": np.sin}).to_dict() is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: alexp.ModelClass.from_matrices({}), "non-empty"),
        (lambda: alexp.ModelClass.from_matrices({"a": np.ones((3, 2)), "b": np.ones((4, 2))}), "must have 3 rows"),
        (lambda: alexp.ModelClass.from_matrices({"a": [[1.0], [np.nan]]}), "row 1, column 0"),
        (lambda: alexp.ModelClass.from_matrices({"a": [["x"]]}), "numeric array"),
        (lambda: alexp.ModelClass.from_matrices({"a": np.ones((3, 0))}).groups, "no features"),
        (lambda: alexp.ModelClass(alexp.Legendre(3), [[0], []]), "model 1 must be a non-empty list"),
        (lambda: alexp.ModelClass(alexp.Legendre(3), []), "at least one model"),
        (lambda: alexp.ModelClass(alexp.Legendre(3), [[0, 4]]), "must lie in 0..3"),
        (lambda: alexp.ModelClass(alexp.Legendre(3), [[0, 1], [2, 2]]), "model 1 lists column 2 twice"),
        (lambda: alexp.ModelClass(alexp.Legendre(3), [[0], [1]], names=["a", "a"]), "'a' is used more than once"),
        (lambda: alexp.ModelClass.legendre(3, 5), "at most the 4 columns"),
        (lambda: alexp.Interval(1.0, 1.0), "below upper"),
        (lambda: alexp.Interval(0.0, float("inf")), "upper must be finite"),
        (lambda: alexp.Interval(0, 1, 0), "resolution must be at least 1"),
        (lambda: alexp.Legendre(2)(np.ones((3, 2))), "one-dimensional"),
        (lambda: Matrices({"a": np.eye(2)})([5]), "must lie in 0..1"),
        (lambda: Matrices({"a": np.eye(2)})([0.5]), "row numbers"),
        (lambda: alexp.ModelClass.from_matrices({"a": np.eye(2)}).matrix(alexp.Interval()), "2 rows but the domain"),
        (lambda: alexp.ModelClass.from_maps({"a": 3}), "callable or have .transform"),
        (lambda: alexp.ModelClass.from_maps({"a": lambda x: np.ones(2)}).matrix(alexp.Interval()), "2000 rows"),
    ],
)
def test_bad_problems_are_explained(build, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        build()


def test_candidate_table_restricts_without_changing_the_visiting_order():
    models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=20)
    order = np.random.default_rng(0).permutation(20)
    table = CandidateTable(models, domain, order)
    np.testing.assert_array_equal(table.row(7), models.columns(domain.points)[7])
    some = table.round(np.array([3, 11, 5])).choices
    kept = [i for i in order if i in (3, 5, 11)]
    assert some.indices.tolist() == kept
    np.testing.assert_array_equal(some.table, models.columns(domain.points)[kept].T)


def test_tables_have_an_intercept_and_families_that_contain_a_constant_have_none():
    blocks = {"a": np.eye(3), "b": np.ones((3, 2))}
    assert alexp.ModelClass.from_matrices(blocks).intercept is True
    assert alexp.ModelClass.from_matrices(blocks, intercept=None).intercept is True
    assert alexp.ModelClass.from_matrices(blocks, intercept=False).intercept is False
    assert alexp.ModelClass.legendre(3, 2).intercept is False
    assert alexp.ModelClass.fourier(2, 2).intercept is False
    assert alexp.ModelClass.from_maps({"a": np.atleast_2d}).intercept is False
    for intercept in (False, True):  # what was stored is kept
        stored = alexp.ModelClass.from_matrices(blocks, intercept=intercept).to_dict()
        assert alexp.ModelClass.from_dict(stored).intercept is intercept
