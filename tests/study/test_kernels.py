"""Studies of kernel models: stored with everything that was fitted, recognised when they are passed again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.kernels import Function, Matern, Precomputed, Tanimoto
from alexp.study import ProblemMismatchError

N = 20
RNG = np.random.default_rng(0)
BITS, DESCRIPTORS = RNG.integers(0, 2, (N, 6)).astype(float), RNG.standard_normal((N, 3))
DOMAIN = alexp.FiniteSet([f"item {i}" for i in range(N)])


def made(kernels="auto"):
    return alexp.ModelClass.from_matrices({"bits": BITS, "descriptors": DESCRIPTORS}, kernels=kernels)


@pytest.fixture
def where(tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}"


def create(models, where):
    alexp.create_study(models, DOMAIN, name="s", storage=where, algorithm="uniform", random_state=0).close()


def test_kernels_come_back_from_the_database(where):
    models = made()
    create(models, where)
    with alexp.load_study("s", where) as study:
        assert study.algorithm.models.kernels == models.kernels
        assert np.array_equal(study.algorithm.models.log_prior, models.log_prior)
        study.tell(study.ask(), 1.0)
    with alexp.load_study("s", where, models=made(), domain=DOMAIN) as study:
        assert study.counts["told"] == 1


def test_other_kernels_are_noticed(where):
    create(made({"bits": Tanimoto(), "descriptors": Matern(lengthscale=0.5)}), where)
    for other, message in [
        ({"bits": Tanimoto(), "descriptors": Matern(lengthscale=0.5001)}, "other lengthscales"),
        ({"bits": Tanimoto(), "descriptors": Matern(1.5, lengthscale=0.5)}, "other lengthscales"),
        ({"bits": "linear", "descriptors": Matern(lengthscale=0.5)}, "other kernels"),
        ("linear", "other kernels"),
    ]:
        with pytest.raises(ProblemMismatchError, match=message):
            alexp.load_study("s", where, models=made(other), domain=DOMAIN)


def test_the_last_bits_of_a_fit_do_not_matter(where):
    """Another machine may find a median with another last bit; that is the same problem."""
    models = made(Matern())
    create(models, where)
    again = made(Matern())
    again.kernels = tuple(replace(kernel, unit=kernel.unit * (1.0 + 1e-13)) for kernel in again.kernels)
    with alexp.load_study("s", where, models=again, domain=DOMAIN) as study:
        assert study.algorithm.models is again


def test_one_entry_of_a_gram_matrix_is_noticed(where):
    gram = np.eye(N)
    models = alexp.ModelClass.from_matrices({"own": Precomputed(gram)})
    create(models, where)
    gram[N - 1, N - 2] = gram[N - 2, N - 1] = 0.01
    with pytest.raises(ProblemMismatchError, match="lengthscales, scales or entries"):
        alexp.load_study("s", where, models=alexp.ModelClass.from_matrices({"own": Precomputed(gram)}), domain=DOMAIN)


def test_code_must_be_passed_again(where):
    def product(x, z):
        return x @ z.T

    create(made(Function(product)), where)
    with pytest.raises(ProblemMismatchError, match="code of your own"):
        alexp.load_study("s", where)
    with pytest.raises(ProblemMismatchError, match="other lengthscales"):
        alexp.load_study("s", where, models=made(Function(lambda x, z: 2.0 * x @ z.T, "product")), domain=DOMAIN)
    alexp.load_study("s", where, models=made(Function(product)), domain=DOMAIN).close()


def test_kernels_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALEXP_STORAGE", raising=False)
    pd.DataFrame({"name": list(DOMAIN.candidates)}).to_csv("items.csv", index=False)
    np.save("bits.npy", BITS)
    np.save("desc.npy", DESCRIPTORS)
    base = ["create", "s", "--candidates", "items.csv", "--features", "bits=bits.npy", "--features", "desc=desc.npy"]

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, [*base, "--algorithm", "uniform", *arguments])
        assert result.exit_code == code, result.output
        return result.output

    assert "error: unknown kernel 'sigmoid'" in run("--kernels", "sigmoid", code=1)
    assert "'desc' has none" in run("--kernels", "bits=tanimoto", code=1)
    assert "error: Corral needs models that are linear" in run(
        "--kernels", "auto", "--algorithm", "corral", "--setting", "horizon=20", code=1
    )
    assert "; 3 models of bits (" in run("--kernels", "bits=linear+tanimoto", "--kernels", "desc=matern:0.5")
    with alexp.load_study("s", "sqlite:///alexp.db") as study:
        assert list(study.algorithm.models.names) == ["bits: linear", "bits: Tanimoto", "desc: Matern 5/2, 0.5"]
