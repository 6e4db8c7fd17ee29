"""One pass per reward equals the packed factors: linear maps, with and without a constant, at several ridges."""

import numpy as np
import pytest

from alexp.estimation.onepass import grid as module
from alexp.estimation.ridge.bank import RidgeGrid
from alexp.problem import ModelClass
from alexp.problem.candidates import Choices, Pending, PendingBlock
from tests.estimation.onepass.twins import candidates, grid

N = 50
RIDGES = (0.05, 0.3, 2.0)


def pair(sizes, intercept, seed=0):
    rng = np.random.default_rng(seed)
    matrices = {f"m{k}": rng.standard_normal((N, d)) for k, d in enumerate(sizes)}
    matrices["m0"][:, 0] = 1.0  # a constant beside the intercept does no harm
    models = ModelClass.from_matrices(matrices, intercept=intercept, kernels="linear")
    table = candidates(models, N)
    ridges = [ridge * np.linspace(1.0, 2.0, len(sizes)) for ridge in RIDGES]
    packed = RidgeGrid(models.n_columns, models.columns_flat, models.offsets, ridges, intercept, precise=True)
    return models, table, ridges, grid(models, table, ridges), packed


def close(one, other, scale=None):
    for a, b in zip(one, other, strict=True):
        size = float(np.abs(b).max()) if scale is None else scale
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * max(size, 1e-12))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sizes", [(3, 20), (6, 90)])  # more rewards than features, and fewer
def test_equals_packed_factors_at_every_step(sizes, intercept):
    models, table, _, one, two = pair(sizes, intercept)
    rng, choices = np.random.default_rng(1), table.everything.choices
    shape = (len(RIDGES), models.n_models)
    for t in range(100):
        weights, noises = rng.dirichlet(np.ones(6)).reshape(shape), rng.uniform(0.5, 2.0, shape)
        out = rng.integers(N, size=t % 3)
        pending = Pending(np.arange(out.size), out, table.rows(out))
        off = Choices(None, rng.standard_normal((models.n_columns, 4)))
        close(one.moments(weights, noises, choices, pending), two.moments(weights, noises, choices, pending))
        close(one.moments(weights, noises, off), two.moments(weights, noises, off))
        together = sum(part.share * part.mean for part in one.components(weights, noises, choices))
        np.testing.assert_allclose(together, one.moments(weights, noises, choices)[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.residuals(), two.residuals(), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(
            one.log_determinants(), [cell.log_determinants() for cell in two.cells], rtol=1e-9, atol=1e-9
        )
        index = 7 if t % 4 == 0 else int(rng.integers(N))
        y = float(rng.standard_normal())
        one.update(table.row(index), y, index)
        two.update(table.row(index), y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("told", [0, 1, 12, 60])
def test_blocks_of_pending_trials_leave_what_their_rows_leave(told, intercept):
    models, table, _, one, two = pair((3, 20), intercept)
    rng, choices = np.random.default_rng(4), table.everything.choices
    out = rng.integers(N, size=70)
    trials, rows = np.arange(70), table.rows(out)
    older = tuple(PendingBlock(trials[a:b], out[a:b], rows[a:b]) for a, b in ((0, 5), (5, 30), (30, 64)))
    blocks, plain = Pending(trials, out, rows[64:], older), Pending(trials, out, rows)
    fewer = Pending(trials[:65], out[:65], rows[64:65], older)
    for index in rng.integers(N, size=told).tolist():
        y = float(rng.standard_normal())
        one.update(table.row(index), y, index)
        two.update(table.row(index), y)
    shape = (len(RIDGES), models.n_models)
    for _ in range(2):
        weights, noises = rng.dirichlet(np.ones(6)).reshape(shape), rng.uniform(0.5, 2.0, shape)
        expected = two.moments(weights, noises, choices, plain)
        one.moments(weights, noises, choices, fewer)
        close(one.moments(weights, noises, choices, blocks), expected)
        close(two.moments(weights, noises, choices, blocks), expected)
        one.update(table.row(3), 0.5, 3)
        two.update(table.row(3), 0.5)


def test_rewards_of_other_points_are_as_good():
    models, table, _, one, two = pair((4, 30), True)
    rng = np.random.default_rng(0)
    for _ in range(10):
        row, y = rng.standard_normal(models.n_columns), float(rng.standard_normal())
        one.update(row, y)
        two.update(row, y)
    weights, noises = np.full((3, 2), 1 / 6), np.ones((3, 2))
    choices = table.everything.choices
    close(one.moments(weights, noises, choices), two.moments(weights, noises, choices))
    again = grid(models, table, [ridge * np.linspace(1.0, 2.0, 2) for ridge in RIDGES])
    again.restore(one.state())
    for a, b in zip(again.moments(weights, noises, choices), one.moments(weights, noises, choices), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_restored_grid_continues_bit_for_bit(intercept):
    models, table, ridges, one, _ = pair((3, 20, 90), intercept)
    rng = np.random.default_rng(2)
    shape = (len(RIDGES), 3)
    weights, noises, choices = np.full(shape, 1 / 9), np.ones(shape), table.everything.choices
    anew = set()
    for t in range(260):
        if t in (0, 1, 5, 22, 70, 150, 259):
            two = grid(models, table, ridges)
            two.update(table.row(3), 1.0, 3)  # whatever it has seen before
            two.restore(one.state())
            for part in ("mean", "variance"):
                for a, b in zip(one.families, two.families, strict=True):
                    assert np.array_equal(getattr(a, part), getattr(b, part))
            assert np.array_equal(one.residuals(), two.residuals())
            assert np.array_equal(one.log_determinants(), two.log_determinants())
            assert np.array_equal(one.moments(weights, noises, choices), two.moments(weights, noises, choices))
            one = two
        anew.add(one.families[1]._since)
        index = int(rng.integers(12)) if t < 200 else int(rng.integers(N))
        one.update(table.row(index), float(rng.standard_normal()), index)
    assert 0 in anew
    assert max(anew) >= 63  # values were made anew, and not at every reward


def test_state_is_the_log():
    _, table, _, one, _ = pair((3, 90), True)
    for index in (3, 3, 8):
        one.update(table.row(index), 0.5, index)
    state = one.state()
    assert sum(np.asarray(part).nbytes for part in state.values()) == 3 * 16


def test_making_values_anew_changes_no_more_than_rounding():
    _, table, _, one, _ = pair((3, 20, 90), True)
    rng = np.random.default_rng(3)
    for _ in range(60):
        index = int(rng.integers(N))
        one.update(table.row(index), float(rng.standard_normal()), index)
    for family in one.families:
        mean, variance = family.mean.copy(), family.variance.copy()
        residuals, determinants = family.regression.residuals.copy(), family.regression.log_determinants()
        family._refresh()
        np.testing.assert_allclose(family.mean, mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(family.variance, variance, rtol=0, atol=1e-10)
        np.testing.assert_allclose(family.regression.residuals, residuals, rtol=1e-10)
        np.testing.assert_allclose(family.regression.log_determinants(), determinants, rtol=1e-10)


@pytest.mark.parametrize("told", [4, 40])
def test_draws_have_the_posterior(told):
    """Coefficients drawn with fewer and with more rewards than features."""
    _, table, _, one, two = pair((5, 20), True)
    rng, choices = np.random.default_rng(4), table.everything.choices
    for _ in range(told):
        index, y = int(rng.integers(N)), float(rng.standard_normal())
        one.update(table.row(index), y, index)
        two.update(table.row(index), y)
    cell, model, scale = 1, 1, 0.7
    draws = np.array(
        [
            one.draw(cell, model, choices, rng.standard_normal(one.n_normals(model)), scale)
            for _ in range(4000)
        ]
    )  # fmt: skip
    draws -= draws[:, :1]  # what all candidates share is left out
    rows = choices.table.T
    mean = two.cells[cell].mean(model, rows)
    triangle = two.cells[cell].triangle(model)[1:, 1:]
    own = (rows - rows[0])[:, 5:]
    variance = scale**2 * np.square(np.linalg.solve(triangle.T, own.T)).sum(axis=0)
    error = np.sqrt(variance / len(draws)) + 1e-12
    assert np.all(np.abs(draws.mean(axis=0) - (mean - mean[0])) < 5 * error)
    assert np.all(np.abs(draws.var(axis=0)[1:] / variance[1:] - 1.0) < 5 * np.sqrt(2 / len(draws)))


def test_values_are_made_anew_by_a_fixed_rule():
    cases = [(64, 10, False), (63, 10, False), (64, 40, False), (80, 40, False), (3, 12, True), (3, 12, False)]
    found = [module._is_due(since, points, 12 if since == 3 else np.inf, is_new) for since, points, is_new in cases]
    assert found == [True, False, False, True, True, False]
