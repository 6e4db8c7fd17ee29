"""Candidates and trials as labels and table columns, and the candidates that rows of a user's table name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from alexp.algorithms.base import Algorithm, ExternalObservation
from alexp.algorithms.log import Trial, TrialLog
from alexp.common.arrays import Action, FloatArray
from alexp.common.codec import Packable, jsonable
from alexp.common.validation import count, did_you_mean, limited, matrix
from alexp.problem.domains import Arms, ContextualDomain, Domain, FiniteSet
from alexp.problem.objectives import Reward
from alexp.study.view import TrialState

if TYPE_CHECKING:
    import pandas as pd


TrialLine = dict[str, Packable]  # a trial as JSON data, see `trial_lines`


def candidate_columns(domain: Domain, index: int) -> dict[str, object]:
    """A candidate as named values: the row of its table, x0, x1, ... of a point, or x.

    >>> from alexp.problem import Box, Interval
    >>> candidate_columns(Interval(resolution=3), 2), list(candidate_columns(Box([0, 0], [1, 1], 4), 0))
    ({'x': 1.0}, ['x0', 'x1'])
    """
    x = domain[index]
    if hasattr(x, "items") and hasattr(x, "index"):  # a row of a data frame
        return {str(key): value for key, value in x.items()}
    if isinstance(x, np.ndarray | list | tuple) and np.ndim(x) == 1:
        return {f"x{k}": value for k, value in enumerate(x)}
    return {"x": x}


def trial_columns(algorithm: Algorithm, trial: int) -> dict[str, object]:
    """The action of a trial as named values: its candidate, or `x` and `context` of a contextual one, as text."""
    offers = algorithm.log.offers
    if offers is None:
        return candidate_columns(algorithm.domain, algorithm.log.index[trial])
    return {"x": _text(offers.actions[trial]), "context": _text(offers.contexts[trial])}


def column_names(algorithm: Algorithm) -> list[str]:
    """Names of `trial_columns`, also before the first trial."""
    return ["x", "context"] if algorithm.is_contextual else list(candidate_columns(algorithm.domain, 0))


def _text(value: object) -> str:
    """A value as one cell of a table: text unchanged, empty for None, all else as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(jsonable(value))


def label(domain: Domain, index: int) -> str:
    """A candidate in one short line.

    >>> from alexp.problem import FiniteSet, Interval
    >>> label(Interval(resolution=3), 2), label(FiniteSet(["water", "ethanol"]), 1)
    ('1', 'ethanol')
    """
    values = candidate_columns(domain, index)
    parts = [f"{value:.4g}" if isinstance(value, float | np.floating) else str(value) for value in values.values()]
    return _short(", ".join(parts))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def labeller(algorithm: Algorithm) -> Callable[[int], str]:
    """A function that returns the action of a trial, by its id, in one short line; labels are cached by candidate."""
    offers, index = algorithm.log.offers, algorithm.log.index
    if offers is not None:
        return lambda trial: _short(_text(offers.actions[trial]))
    named = cache(lambda candidate: label(algorithm.domain, candidate))
    return lambda trial: named(index[trial])


def trial_label(trial: Trial, domain: Domain) -> str:
    """The action of a trial in one short line."""
    return _short(_text(trial.x)) if trial.n_candidates is not None else label(domain, trial.index)


def trial_lines(algorithm: Algorithm, trials: Iterable[int]) -> list[TrialLine]:
    """Trials with reward, state, label, note and what could be chosen, as JSON data."""
    ids, what, log = list(trials), labeller(algorithm), algorithm.log
    return [
        algorithm.trial(trial).to_dict()
        | {"reward": None if isnan(log.reward[trial]) else log.value(trial)}
        | {"state": state, "label": what(trial)}
        | {"note": log.remarks.get(trial, ""), "available": _allowed(log, trial)}
        for trial, state in zip(ids, trial_states(log, ids), strict=True)
    ]


def _allowed(log: TrialLog, trial: int) -> list[int] | None:
    found = None if log.offers is None else log.offers.allowed(trial)
    return None if found is None else found.tolist()


def trial_states(log: TrialLog, trials: Iterable[int]) -> list[TrialState]:
    """The state of each trial."""
    external: set[int] = set()
    if log.offers is not None:  # observations of contextual rounds may have a propensity
        steps, which = log.events.as_arrays()
        external.update(which[steps == "observe"].tolist())

    def state(trial: int) -> TrialState:
        if trial in log.retracted:
            return "retracted"
        if trial in log.failed:
            return "failed"
        if trial in log.abandoned:
            return "abandoned"
        if isnan(log.propensity[trial]) or trial in external:
            return "observed"
        return "pending" if isnan(log.reward[trial]) else "told"

    return [state(trial) for trial in trials]


WITHOUT_REWARD = ("pending", "abandoned", "failed", "retracted")  # states of trials that are no measurements

# -- rows of a user's table ------------------------------------------------------------------------------------

_ON_GRID = 1e-9  # how far, in widths of the domain, a point may lie from its candidate


def observations(
    domain: Domain, frame: pd.DataFrame, nearest: bool = False, objectives: Sequence[str] = ()
) -> list[tuple[int, Reward]]:
    """(candidate, reward) of every row, or an error that names the first wrong row.

    Where `objectives` are measured, a reward is a number for each, in columns of their names.

    A row names its candidate by `index` (its number), by `x`, by `x0`, `x1`, ... for a Box, or by columns of the
    candidates' own table. Points off the grid of an Interval or Box are refused unless `nearest`. Rows whose `state`
    says that there is no reward, as in an exported table, are left out.
    """
    if isinstance(domain, ContextualDomain):
        raise ValueError(
            f"measurements on {type(domain).__name__} need their rounds; add them in Python with "
            "study.observe(index, reward, context=...) or study.add_observations"
        )
    check_columns(domain, frame.columns, objectives)
    wanted = objectives or ("reward",)
    for name in wanted:
        if name not in frame.columns:
            raise ValueError(f"frame must have a column {name!r}, it has {list(frame.columns)}")
    if "state" in frame.columns and "state" not in candidate_columns(domain, 0):
        frame = frame[~frame["state"].isin(WITHOUT_REWARD)]
    columns = {
        name: [limited(f"{name} in {_place(frame, i)}", _plain(value)) for i, value in enumerate(frame[name])]
        for name in wanted
    }
    rewards: list[Reward] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not objectives:
        rewards = [*columns["reward"]]
    return list(zip(locate(domain, frame, nearest), rewards, strict=True))


# Further columns of `trials_dataframe`, `log_frame` and exported files, which are accepted as tables of observations.
_WRITTEN = {
    "id", "trial", "candidate", "label", "model", "explored", "propensity", "state", "note", "asked_at", "told_at",
    "asked_by", "told_by", "entries", "replicate_of", "n",
}  # fmt: skip
_COLUMNS = ("context", "candidates", "features", "ids", "available", "propensity")


def contextual_observations(algorithm: Algorithm, frame: pd.DataFrame) -> list[ExternalObservation]:
    """The observation of every row of a table of contextual rounds, or an error that names the first wrong row.

    Columns `index` (a position in the round, or the name of an arm), `reward`, and some of `context`, `candidates`,
    `features`, `ids`, `available` and `propensity`; missing values are not passed.
    """
    check_columns(algorithm.domain, frame.columns)
    if missing := {"index", "reward"} - set(frame.columns):
        raise ValueError(f"frame must have columns 'index' and 'reward', {min(missing)!r} is missing")
    known = [name for name in _COLUMNS if name in frame.columns]
    if isinstance(algorithm.domain, Arms):  # a log of arms has ids and features; here they follow from the context
        known = [name for name in known if name not in ("ids", "features")]
    found = []
    for i in range(len(frame)):
        given = {name: value for name in known if not _is_missing(value := frame[name].iloc[i])}
        try:
            index, reward = frame["index"].iloc[i], frame["reward"].iloc[i]
            found.append(algorithm.check_observation(index, reward, **given))
        except (ValueError, TypeError) as error:
            raise type(error)(f"{_place(frame, i)}: {error}") from None
    return found


def check_columns(domain: Domain, names: Iterable[object], objectives: Sequence[str] = ()) -> None:
    """Raise if a table of observations has an unknown, perhaps misspelt column."""
    own = list(_COLUMNS)  # log_frame has them all, also without contexts
    if not isinstance(domain, ContextualDomain):
        own = [*candidate_columns(domain, 0), *own]
    known = [*(objectives or ["reward"]), "index", "x", *own]
    for name in map(str, names):
        if name not in known and name not in _WRITTEN and name.removeprefix("candidate.") not in own:
            listed = ", ".join(map(repr, dict.fromkeys(known)))
            meant = did_you_mean(name, known) or f"; known are {listed:.500}."
            raise ValueError(f"column {name!r} of the observations is not known{meant} Rename or remove it")


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def locate(domain: Domain, frame: pd.DataFrame, nearest: bool = False) -> list[int]:
    """Candidate number of every row."""
    own = getattr(getattr(domain, "candidates", None), "columns", ())
    if "index" in frame.columns and "index" not in own:
        indices = [count(f"index in {_place(frame, i)}", _plain(value), 0) for i, value in enumerate(frame["index"])]
        for i, index in enumerate(indices):
            if index >= domain.n_candidates:
                raise ValueError(f"index in {_place(frame, i)} must be below {domain.n_candidates}, got {index}")
        return indices
    if isinstance(domain, FiniteSet):
        return _in_table(domain, frame)
    points = np.asarray(domain.points, dtype=np.float64)
    wanted = _coordinates(frame, 1 if points.ndim == 1 else points.shape[1])
    domain.batch(wanted[:, 0] if points.ndim == 1 else wanted)  # raises for points outside
    return _on_grid(points.reshape(len(points), -1), wanted, nearest, frame)


def _place(frame: pd.DataFrame, i: int) -> str:
    """The name of a row in errors: "line 7" of a file, "row 5" of a frame."""
    return f"{frame.index.name or 'row'} {frame.index[i]}"


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _in_table(domain: FiniteSet, frame: pd.DataFrame) -> list[int]:
    table = domain.candidates
    shared = [name for name in table.columns if name in frame.columns] if hasattr(table, "iloc") else []
    if not shared:
        if "x" not in frame.columns:
            raise ValueError(
                "frame must name the candidates in a column 'index' or 'x'"
                + (f", or in columns of their table {list(table.columns)}" if hasattr(table, "iloc") else "")
                + f"; it has {list(frame.columns)}"
            )
        return [_one_of(domain, _place(frame, i), value) for i, value in enumerate(frame["x"])]
    numbers: dict[tuple[object, ...], list[int]] = {}
    for i, key in enumerate(table[shared].itertuples(index=False, name=None)):
        numbers.setdefault(key, []).append(i)
    found = []
    for i, key in enumerate(frame[shared].itertuples(index=False, name=None)):
        matches = numbers.get(key, [])
        if len(matches) != 1:
            what = "no candidate has" if not matches else f"{len(matches)} candidates have"
            named = dict(zip(shared, key, strict=True))
            raise ValueError(f"{_place(frame, i)}: {what} {named}; name candidates by a column 'index' instead")
        found.append(matches[0])
    return found


def _one_of(domain: FiniteSet, place: str, value: Action) -> int:
    try:
        return domain.locate(value)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _coordinates(frame: pd.DataFrame, dim: int) -> FloatArray:
    names = [f"x{k}" for k in range(dim)]
    if all(name in frame.columns for name in names):
        return matrix("the columns " + ", ".join(names), frame[names].to_numpy())
    if "x" not in frame.columns:
        raise ValueError(f"frame must name the actions in a column 'index' or 'x', it has {list(frame.columns)}")
    points = matrix("column 'x'", np.array([np.atleast_1d(value) for value in frame["x"]]).reshape(len(frame), -1))
    if points.shape[1] != dim:
        raise ValueError(f"column 'x' must hold points with {dim} coordinates, got {points.shape[1]}")
    return points


def _on_grid(points: FloatArray, wanted: FloatArray, nearest: bool, frame: pd.DataFrame) -> list[int]:
    from scipy.spatial import KDTree  # slow to import, needed here only

    span = np.ptp(points, axis=0)
    span[span == 0.0] = 1.0
    answer = KDTree(points / span).query(wanted / span)
    distance, index = np.asarray(answer[0]), np.asarray(answer[1])
    if not nearest and np.any(distance > _ON_GRID):
        row = int(np.argmax(distance > _ON_GRID))
        raise ValueError(
            f"{_place(frame, row)}: x = {wanted[row].tolist()} is not a candidate; the nearest is "
            f"{points[index[row]].tolist()}. Pass nearest=True to count measurements for the nearest candidate"
        )
    return [int(i) for i in index]
