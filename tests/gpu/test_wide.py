"""Values of wide models on a device: the same as on the CPU in double precision, whatever the library."""

from dataclasses import replace

import numpy as np
import pytest

import alexp
from alexp.estimation.onepass.grid import OnePassGrid
from alexp.problem.candidates import NOTHING, CandidateTable, Pending
from alexp_experiments.bench.device.wide import DUELS, duel

from .libraries import ARRAY_API, NAMES, arrays, somewhere

pytestmark = ARRAY_API

N, SIZES = 60, {"a": 5, "b": 9}
RATIOS = (1e-3, 0.1)


def tables(precision, n=N, seed=0):
    rng = np.random.default_rng(seed)
    return {name: (rng.standard_normal((n, d)) / 3.0).astype(precision) for name, d in SIZES.items()}


def grid(given, device, intercept):
    """Posteriors of both models at two ratios, as one pass keeps them, and the candidates."""
    models = alexp.ModelClass.from_matrices(given, intercept=intercept, device=device)
    candidates = CandidateTable(models, alexp.FiniteSet(np.arange(N)), np.random.default_rng(1).permutation(N))
    on_tables = candidates.models(models)
    return OnePassGrid(on_tables, [np.sqrt(r) * np.ones(2) for r in RATIOS], intercept), candidates


def both(library, precision, intercept):
    """The same posteriors in a library and, in double precision, on the CPU."""
    narrow = tables(precision)
    here = grid({name: table.astype(np.float64) for name, table in narrow.items()}, None, intercept)
    return here, grid(*arrays(library, narrow), intercept)


def tell(pairs, rewards, rng):
    for _ in range(rewards):
        index, y = int(rng.integers(N)), float(rng.normal())
        for posteriors, candidates in pairs:
            posteriors.update(candidates.row(index), y, index)


def moments(posteriors, candidates, pending=NOTHING):
    weights = np.array([[0.1, 0.4], [0.2, 0.3]])
    found = posteriors.moments(weights, np.array([[1.0, 2.0], [0.5, 1.5]]), candidates.everything.choices, pending)
    return np.array([np.asarray(part) for part in found])


@pytest.mark.parametrize("library", NAMES)
@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-12), ("float32", 1e-6), ("float16", 1e-6)])
@pytest.mark.parametrize("intercept", [True, False])
def test_values_are_those_of_the_cpu_in_double_precision(library, precision, close, intercept):
    if library == "strict" and precision == "float16":
        pytest.skip("array-api-strict has no half precision")
    pairs, rng = both(library, precision, intercept), np.random.default_rng(2)
    prior = float(moments(*pairs[0])[1].max())
    for rewards in (1, 3, 20, 50):  # made anew at the first, with factors of points, and with those of features
        tell(pairs, rewards, rng)
        known, found = (moments(*pair) for pair in pairs)
        assert np.abs(known - found).max() < close * prior
        assert np.allclose(pairs[0][0].residuals(), pairs[1][0].residuals(), rtol=1e-12)
    assert pairs[1][0].families[0].regression.rank == SIZES["a"]


@pytest.mark.parametrize("library", NAMES)
def test_pending_trials_and_draws_are_those_of_the_cpu(library):
    pairs, rng = both(library, "float32", True), np.random.default_rng(3)
    for rewards in (0, 7):
        tell(pairs, rewards, rng)
        indices = np.array([4, 9, 4])
        pending = Pending(np.arange(3), indices, pairs[0][1].rows(indices))
        before, shrunk = (moments(*pairs[1], waiting) for waiting in (NOTHING, pending))
        known = moments(*pairs[0], pending)
        assert np.abs(known - shrunk).max() < 2e-6 * np.abs(known).max()
        assert np.allclose(before[0], shrunk[0])
        assert (shrunk[1] < before[1]).sum() > N / 2 or rewards == 0  # a flat constant counts once it has a reward
    normals = rng.standard_normal(pairs[0][0].n_normals(1))
    draws = [np.asarray(p.draw(1, 1, c.everything.choices, normals, 0.3)) for p, c in pairs]
    assert np.allclose(*draws, rtol=1e-5, atol=1e-6)
    parts = [list(p.components(np.full((2, 2), 0.25), np.ones((2, 2)), c.everything.choices)) for p, c in pairs]
    assert all(np.allclose(one.mean, np.asarray(other.mean), atol=1e-6) for one, other in zip(*parts, strict=True))


@pytest.mark.parametrize("precision", ["float16", "float64"])
def test_tables_that_do_not_fit_are_sent_in_blocks(precision, monkeypatch):
    monkeypatch.setattr("alexp.gpu.wide.STREAMED", 500)
    kept, sent = grid(tables(precision), "cpu", True), grid(tables(precision), somewhere(room=0), True)
    rows = sent[0].families[1]._block.rows
    assert rows.array is None
    assert len(list(rows.pieces())) > 2
    assert kept[0].families[1]._block.rows.array is not None
    tell([kept, sent], 70, np.random.default_rng(4))
    assert np.allclose(moments(*kept), moments(*sent), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", range(len(DUELS)))
def test_decisions_are_those_of_the_cpu(case):
    small = replace(DUELS[case], n=200, sizes=(12, 20))
    found = duel(small, "float32", 40, "cpu")
    assert found.same >= 39
    assert found.gap < 1e-3
    assert found.error < 1e-5


def test_a_wrong_device_would_be_noticed(monkeypatch):
    monkeypatch.setattr("alexp.gpu.wide.DeviceBackend._positive", lambda self, values: abs(values) * 1.2)
    found = duel(replace(DUELS[1], n=300, sizes=(12, 20)), "float32", 40, "cpu")
    assert found.same < 39
    assert found.gap > 1e-3
    assert found.error > 1e-2


def mixture(given, device, **settings):
    models = alexp.ModelClass.from_matrices(given, device=device)
    return alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(N)), random_state=0, **settings)


def play(opt, rounds):
    out = []
    for _ in range(rounds):
        trial = opt.ask()
        opt.tell(trial, float(np.sin(7.0 * trial.index)))
        out.append(trial.index)
    return out


@pytest.mark.parametrize("library", NAMES)
@pytest.mark.parametrize(
    "settings", [{}, {"goal": "best", "repeats": False}, {"rule": "thompson"}, {"rule": "matching"}]
)
def test_runs_are_the_same_twice_and_continue_with_the_same_bits(library, settings):
    given, device = arrays(library, tables("float32"))
    one, two = mixture(given, device, **settings), mixture(given, device, **settings)
    assert play(one, 12) == play(two, 12)
    again = alexp.EvidenceMixture.from_dict(one.to_dict(), models=two.models)
    assert play(again, 6) == play(two, 6)
    assert again.state() == two.state()
    x = int(np.argmax(np.asarray(two.belief.moments(two._everything).mean)))
    assert again.best() == two.best()
    assert again.predict(x) == two.predict(x)
    assert again.policy().sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [N, 3_000])  # packed factors on the CPU, and values at all candidates
def test_a_run_continues_on_the_cpu_and_back(n):
    rng = np.random.default_rng(5)
    given = {"a": rng.standard_normal((n, 40)).astype(np.float32), "b": rng.standard_normal((n, 30)).astype(np.float32)}
    domain = alexp.FiniteSet(np.arange(n))
    on_device = alexp.ModelClass.from_matrices(given, device=somewhere())
    plain = alexp.ModelClass.from_matrices(given)
    begun = alexp.EvidenceMixture(on_device, domain, random_state=0)
    play(begun, 12)
    on_cpu = alexp.EvidenceMixture.from_dict(begun.to_dict(), models=plain)
    assert on_cpu.log.state().keys() == begun.log.state().keys()
    assert on_cpu.trials_dataframe().equals(begun.trials_dataframe())
    assert play(on_cpu, 5) == play(begun, 5)
    back = alexp.EvidenceMixture.from_dict(on_cpu.to_dict(), models=on_device)
    assert play(back, 5) == play(begun, 5)
    stored = alexp.EvidenceMixture.from_dict(begun.to_dict())  # the tables are in it
    assert stored.models.device is None
    assert stored.probabilities == pytest.approx(begun.probabilities)
