"""The candidate table and the rounds that are played on it."""

import numpy as np
import pytest

import alexp
from alexp.problem import CandidateTable, Matrices
from alexp.problem.candidates import Pending

NAMES = ["m1", "m2", "m3", "m4"]


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


def test_candidate_table_restricts_without_changing_the_visiting_order():
    models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=20)
    order = np.random.default_rng(0).permutation(20)
    table = CandidateTable(models, domain, order)
    np.testing.assert_array_equal(table.row(7), models.columns(domain.points)[7])
    some = table.round(np.array([3, 11, 5])).choices
    kept = [i for i in order if i in (3, 5, 11)]
    assert some.indices.tolist() == kept
    np.testing.assert_array_equal(some.table, models.columns(domain.points)[kept].T)


def test_a_round_on_more_than_an_eighth_of_the_candidates_copies_no_features():
    models = alexp.ModelClass(Matrices({"f": np.arange(10.0, 26.0)[:, None]}), [[0]])
    order = np.random.default_rng(0).permutation(16)
    table = CandidateTable(models, alexp.FiniteSet(list("abcdefghijklmnop")), order)
    most, few = table.round(np.array([3, 2, 1])), table.round(np.array([3, 1]))
    kept = [10.0 + i for i in order if i in (1, 2, 3)]
    assert most.wide.table is table.table
    assert most.narrow(10.0 + order).tolist() == most.choices.table[0].tolist() == kept
    assert few.wide is few.choices
    assert few.narrow(np.array([13.0, 11.0])).tolist() == [13.0, 11.0]
    exact = table.round(np.array([3, 2, 1]), copied=True)
    assert exact.wide.table.tolist() == [kept]
    assert (most.is_full, table.round().is_full, len(few)) == (False, True, 2)


def test_keys_tell_rounds_apart_by_choices_and_by_what_is_pending():
    models = alexp.ModelClass(Matrices({"f": np.array([[10.0], [11.0], [12.0], [13.0]])}), [[0]])
    table = CandidateTable(models, alexp.FiniteSet(list("abcd")), np.array([2, 0, 3, 1]))
    one = np.array([1])
    pending = Pending(np.array([5]), one, table.rows(one))
    assert table.rows(np.array([3, 0])).tolist() == [[13.0], [10.0]]
    rounds = [table.round(), table.round(one), table.round(None, pending), table.round(one, pending)]
    rounds += [table.round(np.array([2])), table.round(one, Pending(np.array([6]), one, table.rows(one)))]
    assert len({round_.key for round_ in rounds}) == len(rounds)
    assert rounds[0].key is None
    assert rounds[2].is_full
    assert table.round(np.array([3, 1])).key == table.round(np.array([1, 3])).key


def test_a_model_that_is_zero_everywhere():
    features = {"good": np.eye(4)[:, :2], "empty": np.zeros((4, 3))}
    with pytest.warns(UserWarning, match="model 'empty' is zero on every candidate"):
        alexp.LinUCB(alexp.ModelClass.from_matrices(features, intercept=False), alexp.FiniteSet(NAMES), model=0)
