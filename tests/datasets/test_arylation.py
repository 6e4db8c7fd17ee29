"""The table that is shipped: complete, with its licence, small, and the one that was published."""

from importlib.resources import files

import numpy as np
import pytest

import alexp
from alexp.kernels import Matern


@pytest.fixture(scope="module")
def table():
    return alexp.datasets.direct_arylation()


def test_every_combination_once(table):
    frame = table.candidates
    assert len(frame) == len(frame.drop_duplicates()) == table.rewards.size == 4 * 12 * 4 * 3 * 3
    assert frame.nunique().tolist() == [4, 12, 4, 3, 3]
    assert table.domain.n_candidates == 1728
    first = frame.iloc[0]
    assert first.tolist() == ["KOAc", "BrettPhos", "DMAc", 0.1, 105.0]
    assert table.rewards[0] == 5.47
    assert (table.rewards.min(), table.rewards.max()) == (0.0, 100.0)


def test_what_people_and_edbo_reached(table):
    """The published curves at 5, 10, 15, 25 and 50 experiments."""
    at = [4, 9, 14, 24, 49]
    assert table.chemists[at].round(1).tolist() == [64.8, 79.8, 85.0, 91.7, 94.2]
    assert table.edbo[at].round(1).tolist() == [50.0, 74.1, 86.2, 95.6, 99.8]
    assert table.chemists_yields.shape == table.edbo_yields.shape == (50, 100)


def test_the_default_models_are_factorial_kernels(table):
    models = table.models
    assert models.n_models == 3 * (48 + 4)
    assert list(models.dictionary.names) == ["base", "ligand", "solvent", "concentration", "temperature"]
    assert np.bincount(models.families, weights=np.exp(models.log_prior)) == pytest.approx([1 / 3] * 3)
    rows = models.matrix(table.domain)[[0, 1, 500]]
    ligands = table.components["ligand"]["DFT"]
    different = np.unique(ligands, axis=0)
    kernel = Matern(lengthscale=1.0).fitted(different)
    expected = kernel(ligands[[0]], ligands[[0, 1]])[0]
    assert models.names[53] == "DFT: product, 1/1/1/1/1"
    assert models.gram(53, rows[:1], rows[:2])[0] == pytest.approx(expected, rel=1e-9)  # they differ by the ligand only


def test_matrices_for_other_models(table):
    widths = {name: block.shape for name, block in table.matrices.items()}
    assert widths == {"names": (1728, 26), "DFT": (1728, 1707), "Mordred": (1728, 2454)}
    for name in ("DFT", "Mordred"):
        np.testing.assert_allclose(table.matrices[name].mean(axis=0), 0.0, atol=1e-6)
        np.testing.assert_allclose(table.matrices[name].std(axis=0), 1.0, rtol=1e-5)
    assert np.array_equal(table.matrices["names"].sum(axis=1), np.full(1728, 5.0))


def test_small_and_with_its_licence(table):
    data = files("alexp.datasets") / "data"
    assert len((data / "direct_arylation.npz").read_bytes()) < 300_000
    assert table.licence.startswith("MIT License")
    assert "Benjamin J. Shields" in table.licence


def test_nobody_can_change_the_table(table):
    with pytest.raises(ValueError, match="read-only"):
        table.rewards[0] = 1.0
    assert alexp.datasets.direct_arylation() is table
