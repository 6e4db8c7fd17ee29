"""Tables as they are handed in: other precisions, files and CSR give what their numbers in double precision give."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import alexp
from alexp.problem.kernels import Tanimoto

N, D = 300, 40
DOMAIN = alexp.FiniteSet(np.arange(N))


def numbers():
    rng = np.random.default_rng(0)
    dense = {name: rng.standard_normal((N, D)).astype(np.float16).astype(np.float64) for name in "ab"}
    return dense, (dense["a"] @ rng.standard_normal(D)) / 6.0 + 0.1 * rng.standard_normal(N)


def kept(kind, matrices, folder):
    if kind == "csr":
        return {name: csr_array(np.where(np.abs(m) > 1.0, m, 0.0)) for name, m in matrices.items()}
    if kind == "file":
        for name, m in matrices.items():
            np.save(folder / f"{name}.npy", m.astype(np.float32))
        return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in matrices}
    return {name: m.astype(kind) for name, m in matrices.items()}


def thinned(kind, matrices):
    return {n: np.where(np.abs(m) > 1.0, m, 0.0) if kind == "csr" else m for n, m in matrices.items()}


def play(opt, rewards, steps):
    for _ in range(steps):
        trial = opt.ask()
        opt.tell(trial, float(rewards[trial.index]))


@pytest.mark.parametrize("kind", ["float32", "float16", "file", "csr"])
def test_other_kinds_of_tables_agree_with_double_precision(kind, tmp_path):
    matrices, rewards = numbers()
    models = alexp.ModelClass.from_matrices(kept(kind, matrices, tmp_path))
    plain = alexp.ModelClass.from_matrices(thinned(kind, matrices))
    one, two = (alexp.EvidenceMixture(m, DOMAIN, repeats=False, random_state=1) for m in (models, plain))
    order = np.random.default_rng(2).permutation(N)[:60].tolist()
    for index in order:
        for opt in (one, two):
            opt.observe(index, float(rewards[index]))
    first, second = (opt.belief.moments(opt._everything) for opt in (one, two))
    np.testing.assert_allclose(first.mean, second.mean, rtol=0, atol=1e-5 * np.ptp(rewards))
    np.testing.assert_allclose(first.std, second.std, rtol=1e-5)
    assert one.best().index == two.best().index


@pytest.mark.parametrize("kind", ["float32", "float16", "csr"])
def test_runs_on_other_kinds_of_tables_are_stored_and_continue(kind, tmp_path):
    matrices, rewards = numbers()
    models = alexp.ModelClass.from_matrices(kept(kind, matrices, tmp_path))
    opt = alexp.EvidenceMixture(models, DOMAIN, random_state=1)
    play(opt, rewards, 5)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict())
    assert type(again.models.dictionary.blocks[0]) is type(models.dictionary.blocks[0])
    assert again.models.dictionary.blocks[0].dtype == models.dictionary.blocks[0].dtype
    for run in (opt, again):
        play(run, rewards, 5)
    assert [t.index for t in map(opt.trial, range(10))] == [t.index for t in map(again.trial, range(10))]


def test_tables_in_files_must_be_passed_again(tmp_path):
    matrices, rewards = numbers()
    models = alexp.ModelClass.from_matrices(kept("file", matrices, tmp_path))
    assert models.to_dict() is None
    opt = alexp.EvidenceMixture(models, DOMAIN, random_state=1)
    play(opt, rewards, 5)
    saved = opt.to_dict()
    with pytest.raises(ValueError, match="does not contain its models"):
        alexp.EvidenceMixture.from_dict(saved)
    again = alexp.EvidenceMixture.from_dict(saved, models=models)
    assert again.ask().index == opt.ask().index
    other = alexp.ModelClass.from_matrices({name: m.astype(np.float32) + 1 for name, m in matrices.items()})
    with pytest.raises(ValueError, match="other features"):
        alexp.EvidenceMixture.from_dict(saved, models=other)


def test_large_tables_are_not_copied():
    n = 20_000
    rng = np.random.default_rng(3)
    table = rng.standard_normal((n, 256))
    models = alexp.ModelClass.from_matrices({"a": table, "b": table[:, ::2].astype(np.float32)})
    assert models.dictionary.blocks[0] is table
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(n)), random_state=0)
    trial = opt.ask(available=np.arange(0, n, 3))
    opt.tell(trial, 1.0)
    opt.ask(2)
    assert "table" not in vars(opt._candidates)  # nobody needed the features in double precision, side by side
    assert np.shares_memory(opt.belief.mixture.grid.families[0]._block.rows, table)


def test_restricted_rounds_play_the_best_of_the_allowed():
    matrices, rewards = numbers()
    models = alexp.ModelClass.from_matrices(matrices)
    opt = alexp.EvidenceMixture(models, DOMAIN, rule="ucb", random_state=1)
    play(opt, rewards, 8)
    outlook = opt.belief.moments(opt._everything)
    index = dict(zip(opt._everything.indices.tolist(), outlook.mean + opt.rule.width(9) * outlook.std, strict=True))
    allowed = np.array([5, 17, 44, 123, 250, 251])
    assert opt.ask(available=allowed).index == max(allowed.tolist(), key=index.get)


def test_bits_in_csr_have_tanimoto_kernels():
    rng = np.random.default_rng(4)
    bits = (rng.random((N, 64)) < 0.1).astype(np.float64)
    rewards = bits[:, :4].sum(axis=1)
    runs = []
    for table in (bits, csr_array(bits)):
        models = alexp.ModelClass.from_matrices({"bits": table}, kernels=Tanimoto())
        opt = alexp.EvidenceMixture(models, DOMAIN, goal="best", repeats=False, random_state=0)
        play(opt, rewards, 12)
        runs.append([opt.trial(k).index for k in range(12)])
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ({"a": np.full((4, 2), np.nan, dtype=np.float32)}, "has nan at row 0, column 0"),
        ({"a": csr_array(np.array([[np.inf, 0.0]]))}, "holds inf"),
        ({"a": np.zeros((4, 2), dtype=np.float16), "b": np.zeros((3, 2), dtype=np.float32)}, "must have 4 rows"),
        ({"a": np.zeros((4, 2)), "b": csr_array(np.ones((3, 2)))}, "must have 4 rows"),
    ],
)
def test_bad_tables_are_named(matrices, message):
    with pytest.raises(ValueError, match=message):
        alexp.ModelClass.from_matrices(matrices)
