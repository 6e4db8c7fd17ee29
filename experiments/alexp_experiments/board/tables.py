"""The tables of the board: which there are, what each is for, and the files that hold them."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from alexp_experiments.comparison.tables.data import ARYLATION

Role = Literal["tune", "report"]


@dataclass(frozen=True)
class ListedTable:
    """An entry of tables.toml: `coverage` says whether it is played under that protocol."""

    name: str
    role: Role
    source: str
    sha256: str = ""
    coverage: bool = False

    def found_in(self, folders: Sequence[Path]) -> str | None:
        """Where the table is, for `load_table`; None where no folder has it. Raises where the file is another one."""
        if self.name == ARYLATION:
            return ARYLATION
        for folder in folders:
            path = folder / f"{self.name}.npz"
            if path.exists():
                if (got := hashlib.sha256(path.read_bytes()).hexdigest()) != self.sha256:
                    raise ValueError(
                        f"{path} is not the table of the board: its SHA-256 is {got}, expected {self.sha256}. It is "
                        f"made from {self.source}"
                    )
                return str(path)
        return None


def listed_tables(role: Role) -> list[ListedTable]:
    """The tables for tuning, or those for reporting."""
    entries = tomllib.loads(files("alexp_experiments.board").joinpath("tables.toml").read_text(encoding="utf-8"))
    return [one for name, fields in entries.items() if (one := ListedTable(name, **fields)).role == role]
