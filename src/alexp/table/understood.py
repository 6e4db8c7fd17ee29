"""What a table was understood as: one line per column, for people and for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from alexp.common.codec import State
from alexp.common.notebook import paragraph, table

_HEADINGS = ("column", "kind", "example", "becomes")


@dataclass(frozen=True)
class UnderstoodColumn:
    """A column: its name, what it was taken for, a cell as it is written, and what models see of it.

    `description` is the name of the description that it belongs to, empty for the table itself.
    """

    name: str
    kind: str
    example: str
    becomes: str
    description: str = ""


@dataclass(frozen=True)
class Understood:
    """What was taken for what; prints as a small table.

    Attributes
    ----------
    file : what was read, and how.
    n_candidates : N.
    columns : of the table, then of its descriptions.
    remarks : what concerns no single column.
    """

    file: str
    n_candidates: int
    columns: tuple[UnderstoodColumn, ...]
    remarks: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[UnderstoodColumn]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> UnderstoodColumn:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def __str__(self) -> str:
        cells = [_HEADINGS, *(_cells(column) for column in self.columns)]
        widths = [max(len(row[k]) for row in cells) for k in range(3)]
        lines = [
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in cells
        ]
        return "\n".join([f"{self.file}: {self.n_candidates} candidates", *lines, *self.remarks])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = table([_HEADINGS, *(_cells(column) for column in self.columns)])
        return paragraph(f"{self.file}: {self.n_candidates} candidates") + rows + "".join(map(paragraph, self.remarks))

    def to_dict(self) -> State:
        """The same as JSON data."""
        columns = [asdict(column) for column in self.columns]
        return {"file": self.file, "n_candidates": self.n_candidates, "columns": columns, "remarks": list(self.remarks)}


def _cells(column: UnderstoodColumn) -> tuple[str, str, str, str]:
    name = f"{column.description}: {column.name}" if column.description else column.name
    return _short(name, 40), column.kind, _short(column.example, 24), column.becomes


def _short(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."
