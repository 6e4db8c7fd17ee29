"""Domains: candidates, look-ups, storage, and which candidates a round may use."""

import json
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.common.codec import pack, unpack
from alexp.problem.domains import Domain, check_available, domain_from_dict

NAMES = ["m1", "m2", "m3", "m4"]
CANDIDATES = pd.DataFrame({"solvent": ["a", "b", "c", "d"]}, index=NAMES)


def stored(thing):
    """What is left after a trip through storage."""
    return unpack(pack(thing.to_dict()))


def test_interval_is_exactly_symmetric_and_includes_its_ends():
    x = alexp.Interval(-1.0, 1.0, resolution=2000).points
    assert x[0] == -1.0
    assert x[-1] == 1.0
    assert np.array_equal(x, -x[::-1])
    assert np.allclose(x, np.linspace(-1, 1, 2000))
    assert alexp.Interval(2.0, 3.0, resolution=1).points.tolist() == [2.5]


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


def test_finite_set():
    twice = alexp.FiniteSet(["a", "b", "a"])
    assert (twice.locate("a"), twice.locate("b")) == (0, 1)  # the first of equals
    assert twice.batch("b") == ([1], True)
    shapes = alexp.FiniteSet([np.array([1.0, 2.0]), np.array([[1.0, 2.0]]), [1.0, 2.0, 3.0]])
    assert [shapes.locate(x) for x in (np.array([1.0, 2.0]), np.array([[1.0, 2.0]]), [1.0, 2.0, 3.0])] == [0, 1, 2]


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


def test_equal_candidates_are_pointed_out():
    for candidates in (["a", "b", "a"], np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), CANDIDATES.iloc[[0, 1, 0]]):
        with pytest.warns(UserWarning, match="candidates 0 and 2 are equal"):
            alexp.FiniteSet(candidates)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alexp.FiniteSet([object(), {"a": 1}, {"a": 1}])  # the user's own objects are not compared
        alexp.FiniteSet(CANDIDATES)


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


# -- domains of one's own -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Doubling(Domain):
    """1, 2, 4, ...: points are all it says."""

    n: int = 4
    names: tuple[str, ...] = ("volume",)

    @cached_property
    def points(self):
        return 2.0 ** np.arange(self.n)


def test_a_domain_of_ones_own_needs_points_alone():
    domain = Doubling(5)
    assert isinstance(domain, Domain)
    assert (domain.n_candidates, domain[3]) == (5, 8.0)
    points, single = domain.batch(4.0)
    assert (points.tolist(), single) == ([4.0], True)
    points, single = domain.batch([1.0, 2.0])
    assert (points.tolist(), single) == ([1.0, 2.0], False)
    with pytest.raises(TypeError, match="abstract"):
        type("Empty", (Domain,), {})()


def test_a_dataclass_of_plain_fields_is_stored_by_class_and_fields():
    stored = unpack(json.loads(json.dumps(pack(Doubling(6).to_dict()))))
    assert stored == {"kind": f"{__name__}.Doubling", "fields": {"n": 6, "names": ["volume"]}}
    assert domain_from_dict(stored) == Doubling(6)
    assert Doubling(names=(object(),)).to_dict() is None
    assert Doubling(names=np.array([object()])).to_dict() is None
    assert Plain().to_dict() is None
    with pytest.raises(ValueError, match="'elsewhere.Doubling'; import the module that defines it first"):
        domain_from_dict(stored | {"kind": "elsewhere.Doubling"})
    with pytest.raises(ValueError, match="unknown kind of domain 'circle'$"):
        domain_from_dict({"kind": "circle"})


class Plain(Domain):
    points = np.arange(3.0)
