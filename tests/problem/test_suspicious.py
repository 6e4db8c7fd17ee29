"""Input that is probably a mistake: an error or a warning that says what to do."""

import warnings

import numpy as np
import pandas as pd
import pytest

import alexp

NAMES = ["m1", "m2", "m3", "m4"]
TABLE = pd.DataFrame({"u": [1.0, 2.0, 3.0, 4.0], "v": [0.0, 1.0, 0.0, 1.0]}, index=NAMES)
CANDIDATES = pd.DataFrame({"solvent": ["a", "b", "c", "d"]}, index=NAMES)


def matrix(features, candidates):
    return alexp.ModelClass.from_matrices({"f": features}).matrix(alexp.FiniteSet(candidates))


@pytest.mark.parametrize("candidates", [CANDIDATES, NAMES, np.array(NAMES), np.arange(4.0)])
def test_features_in_the_order_of_the_candidates(candidates):
    np.testing.assert_array_equal(matrix(TABLE, candidates), TABLE.to_numpy())


@pytest.mark.parametrize("candidates", [CANDIDATES, NAMES, np.array(NAMES)])
def test_features_in_another_order_are_refused(candidates):
    with pytest.raises(ValueError, match=r"another order: row 0 is 'm4' in one and 'm1' in the other; use"):
        matrix(TABLE[::-1], candidates)
    np.testing.assert_array_equal(matrix(TABLE[::-1].to_numpy(), candidates), TABLE[::-1].to_numpy())


def test_a_shuffled_table_of_numbered_rows_is_refused():
    numbered = TABLE.reset_index(drop=True)
    candidates = CANDIDATES.reset_index(drop=True)
    np.testing.assert_array_equal(matrix(numbered, candidates), TABLE.to_numpy())
    with pytest.raises(ValueError, match="another order"):
        matrix(numbered.sample(frac=1.0, random_state=1), candidates)


def test_features_of_other_candidates_are_refused():
    with pytest.raises(ValueError, match="candidate 'm1' has no row"):
        matrix(TABLE.rename({"m1": "x1"}), CANDIDATES)
    with pytest.raises(ValueError, match="two rows labelled 'm1'"):
        matrix(TABLE.rename({"m2": "m1"}), CANDIDATES)


def test_two_tables_in_different_orders_are_refused():
    with pytest.raises(ValueError, match="'b' and 'a' list their rows differently"):
        alexp.ModelClass.from_matrices({"a": TABLE, "b": TABLE[::-1]})


def test_equal_candidates_are_pointed_out():
    for candidates in (["a", "b", "a"], np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), CANDIDATES.iloc[[0, 1, 0]]):
        with pytest.warns(UserWarning, match="candidates 0 and 2 are equal"):
            alexp.FiniteSet(candidates)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alexp.FiniteSet([object(), {"a": 1}, {"a": 1}])  # the user's own objects are not compared
        alexp.FiniteSet(CANDIDATES)


def test_legendre_off_its_interval():
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(0.0, 100.0, 11)
    with pytest.raises(ValueError, match=r"live on \[-1, 1\].* pass lower=0, upper=100"):
        alexp.ALExp(models, domain)
    alexp.ALExp(alexp.ModelClass.legendre(3, 2, lower=0.0, upper=100.0), domain)
    alexp.ALExp(models, alexp.Interval(-0.5, 0.5, 11))


def test_a_model_that_is_zero_everywhere():
    features = {"good": np.eye(4)[:, :2], "empty": np.zeros((4, 3))}
    with pytest.warns(UserWarning, match="model 'empty' is zero on every candidate"):
        alexp.LinUCB(alexp.ModelClass.from_matrices(features, intercept=False), alexp.FiniteSet(NAMES), model=0)
