"""Feature matrices: their columns, and whether their rows are those of the candidates."""

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.problem import Maps, Matrices

NAMES = ["m1", "m2", "m3", "m4"]
TABLE = pd.DataFrame({"u": [1.0, 2.0, 3.0, 4.0], "v": [0.0, 1.0, 0.0, 1.0]}, index=NAMES)
CANDIDATES = pd.DataFrame({"solvent": ["a", "b", "c", "d"]}, index=NAMES)


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
