"""Dictionaries of contextual rounds: maps, features per arm, crossings."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from alexp.common.codec import pack, unpack
from alexp.problem.contextual import FREE, ContextFeatures, Crossings
from alexp.problem.models import ModelClass

Z = np.array([1.0, -2.0, 3.0, 0.5, 4.0])


def stored(models):
    return ModelClass.from_dict(unpack(json.loads(json.dumps(pack(models.to_dict())))))


# -- maps ------------------------------------------------------------------------------------------------------


def test_maps_see_the_context_and_the_candidates():
    maps = {
        "items": lambda c, x: np.asarray(x),
        "product": lambda c, x: c["age"] * np.asarray(x)[:, :1],
    }
    models = ModelClass.from_maps(maps, contextual=True, example=({"age": 2.0}, np.zeros((1, 3))))
    assert models.is_contextual
    assert models.n_columns == 4
    assert [group.tolist() for group in models.groups] == [[0, 1, 2], [3]]
    rows = models.dictionary.offered({"age": 10.0}, np.arange(6.0).reshape(2, 3))
    assert rows.tolist() == [[0.0, 1.0, 2.0, 0.0], [3.0, 4.0, 5.0, 30.0]]
    assert models.example_rows.shape == (1, 4)
    assert models.to_dict() is None
    with pytest.raises(TypeError, match="contextual"):
        models.dictionary(np.zeros(3))


def test_maps_without_an_example_say_what_is_missing():
    models = ModelClass.from_maps({"a": lambda c, x: np.asarray(x)}, contextual=True)
    with pytest.raises(ValueError, match=r"pass example=\(context, candidates\)"):
        _ = models.n_columns
    with pytest.raises(TypeError, match="pair"):
        ModelClass.from_maps({"a": lambda c, x: np.asarray(x)}, contextual=True, example=np.zeros((2, 2)))
    with pytest.raises(TypeError, match="callable"):
        ModelClass.from_maps({"a": 3}, contextual=True)


def test_maps_of_another_shape_are_refused():
    sizes = iter([2, 2, 3])
    maps = ModelClass.from_maps({"a": lambda c, x: np.ones((len(x), next(sizes)))}, contextual=True).dictionary
    maps.offered(None, [1, 2])
    maps.offered(None, [1])
    with pytest.raises(ValueError, match=r"\[3\] features now but \[2\] before"):
        maps.offered(None, [1, 2])
    for bad, message in ((np.ones((3, 1)), "2 rows"), (np.full((2, 1), np.nan), "finite"), ("no", "numeric")):
        one = ModelClass.from_maps({"a": lambda c, x, bad=bad: bad}, contextual=True).dictionary
        with pytest.raises((ValueError, TypeError), match=message):
            one.offered(None, [1, 2])


def test_transformers_see_candidates():
    table = np.random.default_rng(0).normal(size=(30, 4))
    scaler, pca = StandardScaler().fit(table), PCA(2).fit(table)
    models = ModelClass.from_maps({"raw": scaler, "pca": pca}, contextual=True, example=(None, table))
    np.testing.assert_allclose(models.dictionary.offered(None, table[:3])[:, :4], scaler.transform(table[:3]))
    np.testing.assert_allclose(models.dictionary.offered("any", table[:3])[:, 4:], pca.transform(table[:3]))
    words = OneHotEncoder().fit([["a"], ["b"]])
    models = ModelClass.from_maps({"which": words}, contextual=True, example=(None, ["a", "b"]))
    assert models.dictionary.offered(None, ["b", "a"]).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    people = pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 1.0]})
    own = ColumnTransformer([("y", "passthrough", ["y"])]).fit(people)
    models = ModelClass.from_maps({"y": own}, contextual=True, example=(None, people))
    assert models.dictionary.offered(None, [{"x": 5.0, "y": 6.0}]).tolist() == [[6.0]]


# -- features of contexts --------------------------------------------------------------------------------------


def test_entries_and_keys_that_sets_have_in_common_are_there_once():
    features = ContextFeatures({"a": [3, 0], "b": [0, 1]})
    assert features.size == 3
    assert features(Z).tolist() == [1.0, -2.0, 0.5]
    assert [group.tolist() for group in features.groups] == [[2, 0], [0, 1]]
    keys = ContextFeatures({"a": ["age", "bmi"], "b": ["bmi"]})
    assert keys({"bmi": 20, "age": 3, "name": "x"}).tolist() == [3.0, 20.0]
    assert keys(pd.Series({"bmi": 20, "age": 3})).tolist() == [3.0, 20.0]
    assert keys.names == ["age", "bmi"]
    mixed = ContextFeatures({"size": 2, "age": ["age"]})
    assert mixed({"size": [7, 8], "age": 1.5}).tolist() == [1.5, 7.0, 8.0]
    assert mixed.names == ["age", "size[0]", "size[1]"]


@pytest.mark.parametrize(
    ("sets", "context", "message"),
    [
        ({"a": [0, 5]}, Z, "at least 6 entries"),
        ({"a": [0]}, {"x": 1}, "got a mapping"),
        ({"a": [0]}, "text", "vector of numbers"),
        ({"a": [0]}, np.ones((2, 2)), "shape"),
        ({"a": [0]}, [np.nan], "feature x0 of the context is nan"),
        ({"a": ["age"]}, {"bmi": 1}, "'age' is missing"),
        ({"a": ["age"]}, Z, "'age' is missing"),
        ({"a": ["age"]}, {"age": "old"}, "must be a number"),
        ({"a": 2}, {"a": [1, 2, 3]}, "'a' must have 2 features"),
        ({"a": 2}, {"b": [1, 2]}, "'a'"),
    ],
)
def test_contexts_of_another_shape_are_refused(sets, context, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ContextFeatures(sets)(context)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({}, "non-empty"),
        ({"a": []}, "at least one"),
        ({"a": [0, 0]}, "distinct"),
        ({"a": [0, "age"]}, "distinct"),
        ({"a": [-1]}, "at least 0"),
        ({"a": [0.5]}, "list of whole numbers"),
        ({"a": "age"}, "list of entries"),
        ({"a": True}, "list of entries"),
        ({"a": 0}, "at least 1"),
        ({"a": [0], 1: [0], "1": [1]}, "distinct"),
    ],
)
def test_bad_sets_are_refused(sets, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ContextFeatures(sets)


def test_sizes_of_code_become_known_with_the_first_context():
    features = ContextFeatures({"head": lambda z: z[:2], "rest": lambda z: z[2:]})
    assert features.unknown == ["head", "rest"]
    with pytest.raises(ValueError, match="'rest' must have some features"):
        features(np.zeros(2))
    assert features.unknown == ["head", "rest"]
    features(np.zeros(5))
    assert (features.unknown, features.size) == ([], 5)
    with pytest.raises(ValueError, match="shared features.*pass example="):
        ModelClass.per_arm({"a": [0]}, arms=2, shared=np.sum)


def test_code_makes_features_of_a_context():
    scaler = StandardScaler().fit(np.random.default_rng(1).normal(size=(20, 5)))
    squares = PolynomialFeatures(2, include_bias=False).fit(np.zeros((1, 5)))
    features = ContextFeatures({"scaled": scaler, "squares": squares, "sum": np.sum}, example=Z)
    np.testing.assert_allclose(features(Z)[:5], scaler.transform(Z[None])[0])
    assert features.size == 5 + 20 + 1
    assert features(2 * Z)[-1] == 2 * Z.sum()
    encoder = OneHotEncoder().fit(pd.DataFrame({"colour": ["red", "blue"]}))
    coded = ContextFeatures({"colour": encoder}, example=[{"colour": "red"}, {"colour": "blue"}])
    assert coded({"colour": "blue"}).tolist() == [1.0, 0.0]
    grows = iter([[1.0], [1.0, 2.0]])
    unsteady = ContextFeatures({"a": lambda z: next(grows)}, example=Z)
    with pytest.raises(ValueError, match="must have 1 features, as many for every context, got 2"):
        unsteady(Z)


# -- per arm ---------------------------------------------------------------------------------------------------


def test_rows_of_arms():
    models = ModelClass.per_arm({"front": [0, 1], "back": [4]}, arms=3, intercept=False)
    assert models.arm_blocks == (3, 3)
    assert models.is_contextual
    assert not models.intercept
    rows = models.dictionary.offered(Z, ["a", "b", "c"])
    np.testing.assert_array_equal(rows, np.kron(np.eye(3), [1.0, -2.0, 4.0]))
    assert [group.tolist() for group in models.groups] == [[0, 1, 3, 4, 6, 7], [2, 5, 8]]
    assert models.dictionary.names[:4] == ["x0@0", "x1@0", "x4@0", "x0@1"]
    with_one = ModelClass.per_arm({"front": [0, 1], "back": [4]}, arms=["a", "b"])
    np.testing.assert_array_equal(with_one.dictionary.offered(Z, ["a", "b"]), np.kron(np.eye(2), [1.0, 1, -2, 4]))
    assert [group.tolist() for group in with_one.groups] == [[0, 1, 2, 4, 5, 6], [0, 3, 4, 7]]
    assert with_one.arm_blocks == (2, 4)
    assert with_one.dictionary.names[0] == "1@a"
    assert with_one.intercept
    with pytest.raises(ValueError, match="for 2 arms, and there are 3"):
        with_one.dictionary.offered(Z, ["a", "b", "c"])
    with pytest.raises(TypeError, match="context="):
        with_one.dictionary("a")


@pytest.mark.parametrize("arms", [0, "abc", 2.5, True, []])
def test_bad_arms_are_refused(arms):
    with pytest.raises((ValueError, TypeError), match="arms"):
        ModelClass.per_arm({"a": [0]}, arms=arms)


def test_shared_features_are_free_and_common_ones_are_not():
    def common(context, arms):
        return np.array([[len(arm), context[0]] for arm in arms])

    models = ModelClass.per_arm({"a": [1]}, arms=["x", "yyy"], shared=[2], common=common, example=Z)
    assert models.arm_blocks is None
    rows = models.dictionary.offered(Z, ["x", "yyy"])
    want = [[1, 1, FREE * 3, FREE, -2, 0, 0], [3, 1, FREE * 3, 0, 0, FREE, -2]]
    np.testing.assert_array_equal(rows, want)
    assert models.dictionary.free_columns.tolist() == [2, 3, 5]
    assert models.groups[0].tolist() == list(range(7))
    assert models.to_dict() is None
    assert ModelClass.per_arm({"a": [1]}, 2, shared=[2], intercept=False).dictionary.free_columns.tolist() == [0]
    assert ModelClass.per_arm({"a": [1]}, 2).dictionary.free_columns.size == 0
    with pytest.raises(ValueError, match="names as arms="):
        ModelClass.per_arm({"a": [1]}, arms=2, common=common, example=Z)
    with pytest.raises(ValueError, match="example="):
        ModelClass.per_arm({"a": [1]}, arms=["x", "y"], common=common)
    with pytest.raises(TypeError, match="callable"):
        ModelClass.per_arm({"a": [1]}, arms=["x", "y"], common=[1], example=Z)
    with pytest.raises(ValueError, match="2 rows"):
        ModelClass.per_arm({"a": [1]}, arms=["x", "y"], common=lambda c, arms: np.ones((3, 1)), example=Z)


def test_arms_may_become_more():
    models = ModelClass.per_arm({"front": [0, 1], "back": [4]}, arms=2)
    larger = models.with_arms(3)
    assert larger.arm_blocks == (3, 4)
    assert list(larger.names) == ["front", "back"]
    rows = larger.dictionary.offered(Z, ["a", "b", "c"])
    np.testing.assert_array_equal(rows[:2, :8], models.dictionary.offered(Z, ["a", "b"]))
    assert [group.tolist() for group in larger.only(1).groups] == [[0, 3, 4, 7, 8, 11]]
    assert [group.tolist() for group in models.only(1).with_arms(3).groups] == [[0, 3, 4, 7, 8, 11]]
    assert models.only(1).with_arms(3).arm_blocks == (3, 4)
    mixed = ModelClass.per_arm({"a": [1]}, arms=["x", "y"], shared=[2]).with_arms(["x", "y", "z"])
    assert mixed.n_columns == 1 + 3 * 2
    crossed = ModelClass.crossed(["age"], ["dose"])
    assert crossed.with_arms(3) is crossed


def test_models_of_arms_can_be_stored_unless_they_are_code():
    for models in (
        ModelClass.per_arm({"front": [0, 1], "back": [4]}, arms=3, shared=[2, 3]),
        ModelClass.per_arm({"b": ["age"], "a": 2}, arms=["x", "y"], intercept=False),
    ):
        other = stored(models)
        assert list(other.names) == list(models.names)
        assert other.dictionary.names == models.dictionary.names
        assert [group.tolist() for group in other.groups] == [group.tolist() for group in models.groups]
        assert other.arm_blocks == models.arm_blocks
        assert other.intercept == models.intercept
    assert ModelClass.per_arm({"a": np.atleast_1d}, arms=2, example=Z).to_dict() is None
    assert ModelClass.per_arm({"a": [0]}, arms=2, shared=np.sum, example=Z).to_dict() is None


def test_many_contexts_as_an_example_are_reference_rows():
    contexts = np.random.default_rng(2).normal(size=(12, 5))
    models = ModelClass.per_arm({"a": [0, 1]}, arms=2, example=contexts)
    assert models.example_rows.shape == (12, 6)
    np.testing.assert_array_equal(models.example_rows[3], models.dictionary.offered(contexts[3], None)[1])
    assert ModelClass.per_arm({"a": [0, 1]}, arms=2, example=Z).example_rows is None


# -- crossings -------------------------------------------------------------------------------------------------


def test_crossings_of_context_and_action():
    models = ModelClass.crossed(context=["age", "bmi"], action=["dose", "days"])
    names = models.dictionary.names
    assert names == ["age", "bmi", "dose", "days", "age*dose", "age*days", "bmi*dose", "bmi*days", "dose*days"]
    rows = models.dictionary.offered({"bmi": 3.0, "age": 2.0}, [[5.0, 7.0], [1.0, 0.0]])
    assert rows[0].tolist() == [FREE * 2, FREE * 3, 5, 7, 10, 14, 15, 21, 35]
    assert models.n_models == 2**5
    assert models.names[0] == "no crossing"
    assert models.names[-1] == "all crossings"
    assert all(set(range(4)) <= set(group.tolist()) for group in models.groups)
    assert models.dictionary.free_columns.tolist() == [0, 1]
    frame = pd.DataFrame({"days": [7.0], "other": ["x"], "dose": [5.0]})
    for candidates in (frame, [{"days": 7, "dose": 5.0}], np.array([[5.0, 7.0]])):
        np.testing.assert_array_equal(models.dictionary.offered(np.array([2.0, 3.0]), candidates), rows[:1])
    sizes = np.array([group.size for group in models.groups])
    masses = [np.exp(models.log_prior[sizes == size]).sum() for size in np.unique(sizes)]
    np.testing.assert_allclose(masses, 1 / 6)


def test_features_have_units():
    crossed = Crossings(["age"], ["dose"], units={"age": (50.0, 10.0), "dose": 5.0})
    assert crossed.offered([70.0], [20.0]).tolist() == [[FREE * 2.0, 4.0, 8.0]]


def test_products_of_three_come_with_their_products_of_two():
    models = ModelClass.crossed(context=["a", "b"], action=["x"], order=3)
    assert models.dictionary.names[3:] == ["a*x", "b*x", "a*b*x"]
    assert [name for name in models.names if "a*b*x" in name] == []
    assert models.names[-1] == "all crossings"
    assert models.n_models == 5


def test_too_many_crossings_become_a_family():
    models = ModelClass.crossed([f"c{i}" for i in range(6)], [f"a{i}" for i in range(4)], max_models=40)
    assert models.n_models == 40
    names = list(models.names)
    assert {"no crossing", "all crossings", "c0*a0", "c5*a3"} <= set(names)
    assert "+".join(f"c0*a{i}" for i in range(4)) in names
    assert len(set(names)) == 40
    large = ModelClass.crossed([f"c{i}" for i in range(30)], [f"a{i}" for i in range(10)], order=2)
    assert large.n_models == 256


def test_crossed_models_can_be_stored():
    models = ModelClass.crossed(["age", "bmi"], ["dose"], units={"age": (50.0, 10.0)})
    other = stored(models)
    context, candidates = [55.0, 20.0], [[1.0], [2.0]]
    np.testing.assert_array_equal(
        other.dictionary.offered(context, candidates), models.dictionary.offered(context, candidates)
    )
    np.testing.assert_array_equal(other.log_prior, models.log_prior)


@pytest.mark.parametrize(
    ("context", "candidates", "message"),
    [
        ([1.0], [[1.0]], "at least 2 entries"),
        ([1.0, 2.0, 3.0], [[1.0]], "must have 2 entries"),
        ({"age": 1.0}, [[1.0]], "'bmi' is missing"),
        ([1.0, 2.0], [[1.0, 2.0]], r"shape \(n, 1\)"),
        ([1.0, 2.0], ["small"], "rows of the features"),
        ([1.0, 2.0], [{"size": 2.0}], "'dose' is missing"),
        ([1.0, 2.0], pd.DataFrame({"size": [2.0]}), "'dose' is missing"),
        ([1.0, 2.0], [[np.inf]], "dose of candidate 0 is inf"),
    ],
)
def test_bad_rounds_of_crossings_are_refused(context, candidates, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Crossings(["age", "bmi"], ["dose"]).offered(context, candidates)


def test_bad_crossings_are_refused():
    for arguments, message in (
        ((["a"], []), "at least one feature"),
        ((["a"], ["a"]), "distinct"),
        (("age", ["a"]), "list of names"),
        ((["a"], ["b"], 0), "order"),
        ((["a"], ["b"], 2, {"c": 1.0}), "units"),
        ((["a"], ["b"], 2, {"a": 0.0}), "scale of 'a'"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            Crossings(*arguments)
    assert Crossings([], ["x", "y"]).offered(None, [[2.0, 3.0]]).tolist() == [[2.0, 3.0, 6.0]]


# -- unions of sets ----------------------------------------------------------------------------------------------


def test_unions_of_sets_are_models():
    models = ModelClass.per_arm({"a": [0, 1], "b": [2], "c": 2}, ["x", "y"], unions=True)
    assert models.names == ["a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]
    assert models.groups[3].tolist() == [0, 1, 2, 3, 6, 7, 8, 9]  # constants first
    assert models.groups[6].tolist() == list(range(12))
    again = ModelClass.from_dict(models.to_dict())
    assert again.names == models.names
    assert [group.tolist() for group in again.groups] == [group.tolist() for group in models.groups]
    many = ModelClass.per_arm({name: [k] for k, name in enumerate("abcde")}, 2, unions=True)
    assert many.n_models == 5 + 10 + 1
    with pytest.raises(ValueError, match="a\\+b"):
        ModelClass.per_arm({"a": [0], "b": [1], "a+b": [2]}, 2, unions=True)


def test_what_belongs_together_is_read_off_the_sets():
    models = ModelClass.per_arm({"a": [0, 1], "b": [2], "both": [0, 1, 2]}, 2)
    first, second = models.joined_sets.reshape(2, 4)
    assert first.tolist() == second.tolist()
    assert first[0] == -1
    assert first[1] == first[2] != first[3]
    assert ModelClass.per_arm({"a": [0, 1], "b": [2]}, 2).joined_sets is None
    shared = ModelClass.per_arm({"a": [0, 1], "b": [2], "both": [0, 1, 2]}, 2, shared=[3]).joined_sets
    assert shared[0] == -1


def test_code_of_unknown_size_has_unions_too():
    models = ModelClass.per_arm({"a": lambda z: z[:2], "b": lambda z: z[2:]}, 2, unions=True)
    assert models.n_models == 3
    models.offered(np.arange(5.0), None)
    assert [len(group) for group in models.groups] == [6, 8, 12]


# -- correlated arms ---------------------------------------------------------------------------------------------


def test_rows_of_correlated_arms_have_the_covariance_of_their_coefficients():
    """Independent coefficients of the columns give arms a covariance of rho x'z, and x'z with themselves."""
    models = ModelClass.per_arm({"a": [0, 1], "b": [2]}, ["x", "y", "z"], correlation=0.7)
    assert models.arm_blocks is None
    one, other = np.array([1.0, -2.0, 0.5]), np.array([0.3, 1.0, 4.0])
    rows, columns = models.offered(one, None), np.delete(np.arange(12), [0, 4, 8])  # constants left out
    between = rows[:, columns] @ models.offered(other, None)[:, columns].T
    assert between == pytest.approx(one @ other * np.where(np.eye(3) == 1.0, 1.0, 0.7))
    assert models.free_columns.tolist() == [0, 4, 8]
    assert np.count_nonzero(rows[:, [0, 4, 8]]) == 3


def test_a_correlation_is_stored_and_outlives_new_arms():
    models = ModelClass.per_arm({"a": [0, 1]}, ["x", "y"], correlation=0.7)
    assert ModelClass.from_dict(models.to_dict()).offered([1.0, 2.0], None) == pytest.approx(
        models.offered([1.0, 2.0], None)
    )
    more = models.with_arms(["x", "y", "z"])
    assert more.offered([1.0, 2.0], None)[:2, :6] == pytest.approx(models.offered([1.0, 2.0], None))
    for wrong in (1.0, -0.2, float("nan")):
        with pytest.raises(ValueError, match="correlation"):
            ModelClass.per_arm({"a": [0]}, 2, correlation=wrong)
