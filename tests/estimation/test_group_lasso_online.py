"""The group Lasso as a running data set: validation, purity, state, equivariance, drift."""

from __future__ import annotations

import json

import numpy as np
import pytest

from alexp.estimation.lasso.group_lasso import GroupLasso, LassoFit

from .group_lasso_twin import all_subsets, bound, explicit_gap, filled, legendre_instance, weak_lambda


def paths(size=3, degree=8, **options):
    """The same class in its four guises: both regimes, explicit groups and all subsets."""
    _, _, groups = legendre_instance(degree, size, 1, 0)
    for regime in ("gram", "rows"):
        yield lambda regime=regime: bound(groups, degree + 1, regime=regime, **options)
        yield lambda regime=regime: all_subsets(degree + 1, size, regime=regime, **options)


def same(a: LassoFit, b: LassoFit) -> bool:
    """Bit for bit."""
    return all(np.array_equal(left, right) for left, right in zip(a.state().values(), b.state().values(), strict=True))


@pytest.mark.parametrize("intercept", [False, True])
def test_state_continues_bit_for_bit(intercept):
    rows, y, groups = legendre_instance(8, 3, 40, seed=1)
    for make in paths(intercept=intercept):
        for stop in (0, 1, 7, 20, 33):
            whole, fit = make(), None
            for t in range(stop):
                whole.append(rows[t], y[t])
                fit = whole.solve(weak_lambda(t + 1, len(groups), 3), fit)
            again = make()
            again.restore(whole.state())
            copy = None if fit is None else LassoFit.from_state(fit.state())
            for t in range(stop, 40):
                whole.append(rows[t], y[t])
                again.append(rows[t], y[t])
                lam = weak_lambda(t + 1, len(groups), 3)
                fit, copy = whole.solve(lam, fit), again.solve(lam, copy)
                assert same(fit, copy)


def test_state_survives_json():
    rows, y, _ = legendre_instance(8, 3, 12, seed=2)
    for make in paths():
        path = filled(make(), rows, y)
        text = json.dumps({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in path.state().items()})
        again = make()
        again.restore(json.loads(text))
        assert same(path.solve(0.01), again.solve(0.01))


def test_solving_changes_nothing():
    rows, y, _ = legendre_instance(8, 3, 30, seed=3)
    for make in paths():
        watched, alone = make(), make()
        for row, value in zip(rows, y, strict=True):
            for path in (watched, alone):
                path.append(row, value)
            before = {k: np.copy(v) for k, v in watched.state().items()}
            first = watched.solve(0.003)
            again = watched.solve(0.003)
            watched.solve(0.1, first)
            assert same(first, again)
            for name, value_now in watched.state().items():
                np.testing.assert_array_equal(value_now, before[name])
        assert same(watched.solve(0.001), alone.solve(0.001))


def test_appending_leaves_the_callers_row_alone():
    for make in paths(intercept=True):
        path, row = make(), np.arange(9.0)
        path.append(row, 1.0)
        row[:] = 5.0
        path.append(np.ones(9), 2.0)
        path.append(np.arange(9)[::-1], 3.0)
        assert path.n_observations == 3
        np.testing.assert_array_equal(row, 5.0)


@pytest.mark.parametrize("factor", [2.0, 1024.0, 2.0**-13])
def test_powers_of_two_scale_bit_for_bit(factor):
    rows, y, groups = legendre_instance(8, 3, 30, seed=4)
    for make in paths(intercept=True):
        path, scaled = make(), make()
        fit = other = None
        for t in range(30):
            path.append(rows[t], y[t])
            scaled.append(rows[t], factor * y[t])
            lam = weak_lambda(t + 1, len(groups), 3)
            fit, other = path.solve(lam, fit), scaled.solve(factor * lam, other)
            np.testing.assert_array_equal(factor * fit.beta, other.beta)
            np.testing.assert_array_equal(factor * fit.magnitudes, other.magnitudes)
            np.testing.assert_array_equal(fit.groups, other.groups)
            assert (factor * fit.intercept, fit.gap, fit.iterations) == (other.intercept, other.gap, other.iterations)


@pytest.mark.parametrize("factor", [1e-9, 3.7, 1e9])
def test_other_units_give_the_same_function(factor):
    rows, y, _ = legendre_instance(8, 3, 30, seed=5)
    for make in paths(tol=1e-10):
        a = filled(make(), rows, y).solve(0.001)
        b = filled(make(), rows, factor * y).solve(factor * 0.001)
        np.testing.assert_allclose(rows @ b.beta, factor * (rows @ a.beta), rtol=0, atol=factor * 3e-4)


def test_warm_and_cold_starts_agree():
    rows, y, groups = legendre_instance(10, 3, 60, seed=6)
    for make in paths(degree=10, tol=1e-11):
        path, fit = make(), None
        for t in range(60):
            path.append(rows[t], y[t])
            lam = weak_lambda(t + 1, len(groups), 3)
            fit = path.solve(lam, fit)
            cold = path.solve(lam)
            far = path.solve(lam, path.solve(1000.0 * lam))
            for other in (cold, far):
                difference = rows[: t + 1] @ (fit.beta - other.beta)
                # Each objective is within 1e-11 P of the least one, P <= (1/2) ||y||^2.
                assert np.linalg.norm(difference) <= 2.0 * np.sqrt(2e-11) * np.linalg.norm(y[: t + 1])


@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_a_hundred_thousand_observations_do_not_drift(regime):
    rng = np.random.default_rng(7)
    n_columns, n = 6, 100_000
    groups = [np.array([i, (i + 1) % n_columns]) for i in range(n_columns)]
    rows = rng.normal(size=(n, n_columns)) + 3.0
    y = rows[:, 0] - 2.0 * rows[:, 3] + 7.0 + 0.1 * rng.normal(size=n)
    path = filled(bound(groups, n_columns, intercept=True, tol=1e-10, regime=regime), rows, y)
    centred, target = rows - rows.mean(axis=0), y - y.mean()
    factor = np.linalg.qr(np.column_stack([centred, target]), mode="r")
    stored = path.state()
    xt, z = stored["xt"], stored["z"]
    np.testing.assert_allclose(xt @ xt.T, factor[:, :-1].T @ factor[:, :-1], rtol=1e-11, atol=1e-7)
    np.testing.assert_allclose(z @ z + stored["rho"][0] ** 2, target @ target, rtol=1e-11)
    fit = path.solve(0.05)
    assert explicit_gap(rows, y, groups, None, True, 0.05, path, fit) <= 1.1e-10


def test_fits_round_trip():
    rows, y, _ = legendre_instance(8, 3, 10, seed=8)
    for make in paths():
        fit = filled(make(), rows, y).solve(0.01)
        assert same(fit, LassoFit.from_state(fit.state()))
        assert same(
            fit,
            LassoFit.from_state(
                json.loads(
                    json.dumps({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fit.state().items()})
                )
            ),
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol must be positive"),
        ({"tol": float("nan")}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"regime": "dense"}, "regime must be"),
    ],
)
def test_bad_specifications(options, message):
    with pytest.raises(ValueError, match=message):
        GroupLasso(**options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, [0], [0, 1]), "n_columns must be at least 1"),
        ((3, None, None), "columns and offsets are required"),
        ((3, [0, 1], [0, 1]), "offsets must"),
        ((3, [0, 1], [1, 2]), "offsets must"),
        ((3, [0, 1], [0]), "offsets must"),
        ((3, [0, 1, 2], [0, 1, 1, 3]), "group 1 is empty"),
        ((3, [0, 3], [0, 2]), r"columns must lie in 0\.\.2"),
        ((3, [0, -1], [0, 2]), r"columns must lie in 0\.\.2"),
        ((3, [0, 1, 2, 1], [0, 1, 4]), "group 1 holds column 1 twice"),
        ((3, [0, 1], [0, 1, 2], [1.0]), "weights must have shape"),
        ((3, [0, 1], [0, 1, 2], [1.0, 0.0]), "weights must be positive"),
        ((3, [0, 1], [0, 1, 2], [1.0, np.inf]), "weights must be positive"),
        ((3, None, None, None, False, 4), r"subset_size must lie in 1\.\.3"),
        ((3, None, None, None, False, 0), r"subset_size must lie in 1\.\.3"),
        ((3, None, None, [1.0, 2.0], False, 2), "weights must be equal"),
        ((200, None, None, None, False, 50), "more than"),
    ],
)
def test_bad_groups(arguments, message):
    with pytest.raises(ValueError, match=message):
        GroupLasso().bind_groups(*arguments)


@pytest.mark.parametrize(
    ("row", "y", "message"),
    [
        (np.zeros(8), 0.0, r"row must have shape \(9,\)"),
        (np.zeros((1, 9)), 0.0, r"row must have shape \(9,\)"),
        (np.full(9, np.nan), 0.0, "finite"),
        (np.zeros(9), np.inf, "finite"),
    ],
)
def test_bad_observations_change_nothing(row, y, message):
    for make in paths():
        path = make()
        path.append(np.ones(9), 1.0)
        with pytest.raises(ValueError, match=message):
            path.append(row, y)
        assert path.n_observations == 1
        assert path.solve(0.1).beta.any()


def test_bad_solves():
    for make in paths():
        path = make()
        with pytest.raises(ValueError, match="no observations"):
            path.solve(0.1)
        path.append(np.ones(9), 1.0)
        for lam in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match="lam must be positive"):
                path.solve(lam)
        fit = path.solve(0.1)
        stranger = LassoFit(fit.beta, 0.0, np.array([10**6]), np.array([1.0]), 0.1, 0.0, 0)
        with pytest.raises(ValueError, match="not a fit of these groups"):
            path.solve(0.1, stranger)


def test_bad_states_change_nothing():
    rows, y, _ = legendre_instance(8, 3, 5, seed=9)
    for make in paths():
        path = filled(make(), rows, y)
        good = path.solve(0.01)
        for name in ("mean", "rho", "xt", "z"):
            state = path.state()
            state[name] = np.zeros((2, 3))
            with pytest.raises(ValueError, match="must have shape"):
                path.restore(state)
        assert same(good, path.solve(0.01))
