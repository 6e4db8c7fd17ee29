"""Classes of models: groups, names, scales, storage, and errors that say what is wrong."""

from math import sqrt

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.common.codec import pack, unpack
from alexp.problem import Matrices
from alexp.problem.domains import domain_from_dict
from alexp.problem.groups import ColumnGroups, SubsetNames, compress
from alexp.problem.models import dictionary_from_dict


def stored(thing):
    """What is left after a trip through storage."""
    return unpack(pack(thing.to_dict()))


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


def test_groups():
    groups = ColumnGroups(np.array([4, 5, 6]), np.array([0, 2, 3]))
    assert [groups[j].tolist() for j in (0, 1, -1, -2)] == [[4, 5], [6], [6], [4, 5]]
    assert [g.tolist() for g in groups[::-1]] == [[6], [4, 5]]
    with pytest.raises(IndexError, match="no model 2"):
        groups[2]
    with pytest.raises(IndexError, match="no model -3"):
        groups[-3]
    names = SubsetNames(["p", "q", "r", "s", "t", "u", "v"], groups)
    assert list(names) == ["t+u", "v"]
    assert names[1:] == ["v"]


def test_columns_must_be_whole_numbers_in_any_form():
    for wrong in (np.array([[0.5, 1.0]]), [[0.5, 1.0]], [np.array([0.5, 1.0])]):
        with pytest.raises(ValueError, match="column numbers"):
            compress(wrong, 4)
    columns, offsets = compress(np.array([[3, 1], [0, 2]], dtype=np.int8), 4)
    assert (columns.tolist(), offsets.tolist()) == ([3, 1, 0, 2], [0, 2, 4])


def test_normalised_models():
    models = alexp.ModelClass(Matrices({"f": np.array([[3.0, 4.0, 1.0], [0.0, 1.0, -2.0]])}), [[0, 1], [2]])
    unit = models.normalized(alexp.FiniteSet([0, 1]))
    assert unit.scales.tolist() == [5.0, 2.0]
    assert unit.features(0, [0, 1]) == pytest.approx(np.array([[0.6, 0.8], [0.0, 0.2]]))
    assert models.scales.tolist() == [1.0, 1.0]  # the original is what it was
    again = alexp.ModelClass.from_dict(stored(unit))
    assert again.scales.tolist() == [5.0, 2.0]
    subsets = alexp.ModelClass.legendre(3, 2)
    assert alexp.ModelClass.from_dict(stored(subsets)).subset_size == 2
    scaled = subsets.normalized(alexp.Interval(resolution=21))
    assert alexp.ModelClass.from_dict(stored(scaled)).scales == pytest.approx([sqrt(2)] * 6)


def test_normalisation_gives_unit_maximum_norm():
    domain = alexp.Interval(resolution=101)
    models = alexp.ModelClass.legendre(5, 2).normalized(domain)
    norms = [np.linalg.norm(models.features(j, domain.points), axis=1).max() for j in range(models.n_models)]
    np.testing.assert_allclose(norms, 1.0)
    zero = alexp.ModelClass.from_matrices({"zero": np.zeros((3, 2)), "one": np.ones((3, 1))})
    with pytest.raises(ValueError, match="'zero' is zero on the whole domain"):
        zero.normalized(alexp.FiniteSet([1, 2, 3]))


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


def test_stored_models_keep_names_and_intercept():
    for intercept in (False, True):
        models = alexp.ModelClass(alexp.Legendre(3), [[0, 2], [1]], names=["even", "odd"], intercept=intercept)
        again = alexp.ModelClass.from_dict(stored(models))
        assert list(again.names) == ["even", "odd"]
        assert again.intercept == intercept
        assert [g.tolist() for g in again.groups] == [[0, 2], [1]]
        subsets = alexp.ModelClass.legendre(3, 2, intercept=intercept)
        assert alexp.ModelClass.from_dict(stored(subsets)).intercept == intercept


def test_dictionaries_come_back_the_same():
    for dictionary in (alexp.RandomFourier(5, dim=1, lengthscale=0.3, seed=2), alexp.Fourier(2, 0.7)):
        assert dictionary_from_dict(stored(dictionary))([0.4]).tolist() == dictionary([0.4]).tolist()
    with pytest.raises(ValueError, match="unknown family"):
        dictionary_from_dict({"family": "wavelets"})


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
