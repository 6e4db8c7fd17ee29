"""Files of results: plates to fill in, rewards that are read back, exported trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isclose, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from alexp.algorithms.base import Algorithm, CheckedFail
from alexp.algorithms.log import TrialLog
from alexp.algorithms.naming import find_trial
from alexp.common.cells import to_csv
from alexp.common.files import read_bytes, write_text
from alexp.common.validation import did_you_mean
from alexp.common.warning import caution
from alexp.problem.domains import ContextualDomain
from alexp.problem.objectives import Reward, Value
from alexp.study.candidates import candidate_columns, column_names, trial_columns
from alexp.study.events import FAILED, EventDict, entry_text
from alexp.study.sheets import SUFFIX, check_wells, sheet, well, write_sheet
from alexp.study.study import TrialResult
from alexp.table.columns import decimal_sign, number_column
from alexp.table.files import Cell, FileError, Lines, lines_of, text_of
from alexp.table.numbers import Decimal, is_unit, written

if TYPE_CHECKING:
    import pandas as pd

    from alexp.study.replay import Replica
    from alexp.study.study import Checked, Study

_MOST_MISTAKES = 20
_AMEND = "amend (--amend) takes the one of the file"


# -- results ---------------------------------------------------------------------------------------------------


def reward_columns(algorithm: Algorithm) -> tuple[str, ...]:
    """Names of the columns that rewards are in: `reward`, or those of the measured objectives."""
    return algorithm.log.objectives or ("reward",)


def read_observations(
    path: Path,
    algorithm: Algorithm,
    decimal: Decimal | None = None,
    reward: str | None = None,
    partial: bool = False,
    sheet: str | None = None,
    header: int | None = None,
) -> pd.DataFrame:
    """Measurements, one per line; the index of the frame holds the line numbers.

    Numbers are read where the candidates have numbers, and text where they have text. The rewards are in the column
    `reward`, or in those of the measured objectives. Lines of an exported file that have no reward, because their
    trial is pending or was abandoned, are left out; with `partial` so are all lines without one.
    """
    import pandas as pd

    rewards, domain = reward_columns(algorithm), algorithm.domain
    lines = lines_of(read_bytes(path), path, sheet, header)
    if reward is not None and reward not in rewards:
        lines = _renamed(lines, reward, rewards)
    lines = _without_unrewarded(lines, rewards[0])
    if partial:
        places = [lines.column(name) for name in rewards]
        lines = replace(lines, rows=[one for one in lines.rows if any(one[1][k] is not None for k in places)])
        if not lines.rows:
            raise FileError(f"{path} holds no rewards")
    own = {} if isinstance(domain, ContextualDomain) else candidate_columns(domain, 0)
    columns: dict[str, list[Any]] = {}
    for k, name in enumerate(lines.header):
        known = own.get(name.removeprefix("candidate."))
        if name in (*rewards, "index") or isinstance(known, int | float | np.number):
            columns[name] = _numbers(lines, k, decimal)
        else:
            columns[name] = [text_of(row[k]) for _, row in lines.rows]
    return pd.DataFrame(columns, index=pd.Index([line for line, _ in lines.rows], name=f"{path}, line"))


def unknown(log: TrialLog, measured: Sequence[tuple[int, Value]]) -> list[int]:
    """Positions of the (candidate, reward) that a log does not have; one that is there twice is known twice."""
    known = Counter((log.index[trial], str(log.value(trial))) for trial in range(len(log)))
    out = []
    for k, (index, reward) in enumerate(measured):
        known[index, str(reward)] -= 1
        if known[index, str(reward)] < 0:
            out.append(k)
    return out


def _renamed(lines: Lines, reward: str, rewards: Sequence[str]) -> Lines:
    """The lines with the column `reward` as that of the rewards."""
    if rewards != ("reward",):
        listed = ", ".join(map(repr, rewards))
        raise ValueError(f"reward (--reward) must be left out, the study has the objectives {listed}; got {reward!r}")
    if lines.maybe("reward") is not None:
        raise FileError(f"{lines.path} has columns 'reward' and {reward!r}; rename or remove one of them")
    place = lines.column(reward)
    return replace(lines, header=["reward" if k == place else name for k, name in enumerate(lines.header)])


def _numbers(lines: Lines, k: int, decimal: Decimal | None) -> list[Any]:
    """The numbers of a column, whole ones as int; blank cells are refused."""
    values = number_column(lines, k, decimal)
    for row, value in enumerate(values):
        if value is None:
            remedy = (
                "leave such lines out with partial (--partial)" if lines.header[k] == "reward" else "remove the line"
            )
            raise FileError(f"{lines.at(row, k)}: the cell is blank; fill it in, or {remedy}")
    return [
        int(value) if value == int(value) and abs(value) < 2**53 else value for value in values if value is not None
    ]


def _without_unrewarded(lines: Lines, column: str) -> Lines:
    """Exported lines without those that say that their trial has no reward, in the column of rewards."""
    titles = [title.lower() for title in lines.header]
    if "state" not in titles or column.lower() not in titles:
        return lines
    state, reward = titles.index("state"), titles.index(column.lower())
    kept, left = [], Counter[str]()
    for number, row in lines.rows:
        if row[reward] is not None or row[state] in ("told", "observed", None):
            kept.append((number, row))
        else:
            left[text_of(row[state])] += 1
    if not kept:
        raise FileError(f"{lines.path} holds no rewards")
    if left:
        what = ", ".join(f"{number} {word}" for word, number in left.items())
        caution(f"{lines.path}: lines of trials without a reward are left out ({what})", UserWarning)
    return replace(lines, rows=kept)


def read_results(
    path: Path | str,
    study: Study,
    partial: bool = False,
    amend: bool = False,
    decimal: Decimal | None = None,
    data: bytes | str | None = None,
) -> list[Checked]:
    """The results of a file, checked but not yet told; `data` is its content, if it is known already.

    A line names its experiment in the column `trial`, or in the id column of the candidates (their first). In the
    column `reward`, or in those of the measured objectives, it has a number, several measurements ("71.2; 72.9"), or
    the word "failed". Several lines of one trial are as many measurements. A column `note` is kept, for failures as
    their reason. Columns that describe the candidate, as in the file that `ask` wrote, are compared with the trial.
    With `partial`, lines without a reward are skipped. A reward that differs from the stored one is an error unless
    `amend`.

    Without a line of column names, as copied from a spreadsheet, every line is a name and its rewards.
    """
    algorithm = (replica := study.refresh()).algorithm
    own = column_names(algorithm)
    columns = () if algorithm.is_contextual else (own[0], *reward_columns(algorithm))
    lines = lines_of(read_bytes(Path(path)) if data is None else data, path, columns=columns)
    ids, names = lines.maybe("trial"), lines.maybe(own[0])
    rewards = {name: lines.column(name) for name in reward_columns(algorithm)}
    notes = None if "note" in own else lines.maybe("note")
    if ids is None and (names is None or algorithm.is_contextual):
        lines.column("trial")  # raises
    _check_header(lines, ["trial", *rewards, *own])
    found: dict[int, list[tuple[int, Reward | str]]] = {}
    written_notes: dict[int, list[str]] = {}
    mistakes: list[str] = []
    signs = {name: _sign_of(lines, column, decimal) for name, column in rewards.items()}
    for line, cells in lines.rows:
        row = [text_of(cell) for cell in cells]
        own_cells = {name: cells[column] for name, column in rewards.items()}
        if partial and not any(row[column] for column in rewards.values()):
            continue
        try:
            trial = None if ids is None else _id(row[ids])
            name = row[names] if ids is None and names is not None else None
            number = find_trial(algorithm.log, algorithm.domain, trial, name)
            _check_candidate(lines.header, row, trial_columns(algorithm, number))
            measured = [(line, value) for value in _measured(own_cells, signs)]
            found.setdefault(number, []).extend(measured)
            if notes is not None and row[notes].strip():
                written_notes.setdefault(number, []).append(row[notes].strip())
        except (ValueError, TypeError) as error:
            mistakes.append(f"{path}, line {line}: {error}")
    results: list[Checked] = []
    for number, values in found.items():
        try:
            results.append(
                _checked(replica, number, values, amend, "; ".join(dict.fromkeys(written_notes.get(number, []))))
            )
        except (ValueError, TypeError) as error:
            mistakes.append(f"{path}, line {values[0][0]}: {error}")
    _raise_if_any(mistakes)
    if not results:
        raise FileError(f"{path} holds no rewards")
    return results


def as_result(one: Checked) -> TrialResult:
    """What was checked, as a result to tell."""
    if isinstance(one, CheckedFail):
        return TrialResult(one.trial, FAILED, note=one.reason)
    measured = [one.reward, *one.more]
    return TrialResult(one.trial, measured if one.more else measured[0], note=one.note)


def _sign_of(lines: Lines, column: int, decimal: Decimal | None) -> Decimal:
    """The decimal sign of a column of rewards, each of which may hold several measurements."""
    written_out = [
        (line, cell) for line, row in lines.rows if isinstance(cell := row[column], str)
    ]  # others are numbers
    parts: list[tuple[int, list[Cell]]] = [(line, [part]) for line, cell in written_out for part in cell.split(";")]
    return decimal_sign(replace(lines, header=[lines.header[column]], rows=parts), 0, decimal)


def _measured(cells: Mapping[str, Cell], signs: Mapping[str, Decimal]) -> list[Reward | str]:
    """The measurements in the cells of a line, by column, or the word "failed"."""
    words = [text_of(cell).strip().lower() for cell in cells.values()]
    if FAILED in words:
        if set(words) - {FAILED, ""}:
            raise ValueError(f"the line has numbers and the word {FAILED!r}; which is right?")
        return [FAILED]
    numbers = {
        name: [float(cell)]
        if isinstance(cell, int | float) and not isinstance(cell, bool)
        else [_reward(part.strip(), signs[name], name) for part in text_of(cell).split(";")]
        for name, cell in cells.items()
    }
    if "reward" in numbers:
        return [*numbers["reward"]]
    if len({len(own) for own in numbers.values()}) > 1:
        sizes = ", ".join(f"{len(own)} of {name!r}" for name, own in numbers.items())
        raise ValueError(f"every objective must have as many measurements, and the line has {sizes}")
    return [dict(zip(numbers, row, strict=True)) for row in zip(*numbers.values(), strict=True)]


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
        raise ValueError(f"trial {trial} has {has}, the file says {says}; {_AMEND}")
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


def _raise_if_any(mistakes: list[str]) -> None:
    if mistakes:
        more = [f"and {len(mistakes) - _MOST_MISTAKES} more"] if len(mistakes) > _MOST_MISTAKES else []
        raise FileError("\n".join([*mistakes[:_MOST_MISTAKES], *more, "nothing was written"]))


def _id(cell: str) -> int:
    try:
        return int(cell.removeprefix("#"))
    except ValueError:
        raise ValueError(f"trial must be a whole number, got {cell!r}") from None


def _reward(cell: str, decimal: Decimal, name: str) -> float:
    if cell == "":
        raise ValueError(f"{name} is empty; to tell only the lines that have one, use partial (--partial)")
    number = written(cell)
    if number is None or number.bound or (number.unit and not is_unit(number.unit)):
        raise ValueError(f'{name} must be a number, or the word "{FAILED}", got {cell!r}')
    return number.value(decimal)


def _check_candidate(header: Sequence[str], row: Sequence[str], expected: Mapping[str, object]) -> None:
    for name, cell in zip(header, row, strict=True):
        if name in expected and not _agrees(cell, expected[name]):
            raise ValueError(f"this trial has {name} = {_cell(expected[name])}, but the line says {cell!r}")


def _agrees(cell: str, value: object) -> bool:
    """Whether a cell equals a value, up to the rounding of a spreadsheet."""
    if isinstance(value, float | np.floating):
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
) -> Iterator[list[str]]:
    """Lines of a file to fill in: the trial, its candidate, and an empty column for the reward.

    With a number of `wells`, every trial has one of a plate of that size; A1 is that of trial `first`, by default of
    the first one listed.
    """
    for row in _plate(study, trials, wells, first):
        yield [_cell(value) for value in row]


def _plate(
    study: Study, trials: Sequence[Numbered], wells: int | None, first: int | None = None
) -> Iterator[list[object]]:
    algorithm, start = study.algorithm, first if first is not None else trials[0].id if trials else 0
    check_map(study, wells, 1 + max((trial.id - start for trial in trials), default=0))
    yield ["trial", *([] if wells is None else ["well"]), *column_names(algorithm), *reward_columns(algorithm)]
    blank = [""] * len(reward_columns(algorithm))
    for trial in trials:
        place = [] if wells is None else [well(trial.id - start, wells)]
        yield [trial.id, *place, *trial_columns(algorithm, trial.id).values(), *blank]


def write_plate(path: Path, study: Study, trials: Sequence[Numbered], wells: int | None = None) -> int:
    """Write a file to fill in, .xlsx or CSV; returns the number of trials."""
    if path.suffix.lower() == SUFFIX:
        return write_sheet(path, _plate(study, trials, wells), list(reward_columns(study.algorithm)))
    return write_csv(path, plate(study, trials, wells))


def plate_sheet(study: Study, trials: Sequence[Numbered], wells: int | None = None, first: int | None = None) -> bytes:
    """The file to fill in as the content of a workbook."""
    return sheet(f"plate{SUFFIX}", _plate(study, trials, wells, first), reward_columns(study.algorithm))


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


def write_csv(path: Path, lines: Iterator[list[str]]) -> int:
    """Write lines to a file atomically; returns the number of lines below the header."""
    rows = list(lines)
    write_text(path, to_csv(rows))
    return len(rows) - 1
