"""What a column of a table is: numbers, yes or no, words, SMILES, or a label. Doubts are refused with the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import LARGEST, did_you_mean, one_of
from alexp.table.files import Cell, FileError, Lines, lines_of, text_of
from alexp.table.numbers import BOTH, Decimal, Written, convention, is_unit, unit_in, written
from alexp.table.remedies import OPEN, Part, Remedy, all_or_error

Kind = Literal["id", "number", "log", "yes/no", "words", "SMILES", "label"]
Stated = Literal["number", "log", "yes/no", "words", "SMILES", "label"]
Missing = Literal["refuse", "median", "drop", "leave out"]
KINDS: tuple[Stated, ...] = get_args(Stated)
MISSING: tuple[Missing, ...] = get_args(Missing)
NUMERIC = ("number", "log")  # kinds of columns of numbers
OTHERS = "*"  # in place of a name: all other columns
MOST_WORDS = 500  # different ones of a column that is one-hot encoded
MOST_LISTED = 10  # cells that an error names
REWARD = "reward"  # the column of results, unless stated

BLANK = {"n/a", "na", "n.a.", "nan", "-", "--", "–", "—", "#n/a", "#nv", "null", "none", "nd", "n.d.", "?", "missing"}
_BLANK_WORDS = {"n/a", "#n/a", "#nv", "nan"}  # the others may be words: a ligand "none", "Na"
_YES_NO = [{"no": 0, "yes": 1}, {"n": 0, "y": 1}, {"false": 0, "true": 1}, {"nein": 0, "ja": 1}, {"non": 0, "oui": 1},
           {"falsch": 0, "wahr": 1}, {"faux": 0, "vrai": 1}]  # fmt: skip
_MONTH = r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zä]*\.?"
_DATE = re.compile(
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:\d{{4}}|\d{{2}})|"
    rf"\d{{1,2}}\.?[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH}[ -]\d{{1,2}},? \d{{4}})(?:[T ]+\d{{1,2}}:\d{{2}}.*)?",
    re.IGNORECASE,
)
_PADDED = re.compile(r"0\d+|\d{17,}")  # codes: as numbers they would lose zeros, or digits
_NUMBER = r"[+-]?\d+(?:[.,]\d+)?\s*%?"
_TWO_NUMBERS = re.compile(
    rf"{_NUMBER}\s*(?:±|\+/?-|:|/|–|-|to|bis|x|×)\s*{_NUMBER}|{_NUMBER}\s*[x×·*]\s*10\^?[-+−⁻\d¹²³⁴-⁹]+|\d+:\d\d:\d\d",
    re.IGNORECASE,
)
_ERROR = re.compile(r"#[A-ZÄÖÜÉ/0-9]+[!?]")  # of a spreadsheet: #REF!, #NAME?, #DIV/0!
_SERIAL = re.compile(r"\b(date|datum|dato|fecha|data)\b", re.IGNORECASE)  # in the name of a column of dates
_SERIALS = (20_000.0, 80_000.0)  # days since 1900, as Excel counts them: 1954 to 2119


Remark = str | tuple[Part, ...]


class Reading(TypedDict, total=False):
    """Keywords of `Table.read` and its kin."""

    id: str | None
    sheet: str | None
    kinds: Mapping[str, Stated]
    ignore: Sequence[str]
    missing: Missing | Mapping[str, Missing]
    decimal: Decimal | Mapping[str, Decimal] | None
    replace: Mapping[str, str | float]
    header: int | None
    skip: Sequence[int]
    encoding: str | None
    reward: str | None
    reward_elsewhere: bool


@dataclass(frozen=True)
class Options:
    """What a user says about a table beyond its cells; see `Table.read`."""

    id: str | None = None
    sheet: str | None = None
    kinds: Mapping[str, Stated] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    missing: Missing | Mapping[str, Missing] = "refuse"
    decimal: Decimal | Mapping[str, Decimal] | None = None
    replace: Mapping[str, str | float] = field(default_factory=dict)
    header: int | None = None
    skip: Sequence[int] = ()
    encoding: str | None = None
    reward: str | None = None
    reward_elsewhere: bool = False  # whether the table may lack the column of results, which other files have

    def lines(self, data: bytes | str, path: Path | str) -> Lines:
        """The cells in the content of a file that messages call `path`."""
        return lines_of(data, path, self.sheet, self.header, self.skip, self.encoding)

    def checked(self, lines: Lines) -> Options:
        """The same for a table that has these lines, or an error that names the wrong keyword."""
        if self.reward_elsewhere and self.reward not in lines.header:
            return replace(self, reward=None, reward_elsewhere=False).checked(lines)
        for how in self.missing.values() if isinstance(self.missing, Mapping) else [self.missing]:
            one_of("missing", how, MISSING)
        for name, kind in self.kinds.items():
            one_of(f"the kind of {name!r}", kind, KINDS)
        signs = self.decimal.values() if isinstance(self.decimal, Mapping) else [self.decimal]
        for sign in signs:
            if sign is not None:
                one_of("decimal", sign, (".", ","))
        named = [*self.kinds, *self.ignore, *(name for name in (self.id, self.reward) if name is not None)]
        by_name = (self.decimal, {} if isinstance(self.missing, str) else dict(self.missing) | {OTHERS: ""})
        named += [name for one in by_name if isinstance(one, Mapping) for name in one if name != OTHERS]
        for name in named:
            if name not in lines.header:
                there = ", ".join(map(repr, lines.header))
                meant = did_you_mean(name, lines.header) or "."
                raise FileError(f"{lines.path} has no column {name!r}{meant} It has {there}")
        kinds: dict[str, Stated] = {**dict.fromkeys(self.ignore, "label"), **self.kinds}
        return replace(self, kinds=kinds)

    def missing_of(self, name: str) -> Missing:
        """What to do with the blank cells of a column; `OTHERS` of columns that are not named."""
        if isinstance(self.missing, str):
            return self.missing
        return self.missing.get(name, self.missing.get(OTHERS, "refuse"))

    def names_blanks(self, name: str) -> bool:
        """Whether it is stated for that column alone what to do with its blank cells."""
        return not isinstance(self.missing, str) and name in self.missing

    def supposing(self, remedies: Sequence[Remedy]) -> Options:
        """The same, with what else would have to be said; of the lines only."""
        out = self
        for one in remedies:
            known: dict[str, Any] = {one.keyword: [*out.skip, *one.value] if one.keyword == "skip" else one.value}
            out = replace(out, **known)
        return out

    def replaced(self, cell: Cell) -> Cell:
        """What to read in place of a cell."""
        if not self.replace or (text := text_of(cell)) not in self.replace:
            return cell
        return self.replace[text] if self.replace[text] != "" else None

    def decimal_of(self, name: str) -> Decimal | None:
        """The decimal sign that was stated for a column."""
        return self.decimal.get(name) if isinstance(self.decimal, Mapping) else self.decimal


@dataclass(frozen=True)
class Column:
    """A column, understood.

    Attributes
    ----------
    cells : as candidates have them, N of them: numbers, or text; blank ones are empty.
    values : (N,) of numbers and of yes (1) or no (0), NaN where a cell is blank; None for other kinds.
    blanks : positions of blank cells.
    unit : of the numbers, from cells or header.
    remarks : what a user should know.
    decimal : the decimal sign that a cell shows; None where all are whole.
    """

    name: str
    kind: Kind
    cells: list[Any]
    values: FloatArray | None
    blanks: list[int]
    example: str
    unit: str = ""
    remarks: tuple[Remark, ...] = ()
    decimal: Decimal | None = None

    @property
    def is_feature(self) -> bool:
        """Whether models may use it."""
        return self.kind not in ("id", "label")

    @property
    def distinct(self) -> list[Any]:
        """The different values, blank cells aside."""
        return list(dict.fromkeys(cell for cell in self.cells if cell != ""))

    @property
    def is_constant(self) -> bool:
        """Whether all candidates have the same value, so that no model can use it."""
        return len(self.distinct) < 2 and not self.blanks

    @property
    def becomes(self) -> tuple[Part, ...]:
        """What models see of it, in a few words."""
        different = self.distinct
        if self.kind == "id":
            what = "name of the candidate, not a feature"
        elif self.kind == "label":
            what = "shown, not a feature"
        elif self.is_constant:
            what = "left out: the same for all candidates"
        elif self.kind in NUMERIC:
            numbers = self.values
            assert numbers is not None
            unit, of = f" {self.unit}" if self.unit else "", "the logarithm of " * (self.kind == "log")
            what = f"{of}a number from {np.nanmin(numbers):.6g} to {np.nanmax(numbers):.6g}{unit}"
        elif self.kind == "yes/no":
            what = "no = 0, yes = 1"
        elif self.kind == "SMILES":
            what = "fingerprints and descriptors, a model each"
        else:
            what = f"a component with {len(different)} words"
        out: list[Part] = [what]
        for remark in self.remarks:
            out += ["; ", remark] if isinstance(remark, str) else ["; ", *remark]
        return tuple(out)

    def taken(self, rows: Sequence[int]) -> Column:
        """The column at some of the rows."""
        values = None if self.values is None else self.values[list(rows)]
        place = {row: k for k, row in enumerate(rows)}
        blanks = [place[row] for row in self.blanks if row in place]
        return replace(self, cells=[self.cells[row] for row in rows], values=values, blanks=blanks)

    def as_label(self, why: str) -> Column:
        """The column as one that models do not use, for a reason."""
        return replace(self, kind="label", values=None, remarks=(why, *self.remarks))


def as_id(lines: Lines, k: int) -> Column:
    """The column of ids; blank and repeated ones are refused."""
    seen: dict[str, int] = {}
    texts = [text_of(row[k]) for _, row in lines.rows]
    _check_errors(lines, k, texts)
    for row, text in enumerate(texts):
        if not text:
            raise FileError(f"{lines.at(row, k)}: the id is blank; every candidate needs one of its own")
        if (first := seen.setdefault(text, row)) != row:
            raise FileError(
                f"{lines.at(row, k)}: the id {text!r} is on {lines.place} {lines.rows[first][0]} already; ids must "
                "differ: rename or remove one of the two, or say which column has the ids: ",
                Remedy("id", OPEN),
            )
    return Column(lines.header[k], "id", texts, None, [], texts[0])


def understand(lines: Lines, k: int, options: Options) -> Column:
    """A column as what it is; raises FileError where that is in doubt."""
    name = lines.header[k]
    if options.kinds.get(name) == "log":
        column = _as_written(lines, k, replace(options, kinds={**options.kinds, name: "number"}))
        assert column.values is not None
        if (wrong := np.flatnonzero(column.values <= 0.0)).size:
            text = text_of(lines.rows[int(wrong[0])][1][k])
            raise FileError(
                f"{lines.at(int(wrong[0]), k)}: {text!r} has no logarithm, and the kind of the column is 'log'; say "
                "what to read in its place: ",
                Remedy("replace", {text: OPEN}),
                ", or take the numbers as they are: ",
                Remedy("kinds", {name: "number"}),
            )
        return replace(column, kind="log")
    column = _as_written(lines, k, options)
    if column.kind != "number" or name in options.kinds:
        return column
    from alexp.table.logarithms import why_logarithm

    if not (why := why_logarithm(column.values)):
        return column
    plain = (Remedy("kinds", {name: "number"}), " takes them as they are")
    return replace(column, kind="log", remarks=(*column.remarks, why, plain))


def _as_written(lines: Lines, k: int, options: Options) -> Column:
    """A column as what it is, its numbers as they are."""
    name, stated = lines.header[k], options.kinds.get(lines.header[k])
    cells = [options.replaced(row[k]) for _, row in lines.rows]
    if stated is None and options.decimal_of(name) != "," and (found := _plain_numbers(cells)) is not None:
        _check_serial_dates(lines, k, found)
        return _numeric(lines, k, cells, found, unit_in(name), [], "." if _pointed(cells) else None)
    if stated is None and options.decimal_of(name) is None and (found := _comma_numbers(cells)) is not None:
        return _numeric(lines, k, cells, found, unit_in(name), [], ",", ("decimal commas",))
    texts = [text_of(cell).strip() for cell in cells]
    example = next((text for text in texts if text), "")
    if stated == "label":
        return Column(name, "label", texts, None, [], example)
    if stated == "SMILES" or (stated is None and "smiles" in name.lower()):
        return _smiles(lines, k, texts, example)
    if stated == "words":
        return _words(lines, k, texts, example, stated=True)
    if stated == "yes/no" or (stated is None and _pair(texts) is not None):
        return _yes_no(lines, k, texts, example)
    return _numbers_or_words(lines, k, cells, texts, example, options)


def _check_serial_dates(lines: Lines, k: int, values: FloatArray) -> None:
    """Raise if the numbers of a column of dates are days as Excel counts them."""
    name, (low, high) = lines.header[k], _SERIALS
    if _SERIAL.search(name) and np.all((values >= low) & (values <= high)):
        raise FileError(
            f"{lines.at(0, k)}: {text_of(lines.rows[0][1][k])!r} may be a date as Excel counts days; leave the column "
            "out: ",
            Remedy("ignore", [name]),
            ", or say that it is a number: ",
            Remedy("kinds", {name: "number"}),
        )


def number_column(lines: Lines, k: int, decimal: Decimal | None = None) -> list[float | None]:
    """The numbers of a column, None for blank cells; raises FileError for the first cell that is neither."""
    stated: dict[str, Stated] = {lines.header[k]: "number"}
    options = Options(kinds=stated, decimal=decimal)
    values = understand(lines, k, options).values
    assert values is not None
    return [None if value != value else value for value in values.tolist()]


def decimal_sign(lines: Lines, k: int, stated: Decimal | None = None) -> Decimal:
    """The decimal sign of the numbers of a column, whatever else it holds; raises if it is mixed, or in doubt."""
    texts = [text_of(row[k]).strip() for _, row in lines.rows]
    return _decimal(lines, k, [written(text) for text in texts], texts, stated)


def _plain_numbers(cells: Sequence[Cell]) -> FloatArray | None:
    """Numbers without blanks that need no thought; None if there is any."""
    kinds = set(map(type, cells))
    if kinds == {str}:
        texts: Sequence[Any] = cells
        if any(_PADDED.match(text) or "_" in text for text in texts):
            return None
    elif not kinds <= {int, float}:
        return None
    try:
        values = np.array(list(map(float, cells)))  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None
    return values if np.isfinite(values).all() else None


def _comma_numbers(cells: Sequence[Cell]) -> FloatArray | None:
    """Numbers with decimal commas that are in no doubt and without blanks; None if there is any."""
    if set(map(type, cells)) != {str}:
        return None
    texts: Sequence[Any] = cells
    if any("." in text or "_" in text or _PADDED.match(text) for text in texts):
        return None
    try:
        values = np.array([float(text.replace(",", ".")) for text in texts])
    except ValueError:
        return None
    sure = any((number := written(text)) is not None and number.readings == {","} for text in texts if "," in text)
    return values if sure and np.isfinite(values).all() else None


def _pointed(cells: Sequence[Cell]) -> bool:
    return any(isinstance(cell, str) and "." in cell for cell in cells)


def _numeric(
    lines: Lines,
    k: int,
    cells: Sequence[Cell],
    values: FloatArray,
    unit: str,
    blanks: list[int],
    decimal: Decimal | None,
    remarks: tuple[Remark, ...] = (),
) -> Column:
    if (large := np.flatnonzero(np.abs(values) > LARGEST)).size:
        cell = f"{text_of(lines.rows[large[0]][1][k])!r:.40}"
        raise FileError(f"{lines.at(int(large[0]), k)}: {cell} exceeds {LARGEST:g} in size; use another unit")
    there = values[~np.isnan(values)]
    fractions = any(
        isinstance(cell, float) or (isinstance(cell, str) and ("." in cell or "," in cell)) for cell in cells
    )
    whole = not fractions and bool(np.all((there == np.floor(there)) & (np.abs(there) < 2**53)))
    shown: list[Any] = ["" if value != value else int(value) if whole else value for value in values.tolist()]
    example = next((text_of(cell) for cell in cells if cell is not None), "")
    different, times = np.unique(there, return_counts=True)
    most = int(times.max(initial=0))
    if len(values) >= 20 and 0.95 * len(values) <= most < len(values):
        common = different[int(times.argmax())]
        remarks = (*remarks, f"nearly constant: {most} of {len(values)} are {common:.6g}")
    return Column(lines.header[k], "number", shown, values, blanks, example, unit, remarks, decimal)


def _numbers_or_words(
    lines: Lines, k: int, cells: list[Cell], texts: list[str], example: str, options: Options
) -> Column:
    name, stated = lines.header[k], options.kinds.get(lines.header[k])
    numbers, blanks, dates, others, bounds = list[Written | None](), [], [], [], []
    padded = False
    for row, (cell, text) in enumerate(zip(cells, texts, strict=True)):
        number = None
        if text == "" or text.lower() in BLANK:
            blanks.append(row)
        elif isinstance(cell, date) or _DATE.fullmatch(text):
            dates.append(row)
        elif isinstance(cell, int | float) and not isinstance(cell, bool):
            number = Written("", "", repr(cell), "", "")
            if not isfinite(cell):
                number = None
                others.append(row)
        else:
            number = written(text)
            if number is None or (number.unit and stated is None and not is_unit(number.unit)):
                number = None
                others.append(row)
            elif number.bound:
                bounds.append(row)
            padded = padded or (number is not None and _PADDED.match(number.digits) is not None)
        numbers.append(number)
    there = len(texts) - len(blanks)
    n = sum(number is not None for number in numbers)
    if dates and 2 * len(dates) >= there and stated is None:
        raise FileError(
            f"{lines.at(dates[0], k)}: {texts[dates[0]]!r} is a date, and no model knows what to do with it; leave the "
            "column out: ",
            Remedy("ignore", [name]),
            ", or write a number in its place, such as days",
        )
    if stated is None and there and (n == 0 or padded or 2 * n < there):
        _check_unknown_unit(lines, k, texts, others)
        _check_two_numbers(lines, k, texts, blanks)
        remark = f"{n} cells look like numbers" if n and not padded else ""
        return _words(lines, k, texts, example, remark=remark)
    if wrong := [*others, *dates]:
        first = min(wrong)
        what, blank = f"{lines.at(first, k)}: {texts[first]!r} is not a number", Remedy("replace", {texts[first]: ""})
        if stated:
            raise FileError(f"{what}; correct it, or say ", blank, " for a blank cell")
        words = Remedy("kinds", {name: "words"})
        raise FileError(
            f"{what}, but {n} of {there} cells are; correct it, or say ", blank, " for a blank cell, or ", words
        )
    if bounds:
        raise FileError(
            f"{lines.at(bounds[0], k)}: {texts[bounds[0]]!r} is a bound, not a number; say which number to take: ",
            Remedy("replace", {texts[bounds[0]]: OPEN}),
        )
    if n == 0:
        if stated is None:
            advised = ("all cells are blank; if it is for results, say ", Remedy("reward", name))
            return Column(name, "label", texts, None, [], "", remarks=(advised,))
        raise FileError(f"{lines.at(0, k)}: no cell is a number")
    unit = _unit(lines, k, numbers, stated is not None)
    texts_only = [
        None if number is None or not isinstance(cells[row], str) else number for row, number in enumerate(numbers)
    ]
    decimal = _decimal(lines, k, texts_only, texts, options.decimal_of(name))
    values = np.array(
        [
            np.nan if one is None else one.value(decimal) if isinstance(cells[row], str) else float(cells[row])  # type: ignore[arg-type]
            for row, one in enumerate(numbers)
        ]
    )
    remarks = ("decimal commas",) if decimal == "," and any("," in text for text in texts) else ()
    shown = any(one is not None and not one.is_whole for one in texts_only)
    typed: list[Cell] = [
        cell if one is None or one.is_whole or not isinstance(cell, str) else "."
        for cell, one in zip(cells, numbers, strict=True)
    ]
    column = _numeric(lines, k, typed, values, unit, blanks, decimal if shown else None, remarks)
    return replace(column, example=next(text for text, one in zip(texts, numbers, strict=True) if one is not None))


def _check_unknown_unit(lines: Lines, k: int, texts: list[str], others: list[int]) -> None:
    """Raise if all words are numbers with the same unknown text behind or before them."""
    name = lines.header[k]
    if any(len(texts[row]) > 60 for row in others):
        return
    found = [re.fullmatch(r"([^\w\s.,+-]{0,3})\s*([+-]?[\d.,' ]*\d)\s*(\D{0,12})", texts[row]) for row in others]
    if len(found) > 1 and all(one is not None and (one[1] or one[3]) for one in found):
        around = {(one[1], one[3].strip()) for one in found if one is not None}
        if len(around) == 1 and len({texts[row] for row in others}) > 1:
            unit = next(iter(around))
            raise FileError(
                f"{lines.at(others[0], k)}: {texts[others[0]]!r} may be a number with the unit "
                f"{(unit[1] or unit[0])!r}, or a word; say which: ",
                Remedy("kinds", {name: "number"}),
                " or ",
                Remedy("kinds", {name: "words"}),
            )


def _check_two_numbers(lines: Lines, k: int, texts: list[str], blanks: list[int]) -> None:
    """Raise if every cell holds two numbers, or a time: 71.2 ± 0.5, 10-20, 95:5."""
    blank = set(blanks)
    there = [row for row in range(len(texts)) if row not in blank]
    if len(there) > 1 and all(len(texts[row]) <= 60 and _TWO_NUMBERS.fullmatch(texts[row]) for row in there):
        name = lines.header[k]
        raise FileError(
            f"{lines.at(there[0], k)}: {texts[there[0]]!r} has several numbers; write one in every cell, or say that "
            "they are words, ",
            Remedy("kinds", {name: "words"}),
            ", or leave the column out: ",
            Remedy("ignore", [name]),
        )


def _unit(lines: Lines, k: int, numbers: Sequence[Written | None], stated: bool) -> str:
    """The one unit of a column; raises if there are several, or if only some cells have one."""
    first: dict[str, int] = {}
    for row, number in enumerate(numbers):
        if number is not None:
            first.setdefault(number.unit.replace(" ", ""), row)
    title = unit_in(lines.header[k])
    units = [unit for unit in first if unit]
    if title and units:
        units = list(dict.fromkeys([title.replace(" ", ""), *units]))
    if len(units) > 1:
        row = first[units[1]]
        raise FileError(
            f"{lines.at(row, k)}: the unit {units[1]!r} differs from {units[0]!r} above it; write all numbers of a "
            "column in one unit"
        )
    if units and "" in first and not stated and not (title and "" in first and len(first) == 1):
        row = first[""]
        raise FileError(
            f"{lines.at(row, k)}: this number has no unit, others of the column have {units[0]!r}; add it, or say that "
            "all have the same: ",
            Remedy("kinds", {lines.header[k]: "number"}),
        )
    return units[0] if units else title


def _decimal(lines: Lines, k: int, numbers: list[Written | None], texts: list[str], stated: Decimal | None) -> Decimal:
    """The decimal sign of a column; raises if it is mixed, or in doubt."""
    found = convention(numbers)
    if found.comma is not None and found.point is not None:
        raise FileError(
            f"{lines.at(max(found.comma, found.point), k)}: the column has decimal commas ({texts[found.comma]!r}) and "
            f"decimal points ({texts[found.point]!r}, {lines.place} {lines.rows[found.point][0]}); write them alike"
        )
    if stated is not None:
        if stated not in found.readings:
            row = found.comma if stated == "." else found.point
            assert row is not None
            raise FileError(f"{lines.at(row, k)}: {texts[row]!r} is not a number with decimal={stated!r}")
        return stated
    doubtful = None if found.open is None else numbers[found.open]
    if found.open is not None and doubtful is not None and found.readings == BOTH and "," in doubtful.digits:
        raise in_doubt(lines, k, found.open, texts[found.open])
    return "," if found.readings == {","} else "."


def in_doubt(lines: Lines, k: int, row: int, text: str) -> FileError:
    """The error for a number whose decimal sign cannot be known."""
    found = written(text)
    assert found is not None
    name = lines.header[k]
    return FileError(
        f"{lines.at(row, k)}: {text!r} may be {found.value(',')!r} or {found.value('.')!r}, and no other number of "
        "the column tells; say which sign is the decimal one: ",
        Remedy("decimal", {name: ","}),
        " or ",
        Remedy("decimal", {name: "."}),
    )


def check_points(lines: Lines, columns: Sequence[Column], places: Sequence[int], options: Options) -> None:
    """Raise if a column with points could be one of thousands: others of the file have decimal commas, or it is
    separated by semicolons, as where commas are decimal signs, and no other column has points that are sure."""
    commas = any(column.decimal == "," for column in columns)
    if not commas and not lines.format.endswith("semicolons"):
        return
    doubts, sure = list[FileError](), False
    for column, k in zip(columns, places, strict=True):
        if column.decimal != ".":
            continue
        texts = [text_of(row[k]) for _, row in lines.rows]
        found = convention(
            [
                written(text) if text and isinstance(row[k], str) else None
                for text, (_, row) in zip(texts, lines.rows, strict=True)
            ]
        )
        sure = sure or found.point is not None or options.decimal_of(column.name) == "."
        if found.open is not None and found.point is None and options.decimal_of(column.name) is None:
            doubts.append(in_doubt(lines, k, found.open, texts[found.open]))
    if commas or not sure:
        all_or_error(doubts, lines.path)


def _pair(texts: list[str]) -> dict[str, int] | None:
    there = {text.lower() for text in texts} - {""} - _BLANK_WORDS
    return next((pair for pair in _YES_NO if there and there <= pair.keys()), None)


def yes_or_no(text: str) -> float:
    """1 for yes, 0 for no, NaN for a blank cell."""
    return next((float(pair[text.lower()]) for pair in _YES_NO if text.lower() in pair), np.nan)


def _yes_no(lines: Lines, k: int, texts: list[str], example: str) -> Column:
    pair = _pair(texts)
    blanks = [row for row, text in enumerate(texts) if not text or text.lower() in _BLANK_WORDS]
    if pair is None:
        known = {word for one in _YES_NO for word in one}
        row = next((row for row, text in enumerate(texts) if row not in blanks and text.lower() not in known), 0)
        raise FileError(f"{lines.at(row, k)}: {texts[row]!r} is neither yes nor no")
    blank = set(blanks)
    values = np.array([np.nan if row in blank else float(pair[text.lower()]) for row, text in enumerate(texts)])
    cells = ["" if row in blank else text for row, text in enumerate(texts)]
    return Column(lines.header[k], "yes/no", cells, values, blanks, example)


def _check_errors(lines: Lines, k: int, texts: Sequence[str]) -> None:
    """Raise if a cell is an error of a spreadsheet."""
    for row, text in enumerate(texts):
        if text.startswith("#") and _ERROR.fullmatch(text):
            raise FileError(
                f"{lines.at(row, k)}: {text!r} is an error of the spreadsheet; correct it, or say what to read in its "
                "place: ",
                Remedy("replace", {text: OPEN}),
            )


def _words(lines: Lines, k: int, texts: list[str], example: str, stated: bool = False, remark: str = "") -> Column:
    from alexp.table.chemistry import look_like_smiles

    _check_errors(lines, k, texts)
    blanks = [row for row, text in enumerate(texts) if not text or text.lower() in _BLANK_WORDS]
    blank = set(blanks)
    cells = ["" if row in blank else text for row, text in enumerate(texts)]
    remarks: tuple[Remark, ...] = (remark,) if remark else ()
    column = Column(lines.header[k], "words", cells, None, blanks, example, remarks=remarks)
    different = column.distinct
    if len(different) == len(cells) > 2 and not stated:
        return column.as_label("every cell is different")
    if len(different) > MOST_WORDS:
        if stated:
            raise FileError(f"{lines.path}, column {lines.header[k]!r}: {len(different)} different words are too many")
        return column.as_label(f"{len(different)} different words, more than {MOST_WORDS}")
    spellings: dict[str, str] = {}
    for word in different:
        other = spellings.setdefault(word.casefold(), word)
        if other != word:
            column = replace(column, remarks=(*column.remarks, f"{other!r} and {word!r} count as two words"))
    if not stated and look_like_smiles(different):
        advised = (Remedy("kinds", {column.name: "SMILES"}), " takes them for molecules")
        column = replace(column, remarks=(*column.remarks, advised))
    return column


def _smiles(lines: Lines, k: int, texts: list[str], example: str) -> Column:
    from alexp.table.chemistry import check_smiles

    blanks = [row for row, text in enumerate(texts) if not text or text.lower() in _BLANK_WORDS]
    blank = set(blanks)
    check_smiles(lines, k, texts, blank)
    cells = ["" if row in blank else text for row, text in enumerate(texts)]
    return Column(lines.header[k], "SMILES", cells, None, blanks, example)
