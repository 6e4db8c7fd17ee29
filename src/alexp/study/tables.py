"""Reading and writing CSV and NPY files; messages name file and line of every error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isclose, isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.algorithms.base import CheckedFail
from alexp.algorithms.log import Trial
from alexp.algorithms.naming import find_trial
from alexp.common.arrays import FloatArray
from alexp.common.cells import from_csv, to_csv
from alexp.common.files import read_array, read_text, write_text
from alexp.common.validation import did_you_mean, matrix
from alexp.study.candidates import WITHOUT_REWARD, column_names, trial_columns
from alexp.study.events import FAILED, EventDict, entry_text

if TYPE_CHECKING:
    import pandas as pd

    from alexp.study.replay import Replica
    from alexp.study.study import Checked, Study

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

    def maybe(self, name: str) -> int | None:
        """Position of a column; None where there is none."""
        return self.column(name) if name.lower() in [title.lower() for title in self.header] else None


def read_lines(path: Path) -> Lines:
    """Read a CSV file (UTF-8, separated by comma, semicolon or tab; blank lines do not count)."""
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
    """Measurements, one per line; the index of the frame holds the line numbers.

    Of an exported file, trials without a reward are left out.
    """
    import pandas as pd

    lines = read_lines(path)
    if (state := lines.maybe("state")) is not None:
        kept = [(line, row) for line, row in lines.rows if row[state] not in WITHOUT_REWARD]
        if not kept:
            raise FileError(f"{path} holds no rewards: no trial in it is told or observed")
        lines = Lines(lines.path, lines.header, kept)
    frame = candidates_of(lines)
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


def read_results(path: Path, study: Study, partial: bool = False, amend: bool = False) -> list[Checked]:
    """The results of a file, checked but not yet told.

    A line names its experiment in the column `trial`, or in the id column of the candidates (their first). In the
    column `reward` it has a number, several measurements ("71.2; 72.9"), or the word "failed". Several lines of one
    trial are as many measurements. A column `note` is kept, for failures as their reason. Columns that describe the
    candidate, as in the file that `ask` wrote, are compared with the trial. With `partial`, lines without a reward
    are skipped. A reward that differs from the stored one is an error unless `amend`.
    """
    lines = read_lines(path)
    algorithm = (replica := study.refresh()).algorithm
    own = column_names(algorithm)
    ids, names, rewards = lines.maybe("trial"), lines.maybe(own[0]), lines.column("reward")
    notes = None if "note" in own else lines.maybe("note")
    if ids is None and (names is None or algorithm.is_contextual):
        lines.column("trial")  # raises
    _check_header(lines, ["trial", "reward", *own])
    found: dict[int, list[tuple[int, float | str]]] = {}
    written: dict[int, list[str]] = {}
    mistakes: list[str] = []
    for line, row in lines.rows:
        if row[rewards] == "" and partial:
            continue
        try:
            trial = None if ids is None else _id(row[ids])
            name = row[names] if ids is None and names is not None else None
            number = find_trial(algorithm.log, algorithm.domain, trial, name)
            _check_candidate(lines.header, row, trial_columns(algorithm, number))
            measured = [(line, value) for value in _measured(row[rewards])]
            found.setdefault(number, []).extend(measured)
            if notes is not None and row[notes].strip():
                written.setdefault(number, []).append(row[notes].strip())
        except (ValueError, TypeError) as error:
            mistakes.append(f"{path}, line {line}: {error}")
    results: list[Checked] = []
    for number, values in found.items():
        try:
            results.append(_checked(replica, number, values, amend, "; ".join(dict.fromkeys(written.get(number, [])))))
        except (ValueError, TypeError) as error:
            mistakes.append(f"{path}, line {values[0][0]}: {error}")
    _raise_if_any(mistakes)
    if not results:
        raise FileError(f"{path} holds no rewards")
    return results


def _measured(cell: str) -> list[float | str]:
    """The measurements in a cell, or the word "failed"."""
    if cell.strip().lower() == FAILED:
        return [FAILED]
    return [_reward(part.strip()) for part in cell.split(";")]


def _checked(
    replica: Replica, trial: int, values: Sequence[tuple[int, float | str]], amend: bool, note: str
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
        raise ValueError(f"trial {trial} has {has}, the file says {says}; {_AMEND}")
    return told


def _joined(values: Sequence[float]) -> str:
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
        raise ValueError(f'reward must be a number, or the word "{FAILED}", got {cell!r}') from None


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


def plate(study: Study, trials: Sequence[Trial]) -> Iterator[list[str]]:
    """Lines of a file to fill in: the trial, its candidate, and an empty column for the reward."""
    algorithm = study.algorithm
    yield ["trial", *column_names(algorithm), "reward"]
    for trial in trials:
        yield [str(trial.id), *map(_cell, trial_columns(algorithm, trial.id).values()), ""]


def export(study: Study) -> Iterator[list[str]]:
    """Lines of a file with all trials: candidate, model, propensity, reward, state, note, times, workers, corrections.

    `told_at` and `told_by` are of the latest reward or failure. `entries` has all of them, with workers and times, for
    trials that were corrected; `replicate_of` is there if there are replicates.
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
    frame["asked_at"] = [asked[trial]["at"] for trial in frame["trial"]]
    settled = frame["reward"].notna() | (frame["state"] == "failed")
    last = [told[trial][-1] if has else None for trial, has in zip(frame["trial"], settled, strict=True)]
    frame["told_at"] = [None if one is None else one["at"] for one in last]
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


def _history(entries: Sequence[EventDict]) -> str:
    """All entries of a trial that was corrected, in one line; empty for other trials."""
    if len(entries) < 2:
        return ""
    return "; ".join(f"{entry_text(one)} by {one['worker']} at {_utc(one['at'])}" for one in entries)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _or_none(column: pd.Series[Any]) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.to_list(), column.isna(), strict=True)]


def write_csv(path: Path, lines: Iterator[list[str]]) -> int:
    """Write lines to a file atomically; returns the number of lines below the header."""
    rows = list(lines)
    write_text(path, to_csv(rows))
    return len(rows) - 1
