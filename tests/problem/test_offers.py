"""What a round offers, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.problem.offers import check_problem, contexts_of, make_offer
from alexp.testing.contextual import Crossed

BLOCKS = alexp.ModelClass.from_blocks({"user": 2, "item": 1})
PAIRS = alexp.ModelClass(Crossed(), [[0, 1, 2], [3, 4, 5]])
ARMS = alexp.Arms(["one", "four"])


def test_arms_are_named_numbered_and_grow():
    arms = alexp.Arms(["a", "b"])
    assert arms.add("c") == 2
    assert (arms.names, len(arms), arms.n_candidates, arms[1], arms.locate("c")) == (("a", "b", "c"), 3, 3, "b", 2)
    for wrong, error in (("a", ValueError), (7, TypeError), ("", TypeError)):
        with pytest.raises(error):
            arms.add(wrong)
    with pytest.raises(ValueError, match="there is no arm 'z'"):
        arms.locate("z")
    for wrong, error in (([], ValueError), ("ab", TypeError), (3, TypeError), (["a", "a"], ValueError)):
        with pytest.raises(error):
            alexp.Arms(wrong)


def test_blocks_are_stored_with_their_order_and_example():
    example = np.arange(6.0).reshape(2, 3)
    models = alexp.ModelClass.from_blocks({"user": 2, "item": 1}, intercept=True, example=example)
    again = alexp.ModelClass.from_dict(models.to_dict())
    assert again.names == ["user", "item"]
    assert again.intercept
    assert [g.tolist() for g in again.groups] == [[0, 1], [2]]
    np.testing.assert_array_equal(again.example_rows, example)
    assert again.is_contextual
    assert not alexp.ModelClass.legendre(2, 1).is_contextual
    for wrong in ({}, {"a": 0}, {"a": 2**40}, [3]):
        with pytest.raises(ValueError, match="block"):
            alexp.ModelClass.from_blocks(wrong)
    with pytest.raises(TypeError, match="features="):
        models.offered(1, [2])
    with pytest.raises(TypeError, match="no table"):
        models.matrix(alexp.Candidates())


def test_features_come_as_a_table_or_in_blocks_and_are_copied():
    table = np.arange(6.0).reshape(2, 3)
    whole = make_offer(BLOCKS, alexp.Candidates(), features=table, ids=np.array([4, 7]))
    parts = make_offer(BLOCKS, alexp.Candidates(), features={"item": table[:, 2:], "user": table[:, :2]})
    np.testing.assert_array_equal(whole.rows, parts.rows)
    assert whole.ids == (4, 7)
    assert [whole.actions[1], parts.actions[1]] == [7, 1]
    table[:] = 0.0
    assert whole.rows[1, 2] == 5.0


def test_candidates_are_what_comes_back():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 1.0]}, index=["p", "q"])
    by_column = alexp.ModelClass(Crossed(), [[0]])
    offer = make_offer(PAIRS, alexp.Candidates(), context=np.ones(3), candidates=[(1, 2), (3, 4)], ids=["a", ("b", 1)])
    assert offer.actions[1] == (3, 4)
    assert offer.ids == ("a", ("b", 1))
    np.testing.assert_array_equal(offer.rows[1], [3, 3, 3, 4, 4, 4])
    offer = make_offer(by_column, alexp.Candidates(), context=np.ones(3), candidates=frame.to_numpy())
    np.testing.assert_array_equal(offer.actions[1], [2.0, 1.0])


def test_available_by_position_mask_name_or_id():
    allowed = [
        make_offer(PAIRS, ARMS, context=np.ones(3), available=a).choosable for a in (["four"], [1], [False, True])
    ]
    assert [a.tolist() for a in allowed] == [[1]] * 3
    features = np.ones((3, 3))
    offer = make_offer(BLOCKS, alexp.Candidates(), features=features, ids=["x", "y", "z"], available=["z", "x"])
    assert sorted(offer.choosable) == [0, 2]
    assert sorted(offer.least([0]).choosable) == [2]
    assert sorted(offer.least([0, 2]).choosable) == [0, 2]
    with pytest.raises(ValueError, match="'w'"):
        make_offer(BLOCKS, alexp.Candidates(), features=features, ids=["x", "y", "z"], available=["w"])
    with pytest.raises(ValueError, match="no ids"):
        make_offer(BLOCKS, alexp.Candidates(), features=features, available=["x"])


@pytest.mark.parametrize(
    ("models", "domain", "match"),
    [
        (BLOCKS, alexp.Interval(), "fixed domain"),
        (alexp.ModelClass.legendre(2, 1), alexp.Candidates(), "are not contextual"),
        (alexp.ModelClass.legendre(2, 1), ARMS, "are not contextual"),
        (BLOCKS, ARMS, r"alexp.Candidates\(\)"),
    ],
)
def test_models_and_domain_go_together(models, domain, match):
    with pytest.raises(ValueError, match=match):
        check_problem(models, domain)
    with pytest.raises(ValueError, match=match):
        alexp.LinUCB(models, domain)


@pytest.mark.parametrize(
    ("models", "domain", "presented", "match"),
    [
        (alexp.ModelClass.legendre(2, 1), alexp.Interval(), {"context": 1.0}, "contextual domains"),
        (PAIRS, ARMS, {}, "context= is missing"),
        (PAIRS, ARMS, {"context": np.ones(3), "features": np.ones((2, 6))}, "features= is for fresh candidates"),
        (PAIRS, ARMS, {"context": np.ones(3), "ids": ["a", "b"]}, "ids= is for fresh candidates"),
        (PAIRS, ARMS, {"context": np.ones(3), "candidates": [(1, 2)]}, "the arms are the candidates"),
        (PAIRS, ARMS, {"context": np.full(3, np.nan)}, "not finite"),
        (PAIRS, alexp.Candidates(), {"context": np.ones(3)}, "candidates= is missing"),
        (PAIRS, alexp.Candidates(), {"candidates": [(1, 2)]}, "context= is missing"),
        (PAIRS, alexp.Candidates(), {"context": np.ones(3), "candidates": []}, "must not be empty"),
        (PAIRS, alexp.Candidates(), {"features": np.ones((2, 6))}, "from_blocks"),
        (BLOCKS, alexp.Candidates(), {}, "features= is missing"),
        (BLOCKS, alexp.Candidates(), {"context": 1, "features": np.ones((2, 3))}, "declared by blocks"),
        (BLOCKS, alexp.Candidates(), {"features": np.ones((2, 4))}, "user: 2, item: 1"),
        (BLOCKS, alexp.Candidates(), {"features": {"user": np.ones((2, 2))}}, "must have the blocks"),
        (BLOCKS, alexp.Candidates(), {"features": {"user": np.ones((2, 2)), "item": np.ones((3, 1))}}, r"\(2, 1\)"),
        (BLOCKS, alexp.Candidates(), {"features": [[1.0, np.nan, 0.0]]}, "row 0, column 1"),
        (BLOCKS, alexp.Candidates(), {"features": np.ones((2, 3)), "ids": ["a"]}, "one entry per candidate"),
        (BLOCKS, alexp.Candidates(), {"features": np.ones((2, 3)), "ids": ["a", "a"]}, "'a' is used more than once"),
    ],
)
def test_what_is_wrong_is_named(models, domain, presented, match):
    with pytest.raises(ValueError, match=match):
        make_offer(models, domain, **presented)


def test_ids_must_be_storable():
    for ids in ([object(), 1], [[1], [2]], [float("nan"), 1.0]):
        with pytest.raises(TypeError, match="texts, numbers or tuples"):
            make_offer(BLOCKS, alexp.Candidates(), features=np.ones((2, 3)), ids=ids)
    with pytest.raises(TypeError, match="list"):
        make_offer(BLOCKS, alexp.Candidates(), features=np.ones((2, 3)), ids="ab")


def test_one_context_or_several():
    def texts(context, n):
        several = contexts_of(context, n)
        return None if several is None else [str(np.asarray(one).tolist()) for one in several]

    assert texts(np.eye(2), None) is None  # without n it is one, whatever it looks like
    assert texts(["a prompt", "another"], 2) == ["a prompt", "another"]
    assert texts(np.eye(2), 2) == ["[1.0, 0.0]", "[0.0, 1.0]"]
    assert texts(pd.DataFrame({"age": [3, 4]}), 2) == ["[3]", "[4]"]
    assert texts([{"a": 1}, {"a": 2}], 2) is not None
    for one in ({"a": 1}, "prompt", 3.0, np.ones(2), pd.Series([1.0, 2.0]), [1.0, 2.0, 3.0], (1, 2, 3)):
        assert texts(one, 2) is None
    with pytest.raises(ValueError, match="one context of 2 numbers or 2 contexts"):
        contexts_of([1.0, 2.0], 2)
    with pytest.raises(ValueError, match="holds 3 contexts, and n is 2"):
        contexts_of(["a", "b", "c"], 2)
    with pytest.raises(ValueError, match="holds 3 contexts, and n is 2"):
        contexts_of(np.eye(3), 2)
