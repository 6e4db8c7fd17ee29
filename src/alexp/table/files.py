"""Any file -> named columns of cells with line numbers: text in any encoding, .xlsx, Parquet, data frames."""

from __future__ import annotations

import codecs
import csv
import io
import re
import zipfile
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import reduce
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from unicodedata import normalize
from xml.etree import ElementTree

from alexp.common.cells import from_csv
from alexp.common.extras import require
from alexp.table.remedies import EmptyFileError, FileError as FileError, Remedy

if TYPE_CHECKING:
    import pandas as pd

Cell = str | int | float | bool | date | None

_SEPARATORS = "\t;,"  # the first of equally good ones
_SEEN = 40  # lines that the separator is found from
_MOST_UNPACKED = 2**30  # bytes of a workbook
_CELL = 16  # bytes of a cell of a workbook, at least
_ENCODINGS = ("utf", "cp", "iso8859", "mac", "koi8", "gb", "big5", "shift", "euc", "ascii")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
_PERCENT = re.compile(rb'numFmtId="(?:9|10)"|formatCode="[^"]*%')  # in the styles of a workbook
_PIECE = 1 << 20  # bytes of a sheet that are looked through at once
_LONGEST_TAG = 1 << 16  # bytes
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^<>]*?ref=.([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}[0-9]{1,7})")
_REFERENCE = re.compile(r"([A-Z]+)([0-9]+)")
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_DAMAGED = (zipfile.BadZipFile, NotImplementedError, ValueError, OSError)  # what opening a damaged archive raises
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ENCODING_NAMES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "cp1252": "Windows-1252", "latin-1": "Latin-1"}
_ENCODING_NAMES |= dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "UTF-16")


@dataclass(frozen=True)
class Dialect:
    """How a file is written, so that another one can be written alike.

    Attributes
    ----------
    kind : a text, a workbook (.xlsx), a Parquet file, or data of the caller's.
    separator, encoding : of a text.
    decimal : the decimal sign of its numbers.
    """

    kind: Literal["text", "xlsx", "parquet", "data"] = "text"
    separator: str = ","
    decimal: Literal[".", ","] = "."
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Lines:
    """The cells of a table.

    Attributes
    ----------
    path : of the file, or its name in messages.
    header : names of the columns, distinct.
    rows : (line number, cells) of every row, as many cells as names; a blank cell is None.
    format : what was read, such as "text, semicolons, UTF-8".
    place : what a line is called in messages.
    dialect : how the file is written; the decimal sign is known when its columns are.
    remarks : what was done to the cells.
    """

    path: Path | str
    header: list[str]
    rows: list[tuple[int, list[Cell]]]
    format: str = ""
    place: str = "line"
    dialect: Dialect = Dialect()
    remarks: tuple[str, ...] = ()

    def column(self, name: str) -> int:
        """Position of a column, by its name in any case."""
        names = [title.lower() for title in self.header]
        if name.lower() not in names:
            raise FileError(f"{self.path} needs a column {name!r}, it has {', '.join(map(repr, self.header))}")
        return names.index(name.lower())

    def maybe(self, name: str) -> int | None:
        """Position of a column; None where there is none."""
        return self.column(name) if name.lower() in [title.lower() for title in self.header] else None

    def at(self, row: int, column: int | None = None) -> str:
        """The place of a row, or of a cell, for messages."""
        where = f"{self.path}, {self.place} {self.rows[row][0]}"
        return where if column is None else f"{where}, column {self.header[column]!r}"


def text_of(cell: Cell) -> str:
    """A cell as text: whole numbers without a point, dates as in ISO 8601."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    return cell.isoformat() if isinstance(cell, date) else repr(cell)


def lines_of(
    data: bytes | str,
    path: Path | str,
    sheet: str | None = None,
    header: int | None = None,
    skip: Sequence[int] = (),
    encoding: str | None = None,
    columns: Sequence[str] = (),
) -> Lines:
    """The table in the content of a file; messages name it `path`.

    Parameters
    ----------
    sheet : of a workbook with several.
    header : the line that has the names of the columns; by default the first that is not blank.
    skip : lines that are no candidates, such as a line of units.
    encoding : of a text; by default UTF-8 or UTF-16 where it is one, otherwise Windows-1252.
    columns : the names of the columns where no line has them: the first line then has none of these names.
    """
    if isinstance(data, bytes) and data[:4] == b"PAR1":
        return replace(frame_lines(_parquet(data, path), path, "Parquet"), dialect=Dialect("parquet"))
    if isinstance(data, bytes) and data[:4] == b"PK\x03\x04":
        rows, format, merged = _workbook(data, path, sheet, header)
        dialect, remarks = Dialect("xlsx"), _of_merged(merged)
    else:
        if sheet is not None:
            raise FileError(f"{path} is a text, which has no sheets; leave sheet out, got {sheet!r}")
        text, codec = (data, "") if isinstance(data, str) else _decoded(data, path, encoding)
        rows, separator = _separated(normalize("NFC", text), path, header, columns)
        named = f"text in {_ENCODING_NAMES.get(codec, codec)}" if codec else "text"
        format = f"{named}, separated by {_NAMES.get(separator, repr(separator))}"
        dialect, remarks = Dialect("text", separator, encoding=codec or "utf-8"), ()
    return replace(_named(rows, path, header, skip, format, columns), dialect=dialect, remarks=remarks)


# -- texts -----------------------------------------------------------------------------------------------------


def _of_merged(n: int) -> tuple[str, ...]:
    """A remark on merged cells that were filled in."""
    return (f"{n} merged range{'s' * (n != 1)} of cells: every cell has the text or number of its range",) if n else ()


def _decoded(data: bytes, path: Path | str, encoding: str | None) -> tuple[str, str]:
    """The text, and its encoding as Python calls it; `utf-8-sig` where the text has a mark of its encoding."""
    if data[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        raise FileError(f"{path} is a workbook of the old format .xls; save it as .xlsx or as CSV")
    if data.lstrip()[:1] == b"<" and any(tag in data[:2000].lower() for tag in (b"<html", b"<table", b"<?xml")):
        raise FileError(f"{path} is a web page or XML, whatever its name says; open it in Excel and save it as .xlsx")
    if data[:4] == b"%PDF" or data[:6] == b"\x93NUMPY":
        raise FileError(f"{path} is not a table; save it as CSV or .xlsx")
    if encoding is not None:
        try:
            if not codecs.lookup(encoding).name.startswith(_ENCODINGS):
                raise LookupError("it is not one of tables")
            return data.decode(encoding).removeprefix("\ufeff"), encoding
        except (LookupError, UnicodeDecodeError) as error:
            raise FileError(f"{path} is not a text in encoding {encoding!r}: {error}") from None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _strictly(data, "utf-16", path), "utf-16"
    if b"\0" in data[:4096]:
        for name, zeros in (("utf-16-le", data[1:4096:2]), ("utf-16-be", data[:4096:2])):
            if zeros and zeros.count(0) > 0.7 * len(zeros):
                return _strictly(data, name, path), name
        raise FileError(f"{path} is not a table: it holds bytes that no text has; save it as CSV or .xlsx")
    try:
        return data.decode("utf-8-sig"), "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def _strictly(data: bytes, encoding: str, path: Path | str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not a text in {encoding}: {error}; save it as UTF-8") from None


def _separated(
    text: str, path: Path | str, header: int | None, columns: Sequence[str]
) -> tuple[list[tuple[int, list[Cell]]], str]:
    """The rows, and what separates their cells."""
    first = text[:6].lower()
    separator = text[4] if first.startswith("sep=") and len(text) > 5 and text[5] in "\r\n" else None
    try:
        found = separator or _separator(text, path, header, columns)
        rows = from_csv(text, found)
    except ValueError as error:
        raise error if isinstance(error, FileError) else FileError(f"{path}, {error}") from None
    if separator is not None:
        rows = [(line, row) for line, row in rows if line > 1]
    cells: list[tuple[int, list[Cell]]] = [(line, [cell or None for cell in row]) for line, row in rows]
    return cells, found


def _separator(text: str, path: Path | str, header: int | None, columns: Sequence[str]) -> str:
    """The one by which the header has as many cells as most lines; a comma if there is one column only."""
    sample = io.StringIO(text[:200_000], newline="")
    numbered = [
        (number, line) for number, line in enumerate((sample.readline() for _ in range(_SEEN + (header or 1))), 1)
    ]
    lines = [line for number, line in numbered if line.strip() and number >= (header or 1)]
    if columns and lines and not _has_names(re.split("[\t;,]", lines[0]), columns):  # a comma may be a decimal one
        return next((sign for sign in _SEPARATORS if all(sign in line for line in lines)), "\t")
    best, score = None, (0.0, 0.0)
    usual = {}
    for separator in _SEPARATORS:
        try:
            sizes = [len(row) for row in csv.reader(lines, delimiter=separator)]
        except csv.Error:
            continue
        if len(sizes) < 2:
            continue
        size, times = Counter(sizes[1:]).most_common(1)[0]
        usual[separator] = size
        if size > 1 and sizes[0] > 1 and (sizes[0] == size, times / len(sizes)) > score:
            best, score = separator, (float(sizes[0] == size), times / len(sizes))
    if best is not None:
        return best
    many = {size: separator for separator, size in usual.items() if size > (2 if separator == "," else 1)}
    if header is None and many:
        most = max(many)
        names = next(number for number, line in numbered if line.count(many[most]) == most - 1)
        remedy = Remedy("header", names)
        raise FileError(
            f"{path}, line 1: the first line has one cell, the lines below it {most}; if it is a title, say in which "
            "line the names of the columns are: ",
            remedy,
            assuming=[remedy],
        )
    decimals = usual.get(",") == 2 and lines and "," not in lines[0]
    return "\t" if decimals else ","


# -- workbooks and data frames ---------------------------------------------------------------------------------


def _workbook(
    data: bytes, path: Path | str, sheet: str | None, header: int | None
) -> tuple[list[tuple[int, list[Cell]]], str, int]:
    """The rows, their merged cells filled in; what was read; and how many merged ranges had cells to fill in."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names, size = archive.namelist(), sum(entry.file_size for entry in archive.infolist())
    except _DAMAGED as error:
        raise FileError(f"{path} is damaged: {error}") from None
    if "xl/workbook.xml" not in names:
        what = "an OpenDocument sheet" if "mimetype" in names else "an archive, not a workbook"
        raise FileError(f"{path} is {what}; save the table as .xlsx or as CSV")
    if size > _MOST_UNPACKED:
        raise FileError(f"{path} unpacks to {size / 2**30:.1f} GiB, more than 1 GiB; save it as CSV")
    require("openpyxl", subject=f"{path}")
    import openpyxl

    try:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        titles = [one.title for one in book.worksheets]
        wanted = titles if sheet is None else [sheet] if sheet in titles else []
        has_percent = "xl/styles.xml" in names and _has_percent(data)
        filled = {title: _sheet(book[title], has_percent) for title in wanted}
        merged = dict.fromkeys(wanted, 0)
        for title, rows in filled.items():
            if _has_blanks(rows):
                merged[title] = _fill(rows, _merged_ranges(data, title), header, path)
        if any(map(_has_blanks, filled.values())):
            _check_formulas(data, path, filled)
    except FileError:
        raise
    except Exception as error:  # a damaged workbook fails in many ways
        raise FileError(f"{path} cannot be read as a workbook: {error}") from None
    if sheet is not None and sheet not in titles:
        raise FileError(f"{path} has no sheet {sheet!r}; it has {', '.join(map(repr, titles))}")
    filled = {title: rows for title, rows in filled.items() if rows} if sheet is None else filled
    if len(filled) > 1:
        listed = ", ".join(map(repr, filled))
        raise FileError(
            f"{path} has {len(filled)} sheets with cells ({listed}); say which: ", Remedy("sheet", next(iter(filled)))
        )
    if not filled:
        raise FileError(f"{path} has no cells")
    title, rows = next(iter(filled.items()))
    return rows, f"workbook, sheet {title!r}", merged[title]


def _has_blanks(rows: list[tuple[int, list[Cell]]]) -> bool:
    return any(None in row for _, row in rows)


class _Merged(NamedTuple):
    """Merged cells: first and last line, first and last column, counted from 1."""

    top: int
    bottom: int
    left: int
    right: int


def _merged_ranges(data: bytes, title: str) -> list[_Merged]:
    """The merged ranges of a sheet with cells of several lines or columns; openpyxl has none where it only reads."""
    found, rest = list[bytes](), b""
    with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(_part_of(archive, title)) as stream:
        while piece := stream.read(_PIECE):
            piece = rest + piece
            cut = piece.rfind(b"<")
            rest = piece[cut:] if cut >= 0 and len(piece) - cut < _LONGEST_TAG else b""
            found += _MERGED.findall(piece[: len(piece) - len(rest)])
    corners = [(_REFERENCE.findall(one.decode())) for one in found]
    return [_Merged(int(top), int(bottom), _place(left), _place(right)) for (left, top), (right, bottom) in corners]


def _part_of(archive: zipfile.ZipFile, title: str) -> str:
    """The part of a workbook that has a sheet."""
    sheets = ElementTree.fromstring(archive.read("xl/workbook.xml")).iter(f"{{{_MAIN}}}sheet")
    wanted = next(one.get(f"{{{_OFFICE}}}id") for one in sheets if one.get("name") == title)
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(one.get("Target", "") for one in relations if one.get("Id") == wanted)
    return target[1:] if target.startswith("/") else f"xl/{target}"


def _place(letters: str) -> int:
    """The number of a column, from 1.

    >>> _place("A"), _place("AB")
    (1, 28)
    """
    return reduce(lambda number, letter: 26 * number + ord(letter) - 64, letters, 0)


def _fill(rows: list[tuple[int, list[Cell]]], ranges: Sequence[_Merged], header: int | None, path: Path | str) -> int:
    """Write the cell of every merged range into its other cells, in place; returns how many ranges had any.

    Names of columns and titles above them are not filled to the right, and not into the lines below.
    """
    names, width = header or rows[0][0], len(rows[0][1])
    left, n_filled = len(rows) * width, 0
    lines = [line for line, _ in rows]
    for one in ranges:
        start, stop = bisect_left(lines, one.top), bisect_right(lines, one.bottom)
        last = min(one.right, width)
        if start == stop or lines[start] != one.top or one.left > width:
            continue
        if (left := left - (stop - start) * (last - one.left + 1)) < 0:
            raise FileError(f"{path} has merged ranges that overlap; it is damaged")
        value, is_filled = rows[start][1][one.left - 1], False
        is_name, is_heading = one.top <= names, one.left == 1 and last == width
        if value is None or is_heading:
            continue
        for line, row in rows[start:stop]:
            if is_name and line > names:
                break
            for k in range(one.left - 1, one.left if is_name else last):
                if row[k] is None:
                    row[k], is_filled = value, True
        n_filled += is_filled
    return n_filled


def _check_formulas(data: bytes, path: Path | str, filled: Mapping[str, list[tuple[int, list[Cell]]]]) -> None:
    """Raise if a cell without a value has a formula: programs other than Excel do not store what it gives."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, keep_links=False)
    for title, rows in filled.items():
        values = dict(rows)
        sheet = book[title]
        sheet.reset_dimensions()
        for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
            for k, cell in enumerate(row):
                own = values.get(line, [])
                if isinstance(cell, str) and cell.startswith("=") and (k >= len(own) or own[k] is None):
                    raise FileError(
                        f"{path}, line {line}, column {k + 1}: the formula {cell!r:.60} has no stored value; open the "
                        "workbook in Excel and save it, or paste the values"
                    )


def _has_percent(data: bytes) -> bool:
    """Whether a workbook may have cells that are shown as percentages."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return _PERCENT.search(archive.read("xl/styles.xml")) is not None


def _sheet(sheet: Any, has_percent: bool) -> list[tuple[int, list[Cell]]]:
    """(line, cells) of the rows that are not blank, all of one length; 0.025 that is shown as 2.5 % is read as that."""
    sheet.reset_dimensions()
    plain = _shown if has_percent else _plain
    found = enumerate(sheet.iter_rows(values_only=not has_percent), 1)
    rows = [(line, [plain(cell) for cell in row]) for line, row in found]
    rows = [(line, row) for line, row in rows if any(cell is not None for cell in row)]
    width = max((len(row) for _, row in rows), default=0)
    return [(line, row + [None] * (width - len(row))) for line, row in rows]


def _shown(cell: Any) -> Cell:
    """A cell of a workbook with percentages, as it is shown."""
    value = _plain(cell.value)
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in str(cell.number_format):
        return f"{100.0 * value:.12g} %"
    return value


def _plain(value: object) -> Cell:
    """A value of a workbook or data frame as a cell: NaN is blank, text has no blanks around it."""
    if value is None or isinstance(value, bool | int | date):
        return value if value == value else None  # not a time is a date
    if isinstance(value, str):
        return normalize("NFC", value).strip() or None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real | Decimal):
        number = float(value)
        return None if number != number else number
    if hasattr(value, "item"):
        return _plain(value.item())
    return None if value != value or type(value).__name__ == "NAType" else str(value)


def packed_cells(data: bytes) -> int:
    """How many cells a Parquet file has, or a workbook may have; a few bytes of them can hold millions. Zero for texts.

    Of a file that is damaged it is zero as well: reading it says what is wrong.
    """
    if data[:4] == b"PAR1":
        require("pyarrow", subject="a Parquet file")
        import pyarrow
        import pyarrow.parquet

        with suppress(pyarrow.ArrowException, OSError, ValueError):
            known = pyarrow.parquet.read_metadata(io.BytesIO(data))
            return int(known.num_rows * known.num_columns)
    if data[:4] == b"PK\x03\x04":
        with suppress(*_DAMAGED), zipfile.ZipFile(io.BytesIO(data)) as archive:
            return sum(entry.file_size for entry in archive.infolist()) // _CELL
    return 0


def _parquet(data: bytes, path: Path | str) -> pd.DataFrame:
    require("pyarrow", subject=f"{path}")
    import pyarrow.parquet

    try:
        frame: pd.DataFrame = pyarrow.parquet.read_table(io.BytesIO(data)).to_pandas()
    except Exception as error:
        raise FileError(f"{path} cannot be read as a Parquet file: {error}") from None
    return frame


def frame_lines(frame: pd.DataFrame, path: Path | str = "frame", format: str = "data frame") -> Lines:
    """A data frame as lines; an index with a name, or of texts, becomes the first column."""
    require("pandas")
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas DataFrame, got {type(frame).__name__}")
    if frame.columns.nlevels > 1 or frame.index.nlevels > 1:
        raise FileError(f"{path} has names on several levels; give every column one name, and use reset_index()")
    names, columns = [str(name).strip() for name in frame.columns], [frame[name].tolist() for name in frame.columns]
    if frame.index.name is not None or frame.index.dtype.kind not in "iu":  # rows have no names, only numbers
        names, columns = [str(frame.index.name or "id"), *names], [frame.index.tolist(), *columns]
    _check_distinct(names, path, "")
    return column_lines(dict(zip(names, columns, strict=True)), path, format)


def column_lines(columns: Mapping[str, Sequence[Any]], path: Path | str = "columns", format: str = "data") -> Lines:
    """Named columns as lines."""
    lengths = {len(values) for values in columns.values()}
    if lengths == {0}:
        raise FileError(f"{path} has columns without a row")
    if len(lengths) != 1 or "" in columns:
        raise FileError(f"{path} must be named lists of the same length, with one entry per candidate")
    rows = [(k, [_plain(value) for value in row]) for k, row in enumerate(zip(*columns.values(), strict=True))]
    return Lines(path, list(columns), rows, format, "row", Dialect("data"))


# -- names of the columns --------------------------------------------------------------------------------------


def _has_names(cells: Sequence[Cell], columns: Sequence[str]) -> bool:
    """Whether any cell is one of these names."""
    return any(text_of(cell).strip().lower() == name.lower() for cell in cells for name in columns)


def _named(
    rows: list[tuple[int, list[Cell]]],
    path: Path | str,
    header: int | None,
    skip: Sequence[int],
    format: str,
    columns: Sequence[str],
) -> Lines:
    """Split names from rows; every row must have as many cells."""
    if columns and rows and not _has_names(rows[0][1], columns):
        if all(len(row) == len(columns) for _, row in rows):
            return Lines(path, list(columns), rows, format)
        if len(rows) == 1:
            raise FileError(f"{path}, line {rows[0][0]}: write {' and '.join(columns)}, with a tab between them")
    if header is not None:
        rows = [(line, row) for line, row in rows if line >= header]
        if not rows or rows[0][0] != header:
            raise FileError(f"{path} has no cells in line {header}, where header={header} says that the names are")
    skipped = set(skip)
    rows = [rows[0], *((line, row) for line, row in rows[1:] if line not in skipped)] if rows else rows
    if len(rows) < 2:
        raise EmptyFileError(f"{path} must have a header and at least one line")
    first, titles = rows[0]
    names = [" ".join(text_of(cell).split()) for cell in titles]
    width = len(names)
    while width and not names[width - 1] and all(len(row) < width or row[width - 1] is None for _, row in rows):
        width -= 1  # empty columns on the right, as spreadsheets write them
    names = names[:width]
    short = [line for line, row in rows[1:] if len(row) < width]
    for line, row in rows[1:]:
        what = f"{path}, line {line}: {len(row)} cells, but the header has {width}"
        if len(row) < width:
            remedy = Remedy("skip", short)
            raise FileError(what, "; if it is no line of the table, remove it, or say ", remedy, assuming=[remedy])
        if len(row) > width and any(cell is not None for cell in row[width:]):
            hint = "; a decimal comma in a file separated by commas? Save it separated by semicolons"
            raise FileError(what + hint * ("commas" in format))
    filled = [k for k, name in enumerate(names) if name or any(row[k] is not None for _, row in rows[1:])]
    whole = next((line for line, row in rows[1:] if None not in row[:width]), rows[1][0])
    if sum(name != "" for name in names) == 1 and len(filled) > 1:
        remedy = Remedy("header", whole)
        raise FileError(
            f"{path}, line {first}: only one of {len(filled)} columns has a name; if this line is a title, say in "
            "which line the names of the columns are: ",
            remedy,
            assuming=[remedy],
        )
    if width == 1:
        _check_one_column(path, names[0], rows, first)
    for k in filled:
        if not names[k]:
            raise FileError(
                f"{path}, line {first}: column {k + 1} has no name (merged cells?); write one name above every column, "
                "or, if the names are in a line below, say which: ",
                Remedy("header", rows[1][0]),
            )
    _check_distinct(names, path, f", line {first}")
    return Lines(path, [names[k] for k in filled], [(line, [row[k] for k in filled]) for line, row in rows[1:]], format)


def _check_one_column(path: Path | str, name: str, rows: list[tuple[int, list[Cell]]], first: int) -> None:
    """Raise if a single column looks like several: comments above the names, or another separator."""
    texts = [text_of(row[0]) for _, row in rows[1:]]
    if name.startswith(("#", "//")):
        names = next((line for line, row in rows[1:] if not text_of(row[0]).startswith(name[0])), rows[1][0])
        remedy = Remedy("header", names)
        raise FileError(
            f"{path}, line {first}: {name!r:.60} looks like a comment; say in which line the names of the columns "
            "are: ",
            remedy,
            assuming=[remedy],
        )
    for separator, called in (("|", "'|'"), (None, "blanks")):
        size = len(name.split(separator))
        parts = [text.split(separator) for text in texts]
        numeric = all(any(_NUMBER.fullmatch(part.strip()) for part in row) for row in parts)
        if size > 1 and numeric and all(len(row) == size for row in parts):
            raise FileError(
                f"{path}, line {first}: {name!r:.60} looks like {size} columns separated by {called}; save the file "
                "separated by commas, semicolons or tabs"
            )


def _check_distinct(names: list[str], path: Path | str, where: str) -> None:
    for k, name in enumerate(names):
        if name and name in names[:k]:
            raise FileError(f"{path}{where}: columns {names.index(name) + 1} and {k + 1} have the same name {name!r}")
