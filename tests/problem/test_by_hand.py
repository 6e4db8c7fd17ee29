"""Domains, dictionaries, model classes and candidate tables: values one can write down."""

from math import cos, pi, sin, sqrt

import numpy as np
import pytest

import alexp
from alexp.common.codec import pack, unpack
from alexp.problem import CandidateTable, Maps, Matrices
from alexp.problem.available import check_available
from alexp.problem.candidates import Pending
from alexp.problem.domains import domain_from_dict
from alexp.problem.groups import ColumnGroups, SubsetNames, compress
from alexp.problem.storage import dictionary_from_dict


def stored(thing):
    """What is left after a trip through storage."""
    return unpack(pack(thing.to_dict()))


# -- dictionaries --------------------------------------------------------------------------------------------------


def test_legendre():
    # On [0, 4] the point 3 is 1/2: P_2 = (3/4 - 1)/2, P_3 = (5/8 - 3/2)/2.
    assert alexp.Legendre(3, 0.0, 4.0)([3.0])[0].tolist() == [1.0, 0.5, -0.125, -0.4375]
    assert alexp.Legendre(0)([3.0]).tolist() == [[1.0]]


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


def test_matrices_and_maps():
    table = Matrices({"a": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": [5.0, 6.0]})
    assert table([1, 0]).tolist() == [[3.0, 4.0, 6.0], [1.0, 2.0, 5.0]]
    assert table.names == ["a[0]", "a[1]", "b[0]"]
    assert table.sizes == [2, 1]
    sizes = iter([2, 3])
    growing = Maps({"odd": lambda x: np.ones((len(x), next(sizes)))})
    assert growing(np.zeros(4)).shape == (4, 2)
    with pytest.raises(ValueError, match=r"returned \[3\] features now but \[2\] before"):
        growing(np.zeros(4))


# -- domains -------------------------------------------------------------------------------------------------------


def test_interval():
    domain = alexp.Interval(1.0, 3.0, resolution=5)
    assert domain.points.tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]
    assert [x.tolist() for x in domain.batch([1.0, 2.25, 3.0])[:1]] == [[1.0, 2.25, 3.0]]
    assert domain.batch(1.0)[1]
    for outside in (0.99, 3.01, [2.0, 3.01], float("nan")):
        with pytest.raises(ValueError, match="must lie in"):
            domain.batch(outside)
    again = domain_from_dict(stored(domain))
    assert again.points.tolist() == domain.points.tolist()


def test_box():
    box = alexp.Box([0.0, 10.0], [1.0, 12.0], resolution=8, seed=2)
    assert box.points[8].tolist() == [0.5, 11.0]  # the centre
    corners = {tuple(p) for p in box.points[9:].tolist()}
    assert corners == {(0.0, 10.0), (1.0, 10.0), (0.0, 12.0), (1.0, 12.0)}
    finer = box.refined([[0.0, 10.0], [0.5, 11.0]], per_level=16, levels=2, shrink=0.25)
    clouds = finer.points[13:].reshape(2, 2, 16, 2)
    assert np.all(clouds >= [0.0, 10.0])
    assert np.all(clouds <= [1.0, 12.0])
    for k, centre in enumerate(([0.0, 10.0], [0.5, 11.0])):
        for level in (1, 2):
            reach = np.abs(clouds[k, level - 1] - centre).max(axis=0) / [1.0, 2.0]
            assert np.all(reach <= 0.5 * 0.25**level + 1e-12)
            assert np.all(reach >= 0.3 * 0.25**level)  # and it fills that box
    assert domain_from_dict(stored(finer)).points.tolist() == finer.points.tolist()
    assert box.batch([0.5, 11.0])[1]
    assert not box.batch([[0.5, 11.0], [0.1, 10.5]])[1]
    with pytest.raises(ValueError, match="inside the box"):
        box.batch([0.5, 12.5])
    with pytest.raises(ValueError, match="2 coordinates"):
        box.batch([0.5, 11.0, 1.0])


def test_finite_set():
    twice = alexp.FiniteSet(["a", "b", "a"])
    assert (twice.locate("a"), twice.locate("b")) == (0, 1)  # the first of equals
    assert twice.batch("b") == ([1], True)
    shapes = alexp.FiniteSet([np.array([1.0, 2.0]), np.array([[1.0, 2.0]]), [1.0, 2.0, 3.0]])
    assert [shapes.locate(x) for x in (np.array([1.0, 2.0]), np.array([[1.0, 2.0]]), [1.0, 2.0, 3.0])] == [0, 1, 2]


# -- model classes -------------------------------------------------------------------------------------------------


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


# -- the candidate table -------------------------------------------------------------------------------------------


def test_candidate_table():
    models = alexp.ModelClass(Matrices({"f": np.array([[10.0], [11.0], [12.0], [13.0]])}), [[0]])
    table = CandidateTable(models, alexp.FiniteSet(list("abcd")), np.array([2, 0, 3, 1]))
    assert table.table.tolist() == [[12.0, 10.0, 13.0, 11.0]]
    assert [table.row(i).tolist() for i in range(4)] == [[10.0], [11.0], [12.0], [13.0]]
    assert table.position.tolist() == [1, 3, 0, 2]
    some = table.round(np.array([3, 2, 1])).choices
    assert some.indices.tolist() == [2, 3, 1]
    assert some.table.tolist() == [[12.0, 13.0, 11.0]]
    assert len(some) == 3
    everything = table.round().choices
    assert everything.table is table.table
    with pytest.raises(ValueError, match="read-only"):
        table.table[0, 0] = 1.0


def test_a_round_on_most_candidates_copies_no_features():
    models = alexp.ModelClass(Matrices({"f": np.array([[10.0], [11.0], [12.0], [13.0]])}), [[0]])
    table = CandidateTable(models, alexp.FiniteSet(list("abcd")), np.array([2, 0, 3, 1]))
    most, few = table.round(np.array([3, 2, 1])), table.round(np.array([3, 1]))
    assert most.wide.table is table.table
    assert most.narrow(np.array([12.0, 10.0, 13.0, 11.0])).tolist() == most.choices.table[0].tolist()
    assert few.wide is few.choices
    assert few.narrow(np.array([13.0, 11.0])).tolist() == [13.0, 11.0]
    exact = table.round(np.array([3, 2, 1]), copied=True)
    assert exact.wide.table.tolist() == [[12.0, 13.0, 11.0]]
    assert (most.is_full, table.round().is_full, len(few)) == (False, True, 2)


def test_keys_tell_rounds_apart_by_choices_and_by_what_is_pending():
    models = alexp.ModelClass(Matrices({"f": np.array([[10.0], [11.0], [12.0], [13.0]])}), [[0]])
    table = CandidateTable(models, alexp.FiniteSet(list("abcd")), np.array([2, 0, 3, 1]))
    one = np.array([1])
    pending = Pending((5,), one, table.rows(one))
    assert table.rows(np.array([3, 0])).tolist() == [[13.0], [10.0]]
    rounds = [table.round(), table.round(one), table.round(None, pending), table.round(one, pending)]
    rounds += [table.round(np.array([2])), table.round(one, Pending((6,), one, table.rows(one)))]
    assert len({round_.key for round_ in rounds}) == len(rounds)
    assert rounds[0].key is None
    assert rounds[2].is_full
    assert table.round(np.array([3, 1])).key == table.round(np.array([1, 3])).key


def test_what_is_available_comes_as_indices_mask_or_names():
    names, line = alexp.FiniteSet(list("abcd")), alexp.Interval(resolution=4)
    assert check_available(None, names) is None
    for given in ([3, 1], np.array([3, 1]), ["d", "b"], np.array(["d", "b"])):
        assert check_available(given, names).tolist() == [3, 1]
    assert check_available([False, True, False, True], names).tolist() == [1, 3]
    for wrong in ([-1], [4], [], [1, 1], [1.0], np.array([True, False]), ["a", "a"], 3, "a"):
        with pytest.raises(ValueError, match="available"):
            check_available(wrong, names)
    with pytest.raises(ValueError, match=r"'m3'.* none of the 4 candidates: 'a', 'b', 'c', 'd'; give"):
        check_available(["a", "m3"], names)
    with pytest.raises(ValueError, match="holds 2, which is none"):
        check_available(["a", 2], names)
    for domain in (line, alexp.FiniteSet(np.eye(4))):
        with pytest.raises(ValueError, match=r"only where the candidates are texts.*0\.\.3 or a boolean mask"):
            check_available(["a"], domain)
