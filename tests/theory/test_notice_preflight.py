"""What a preflight notices and advises, each just above and just below its threshold."""

import numpy as np
import pytest

from alexp import FiniteSet, ModelClass, Schedules, theory
from alexp.problem import Matrices
from alexp.theory.preflight import column_classes, deficient_models, equal_models, model_norms, span_relations

X = np.linspace(-1.0, 1.0, 9)


def advice(table, groups, scales=None, **settings):
    dictionary = Matrices({"f": np.array(table, dtype=float)})
    names = [f"m{j}" for j in range(len(groups))]
    models = ModelClass(dictionary, groups, names=names, scales=scales)
    found = theory.preflight(models, FiniteSet(range(len(table))), **{"schedules": Schedules(lam=1.0), **settings})
    return found, " | ".join(found.advice)


def test_proportional_columns_share_a_label_whatever_the_sign():
    table = np.column_stack([X, -2 * X, X**2, X + 0.01 * X**2, 3 * X**2])
    assert column_classes(table).tolist() == [0, 0, 2, 3, 2]
    assert equal_models(np.array([0, 0, 2, 3, 2]), [np.array([0, 2]), np.array([4, 1]), np.array([3])]) == [[0, 1]]


def test_spans_equal_and_nested_in_both_orders():
    table = np.column_stack([X, X**2, X + X**2, X - X**2, X**3])
    groups = [np.array(g) for g in ([0, 1], [2, 3], [0], [4], [1, 0, 4])]
    equal, inside = span_relations(table, groups)
    assert equal == [(0, 1)]
    assert sorted(inside) == [(0, 4), (1, 4), (2, 0), (2, 1), (2, 4), (3, 4)]


def test_norms_are_of_the_scaled_models():
    table = np.array([[3.0, 4.0, 1.0], [1.0, 1.0, -2.0]])
    norms = model_norms(table, [np.array([0, 1]), np.array([2])], np.array([2.0, 0.5]))
    assert norms == pytest.approx([2.5, 4.0])


def test_deficient_models():
    table = np.column_stack([X, 2 * X, X**2, 0 * X])
    groups = [np.array(g) for g in ([0, 2], [0, 1], [3], [2, 3])]
    assert deficient_models(table, groups) == [1, 2, 3]


def test_advice_on_norms():
    line = np.column_stack([np.ones(9), X])
    assert "differ by a factor of 10.1" in advice(line, [[0], [1]], [1.0, 10.1])[1]
    assert "differ by" not in advice(line, [[0], [1]], [1.0, 9.9])[1]
    assert "reach norm 1.25" in advice(line, [[0], [1]], [0.8, 1.0])[1]
    assert "reach norm" not in advice(line, [[0], [1]], [1.0, 1.0])[1]


def test_advice_on_regularisation():
    line = np.column_stack([np.ones(9), X])
    assert "tuned for regret" in advice(line, [[0], [1]], schedules=Schedules(lam=0.49))[1]
    assert "tuned for regret" not in advice(line, [[0], [1]], schedules=Schedules(lam=0.5))[1]


def test_advice_on_designs():
    # x alone on a grid: uniform has mean(x^2) = 0.4167, the ends have 1, a gain of 2.4; on two ends there is no gain
    assert "explores 2.4 times better" in advice(X[:, None], [[0]])[1]
    assert "times better" not in advice(np.array([[1.0], [-1.0], [0.9]]), [[0]])[1]


def test_concatenation_counts_scales():
    """Columns 1 and x once each: without scales the concatenation is the dictionary, with them it is not."""
    line = np.column_stack([np.ones(9), X])
    assert advice(line, [[0], [1]])[0].c_min["concatenation"] == pytest.approx(1.0, abs=1e-5)
    assert advice(line, [[0], [1]], [1.0, 2.0])[0].c_min["concatenation"] == pytest.approx(0.25, abs=1e-5)
    assert advice(np.column_stack([np.ones(9), X, X]), [[0], [1], [2]])[0].c_min["concatenation"] == 0.0
    assert advice(line, [[0, 1], [1]])[0].c_min["concatenation"] == 0.0
