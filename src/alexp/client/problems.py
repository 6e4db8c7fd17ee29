"""Problems as a service takes them: tables and their features as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import AnyArray
from alexp.common.codec import State
from alexp.common.files import read_array, read_text
from alexp.common.validation import matrix

if TYPE_CHECKING:
    import pandas as pd

    Table = pd.DataFrame | str | Path
    # How a model sees the candidates: columns of their table, a matrix or frame (N, d), or a CSV or NPY file of one.
    Features = Sequence[str] | AnyArray | pd.DataFrame | str | Path


def table_problem(
    table: Table, models: Mapping[str, Features] | None, kernels: str | Mapping[str, str] | None, intercept: bool
) -> State:
    """A table of candidates, one per row, and one set of features per model."""
    if not models or not isinstance(models, Mapping):
        raise ValueError(
            'models must say how each model sees the candidates, such as {"size": ["mass", "volume"], "learned": array}'
        )
    out: State = {"kind": "table", "intercept": bool(intercept)}
    out |= {"csv": read_text(Path(table))} if isinstance(table, str | Path) else {"columns": _columns(table)}
    return out | {"models": {name: _features(name, value) for name, value in models.items()}} | _kernels(kernels)


def _kernels(kernels: str | Mapping[str, str] | None) -> State:
    return {} if kernels is None else {"kernels": kernels if isinstance(kernels, str) else dict(kernels)}


def _columns(table: pd.DataFrame) -> State:
    if not hasattr(table, "columns") or not hasattr(table, "iloc"):
        raise TypeError(f"table must be a DataFrame or the path of a CSV file, got {type(table).__name__}")
    return {str(name): table[name].tolist() for name in table.columns}


def _features(name: str, value: Features) -> object:
    what = f"models[{name!r}]"
    if isinstance(value, str | Path):
        path = Path(value)
        if path.suffix.lower() != ".npy":
            return read_text(path)
        return matrix(what, read_array(path)).tolist()
    if hasattr(value, "columns") or isinstance(value, np.ndarray):
        return matrix(what, np.asarray(value)).tolist()
    return list(value)
