"""Columns of results: what is measured already; several numbers in a cell are separated by semicolons."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from alexp.table.columns import Options, number_column
from alexp.table.files import Cell, FileError, Lines, text_of
from alexp.table.remedies import Remedy


def measurements(
    lines: Lines, k: int, options: Options, without: Collection[str] = ("",)
) -> tuple[list[tuple[int, float]], int]:
    """(row, number) of every measurement of column k, and how many rows have none.

    Cells with one of the texts `without`, in any case, have none; what else is no number raises FileError.
    """
    rows, places, n_without = list[tuple[int, list[Cell]]](), list[int](), 0
    for row, (number, cells) in enumerate(lines.rows):
        cell = options.replaced(cells[k])
        parts = cell.split(";") if isinstance(cell, str) else [cell]
        found = [part for part in parts if text_of(part).strip().lower() not in without]
        n_without += not found
        rows += [(number, [part]) for part in found]
        places += [row] * len(found)
    if not rows:
        return [], n_without
    own = replace(lines, header=[lines.header[k]], rows=rows)
    values = number_column(own, 0, options.decimal_of(lines.header[k]))
    pairs = list(zip(places, values, strict=True))
    if (blank := next((place for place, (_, value) in enumerate(pairs) if value is None), None)) is not None:
        cell = rows[blank][1][0]
        raise FileError(
            f"{lines.at(places[blank], k)}: {text_of(cell)!r} is no result; write a number, or say what to read in its "
            "place, such as nothing: ",
            Remedy("replace", {text_of(cell): ""}),
        )
    return [(row, value) for row, value in pairs if value is not None], n_without


def without_column(lines: Lines, k: int) -> Lines:
    """The lines without a column."""
    return replace(
        lines,
        header=[*lines.header[:k], *lines.header[k + 1 :]],
        rows=[(number, [*cells[:k], *cells[k + 1 :]]) for number, cells in lines.rows],
    )
