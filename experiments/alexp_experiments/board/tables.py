"""The tables of the board: which there are, what each is for, the files that hold them, and where to get them."""

from __future__ import annotations

import hashlib
import io
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypedDict
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.files import writing
from alexp_experiments.comparison.tables.data import ARYLATION, load_table

Role = Literal["tune", "report"]
_SECONDS = 60.0  # to wait for a server


class Download(TypedDict, total=False):
    """Where a table of inputs can be got, see tables.toml."""

    url: str
    sha256: str
    header: bool
    minimize: bool
    average: bool


@dataclass(frozen=True)
class ListedTable:
    """An entry of tables.toml: `coverage` says whether it is played under that protocol."""

    name: str
    role: Role
    source: str
    digest: str = ""
    coverage: bool = False
    download: Download | None = None

    def found_in(self, folders: Sequence[Path]) -> str | None:
        """Where the table is, for `load_table`; None where no folder has it. Raises where the file is another one."""
        if self.name == ARYLATION:
            return ARYLATION
        for folder in folders:
            path = folder / f"{self.name}.npz"
            if path.exists():
                if (got := load_table(str(path)).digest) != self.digest:
                    raise ValueError(
                        f"{path} is not the table of the board: its digest is {got}, expected {self.digest}. It is "
                        f"made from {self.source}"
                    )
                return str(path)
        return None

    def fetch(self, folder: Path) -> Path:
        """Download the table and write `<name>.npz`; raises where the file is not the one that is listed."""
        assert self.download is not None
        url = self.download["url"]
        try:
            with urlopen(url, timeout=_SECONDS) as answer:
                content = answer.read()
        except (URLError, TimeoutError) as error:
            raise ValueError(f"{self.name} cannot be had from {url}: {error}") from error
        if (got := hashlib.sha256(content).hexdigest()) != self.download["sha256"]:
            raise ValueError(f"{url} has changed: its SHA-256 is {got}, expected {self.download['sha256']}")
        rewards, inputs = _inputs(content, self.download)
        path = folder / f"{self.name}.npz"
        with writing(path) as file:
            np.savez(file, y=rewards, m_linear=inputs)
        return path


def _inputs(content: bytes, how: Download) -> tuple[FloatArray, FloatArray]:
    """Rewards (N,) and inputs (N, d), with mean 0 and deviation 1, of a CSV whose last column is the objective."""
    import pandas as pd

    table = pd.read_csv(io.BytesIO(content), header=0 if how.get("header") else None)
    names = list(table.columns[:-1])
    if how.get("average"):
        table = table.groupby(names)[table.columns[-1]].mean().reset_index()
    inputs, objective = table[names].to_numpy(np.float64), table.iloc[:, -1].to_numpy(np.float64)
    scaled = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    return -objective if how.get("minimize") else objective, scaled.astype(np.float32)


def listed_tables(role: Role) -> list[ListedTable]:
    """The tables for tuning, or those for reporting."""
    entries = tomllib.loads(files("alexp_experiments.board").joinpath("tables.toml").read_text(encoding="utf-8"))
    return [one for name, fields in entries.items() if (one := ListedTable(name, **fields)).role == role]
