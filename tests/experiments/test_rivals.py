"""Rivals of the board: each plays, its own part equals a slow twin, and it looks at what it should."""

from importlib.util import find_spec

import numpy as np
import pytest

import alexp
from alexp_experiments.comparison import rivals
from alexp_experiments.comparison.rivals import FABO, SAASBO, BayBE, MolDAIS, OptunaGP, TanimotoGP
from alexp_experiments.comparison.tables import contest
from alexp_experiments.comparison.tables.contest import PEERS, SLOW, TableContest
from alexp_experiments.comparison.tables.data import RealTable, load_table

NEEDS = {
    TanimotoGP: "botorch",
    FABO: "botorch",
    MolDAIS: "botorch",
    BayBE: "baybe",
    OptunaGP: "optuna",
    SAASBO: "numpyro",
}
N = 40


def needs(kind):
    absent = find_spec(NEEDS[kind]) is None or (NEEDS[kind] != "optuna" and find_spec("botorch") is None)
    return pytest.param(kind, marks=pytest.mark.skipif(absent, reason=f"{NEEDS[kind]} is not installed"))


def problem(kind):
    rng = np.random.default_rng(1)
    if kind is TanimotoGP:
        x = rng.integers(0, 2, (N, 30)).astype(float)
        return x, x[:, :4].sum(axis=1) + 0.01 * rng.standard_normal(N)
    if issubclass(kind, FABO):
        x = rng.uniform(-1.0, 1.0, (N, 30))
        return x, 3.0 * x[:, 5] + 0.1 * rng.standard_normal(N)
    x = rng.uniform(-1.0, 1.0, (N, 3))
    return x, -np.sum((x[:, :2] - 0.3) ** 2, axis=1)


def play(kind, rounds=8, seed=0, **settings):
    x, rewards = problem(kind)
    models, domain = alexp.ModelClass.from_matrices({"x": x}), alexp.FiniteSet(np.arange(N))
    peer = kind(models, domain, repeats=False, random_state=seed, **settings)
    for index in np.argsort(rewards)[[3, 8, 12, 16, 20, 24]].tolist():
        peer.observe(index, rewards[index])
    for _ in range(rounds):
        trial = peer.ask()
        peer.tell(trial, rewards[trial.index])
    chosen = peer.trials_dataframe()["index"].tolist()[6:]
    return chosen, rewards


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [needs(kind) for kind in NEEDS])
def test_rivals_do_better_than_chance_and_the_same_again(kind, monkeypatch):
    monkeypatch.setattr(SAASBO, "warm_up", 16)
    monkeypatch.setattr(SAASBO, "samples", 16)
    chosen, rewards = play(kind)
    assert len(set(chosen)) == 8
    assert np.mean(rewards[chosen]) > np.mean(rewards) + 0.5 * np.std(rewards)
    assert play(kind)[0] == chosen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("preset", ["EDBO", "CHEN", "HVARFNER"])
def test_presets_of_baybe_play(preset):
    pytest.importorskip("baybe")
    assert len(set(play(BayBE, rounds=2, preset=preset)[0])) == 2


@pytest.mark.filterwarnings("ignore")
def test_the_tanimoto_kernel_is_the_formula():
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(2)
    pytest.importorskip("botorch")
    x, z = rng.integers(0, 3, (6, 9)).astype(float), rng.integers(0, 3, (4, 9)).astype(float)
    models = alexp.ModelClass.from_matrices({"x": x})
    peer = TanimotoGP(models, alexp.FiniteSet(np.arange(6)), random_state=0)
    kernel = peer.model(torch.from_numpy(x), torch.zeros(6, 1, dtype=torch.float64)).covar_module.base_kernel
    slow = [[a @ b / (a @ a + b @ b - a @ b) for b in z] for a in x]
    got = kernel(torch.from_numpy(x), torch.from_numpy(z)).to_dense().detach().numpy()
    np.testing.assert_allclose(got, slow, atol=1e-9)
    np.testing.assert_allclose(kernel(torch.from_numpy(x)).diagonal().detach().numpy(), 1.0)


def slow_mrmr(rows, rewards, kept):
    """One by one, with correlations of NumPy."""
    usable = [k for k in range(rows.shape[1]) if np.ptp(rows[:, k]) > 0]
    r = {k: abs(np.corrcoef(rows[:, k], rewards)[0, 1]) for k in usable}
    out = [max(usable, key=lambda k: r[k])]
    while len(out) < kept:

        def ratio(k):
            shared = np.mean([abs(np.corrcoef(rows[:, k], rows[:, j])[0, 1]) for j in out])
            return r[k] ** 2 / (1.0 - r[k] ** 2) / max(shared, 1e-3)

        out.append(max((k for k in usable if k not in out), key=ratio))
    return sorted(out)


@pytest.mark.skipif(find_spec("botorch") is None, reason="BoTorch is not installed")
def test_fabo_keeps_relevant_features_that_differ(monkeypatch):
    monkeypatch.setattr(FABO, "kept", 5)
    rng = np.random.default_rng(3)
    rows = np.hstack([rng.uniform(size=(200, 30)), np.ones((200, 2))])
    rewards = rows[:, 4] + rows[:, 7] + 0.1 * rng.standard_normal(200)
    peer = FABO(alexp.ModelClass.from_matrices({"x": rows}), alexp.FiniteSet(np.arange(200)), random_state=0)
    chosen = peer.chosen(rows, rewards)
    assert chosen.tolist() == slow_mrmr(rows, rewards, 5)
    assert {4, 7} <= set(chosen.tolist())
    assert peer.chosen(rows[:, [0, 31]], rewards).tolist() == [0]


def test_rivals_play_where_they_make_sense(tmp_path):
    rng = np.random.default_rng(0)
    bits, numbers = rng.integers(0, 2, (N, 20)).astype(np.float32), rng.standard_normal((N, 15)).astype(np.float32)
    np.savez(tmp_path / "molecules.npz", y=rng.standard_normal(N), m_bits=bits, m_numbers=numbers)
    np.savez(tmp_path / "inputs.npz", y=rng.standard_normal(N), m_x=numbers[:, :3])
    sources = [str(tmp_path / "molecules.npz"), str(tmp_path / "inputs.npz")]
    contest_ = TableContest.of(sources, list(PEERS), ("sum",), seeds=2, rounds=8)
    played = {(cell.scenario.family, cell.entrant): [] for cell in contest_.cells}
    for cell in contest_.cells:
        played[cell.scenario.family, cell.entrant].append(cell.model)
    assert played["molecules", "Tanimoto GP (GAUCHE)"] == ["bits"]
    assert ("inputs", "Tanimoto GP (GAUCHE)") not in played
    assert played["molecules", "BayBE, CHEN"] == played["molecules", contest.BOTORCH] == ["bits", "numbers"]
    assert played["molecules", "FABO"] == [""]
    assert ("inputs", "MolDAIS") not in played
    assert played["inputs", "Optuna GP, inputs"] == [""]
    assert "random forest" not in SLOW
    assert {"SAASBO", contest.BOTORCH, "MolDAIS"} <= set(SLOW)
    table = load_table(sources[0])
    assert isinstance(table, RealTable)
    beside = table.models("side by side", np.arange(5))
    assert np.array_equal(beside.matrix(alexp.FiniteSet(np.arange(5))), np.hstack([bits[:5], numbers[:5]]))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(rivals.BayBE, "package", "no-such-package")
    with pytest.raises(ImportError, match="BayBE needs no-such-package"):
        BayBE.installed()
