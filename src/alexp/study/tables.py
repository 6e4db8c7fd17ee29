"""Reading and writing CSV, XLSX and NPY files; messages name file and line of every error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.algorithms.base import CheckedTell
from alexp.algorithms.log import Trial
from alexp.common.arrays import FloatArray
from alexp.common.cells import from_csv, to_csv
from alexp.common.files import read_array, read_text, write_text
from alexp.common.validation import did_you_mean, matrix
from alexp.study.candidates import column_names, trial_columns
from alexp.study.sheets import SUFFIX, check_wells, read_sheet, well, write_sheet

if TYPE_CHECKING:
    import pandas as pd

    from alexp.study.study import Study

_MOST_MISTAKES = 20
_LARGEST = 2**63
_AMEND = "--amend takes the one of the file"


class FileError(ValueError):
    """A file has errors; the message names the file and the lines."""


@dataclass(frozen=True)
class Lines:
    """The cells of a CSV file: its path or name, the header, and (line number, cells) of every row."""

    path: Path | str
    header: list[str]
    rows: list[tuple[int, list[str]]]

    def column(self, name: str) -> int:
        """Position of a column, by its name in any case."""
        names = [title.lower() for title in self.header]
        if name.lower() not in names:
            raise FileError(f"{self.path} needs a column {name!r}, it has {', '.join(map(repr, self.header))}")
        return names.index(name.lower())


def read_lines(path: Path) -> Lines:
    """Read a CSV file (UTF-8, separated by comma, semicolon or tab) or the first sheet of an .xlsx file.

    Blank lines do not count.
    """
    if path.suffix.lower() == SUFFIX:
        try:
            return _lines(read_sheet(path), path)
        except ValueError as error:
            raise FileError(str(error)) from None
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text: {error}") from None
    return lines_of(text, path)


def lines_of(text: str, path: Path | str) -> Lines:
    """Read CSV text; messages name it `path`."""
    try:
        filled = from_csv(text)
    except ValueError as error:
        raise FileError(f"{path}, {error}") from None
    return _lines(filled, path)


def _lines(filled: list[tuple[int, list[str]]], path: Path | str) -> Lines:
    if len(filled) < 2:
        raise FileError(f"{path} must have a header and at least one line")
    header = filled[0][1]
    if len(set(header)) != len(header) or "" in header:
        raise FileError(f"{path}, line {filled[0][0]}: columns must have distinct names, got {str(header)[:200]}")
    for line, row in filled[1:]:
        if len(row) != len(header):
            raise FileError(f"{path}, line {line}: {len(row)} cells, but the header has {len(header)}")
    return Lines(path, header, filled[1:])


# -- problems --------------------------------------------------------------------------------------------------


def read_candidates(path: Path) -> pd.DataFrame:
    """Candidates, one per line; columns of numbers become numbers, all others stay text."""
    return candidates_of(read_lines(path))


def candidates_of(lines: Lines) -> pd.DataFrame:
    """Candidates from the lines of a file."""
    import pandas as pd

    columns = {name: _numbers_or_text([row[k] for _, row in lines.rows]) for k, name in enumerate(lines.header)}
    return pd.DataFrame(columns)


def read_observations(path: Path) -> pd.DataFrame:
    """Measurements, one per line; the index of the frame holds the line numbers."""
    import pandas as pd

    frame, lines = read_candidates(path), read_lines(path)
    frame.index = pd.Index([line for line, _ in lines.rows], name=f"{path}, line")
    return frame


def check_reserved(candidates: pd.DataFrame, path: Path | str) -> None:
    """Raise if a column of the candidates is named like one of a file of results."""
    for name in candidates.columns:
        if str(name).lower() in ("trial", "reward"):
            raise FileError(f"{path}: candidates must not have a column {name!r}; files of results use it")


def _numbers_or_text(cells: list[str]) -> Sequence[int | float | str]:
    for kind, limit in ((int, _LARGEST), (float, inf)):
        try:
            values = [kind(cell) for cell in cells]
            lost = not all(isfinite(value) for value in values)
        except (ValueError, OverflowError):  # not a number, or a whole one beyond all floats
            continue
        # "007" is a label: text becomes a number only if no character is lost
        if not lost and not any(_is_padded(cell) for cell in cells):
            return values if all(abs(value) < limit for value in values) else cells
    return cells


def _is_padded(cell: str) -> bool:
    digits = cell.lstrip("+-")
    return cell.startswith("+") or "_" in cell or (len(digits) > 1 and digits[0] == "0" and digits[1].isdigit())


def read_features(path: Path, candidates: pd.DataFrame) -> FloatArray:
    """Features of all candidates, shape (N, d), from an .npy file or from a CSV file.

    If the first column of a CSV file has the name of the candidates' first column, rows are matched by it, in any
    order; otherwise line i belongs to candidate i.
    """
    if path.suffix.lower() in (".npy", ".npz"):
        try:
            return matrix(str(path), read_array(path), len(candidates))
        except (ValueError, TypeError) as error:
            raise FileError(f"{path}: {error}") from None
    return features_of(read_lines(path), candidates)


def features_of(lines: Lines, candidates: pd.DataFrame) -> FloatArray:
    """Features from the lines of a file, shape (N, d)."""
    n, key = len(candidates), str(candidates.columns[0])
    keyed = lines.header[0] == key
    if len(lines.rows) != n:
        raise FileError(f"{lines.path} has {len(lines.rows)} lines, but there are {n} candidates")
    values = np.array([[_number(lines, line, k, row) for k in range(keyed, len(row))] for line, row in lines.rows])
    return values[_match(lines, [str(value) for value in candidates[key]])] if keyed else values


def _number(lines: Lines, line: int, column: int, row: list[str]) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        title = lines.header[column]
        raise FileError(f"{lines.path}, line {line}: {title!r} must be a finite number, got {row[column]!r}")
    return value


def _match(lines: Lines, keys: list[str]) -> list[int]:
    place: dict[str, int] = {}
    for k, (line, row) in enumerate(lines.rows):
        if place.setdefault(row[0], k) != k:
            raise FileError(f"{lines.path}, line {line}: {row[0]!r} comes twice")
    missing = [key for key in keys if key not in place]
    if missing:
        raise FileError(f"{lines.path} has no line for candidate {missing[0]!r} ({len(missing)} missing)")
    return [place[key] for key in keys]


# -- results ---------------------------------------------------------------------------------------------------


def read_results(path: Path, study: Study, partial: bool = False, amend: bool = False) -> list[CheckedTell]:
    """The rewards of a file with columns `trial` and `reward`, checked but not yet told.

    Columns that describe the candidate, as in the file that `ask` wrote, are compared with the trial. With `partial`,
    lines without a reward are skipped. A reward that differs from the stored one is an error unless `amend`.
    """
    lines = read_lines(path)
    ids, rewards = lines.column("trial"), lines.column("reward")
    algorithm = (replica := study.refresh()).algorithm
    _check_header(lines, ["trial", "reward", *column_names(algorithm)])
    results: list[CheckedTell] = []
    mistakes: list[str] = []
    seen: dict[int, int] = {}
    for line, row in lines.rows:
        if row[rewards] == "" and partial:
            continue
        try:
            told = replica.check_tell(_id(row[ids]), _reward(row[rewards]), "amend")
            if told.trial in seen:
                raise ValueError(f"trial {told.trial} was on line {seen[told.trial]} already")
            _check_candidate(lines.header, row, trial_columns(algorithm, told.trial))
            if told.action == "amend" and not amend:
                stored = algorithm.log.reward[told.trial]
                raise ValueError(f"trial {told.trial} has the reward {stored}, the file says {told.reward}; {_AMEND}")
        except (ValueError, TypeError) as error:
            mistakes.append(f"{path}, line {line}: {error}")
            continue
        seen[told.trial] = line
        results.append(told)
    _raise_if_any(mistakes)
    if not results:
        raise FileError(f"{path} holds no rewards")
    return results


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


def _raise_if_any(mistakes: list[str]) -> None:
    if mistakes:
        more = [f"and {len(mistakes) - _MOST_MISTAKES} more"] if len(mistakes) > _MOST_MISTAKES else []
        raise FileError("\n".join([*mistakes[:_MOST_MISTAKES], *more, "nothing was written"]))


def _id(cell: str) -> int:
    try:
        return int(cell.removeprefix("#"))
    except ValueError:
        raise ValueError(f"trial must be a whole number, got {cell!r}") from None


def _reward(cell: str) -> float:
    if cell == "":
        raise ValueError("reward is empty; to tell only the lines that have one, use --partial")
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"reward must be a number, got {cell!r}") from None


def _check_candidate(header: Sequence[str], row: Sequence[str], expected: Mapping[str, object]) -> None:
    for name, cell in zip(header, row, strict=True):
        if name in expected and not _agrees(cell, expected[name]):
            raise ValueError(f"this trial has {name} = {_cell(expected[name])}, but the line says {cell!r}")


def _agrees(cell: str, value: object) -> bool:
    """Whether a cell equals a value, up to the rounding of a spreadsheet."""
    if isinstance(value, float | np.floating):
        try:
            return isclose(float(cell), float(value), rel_tol=1e-6, abs_tol=1e-9)
        except ValueError:
            return False
    return cell.strip() == _cell(value).strip()


# -- writing ---------------------------------------------------------------------------------------------------


def _cell(value: object) -> str:
    return repr(float(value)) if isinstance(value, float | np.floating) else str(value)


def plate(study: Study, trials: Sequence[Trial], wells: int | None = None) -> Iterator[list[str]]:
    """Lines of a file to fill in: the trial, its candidate, and an empty column for the reward.

    With a number of `wells` every trial has one of a plate of that size.
    """
    for row in _plate(study, trials, wells):
        yield [_cell(value) for value in row]


def _plate(study: Study, trials: Sequence[Trial], wells: int | None) -> Iterator[list[object]]:
    algorithm = study.algorithm
    check_wells(wells, len(trials))
    yield ["trial", *([] if wells is None else ["well"]), *column_names(algorithm), "reward"]
    for k, trial in enumerate(trials):
        place = [] if wells is None else [well(k, wells)]
        yield [trial.id, *place, *trial_columns(algorithm, trial.id).values(), ""]


def write_plate(path: Path, study: Study, trials: Sequence[Trial], wells: int | None = None) -> int:
    """Write a file to fill in, .xlsx or CSV; returns the number of trials."""
    if path.suffix.lower() == SUFFIX:
        return write_sheet(path, _plate(study, trials, wells), ["reward"])
    return write_csv(path, plate(study, trials, wells))


def export(study: Study) -> Iterator[list[str]]:
    """Lines of a file with all trials: candidate, model, propensity, reward, state and times."""
    view, algorithm = study.view(history=False, certificates=False, curve=False), study.algorithm
    events = study.events_dataframe().head(view.n_events)  # of the moment that the view shows
    asked = events[events["kind"].isin(["ask", "observe"])].set_index("trial")["at"].to_dict()
    told = events[events["kind"].isin(["tell", "observe", "amend"])].groupby("trial")["at"].last().to_dict()
    frame = view.trials.dataframe().drop(columns="label").rename(columns={"id": "trial", "index": "candidate"})
    frame["model"] = [None if j is None else algorithm.models.names[j] for j in view.trials.model]
    frame["asked_at"] = [asked[trial] for trial in frame["trial"]]
    rewarded = zip(frame["trial"], frame["reward"].notna(), strict=True)
    frame["told_at"] = [told[trial] if has_reward else None for trial, has_reward in rewarded]
    own = [f"candidate.{name}" if name in frame.columns else name for name in column_names(algorithm)]
    yield [*frame.columns[:2], *own, *frame.columns[2:]]
    for row in zip(*(_or_none(frame[name]) for name in frame.columns), strict=True):
        described = map(_cell, trial_columns(algorithm, row[0]).values())
        yield [str(row[0]), str(row[1]), *described, *("" if value is None else _cell(value) for value in row[2:])]


def _or_none(column: pd.Series[Any]) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.to_list(), column.isna(), strict=True)]


def write_csv(path: Path, lines: Iterator[list[str]]) -> int:
    """Write lines to a file atomically; returns the number of lines below the header."""
    rows = list(lines)
    write_text(path, to_csv(rows))
    return len(rows) - 1
