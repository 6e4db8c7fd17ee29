"""Tables of candidates as the service takes them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.client.transport import without_none
from alexp.common.arrays import AnyArray
from alexp.common.codec import State
from alexp.common.files import read_array, read_bytes
from alexp.common.validation import matrix
from alexp.table.files import frame_lines, text_of

if TYPE_CHECKING:
    import pandas as pd

    TableSource = pd.DataFrame | str | Path
    # Features of a model: columns of the table, a matrix or frame (N, d), or a file of one.
    Features = Sequence[str] | AnyArray | pd.DataFrame | str | Path


def table_problem(table: TableSource, models: Mapping[str, Features] | None, options: Mapping[str, object]) -> State:
    """A table of candidates, one per row, and further descriptions by name."""
    if models is not None and not isinstance(models, Mapping):
        raise ValueError(
            'models must be features by name of the model, such as {"size": ["mass", "volume"], "learned": array}'
        )
    out: State = {"kind": "table"}
    out |= {"file": _file(Path(table))} if isinstance(table, str | Path) else {"columns": _columns(table)}
    if models:
        out["models"] = {name: _features(name, value) for name, value in models.items()}
    return out | without_none(dict(options))


def results_of(campaigns: Mapping[str, TableSource]) -> State:
    """Results of old campaigns by name."""
    return {name: _file(Path(one)) if isinstance(one, str | Path) else _columns(one) for name, one in campaigns.items()}


def _file(path: Path) -> State:
    """A file as it is."""
    return {"name": path.name, "content": b64encode(read_bytes(path)).decode()}


def _columns(table: pd.DataFrame) -> State:
    if not hasattr(table, "columns") or not hasattr(table, "iloc"):
        raise TypeError(f"table must be a DataFrame or the path of a file, got {type(table).__name__}")
    lines = frame_lines(table)
    return {
        name: [text_of(row[k]) if isinstance(row[k], date) else row[k] for _, row in lines.rows]
        for k, name in enumerate(lines.header)
    }


def _features(name: str, value: Features) -> object:
    what = f"models[{name!r}]"
    if isinstance(value, str | Path):
        path = Path(value)
        if path.suffix.lower() != ".npy":
            return _file(path)
        return matrix(what, read_array(path)).tolist()
    if hasattr(value, "columns") or isinstance(value, np.ndarray):
        return matrix(what, np.asarray(value)).tolist()
    return list(value)
