"""Make src/alexp/datasets/data/direct_arylation.npz from the tables of b-shields/edbo (MIT licence, kept beside it).

    python tools/make_direct_arylation.py ../shared/data/direct_arylation

Descriptors that are the same for all values of a component are left out; the others are standardised over its values,
so that single precision is enough.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

TARGET = Path(__file__).resolve().parents[1] / "src/alexp/datasets/data"
DESCRIPTIONS = {
    "base": ("base_dft.csv", "base_mordred.csv"),
    "ligand": ("ligand-boltzmann_dft.csv", "ligand_mordred.csv"),
    "solvent": ("solvent_dft.csv", "solvent_mordred.csv"),
}


def varying(table):
    """Columns of numbers that differ between rows, standardised, shape (levels, d)."""
    values = table.select_dtypes("number").to_numpy(dtype=np.float64)
    assert np.all(np.isfinite(values))
    values = values[:, np.ptp(values, axis=0) > 1e-12 * np.abs(values).max(axis=0)]
    return ((values - values.mean(axis=0)) / values.std(axis=0)).astype(np.float32)


def main(source):
    """Read the tables in `source` and write the file that is shipped."""
    index = pd.read_csv(source / "experiment_index.csv")
    arrays = {"yields": index["yield"].to_numpy(dtype=np.float64)}
    for component, (dft, mordred) in DESCRIPTIONS.items():
        tables = [pd.read_csv(source / name).set_index(f"{component}_SMILES") for name in (dft, mordred)]
        smiles = list(tables[0].index)
        arrays[f"{component}_names"] = np.array(tables[0][f"{component}_file_name"].tolist())
        arrays[f"{component}_smiles"] = np.array(smiles)
        arrays[f"{component}_codes"] = np.array(
            [smiles.index(s) for s in index[f"{component.title()}_SMILES"]], np.uint8
        )
        arrays[f"{component}_dft"], arrays[f"{component}_mordred"] = (varying(t.loc[smiles]) for t in tables)
    arrays["concentration"] = index["Concentration"].to_numpy(dtype=np.float32)
    arrays["temperature"] = index["Temp_C"].to_numpy(dtype=np.float32)
    arrays["chemists"] = pd.read_csv(source / "chemists_yields.csv", index_col=0).to_numpy(dtype=np.float32)
    arrays["edbo"] = pd.read_csv(source / "edbo_gp_ei_batches_of_5.csv", index_col=0).to_numpy(dtype=np.float32)
    TARGET.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(TARGET / "direct_arylation.npz", **arrays)
    shutil.copyfile(source / "LICENSE", TARGET / "direct_arylation.LICENSE")
    print(f"{(TARGET / 'direct_arylation.npz').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
