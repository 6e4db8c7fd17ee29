"""Variances at a few candidates while trials are pending are those of a pass over all candidates."""

import numpy as np
import pytest

import alexp
from alexp.estimation.onepass import fantasies
from alexp.estimation.onepass._kernels import extend_fantasies
from alexp.estimation.onepass.fantasies import FamilyFantasies, FewVariances
from alexp.estimation.onepass.grid import OnePassGrid
from alexp.problem.candidates import Choices, PendingList

N = 300
KERNELS = {"kernels": [alexp.kernels.Matern(), alexp.kernels.RBF()], "linear": "linear"}


def run(kind, told, **settings):
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((N, 100 if kind == "linear" else 4))
    models = alexp.ModelClass.from_matrices({"x": inputs}, kernels={"x": KERNELS[kind]})
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(N)), random_state=0, **settings)
    assert isinstance(opt._mixture.grid, OnePassGrid)
    for index in range(told):
        opt.observe(index, float(np.sin(inputs[index, 0])))
    return opt


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("told", [5, 60])
@pytest.mark.parametrize("n_pending", [1, 20])
def test_they_are_those_of_a_pass_over_all_candidates(kind, told, n_pending):
    opt = run(kind, told)
    pending = PendingList(opt._listed)
    indices = np.random.default_rng(1).integers(N, size=n_pending)  # some of them twice
    pending.extend(np.arange(n_pending), indices)
    mixture, weights = opt._mixture, opt._mixture.weights()
    some = np.array([7, *indices[:3].tolist(), 250, 7])
    few = mixture.values(weights, Choices(some, lambda: np.empty((0, 0))), pending.now, 0.0)
    parts = list(mixture.components(weights, opt._listed.everything.choices, pending.now, 0.0))
    places = opt._listed.position[some]
    np.testing.assert_array_equal(few.numbers, [part.cell * weights.shape[1] + part.model for part in parts])
    np.testing.assert_allclose(few.shares, [part.share for part in parts], rtol=1e-12)
    np.testing.assert_allclose(few.mean, [part.mean[places] for part in parts], rtol=1e-12)
    expected = np.array([part.variance[places] for part in parts])
    np.testing.assert_allclose(few.variance, expected, rtol=1e-9, atol=1e-11 * expected.max())


@pytest.mark.parametrize("kind", KERNELS)
def test_a_number_depends_on_nothing_else_that_is_asked_for(kind):
    opt = run(kind, 30)
    grid, rows = opt._mixture.grid, opt._listed.rows(np.arange(N))
    one, other = (
        FewVariances(grid.families[0].without_fantasies(), opt._listed.models(opt.models)[0].block) for _ in "ab"
    )
    for k in range(20):
        one.at(np.arange(k, k + 13))
        for own in (one, other):
            own.absorb(grid._told(0, rows[40 + k], 40 + k))
        np.testing.assert_array_equal(one.at(np.arange(100, 117))[:, 5:9], other.at(np.arange(105, 109)))


def test_nothing_is_computed_at_other_candidates(monkeypatch):
    opt = run("kernels", 30, goal="best")
    monkeypatch.setattr(FamilyFantasies, "absorb", None)
    assert len({trial.index for trial in opt.ask(3)}) == 3


@pytest.mark.parametrize("goal", ["sum", "best"])
def test_nothing_is_forgotten_that_matters(goal, monkeypatch):
    kept, forgotten = (run("kernels", 5, goal=goal, repeats=False) for _ in "ab")
    plate = [trial.index for trial in kept.ask(80)]
    monkeypatch.setattr(fantasies, "_KEPT", 0)  # candidates are forgotten whenever others are asked for
    assert [trial.index for trial in forgotten.ask(80)] == plate


def test_the_kernel_is_a_triangular_solve():
    rng = np.random.default_rng(0)
    places, done, k = np.array([4, 0, 39, 7]), np.array([0, 2, 3, 0]), 6
    factors, known = np.tril(rng.random((2, k, k)) + 0.5), rng.standard_normal((40, 3))
    weights, constants, prior = rng.standard_normal((k, 2, 3)), rng.standard_normal((k, 2)), rng.standard_normal((k, 4))
    right = prior[:, None, :] + constants[:, :, None] - np.einsum("kcw,nw->kcn", weights, known[places])
    expected = np.stack([np.linalg.solve(factors[c], right[:, c]) for c in range(2)])  # (cells, k, n)
    z, variances, all_done = np.full((40, 2, 8), np.nan), np.full((40, 2), 90.0), np.zeros(40, dtype=np.int64)
    all_done[places] = done
    for i, place in enumerate(places):
        z[place, :, : done[i]] = expected[:, : done[i], i]
        variances[place] -= (expected[:, : done[i], i] ** 2).sum(axis=1)
    packed = np.stack([own[np.tril_indices(k)] for own in factors])
    extend_fantasies(z, variances, all_done, places, prior, weights, constants, known, packed, k)
    np.testing.assert_allclose(z[places, :, :k], expected.transpose(2, 0, 1), rtol=1e-9)
    np.testing.assert_allclose(variances[places], np.maximum(90.0 - (expected**2).sum(axis=1).T, 0.0), rtol=1e-9)
    assert (all_done[places] == k).all()
