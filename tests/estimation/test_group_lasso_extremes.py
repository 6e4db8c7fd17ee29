"""The group Lasso on data that span many digits: certified, or certified at the next lambda, never an error."""

from __future__ import annotations

import decimal
import itertools
import warnings
from decimal import Decimal

import numpy as np
import pytest

from alexp.estimation.lasso.group_lasso import (
    ConvergenceWarning,
    GroupLasso,
    SolverData,
    graded,
    least_zero,
    penalties,
    power_of_two,
)
from tests.estimation.group_lasso_twin import filled, flat


def exact_gap(rows, y, groups, fit, t):
    """(P - D) / P in 120 digits, P at beta rounded to doubles as it is in the fit, D the best dual value found.

    Dual points are the residuals at the eta of the fit and, these being rounded, too, at some steps of
    eta_j <- ||theta_j|| from there, each scaled until it is feasible for all groups.
    """
    with decimal.localcontext() as context:
        context.prec = 120
        rows, y = [[Decimal(v) for v in row] for row in rows.tolist()], [Decimal(v) for v in y.tolist()]
        mu, columns = Decimal(fit.lam) * t, range(len(rows[0]))
        active = fit.groups.tolist()
        eta = dict(zip(active, map(Decimal, fit.magnitudes.tolist()), strict=True))
        d = [sum((eta[j] for j in active if i in groups[j]), Decimal(0)) for i in columns]
        slope = [Decimal(value) / d[i] if d[i] > 0 else Decimal(0) for i, value in enumerate(fit.beta.tolist())]
        penalty = sum((eta[j] * _norm(slope[i] for i in groups[j]) for j in active), Decimal(0))
        left = [value - sum(row[i] * d[i] * slope[i] for i in columns) for row, value in zip(rows, y, strict=True)]
        primal = sum(rest * rest for rest in left) / 2 + mu * penalty
        if primal == 0:
            return 0.0
        dual = Decimal(0)
        for _ in range(25):
            used = [i for i in columns if d[i] > 0]
            solved = _ridge([[row[i] for i in used] for row in rows], y, [mu / d[i] for i in used])
            r = [
                value - sum(row[i] * b for i, b in zip(used, solved, strict=True))
                for row, value in zip(rows, y, strict=True)
            ]
            g = [sum(row[i] * rest for row, rest in zip(rows, r, strict=True)) for i in columns]
            top = max(_norm(g[i] for i in group) for group in groups) / mu
            square, inner = sum(rest * rest for rest in r), sum(a * b for a, b in zip(y, r, strict=True))
            s = inner / square if square > 0 else Decimal(0)
            s = min(s, 1 / top) if top > 0 else s
            dual = max(dual, s * inner - s * s * square / 2)
            if primal - dual <= Decimal("1e-6") * primal:
                break
            eta = {j: eta[j] * _norm(g[i] for i in groups[j]) / mu for j in active}
            d = [sum((eta[j] for j in active if i in groups[j]), Decimal(0)) for i in columns]
        return float((primal - dual) / primal)


def _norm(values):
    return sum((value * value for value in values), Decimal(0)).sqrt()


def _ridge(rows, y, penalties):
    """Solve (X'X + diag(penalties)) b = X'y by Gaussian elimination."""
    k = range(len(penalties))
    system = [[sum(row[i] * row[j] for row in rows) + (penalties[i] if i == j else 0) for j in k] for i in k]
    right = [sum(row[i] * value for row, value in zip(rows, y, strict=True)) for i in k]
    for i in k:
        for j in range(i + 1, len(penalties)):
            factor = system[j][i] / system[i][i]
            system[j] = [a - factor * b for a, b in zip(system[j], system[i], strict=True)]
            right[j] -= factor * right[i]
    out = right[:]
    for i in reversed(k):
        out[i] = (right[i] - sum(system[i][j] * out[j] for j in range(i + 1, len(penalties)))) / system[i][i]
    return out


def wide_problem(seed):
    """Columns from 1e-10 to 1e10, an outlier up to 1e100 in two of three, rewards of any size."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 10)), int(rng.integers(1, 6))
    rows = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-10, 10, p)
    unit = 10.0 ** rng.choice([0, 0, -80, 80]) if seed % 3 else 10.0 ** rng.uniform(-20, 20)
    y = rng.normal(size=n)
    if seed % 3:
        y[rng.integers(n)] = 10.0 ** rng.uniform(0, 20 if seed % 2 else 100)
    if rng.random() < 0.2:
        rows[:, 0] = rows[0, 0]
    if rng.random() < 0.2 and p > 1:
        rows[:, 1] = rows[:, 0]
    size = int(rng.integers(1, p + 1))
    subsets = bool(rng.random() < 0.5)
    groups = list(itertools.combinations(range(p), size)) if subsets else np.array_split(np.arange(p), size)
    spec = GroupLasso(regime=str(rng.choice(["gram", "rows"])))
    path = spec.bind_groups(p, None, None, None, False, size) if subsets else spec.bind_groups(p, *flat(groups))
    y = np.clip(unit * y, -1e100, 1e100)
    return filled(path, rows, y), rows, y, groups, unit * 10.0 ** rng.uniform(-3, 1)


@pytest.mark.filterwarnings("ignore::alexp.ConvergenceWarning")
def test_certified_whatever_the_digits():
    """Every solution is certified for the lambda it names; recomputed exactly, and rounded to doubles, it holds."""
    raised = 0
    for seed in range(150):
        path, rows, y, groups, lam = wide_problem(seed)
        fit = path.solve(lam)
        assert fit.gap <= 1e-6
        assert fit.lam >= lam
        raised += fit.lam != lam
        assert exact_gap(rows, y, groups, fit, len(y)) <= 3e-6, seed
    assert 20 <= raised <= 75  # the rest, columns of 1e10 among others of 1e-10 included, at the lambda asked for


@pytest.mark.filterwarnings("ignore::alexp.ConvergenceWarning")
@pytest.mark.parametrize("seed", [214, 497, 562, 212, 272, 322])  # three of subsets, three of groups
def test_coefficients_that_cannot_be_rounded_get_a_larger_lambda(seed):
    path, rows, y, groups, lam = wide_problem(seed)
    fit = path.solve(lam)
    assert fit.lam > lam
    assert exact_gap(rows, y, groups, fit, len(y)) <= 3e-6


@pytest.mark.filterwarnings("ignore::alexp.ConvergenceWarning")
@pytest.mark.parametrize("seed", [46, 47, 74])
def test_steps_for_a_finer_gap_end_where_digits_are_lacking(seed):
    path, _, _, _, lam = wide_problem(seed)
    fit = path.solve(lam)
    assert fit.gap <= 1e-6
    assert fit.iterations <= 30  # 1000 if nothing but the finer gap ends them


def with_outlier(size, **options):
    rng = np.random.default_rng(3)
    rows, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    y[5] = size
    return filled(GroupLasso(**options).bind_groups(4, *flat([[0, 1], [2], [3, 0]])), rows, y), rows, y


def test_no_warning_where_lambda_stays(recwarn):
    for size in (1.0, 1e6, 1e12):
        path, _, _ = with_outlier(size)
        assert path.solve(0.02).lam == 0.02
    assert not recwarn.list


def test_a_larger_lambda_is_said_once_and_named():
    path, _, _ = with_outlier(1e60)
    with pytest.warns(ConvergenceWarning, match="typing error, amend or retract") as said:
        fit = path.solve(0.02)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert f"{fit.lam:.2g}" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert path.solve(0.02, start=fit).lam == fit.lam


def test_powers_of_two_scale_solutions_exactly():
    """Also of the careful path: scaling y and lambda by 2^k, or rows by 2^-k and lambda by 2^-k, scales beta by 2^k."""
    rng = np.random.default_rng(4)
    rows, y = rng.normal(size=(6, 3)) * np.array([1e10, 1.0, 1e-3]), rng.normal(size=6)
    y[2] = 1e20
    groups = flat([[0], [1], [2, 0]])
    plain = filled(GroupLasso().bind_groups(3, *groups), rows, y).solve(1e-3)
    larger = filled(GroupLasso().bind_groups(3, *groups), rows, 2.0**40 * y).solve(2.0**40 * 1e-3)
    smaller = filled(GroupLasso().bind_groups(3, *groups), 2.0**-40 * rows, y).solve(2.0**-40 * 1e-3)
    np.testing.assert_array_equal(larger.beta, 2.0**40 * plain.beta)
    np.testing.assert_array_equal(smaller.beta, 2.0**40 * plain.beta)
    np.testing.assert_array_equal(smaller.magnitudes, 2.0**40 * plain.magnitudes)


def test_graded_data_say_the_same():
    path, rows, y = with_outlier(1e3, regime="rows")
    assert path._rho[0] > 0.0  # twelve rows have become four, and more has been left over
    data = SolverData(path._xt, path._n_rows, path._z, path._rho[0], np.zeros((0, 0)))
    again, unit = graded(data)
    assert unit == power_of_two(np.abs(path._xt).max())
    np.testing.assert_allclose(unit**2 * again.xt @ again.xt.T, rows.T @ rows, rtol=1e-12)
    np.testing.assert_allclose(unit * again.xt @ again.z, rows.T @ y, rtol=1e-12)
    assert again.z @ again.z + again.rho**2 == pytest.approx(y @ y, rel=1e-12)
    largest = int(np.argmax(np.linalg.norm(rows, axis=0)))
    assert np.count_nonzero(again.xt[largest]) == 1


def test_penalties_rise_to_the_zero_solution():
    path, rows, y = with_outlier(1.0, regime="rows")
    data = SolverData(path._xt, path._n_rows, path._z, 0.0, np.zeros((0, 0)))
    pull = np.abs(rows.T @ y)
    assert least_zero(data, path._groups, 1) == pytest.approx(max(pull[0] + pull[1], pull[2], pull[3] + pull[0]))
    values = list(penalties(1e-12, 1.0))
    assert values[0] == 1e-12
    assert values == sorted(values)
    assert 1e-12 < values[1] < 2e-10


@pytest.mark.parametrize(
    ("row", "y"), [([1.0, 1e101], 1.0), ([1.0, 1.0], -1e101), ([np.nan, 1.0], 1.0), ([1, 1], np.inf)]
)
def test_what_is_too_large_is_refused(row, y):
    path = GroupLasso().bind_groups(2, [0, 1], [0, 2])
    with pytest.raises(ValueError, match="at most 1e\\+100"):
        path.append(row, y)
    assert path.n_observations == 0
