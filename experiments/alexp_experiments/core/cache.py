"""Results kept by content: one Parquet file per configuration, one row per seed."""

from __future__ import annotations

import json
import os
import time
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from alexp.common.files import writing
from alexp_experiments.core.tasks import Description, Record, Task

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
