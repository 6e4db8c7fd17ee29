"""Results kept by content: one Parquet file per configuration, one row per seed."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import time
from dataclasses import fields
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from alexp.experiments.tasks import Record, Task

FLUSH_SECONDS = 1.0  # at most this much finished work is lost when the process is killed outright


def default_directory() -> Path:
    """$ALEXP_CACHE if set, else ~/.cache/alexp."""
    return Path(os.environ.get("ALEXP_CACHE") or Path.home() / ".cache" / "alexp")


@lru_cache(maxsize=64)
def code_fingerprint(*modules: str) -> str:
    """Hash of the sources of some modules and of every module of this package that they import.

    Results are kept under it, so that a change to the code that made them makes them again, and a change
    elsewhere does not.
    """
    pending, seen = list(modules), dict[str, bytes]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen[name], imported = _read_module(name)
            pending += imported
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name] + b"\0")
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1024)
def _read_module(name: str) -> tuple[bytes, list[str]]:
    """Source of a module, and the modules of this package that it imports; nothing for what is not Python."""
    spec = find_spec(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return b"", []
    source, package = Path(spec.origin).read_bytes(), __name__.split(".")[0]
    return source, [found for found in _imports(ast.parse(source)) if found.split(".")[0] == package]


def _imports(tree: ast.Module) -> list[str]:
    """Modules imported anywhere in a source; `from a import b` may mean the module a.b."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == __name__.split(".")[0]:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names if _is_module(node.module, alias.name)]
    return found


def _is_module(package: str, name: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError, ValueError):
        return find_spec(f"{package}.{name}") is not None
    return False


class ResultCache:
    """Records of finished tasks in a directory.

    `put` keeps a record in memory and writes at most once a second; `flush` writes what is outstanding. Files are
    replaced as a whole, so that a reader never sees half of one.
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self.directory = default_directory() if directory is None else Path(directory)
        self._known: dict[str, dict[int, Record]] = {}
        self._describe: dict[str, dict[str, Any]] = {}
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
        self._describe[task.configuration] = {
            "scenario": task.scenario.to_dict(), "algorithm": task.algorithm, "settings": dict(task.settings),
        }  # fmt: skip
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


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("keeping results needs pyarrow; install alexp[sweep] or run without a cache") from error
    return pyarrow, pyarrow.parquet


def _write(path: Path, rows: dict[int, Record], description: dict[str, Any]) -> None:
    from alexp.experiments.tasks import Record

    arrow, parquet = _parquet()
    seeds = sorted(rows)
    columns = {f.name: [_plain(getattr(rows[seed], f.name)) for seed in seeds] for f in fields(Record)}
    table = arrow.table({"seed": seeds} | columns, schema=_schema(arrow))
    table = table.replace_schema_metadata({"task": json.dumps(description, sort_keys=True)})
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    parquet.write_table(table, partial)
    partial.replace(path)


def _read(path: Path) -> dict[int, Record]:
    from alexp.experiments.tasks import Record

    _, parquet = _parquet()
    table = parquet.ParquetFile(path).read()
    columns = {name: _column(table.column(name).combine_chunks()) for name in table.column_names}
    seeds = columns.pop("seed")
    return {seed: Record(**{name: values[i] for name, values in columns.items()}) for i, seed in enumerate(seeds)}


def _column(column: Any) -> list[Any]:
    """Values of a column: numbers as they are, lists as arrays of their own type."""
    if not hasattr(column, "offsets"):
        plain: list[Any] = column.to_pylist()
        return plain
    flat, cuts = column.values.to_numpy(zero_copy_only=False), column.offsets.to_numpy()
    return [flat[first:last].copy() for first, last in pairwise(cuts)]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _schema(arrow: Any) -> Any:
    return arrow.schema(
        {
            "seed": arrow.int64(),
            "regret": arrow.list_(arrow.float64()),
            "visited": arrow.list_(arrow.int32()),
            "q_true": arrow.list_(arrow.float32()),
            "snapshot": arrow.list_(arrow.float32()),
            "true_model": arrow.int64(),
            "recommended": arrow.int64(),
            "final_gap": arrow.float64(),
            "seconds": arrow.float64(),
        }
    )
