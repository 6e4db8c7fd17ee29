"""A quick form of `alexp compare --tables`: small tables, all our entrants, a few rounds.

`python -m alexp_experiments.comparison.tables.sample DIR` leaves real-tables.csv in DIR. The tables need no folder of
files: three inputs of diabetes, so that subsets of inputs are models, and two maps of digits, both from scikit-learn;
and some of the reactions of direct arylation, which are composed rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from alexp.common.arrays import AnyArray
from alexp.common.files import writing
from alexp.datasets import direct_arylation
from alexp.problem.kernel_models import Component, find_levels
from alexp_experiments.comparison.tables.contest import OURS, TableContest
from alexp_experiments.comparison.tables.report import add_runs
from alexp_experiments.core.runner import sweep

ROWS = 80
PLATED = ("mixture, kernels", "mixture, kernels on whole rows")  # those that play direct arylation in plates


def write_tables(folder: Path) -> list[str]:
    """Write the tables as `*.npz` and return their paths."""
    datasets = import_module("sklearn.datasets")
    diabetes, digits, shipped = datasets.load_diabetes(), datasets.load_digits(), direct_arylation()
    pixels = digits.images[:ROWS]
    some = np.arange(0, shipped.rewards.size, shipped.rewards.size // ROWS)
    tables = {
        "diabetes": {"y": diabetes.target[:ROWS], "m_inputs": diabetes.data[:ROWS, [2, 3, 8]]},
        "digits": {
            "y": digits.target[:ROWS].astype(np.float64),
            "m_rows": pixels.sum(axis=2),
            "m_bits": (pixels.reshape(ROWS, -1) > 8).astype(np.float64),
        },
        "reactions": {
            "y": shipped.rewards[some],
            "m_names": shipped.matrices["names"][some],
            "m_DFT": shipped.matrices["DFT"][some],
            **{f"c_{name}": _plain(name, given)[some] for name, given in shipped.components.items()},
        },
    }
    for name, arrays in tables.items():
        with writing(folder / f"{name}.npz", sync=False) as file:
            np.savez(file, **arrays)
    return [str(folder / f"{name}.npz") for name in tables]


def _plain(name: str, given: Component) -> AnyArray:
    """A component as one array: the numbers of its levels as words, where it has descriptors."""
    return find_levels(name, given).codes.astype(str) if isinstance(given, Mapping) else np.asarray(given)


def main(out: Path) -> None:
    """Both goals without repeats, the sum with repeats, the best row in plates."""
    run = partial(sweep, workers=1, cache=None, progress=False)
    with TemporaryDirectory() as folder:
        sources = write_tables(Path(folder))
        for contest in (
            TableContest.of(sources, list(OURS), seeds=2, rounds=10),
            TableContest.of(sources, list(OURS), ["sum"], seeds=2, rounds=10, repeats=True),
            TableContest.of(sources[-1:], PLATED, ["best"], seeds=2, rounds=15, plate=5),
        ):
            add_runs(contest, run, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
