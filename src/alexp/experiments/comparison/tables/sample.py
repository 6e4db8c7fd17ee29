"""Small tables for a quick look at `alexp compare --tables`.

`python -m alexp.experiments.comparison.tables.sample DIR` writes them. Both come with scikit-learn: three inputs of
diabetes, so that subsets of inputs are models, and two maps of digits.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np

ROWS = 80


def write_tables(folder: Path) -> None:
    """Write both tables as `*.npz`."""
    datasets = import_module("sklearn.datasets")
    folder.mkdir(parents=True, exist_ok=True)
    diabetes, digits = datasets.load_diabetes(), datasets.load_digits()
    np.savez(folder / "diabetes.npz", y=diabetes.target[:ROWS], m_inputs=diabetes.data[:ROWS, [2, 3, 8]])
    pixels = digits.images[:ROWS]
    np.savez(
        folder / "digits.npz",
        y=digits.target[:ROWS].astype(np.float64),
        m_rows=pixels.sum(axis=2),
        m_bits=(pixels.reshape(ROWS, -1) > 8).astype(np.float64),
    )


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]))
