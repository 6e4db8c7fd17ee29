"""Plates as .xlsx workbooks: written to be filled in. Needs openpyxl, the extra `lab`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from alexp.common.extras import require
from alexp.common.files import write_bytes

SUFFIX = ".xlsx"
WELLS = {24: (4, 6), 48: (6, 8), 96: (8, 12), 384: (16, 24)}  # rows and columns of a plate by its size
_WIDEST = 40  # characters that a column shows


def check_wells(size: int | None, n: int) -> None:
    """Raise unless there are plates of this size and n trials fit on one; None for no plate map."""
    if size is not None and size not in WELLS:
        raise ValueError(f"plates have {', '.join(map(str, WELLS))} wells, got {size}")
    if size is not None and n > size:
        raise ValueError(f"{n} trials do not fit on a plate of {size} wells; ask for fewer, or take a larger plate")


def well(number: int, size: int) -> str:
    """Name of a well, row by row.

    >>> well(0, 96), well(12, 96), well(95, 96)
    ('A1', 'B1', 'H12')
    """
    row, column = divmod(number, WELLS[size][1])
    return f"{chr(ord('A') + row)}{column + 1}"


def check_excel(path: Path) -> None:
    """Raise if a file is a workbook and openpyxl is missing."""
    if path.suffix.lower() == SUFFIX:
        _openpyxl(path)


def write_sheet(path: Path, rows: Iterable[Sequence[object]], fill: Sequence[str]) -> int:
    """Write rows, the header first, to a workbook; returns the number of rows below the header."""
    lines = list(rows)
    write_bytes(path, sheet(path, lines, fill))
    return len(lines) - 1


def sheet(path: Path | str, rows: Iterable[Sequence[object]], fill: Sequence[str]) -> bytes:
    """Rows, the header first, as the content of a workbook; messages name it `path`.

    The header stays in view, and cells can be changed in the columns to `fill` in only. Numbers are stored as numbers,
    all else as text that no spreadsheet runs.
    """
    openpyxl = _openpyxl(path)
    from openpyxl.styles import Font, PatternFill, Protection

    book = openpyxl.Workbook()
    page, lines = book.active, [list(row) for row in rows]
    page.title, page.freeze_panes = "plate", "A2"
    page.protection.sheet = True
    page.protection.formatColumns = False  # widths may be changed
    header = [str(name) for name in lines[0]]
    for r, line in enumerate(lines, 1):
        for c, value in enumerate(line, 1):
            cell = page.cell(r, c)
            _set(cell, value)
            if r == 1:
                cell.font = Font(bold=True)
            elif header[c - 1] in fill:
                cell.protection = Protection(locked=False)
                cell.fill = PatternFill("solid", fgColor="FFF7D6")
    for c in range(1, len(header) + 1):
        widest = max(len(str(line[c - 1])) for line in lines)
        page.column_dimensions[openpyxl.utils.get_column_letter(c)].width = min(max(widest + 2, 10), _WIDEST)
    out = BytesIO()
    book.save(out)
    return out.getvalue()


def _set(cell: Any, value: object) -> None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        text = "" if value is None else str(value)
        if text:
            cell.value, cell.data_type = text, "s"  # "=1+2" is a text, no formula
    else:
        cell.value = value.item() if isinstance(value, np.number) else value


def _openpyxl(path: Path | str) -> Any:
    require("openpyxl", subject=f"{path}")
    import openpyxl

    return openpyxl
