"""Results kept on disk: records of tasks by content, and the runs of a comparison as one table.

A configuration has one Parquet file with one row per seed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.common.files import write_text, writing
from alexp_experiments.core.tasks import Description, Record, Task

if TYPE_CHECKING:
    import pandas as pd


FLUSH_SECONDS = 1.0  # at most this much finished work is lost when the process is killed outright


def default_directory() -> Path:
    """$ALEXP_CACHE if set, else ~/.cache/alexp."""
    return Path(os.environ.get("ALEXP_CACHE") or Path.home() / ".cache" / "alexp")


class ResultCache:
    """Records of finished tasks in a directory.

    `put` keeps a record in memory and writes at most once a second; `flush` writes what is outstanding. Files are
    replaced as a whole, so that a reader never sees half of one.
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self.directory = default_directory() if directory is None else Path(directory)
        self._known: dict[str, dict[int, Record]] = {}
        self._describe: dict[str, Description] = {}
        self._dirty: set[str] = set()
        self._written = time.monotonic()

    def path(self, configuration: str) -> Path:
        """File of a configuration."""
        return self.directory / configuration[:2] / f"{configuration}.parquet"

    def get(self, task: Task) -> Record | None:
        """The record of a task, if it has been run."""
        return self._rows(task.configuration).get(task.seed)

    def put(self, task: Task, record: Record) -> None:
        """Keep the record of a task."""
        self._rows(task.configuration)[task.seed] = record
        self._describe[task.configuration] = task.description
        self._dirty.add(task.configuration)
        if time.monotonic() - self._written > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write everything that is not on disk yet."""
        for configuration in sorted(self._dirty):
            _write(self.path(configuration), self._known[configuration], self._describe[configuration])
        self._dirty.clear()
        self._written = time.monotonic()

    def _rows(self, configuration: str) -> dict[int, Record]:
        if configuration not in self._known:
            path = self.path(configuration)
            self._known[configuration] = _read(path) if path.exists() else {}
        return self._known[configuration]


def _write(path: Path, rows: dict[int, Record], description: Description) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    seeds = sorted(rows)
    columns = {f.name: [_plain(getattr(rows[seed], f.name)) for seed in seeds] for f in fields(Record)}
    types = {
        "seed": arrow.int64(),
        "regret": arrow.list_(arrow.float64()),
        "visited": arrow.list_(arrow.int32()),
        "q_true": arrow.list_(arrow.float32()),
        "snapshot": arrow.list_(arrow.float32()),
        "true_model": arrow.int64(),
        "recommended": arrow.int64(),
        "final_gap": arrow.float64(),
        "seconds": arrow.float64(),
        "chosen": arrow.list_(arrow.int32()),
    }
    table = arrow.table({"seed": seeds} | columns, schema=arrow.schema(types))
    table = table.replace_schema_metadata({"task": json.dumps(description, sort_keys=True)})
    with writing(path) as file:
        parquet.write_table(table, file)


def _read(path: Path) -> dict[int, Record]:
    from pyarrow import parquet

    table = parquet.ParquetFile(path).read()
    columns = {name: _column(table.column(name).combine_chunks()) for name in table.column_names}
    seeds = columns.pop("seed")
    return {seed: Record(**{name: values[i] for name, values in columns.items()}) for i, seed in enumerate(seeds)}


def _column(column: Any) -> list[Any]:
    """Values of a column of pyarrow, which has no types: numbers as they are, lists as arrays of their own type."""
    if not hasattr(column, "offsets"):
        return list(column.to_pylist())
    flat, cuts = column.values.to_numpy(zero_copy_only=False), column.offsets.to_numpy()
    return [flat[first:last].copy() for first, last in pairwise(cuts)]


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


def merged(old: pd.DataFrame, new: pd.DataFrame, key: Sequence[str]) -> pd.DataFrame:
    """Both tables; where both have runs with the same `key`, the new ones."""
    import pandas as pd

    again = set(new[list(key)].itertuples(index=False, name=None))
    kept = [one not in again for one in old[list(key)].itertuples(index=False, name=None)]
    return pd.concat([old[kept], new], ignore_index=True)


def store_runs(runs: pd.DataFrame, path: Path) -> None:
    """Write runs as CSV."""
    write_text(path, runs.to_csv(index=False, float_format="%.5g"))


def keep_runs(new: pd.DataFrame, path: Path, command: str, key: Sequence[str]) -> None:
    """Write runs beside those that are stored; where both have the same `key`, the new ones stay."""
    store_runs(merged(stored_runs(path, command), new, key) if path.exists() else new, path)


def stored_runs(path: Path, command: str) -> pd.DataFrame:
    """Read runs that `store_runs` wrote; `command` makes them, if there are none."""
    import pandas as pd

    if not path.exists():
        raise FileNotFoundError(f"there are no runs {path}; run `{command}` first")
    return pd.read_csv(path, keep_default_na=False, na_values=["nan"])
