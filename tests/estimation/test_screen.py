"""The single-precision screen of the sweep: it never drops a winner, and it drops nearly everything else."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from alexp.estimation.ridge._search import (
    model_size,
    narrow_bound,
    narrow_hits,
    narrow_means,
    narrow_quadratics,
    narrow_table,
    screen_for,
)
from alexp.estimation.ridge.bank import RidgeBank
from tests.estimation.test_sweep import (
    assert_equals_twin,
    random_bank,
    twin_coefficients,
    twin_mean,
    twin_scores,
    twin_winners,
    unpacked_factor,
)


def hard_case(rng):
    """Models whose factors are ill-conditioned, features of all scales, and candidates that nearly tie."""
    n_columns = int(rng.integers(1, 9))
    sizes = rng.integers(1, n_columns + 1, size=12)
    observations = int(rng.integers(0, 30))
    bank, groups = random_bank(rng, sizes, n_columns, 0, bool(rng.integers(2)), 10.0 ** rng.uniform(-4, 1))
    scale = 10.0 ** rng.uniform(-6, 6, size=(n_columns, 1)) if rng.integers(2) else np.ones((n_columns, 1))
    base = scale * rng.normal(size=(n_columns, 1 + rng.integers(4)))
    near = base[:, rng.integers(base.shape[1], size=int(rng.integers(1, 5000)))]
    table = np.ascontiguousarray(near * (1.0 + 2.0 ** rng.uniform(-50, 0) * rng.normal(size=near.shape)))
    if rng.integers(2):
        table[rng.integers(n_columns)] = table[rng.integers(n_columns)]  # two collinear columns, in every row
    for i in rng.integers(table.shape[1], size=observations):
        bank.update(table[:, i], float(rng.normal()))
    return bank, groups, table


@pytest.mark.parametrize("seed", range(120))
def test_argmax_equals_the_twin_on_hard_cases(seed):
    rng = np.random.default_rng(seed)
    bank, groups, table = hard_case(rng)
    for _ in range(3):  # the second and third sweep start from the winners of the one before
        width = np.where(rng.integers(5, size=len(groups)), 10.0 ** rng.uniform(-3, 3, len(groups)), 0.0)
        assert_equals_twin(bank, groups, table, width)
        theta = rng.normal(size=sum(map(len, groups))) * 10.0 ** rng.uniform(-6, 6)
        parts = np.split(theta, np.cumsum([len(group) for group in groups])[:-1])
        means = [twin_mean(part, table[group]) for part, group in zip(parts, groups, strict=True)]
        np.testing.assert_array_equal(bank.argmax_linear(table, theta), twin_winners(np.array(means)))
        bank.update(table[:, rng.integers(table.shape[1])], float(rng.normal()))


@njit
def passing(table, narrow, scale, own, model, width, score):
    """Hits of the screen at this score, or -1 if the model is not screened."""
    out = np.empty(model_size(own.size), dtype=np.float32)
    total = narrow_means(scale, own, model, width, out)
    bound = narrow_bound(score, width, own.size, total)
    if np.isnan(bound) or not narrow_quadratics(scale, own, model, out):
        return -1, 0
    screen = screen_for(narrow, scale, own.size)
    return narrow_hits(screen, own, 0, table.shape[1], out, True, bound)


def test_all_that_reach_a_score_pass_and_few_others_do():
    """On an ordinary problem the screen leaves little more than the candidates that do reach the score."""
    rng = np.random.default_rng(0)
    x = rng.permutation(np.linspace(-1.0, 1.0, 2000))
    table = np.ascontiguousarray(np.polynomial.legendre.legvander(x, 9).T)
    narrow, scale = narrow_table(table)
    assert np.abs(narrow).max() <= 1.0
    sizes = [1, 2, 3, 4, 5, 8] * 5
    bank, groups = random_bank(rng, sizes, 10, 0, ridge=0.1)
    for i in rng.integers(2000, size=50):
        bank.update(table[:, i], float(rng.normal()))
    scores, start = twin_scores(bank, groups, table, np.ones(len(sizes))), 0
    for j, group in enumerate(groups):
        factor, start = unpacked_factor(bank, len(group), start)
        d = len(group)
        length = model_size.py_func(d)
        model = np.empty(length + 2 * d)
        model[:d] = twin_coefficients(factor, 0)
        model[d : 2 * d] = 0.0
        model[2 * d : 3 * d] = 1.0 / np.diag(factor)[:d]
        model[3 * d] = 0.0
        model[3 * d + 1 : length] = [factor[k, i] for i in range(d) for k in range(i)]
        for share in (1.0, 0.999, 0.9):
            reached = np.quantile(scores[j], share)
            hits, where = passing(table, narrow, scale, group, model, 1.0, reached)
            winners = np.flatnonzero(scores[j] >= reached)
            assert len(winners) <= hits <= len(winners) + 40
            if hits == len(winners) and hits <= 2:
                assert where == winners.sum()


@pytest.mark.parametrize(("ridge", "width"), [(1e-9, 1e-9), (1e-9, 1.0), (1e-9, 1e9), (1.0, 1e-45)])
def test_models_out_of_range_are_left_to_double_precision(ridge, width):
    """Coordinates of 1e9 have squares, and coefficients over the width have values, that single precision lacks."""
    rng = np.random.default_rng(1)
    bank, table = RidgeBank(np.array([0, 1]), np.array([0, 2]), ridge), rng.normal(size=(2, 50))
    table[:, ::2] *= rng.integers(2, size=(2, 25))  # infinity times these zeros would be no number
    bank.update(table[:, 1], 1.0)
    for _ in range(3):
        assert_equals_twin(bank, [np.array([0, 1])], table, np.array([width]))
        bank.update(table[:, rng.integers(50)], float(rng.normal()))


def test_a_table_that_may_change_is_read_again():
    bank = RidgeBank(np.array([0]), np.array([0, 1]), 1.0)
    table = np.array([[1.0, 2.0, 3.0]])
    assert bank.argmax_ucb(table, 1.0).tolist() == [2]
    table[0] = [5.0, 2.0, 3.0]
    assert bank.argmax_ucb(table, 1.0).tolist() == [0]
    table.flags.writeable = False
    assert bank.argmax_ucb(table, 1.0).tolist() == [0]
    assert bank.argmax_ucb(table, 1.0).tolist() == [0]
