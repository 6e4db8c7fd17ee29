"""Files of results: plates to fill in, rewards that are read back, exported trials."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isclose, isnan
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from alexp.algorithms.base import Algorithm, CheckedFail
from alexp.algorithms.naming import find_trial
from alexp.common.cells import to_csv
from alexp.common.files import read_bytes, write_bytes, write_text
from alexp.common.validation import did_you_mean
from alexp.common.warning import caution
from alexp.problem.domains import ContextualDomain, FiniteSet
from alexp.problem.objectives import Reward, Value
from alexp.study.candidates import candidate_columns, column_names, labeller, trial_columns
from alexp.study.events import FAILED, EventDict, entry_text
from alexp.study.sheets import SUFFIX, check_wells, sheet, well, write_sheet
from alexp.study.study import TrialResult
from alexp.table.columns import REWARD, Options, decimal_sign, number_column
from alexp.table.files import Cell, FileError, Lines, lines_of, text_of
from alexp.table.numbers import Decimal, is_unit, written
from alexp.table.remedies import OPEN, Remedy, Text

if TYPE_CHECKING:
    import pandas as pd

    from alexp.study.replay import Replica
    from alexp.study.sources import NewResults
    from alexp.study.study import Checked, Study

_MOST_MISTAKES = 20
_PEEKED = 4096  # bytes in which the first line of a text is looked for
_USUAL = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "iso8859-1", "ascii")  # known by looking
_PARTIAL = Remedy("partial", True)
_AMEND: Text = ("to take the one of the file: ", Remedy("amend", True))


# -- results ---------------------------------------------------------------------------------------------------


Mistake = tuple[int, Text]  # a line of a file, and what is wrong with it


class Terms(NamedTuple):
    """What a user says about a file of results beyond its cells.

    Attributes
    ----------
    reward : the column of the results; by default that of the study, or one named reward.
    replace : what to read in place of a result: a number, "failed", or "" for a blank cell.
    partial : leave out lines without a result.
    decimal : the decimal sign, where numbers do not tell.
    amend : where study and file differ, take the result of the file.
    """

    reward: str | None = None
    replace: Mapping[str, str | float] = MappingProxyType({})
    partial: bool = False
    decimal: Decimal | None = None
    amend: bool = False


DEFAULT_TERMS = Terms()


def reward_columns(algorithm: Algorithm) -> tuple[str, ...]:
    """What rewards are called: `reward`, or the measured objectives."""
    return algorithm.log.objectives or (REWARD,)


def result_columns(study: Study) -> tuple[str, ...]:
    """Names of the columns of results in files of a study."""
    return study.algorithm.log.objectives or (study.result_column,)


class _Results:
    """The columns of results of a file, `places` by the reward or objective that they hold, and how to read them."""

    def __init__(self, lines: Lines, study: Study, terms: Terms, may_fail: bool = True) -> None:
        self.terms, self.titles, self.may_fail = terms, lines.header, may_fail
        self.places = _places(lines, study, terms.reward)
        self._replaced = Options(replace=terms.replace).replaced
        self._signs = {name: self._sign(lines, k) for name, k in self.places.items()}

    def is_blank(self, row: Sequence[Cell]) -> bool:
        """Whether a line has no result."""
        return all(self._replaced(row[k]) is None for k in self.places.values())

    def of(self, row: Sequence[Cell]) -> list[Reward | str]:
        """The measurements of a line, or the word "failed"; raises for what is neither."""
        cells = {name: self._replaced(row[k]) for name, k in self.places.items()}
        words = [text_of(cell).strip().lower() for cell in cells.values()]
        if FAILED in words and self.may_fail:
            if set(words) - {FAILED, ""}:
                raise ValueError(f"the line has numbers and the word {FAILED!r}; which is right?")
            return [FAILED]
        numbers = {name: self._numbers(cell, name) for name, cell in cells.items()}
        if REWARD in numbers:
            return [*numbers[REWARD]]
        if len({len(own) for own in numbers.values()}) > 1:
            sizes = ", ".join(f"{len(own)} of {name!r}" for name, own in numbers.items())
            raise ValueError(f"every objective must have as many measurements, and the line has {sizes}")
        return [dict(zip(numbers, row, strict=True)) for row in zip(*numbers.values(), strict=True)]

    def _numbers(self, cell: Cell, name: str) -> list[float]:
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            return [float(cell)]
        parts = [self._replaced(part.strip() or None) for part in text_of(cell).split(";")]
        title, sign = self.titles[self.places[name]], self._signs[name]
        return [_reward(text_of(part).strip(), sign, title, self.may_fail) for part in parts]

    def _sign(self, lines: Lines, k: int) -> Decimal:
        """The decimal sign of a column of results, each of which may hold several measurements."""
        texts = [(line, cell) for line, row in lines.rows if isinstance(cell := self._replaced(row[k]), str)]
        parts: list[tuple[int, list[Cell]]] = [(line, [part]) for line, cell in texts for part in cell.split(";")]
        return decimal_sign(replace(lines, header=[lines.header[k]], rows=parts), 0, self.terms.decimal)


def _places(lines: Lines, study: Study, stated: str | None) -> dict[str, int]:
    """The columns of results, by the reward or objective that they hold.

    That of a study may be named reward as well, as in files that the study did not write.
    """
    if objectives := study.algorithm.log.objectives:
        if stated is not None:
            listed = ", ".join(map(repr, objectives))
            raise FileError(f"the study has the objectives {listed}; leave out ", Remedy("reward", stated))
        return {name: lines.column(name) for name in objectives}
    wanted = study.result_column if stated is None else stated
    places = [k for name in (wanted, REWARD) if (k := lines.maybe(name)) is not None]
    filled = [k for k in sorted(set(places)) if any(row[k] is not None for _, row in lines.rows)]
    if len(filled) > 1:
        both = " and ".join(repr(lines.header[k]) for k in filled)
        raise FileError(f"{lines.path} has columns {both}, both with results; rename or remove one of them")
    if stated is not None or not places:
        if lines.maybe(wanted) is None:
            raise FileError(
                f"{lines.path} needs a column {wanted!r}{did_you_mean(wanted, lines.header) or '.'} It has "
                f"{', '.join(map(repr, lines.header))}; say which one holds the results: ",
                Remedy("reward", OPEN),
            )
        return {REWARD: lines.column(wanted)}
    return {REWARD: [*filled, *places][0]}


def _lines_in(
    data: bytes | str,
    path: Path | str,
    study: Study,
    columns: Sequence[str] = (),
    sheet: str | None = None,
    header: int | None = None,
) -> Lines:
    """The cells of a file that comes back to a study.

    A text that is no Unicode is in the encoding of the study's table. `columns` are the names where no line has any.
    """
    own, encoding, start = codecs.lookup(study.dialect.encoding).name, None, data[:_PEEKED]
    is_text = isinstance(data, str) or data[:4] not in (b"PAR1", b"PK\x03\x04")
    if isinstance(data, bytes) and is_text and b"\0" not in data[:_PEEKED] and own not in _USUAL:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            encoding = own
    if columns and is_text:
        text = start if isinstance(start, str) else start.replace(b"\0", b"").decode("utf-8", "replace")
        first = next((line for line in text.splitlines() if line.strip()), "")
        names = {part.strip(" \"'\ufeff\ufffd").lower() for part in re.split("[\t;,]", first)}
        columns = () if names & {"trial", REWARD} else columns
    return lines_of(data, path, sheet, header, (), encoding, columns)


def read_observations(
    path: Path, study: Study, terms: Terms = DEFAULT_TERMS, sheet: str | None = None, header: int | None = None
) -> pd.DataFrame:
    """Measurements, one per line; the index of the frame holds the line numbers.

    Numbers are read where the candidates have numbers, and text where they have text. The rewards are in the column of
    results of the study, or in those of the measured objectives; several in a cell are several measurements. Lines of
    an exported file that have no reward, because their trial is pending or was abandoned, are left out; with
    `terms.partial` so are all lines without one.
    """
    import pandas as pd

    domain = study.algorithm.domain
    lines = _lines_in(read_bytes(path), path, study, sheet=sheet, header=header)
    results = _Results(lines, study, terms, may_fail=False)
    lines = _without_unrewarded(lines, results)
    if terms.partial:
        lines = replace(lines, rows=[one for one in lines.rows if not results.is_blank(one[1])])
    if not lines.rows:
        raise FileError(f"{path} holds no rewards")
    mistakes, rows, values = list[Mistake](), list[int](), list[Reward]()
    for row, (line, cells) in enumerate(lines.rows):
        try:
            for one in results.of(cells):
                assert not isinstance(one, str)
                rows.append(row)
                values.append(one)
        except ValueError as error:
            mistakes.append((line, _said(error)))
    _raise_if_any(path, mistakes)
    own = {} if isinstance(domain, ContextualDomain) else candidate_columns(domain, 0)
    columns: dict[str, list[Any]] = {
        name: [value[name] if isinstance(value, Mapping) else value for value in values] for name in results.places
    }
    for k, name in enumerate(lines.header):
        if k in results.places.values():
            continue
        known = own.get(name.removeprefix("candidate."))
        if name == "index" or isinstance(known, int | float | np.number):
            read = _numbers(lines, k, terms.decimal)
        else:
            read = [text_of(cells[k]) for _, cells in lines.rows]
        columns[name] = [read[row] for row in rows]
    numbers = [lines.rows[row][0] for row in rows]
    return pd.DataFrame(columns, index=pd.Index(numbers, name=f"{path}, line"))


def check_unchanged(study: Study, path: Path, frame: pd.DataFrame, new: NewResults) -> None:
    """Raise if results of a file are others than when it was read before."""
    log, name, wrong = study.algorithm.log, labeller(study.algorithm), list[Mistake]()
    for row, trial in new.changed.items():
        before, now = _joined(log.measurements(trial)), _joined([_in_frame(frame, row, log.objectives)])
        had = (
            f"{name(trial)} had the result {before} (trial {trial}) when the file was read before, and now has {now}; "
        )
        wrong.append((int(frame.index[row]), (had, *_AMEND, "; if it was measured again, keep both lines")))
    _raise_if_any(path, wrong)


def _in_frame(frame: pd.DataFrame, row: int, objectives: Sequence[str]) -> Value:
    values = {name: float(frame[name].iloc[row]) for name in objectives or (REWARD,)}
    return values if objectives else values[REWARD]


def _numbers(lines: Lines, k: int, decimal: Decimal | None) -> list[Any]:
    """The numbers of a column, whole ones as int; blank cells are refused."""
    values = number_column(lines, k, decimal)
    for row, value in enumerate(values):
        if value is None:
            raise FileError(f"{lines.at(row, k)}: the cell is blank; fill it in, or remove the line")
    return [
        int(value) if value == int(value) and abs(value) < 2**53 else value for value in values if value is not None
    ]


def _without_unrewarded(lines: Lines, results: _Results) -> Lines:
    """Exported lines without those that say that their trial has no reward."""
    titles = [title.lower() for title in lines.header]
    if "state" not in titles:
        return lines
    state, kept, left = titles.index("state"), [], Counter[str]()
    for number, row in lines.rows:
        if not results.is_blank(row) or row[state] in ("told", "observed", None):
            kept.append((number, row))
        else:
            left[text_of(row[state])] += 1
    if kept and left:
        what = ", ".join(f"{number} {word}" for word, number in left.items())
        caution(f"{lines.path}: lines of trials without a reward are left out ({what})", UserWarning)
    return replace(lines, rows=kept)


def read_results(
    path: Path | str, study: Study, terms: Terms = DEFAULT_TERMS, data: bytes | str | None = None
) -> list[Checked]:
    """The results of a file, checked but not yet told; `data` is its content, if it is known already.

    A line names its experiment in the column `trial`, or in the id column of the candidates (their first). In the
    column of results of the study, or in those of the measured objectives, it has a number, several measurements
    ("71.2; 72.9"), or the word "failed". Several lines of one trial are as many measurements. A column `note` is kept,
    for failures as their reason. Columns that describe the candidate, as in the file that `ask` wrote, are compared
    with the trial. With `terms.partial`, lines without a reward are skipped. A reward that differs from the stored one
    is an error unless `terms.amend`.

    Without a line of column names, as copied from a spreadsheet, every line is a name and its rewards.
    """
    algorithm = (replica := study.refresh()).algorithm
    own = column_names(algorithm)
    columns = () if algorithm.is_contextual else (own[0], *result_columns(study))
    lines = _lines_in(read_bytes(Path(path)) if data is None else data, path, study, columns)
    ids, names = lines.maybe("trial"), lines.maybe(own[0])
    notes = None if "note" in own else lines.maybe("note")
    if ids is None and (names is None or algorithm.is_contextual):
        lines.column("trial")  # raises
    _check_header(lines, ["trial", *(() if terms.reward else algorithm.log.objectives), *own])
    results = _Results(lines, study, terms)
    described = {title: k for k, title in enumerate(lines.header) if k not in results.places.values()}
    if all(results.is_blank(row) for _, row in lines.rows):
        _check_filled(lines, described, results, algorithm.domain)
    found: dict[int, list[tuple[int, Reward | str]]] = {}
    written_notes: dict[int, list[str]] = {}
    mistakes = list[Mistake]()
    for line, cells in lines.rows:
        if terms.partial and results.is_blank(cells):
            continue
        row = [text_of(cell) for cell in cells]
        try:
            trial = None if ids is None else _id(row[ids])
            name = row[names] if ids is None and names is not None else None
            number = find_trial(algorithm.log, algorithm.domain, trial, name)
        except (ValueError, TypeError) as error:
            mistakes.append((line, _said(error)))
            continue
        mistakes += [(line, (text,)) for text in _differing(described, row, trial_columns(algorithm, number))]
        try:
            found.setdefault(number, []).extend((line, value) for value in results.of(cells))
        except ValueError as error:
            mistakes.append((line, _said(error)))
        if notes is not None and row[notes].strip():
            written_notes.setdefault(number, []).append(row[notes].strip())
    checked: list[Checked] = []
    for number, values in found.items():
        try:
            note = "; ".join(dict.fromkeys(written_notes.get(number, [])))
            checked += [_checked(replica, number, values, terms.amend, note)] if values else []
        except (ValueError, TypeError) as error:
            mistakes.append((values[0][0], _said(error)))
    _raise_if_any(path, mistakes)
    if not checked:
        raise FileError(f"{path} holds no rewards")
    return checked


def as_result(one: Checked) -> TrialResult:
    """What was checked, as a result to tell."""
    if isinstance(one, CheckedFail):
        return TrialResult(one.trial, FAILED, note=one.reason)
    measured = [one.reward, *one.more]
    return TrialResult(one.trial, measured if one.more else measured[0], note=one.note)


def _checked(
    replica: Replica, trial: int, values: Sequence[tuple[int, Reward | str]], amend: bool, note: str
) -> Checked:
    """What telling the values of one trial, by line, would do."""
    log, rewards = replica.algorithm.log, [value for _, value in values if not isinstance(value, str)]
    told: Checked
    if not rewards:
        told = replica.algorithm.check_fail(trial, note, "amend")
    elif len(rewards) < len(values):
        lines = ", ".join(str(line) for line in dict.fromkeys(line for line, _ in values))
        raise ValueError(f"trial {trial} has rewards and the word {FAILED!r} on lines {lines}; which is right?")
    else:
        told = replica.check_tell(
            trial,
            rewards if len(rewards) > 1 else rewards[0],
            "amend",
            note=note if amend or isnan(log.reward[trial]) else "",
        )
    if told.action == "amend" and not amend:
        known = log.measurements(trial)
        has = f"the reward {_joined(known)}" if known else "failed" if trial in log.failed else "no reward any more"
        says = FAILED if isinstance(told, CheckedFail) else _joined((told.reward, *told.more))
        raise FileError(f"trial {trial} has {has}, the file says {says}; ", *_AMEND)
    return told


def _joined(values: Sequence[Value]) -> str:
    return "; ".join(map(str, values))


def _check_header(lines: Lines, known: Sequence[str]) -> None:
    """Raise for columns that look misspelt; other unknown columns are ignored."""
    absent = [name for name in known if name not in lines.header]
    for name in lines.header:
        if (
            name.lower() not in ("trial", "reward")
            and name not in known
            and (meant := did_you_mean(name, absent, 0.75))
        ):
            raise FileError(f"{lines.path}: column {name!r} is not known{meant} Nothing was written")


def _said(error: Exception) -> Text:
    """The message of an error, with its remedies."""
    return error.args if isinstance(error, FileError) else (str(error),)


def _raise_if_any(path: Path | str, wrong: list[Mistake]) -> None:
    """Raise for all that is wrong in a file, by line."""
    if wrong:
        wrong = sorted(wrong, key=itemgetter(0))
        parts = [part for line, text in wrong[:_MOST_MISTAKES] for part in (f"{path}, line {line}: ", *text, "\n")]
        more = f"and {len(wrong) - _MOST_MISTAKES} more\n" if len(wrong) > _MOST_MISTAKES else ""
        raise FileError(*parts, f"{more}nothing was written")


def _id(cell: str) -> int:
    try:
        return int(cell.removeprefix("#"))
    except ValueError:
        raise ValueError(f"trial must be a whole number, got {cell!r}") from None


def _reward(cell: str, decimal: Decimal, name: str, may_fail: bool) -> float:
    if cell == "":
        raise FileError(f"{name} is empty; to take only the lines that have one: ", _PARTIAL)
    number = written(cell)
    if number is not None and number.bound:
        raise FileError(
            f"{name} is {cell!r}, a bound and not a measurement: models would take any number in its place for one "
            "that was measured. Measure it, or leave the cell blank: ",
            _PARTIAL,
        )
    if number is None or (number.unit and not is_unit(number.unit)):
        start = re.match(r"\s*([+-]?\d+(?:[.,]\d+)?)\s*(?:±|\+/?-)", cell)
        other = start[1] if start is not None else FAILED if may_fail else ""
        wanted = f'a number, or the word "{FAILED}"' if may_fail else "a number"
        raise FileError(
            f"{name} must be {wanted}, got {cell!r}; correct it, or say what to read in its place, such as "
            f"{repr(other) if other else 'nothing'}: ",
            Remedy("replace", {cell: other}),
            *(() if other else (", ", _PARTIAL)),
        )
    return number.value(decimal)


def _differing(described: Mapping[str, int], row: Sequence[str], expected: Mapping[str, object]) -> Iterator[str]:
    """What to say of cells that describe the candidate and are not those of the trial."""
    for name, k in described.items():
        if name in expected and not _agrees(row[k], expected[name]):
            yield f"this trial has {name} = {_cell(expected[name])}, but the line says {row[k]!r}"


def _check_filled(lines: Lines, described: Mapping[str, int], results: _Results, domain: object) -> None:
    """Raise if one of the candidates' own columns, in which most are blank, has been filled in instead of a result."""
    sparse = _sparse_columns(domain)
    for name, k in described.items():
        filled = [row for row, (_, cells) in enumerate(lines.rows) if cells[k] is not None]
        if filled and name in sparse:
            empty = " and ".join(repr(results.titles[place]) for place in results.places.values())
            raise FileError(
                f"{lines.at(filled[0], k)}: the results seem to be in {name!r}, and {empty} is empty; say which column "
                "holds them: ",
                Remedy("reward", name),
                ". Nothing was written",
            )


def _sparse_columns(domain: object) -> list[str]:
    """Columns of the candidates' table in which most cells are blank."""
    table: Any = domain.candidates if isinstance(domain, FiniteSet) else None
    names = table.columns if hasattr(table, "iloc") else ()
    return [name for name in names if 2 * sum(_cell(value) == "" for value in table[name]) > len(table)]


def _agrees(cell: str, value: object) -> bool:
    """Whether a cell equals a value, up to the rounding of a spreadsheet."""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        number = written(cell)
        readings = [] if number is None or number.bound else [number.value(sign) for sign in number.readings]
        return any(isclose(reading, float(value), rel_tol=1e-6, abs_tol=1e-9) for reading in readings)
    return cell.strip() == _cell(value).strip()


# -- writing ---------------------------------------------------------------------------------------------------


def _cell(value: object) -> str:
    return repr(float(value)) if isinstance(value, float | np.floating) else str(value)


class Numbered(Protocol):
    """A trial to measure, by its number."""

    @property
    def id(self) -> int: ...


def check_map(study: Study, wells: int | None, n: int) -> None:
    """Raise unless n trials of the study can have wells of a plate of this size; None for no plate map."""
    check_wells(wells, n)
    if wells is not None and "well" in column_names(study.algorithm):
        raise ValueError("a plate map adds a column 'well', and the candidates have one; leave the plate map out")


def plate(
    study: Study, trials: Sequence[Numbered], wells: int | None = None, first: int | None = None
) -> Iterator[list[object]]:
    """Lines of a file to fill in: the trial, its candidate, and an empty column for the reward.

    Columns that are blank for all these trials and for most candidates are left out: they wait for results, and one
    column is to be filled in. With a number of `wells`, every trial has one of a plate of that size; A1 is that of
    trial `first`, by default of the first one listed.
    """
    algorithm, start = study.algorithm, first if first is not None else trials[0].id if trials else 0
    check_map(study, wells, 1 + max((trial.id - start for trial in trials), default=0))
    described = [trial_columns(algorithm, trial.id) for trial in trials]
    unused = [name for name in _sparse_columns(algorithm.domain) if all(_cell(own[name]) == "" for own in described)]
    names = [name for name in column_names(algorithm) if name not in unused]
    yield ["trial", *([] if wells is None else ["well"]), *names, *result_columns(study)]
    blank = [""] * len(result_columns(study))
    for trial, own in zip(trials, described, strict=True):
        place = [] if wells is None else [well(trial.id - start, wells)]
        yield [trial.id, *place, *(own[name] for name in names), *blank]


def plate_text(rows: Iterable[Sequence[object]], study: Study) -> str:
    """The lines of a plate as text, with the separator and the decimal sign of the table that the study began with."""
    return to_csv(rows, study.dialect.separator, study.dialect.decimal)


def plate_bytes(rows: Iterable[Sequence[object]], study: Study) -> tuple[bytes, str]:
    """The same in the encoding of that table, with its name; UTF-8 with a mark where names need more."""
    text, encoding = plate_text(rows, study), study.dialect.encoding
    try:
        return text.encode(encoding), encoding
    except UnicodeEncodeError:  # candidates that were added may be written otherwise
        return text.encode("utf-8-sig"), "utf-8-sig"


def write_plate(path: Path, study: Study, trials: Sequence[Numbered], wells: int | None = None) -> int:
    """Write a file to fill in, .xlsx or text like the table that the study began with; returns the number of trials."""
    rows = list(plate(study, trials, wells))
    if path.suffix.lower() == SUFFIX:
        return write_sheet(path, rows, result_columns(study))
    write_bytes(path, plate_bytes(rows, study)[0])
    return len(rows) - 1


def plate_sheet(study: Study, trials: Sequence[Numbered], wells: int | None = None, first: int | None = None) -> bytes:
    """The file to fill in as the content of a workbook."""
    return sheet(f"plate{SUFFIX}", plate(study, trials, wells, first), result_columns(study))


def export(study: Study) -> Iterator[list[str]]:
    """Lines of a file with all trials: candidate, model, propensity, reward, state, note, times, workers, corrections.

    `told_at` and `told_by` are of the latest reward or failure; times are UTC. `entries` has all of them, with workers
    and times, for trials that were corrected; `replicate_of` is there if there are replicates.
    """
    import pandas as pd

    view, algorithm = study.view(history=False, certificates=False, curve=False), study.algorithm
    events = study.events(limit=view.n_events) if view.n_events else []  # of the moment that the view shows
    asked = {event["trial"]: event for event in events if event["kind"] in ("ask", "observe")}
    told: dict[int, list[EventDict]] = {}
    for event in events:
        if event["kind"] in ("tell", "observe", "amend", "fail", "retract"):
            told.setdefault(event["trial"], []).append(event)
    frame = view.trials.dataframe().drop(columns="label").rename(columns={"id": "trial", "index": "candidate"})
    frame["model"] = [None if j is None else algorithm.models.names[j] for j in view.trials.model]
    frame["asked_at"] = [_utc(asked[trial]["at"]) for trial in frame["trial"]]
    settled = frame[reward_columns(algorithm)[0]].notna() | (frame["state"] == "failed")
    last = [told[trial][-1] if has else None for trial, has in zip(frame["trial"], settled, strict=True)]
    frame["told_at"] = [None if one is None else _utc(one["at"]) for one in last]
    frame["asked_by"] = [asked[trial]["worker"] for trial in frame["trial"]]
    frame["told_by"] = [None if one is None else one["worker"] for one in last]
    frame["entries"] = [_history(told.get(trial, [])) for trial in frame["trial"]]
    if replicates := algorithm.log.replicates:
        heads = {one: head for head, own in replicates.items() for one in own}
        frame["replicate_of"] = pd.array([heads.get(trial) for trial in frame["trial"]], dtype="Int64")
    own = [f"candidate.{name}" if name in frame.columns else name for name in column_names(algorithm)]
    yield [*frame.columns[:2], *own, *frame.columns[2:]]
    for row in zip(*(_or_none(frame[name]) for name in frame.columns), strict=True):
        described = map(_cell, trial_columns(algorithm, row[0]).values())
        yield [str(row[0]), str(row[1]), *described, *("" if value is None else _cell(value) for value in row[2:])]


def pareto_lines(study: Study) -> Iterator[list[str]]:
    """Lines of a file with the best compromises: trial, candidate, and a column per objective."""
    front, algorithm = study.pareto(), study.algorithm
    values = [name for name in front.columns if name not in ("id", "x", "index")]
    own = [name for name in column_names(algorithm) if name not in values]
    yield ["trial", *own, *values]
    for row in front.to_dict("records"):
        described = trial_columns(algorithm, row["id"])
        yield [str(row["id"]), *(_cell(described[name]) for name in own), *(_cell(row[name]) for name in values)]


def _history(entries: Sequence[EventDict]) -> str:
    """All entries of a trial that was corrected, in one line; empty for other trials."""
    if len(entries) < 2:
        return ""
    return "; ".join(f"{entry_text(one)} by {one['worker']} at {_utc(one['at'])}" for one in entries)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _or_none(column: pd.Series[Any]) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.to_list(), column.isna(), strict=True)]


def write_csv(path: Path, lines: Iterable[Sequence[object]]) -> int:
    """Write lines to a file atomically; returns the number of lines below the header."""
    rows = list(lines)
    write_text(path, to_csv(rows))
    return len(rows) - 1
