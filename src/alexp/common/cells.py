"""Cells of CSV files: what a spreadsheet would run is written as text, and read back as it was."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

import numpy as np

_RUN = re.compile(r"[\s'\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_QUOTED = re.compile(r"[\",;\t\r\n]|^\s|\s$")  # whatever the separator: spreadsheets have ideas of their own
_LONGEST = 16 * 1024 * 1024  # characters of a cell


def _needs_mark(text: str) -> bool:
    bare = text.lstrip("'")  # what begins with an apostrophe must not be taken for marked
    return not _NUMBER.fullmatch(bare) and (_RUN.match(bare) is not None or bare != bare.strip())


def marked(text: str) -> str:
    """A cell as it is written: an apostrophe before what a spreadsheet would run, and before blanks that count.

    >>> marked("=1+2"), marked("'=1+2"), marked("-1.5e3"), marked("water")
    ("'=1+2", "''=1+2", '-1.5e3', 'water')
    """
    return f"'{text}" if _needs_mark(text) else text


def unmarked(cell: str) -> str:
    """Invert `marked`; blanks around other cells do not count.

    >>> unmarked("'=1+2"), unmarked("''=1+2"), unmarked("'tis"), unmarked(" water ")
    ('=1+2', "'=1+2", "'tis", 'water')
    """
    if "'" in cell and (start := cell.lstrip()).startswith("'") and _needs_mark(start[1:]):
        return start[1:]
    return cell.strip()


def to_csv(rows: Iterable[Sequence[object]], separator: str = ",", decimal: str = ".") -> str:
    """Rows as the text of a CSV file. Numbers have the decimal sign; all else is text, and marked.

    >>> print(to_csv([["-x", -2.5, 3], ["a;b", 1e-7, ""]], ";", ","), end="")
    '-x;-2,5;3
    "a;b";1e-07;
    """
    return "".join(separator.join(_written(cell, separator, decimal) for cell in row) + "\n" for row in rows)


def _written(cell: object, separator: str, decimal: str) -> str:
    if isinstance(cell, float | np.floating):
        number = repr(float(cell)).replace(".", decimal)
        return f'"{number}"' if separator in number else number
    text = marked(str(cell))
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) or separator in text else text


def from_csv(text: str, separator: str = ",") -> list[tuple[int, list[str]]]:
    """(number of the first line, cells) of the rows that are not blank.

    >>> from_csv("name;n\\n'=x; 1\\n", ";")
    [(1, ['name', 'n']), (2, ['=x', '1'])]
    """
    before, rows = csv.field_size_limit(_LONGEST), list[tuple[int, list[str]]]()
    reader, end = csv.reader(io.StringIO(text, newline=""), delimiter=separator), 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((end + 1, list(map(unmarked, row))))
            end = reader.line_num
    except csv.Error as error:
        raise ValueError(f"line {end + 1}: {error}") from None
    finally:
        csv.field_size_limit(before)
    return rows
