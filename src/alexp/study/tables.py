"""Files of results: plates to fill in, rewards that are read back, exported trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.algorithms.base import CheckedTell
from alexp.algorithms.log import Trial
from alexp.common.cells import to_csv
from alexp.common.files import write_text
from alexp.common.validation import did_you_mean
from alexp.problem.domains import ContextualDomain, Domain
from alexp.study.candidates import candidate_columns, column_names, trial_columns
from alexp.table.columns import decimal_sign, number_column
from alexp.table.files import FileError, Lines, read_lines, text_of
from alexp.table.numbers import Decimal, is_unit, written

if TYPE_CHECKING:
    import pandas as pd

    from alexp.study.study import Study

_MOST_MISTAKES = 20
_AMEND = "--amend takes the one of the file"


# -- results ---------------------------------------------------------------------------------------------------


def read_observations(path: Path, domain: Domain, decimal: Decimal | None = None) -> pd.DataFrame:
    """Measurements, one per line; the index of the frame holds the line numbers.

    Numbers are read where the candidates have numbers, and text where they have text. Lines of an exported file that
    have no reward, because their trial is pending or was abandoned, are left out.
    """
    import pandas as pd

    lines = _without_unrewarded(read_lines(path))
    own = {} if isinstance(domain, ContextualDomain) else candidate_columns(domain, 0)
    columns: dict[str, list[Any]] = {}
    for k, name in enumerate(lines.header):
        known = own.get(name.removeprefix("candidate."))
        if name in ("reward", "index") or isinstance(known, int | float | np.number):
            columns[name] = _numbers(lines, k, decimal)
        else:
            columns[name] = [text_of(row[k]) for _, row in lines.rows]
    return pd.DataFrame(columns, index=pd.Index([line for line, _ in lines.rows], name=f"{path}, line"))


def _numbers(lines: Lines, k: int, decimal: Decimal | None) -> list[Any]:
    """The numbers of a column, whole ones as int; blank cells are refused."""
    values = number_column(lines, k, decimal)
    for row, value in enumerate(values):
        if value is None:
            raise FileError(f"{lines.at(row, k)}: the cell is blank; fill it in, or remove the line")
    return [
        int(value) if value == int(value) and abs(value) < 2**53 else value for value in values if value is not None
    ]


def _without_unrewarded(lines: Lines) -> Lines:
    """Exported lines without those that say that their trial has no reward."""
    titles = [title.lower() for title in lines.header]
    if "state" not in titles or "reward" not in titles:
        return lines
    state, reward = titles.index("state"), titles.index("reward")
    rows = [row for row in lines.rows if row[1][reward] is not None or row[1][state] in ("told", "observed", None)]
    if not rows:
        raise FileError(f"{lines.path} holds no rewards")
    return replace(lines, rows=rows)


def read_results(
    path: Path, study: Study, partial: bool = False, amend: bool = False, decimal: Decimal | None = None
) -> list[CheckedTell]:
    """The rewards of a file with columns `trial` and `reward`, checked but not yet told.

    Columns that describe the candidate, as in the file that `ask` wrote, are compared with the trial. With `partial`,
    lines without a reward are skipped. A reward that differs from the stored one is an error unless `amend`.
    """
    lines = read_lines(path).texts()
    ids, rewards = lines.column("trial"), lines.column("reward")
    sign = decimal_sign(lines, rewards, decimal)
    algorithm = (replica := study.refresh()).algorithm
    _check_header(lines, ["trial", "reward", *column_names(algorithm)])
    results: list[CheckedTell] = []
    mistakes: list[str] = []
    seen: dict[int, int] = {}
    for line, cells in lines.rows:
        row = [text_of(cell) for cell in cells]
        if row[rewards] == "" and partial:
            continue
        try:
            told = replica.check_tell(_id(row[ids]), _reward(row[rewards], sign), "amend")
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


def _reward(cell: str, decimal: Decimal) -> float:
    if cell == "":
        raise ValueError("reward is empty; to tell only the lines that have one, use --partial")
    number = written(cell)
    if number is None or number.bound or (number.unit and not is_unit(number.unit)):
        raise ValueError(f"reward must be a number, got {cell!r}")
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


def plate(study: Study, trials: Sequence[Trial]) -> Iterator[list[str]]:
    """Lines of a file to fill in: the trial, its candidate, and an empty column for the reward."""
    algorithm = study.algorithm
    yield ["trial", *column_names(algorithm), "reward"]
    for trial in trials:
        yield [str(trial.id), *map(_cell, trial_columns(algorithm, trial.id).values()), ""]


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
