"""A view of a study small enough to send to a page after every reward, however many trials there are.

Curves keep their first and last point and, of every stretch between, the smallest and the largest value: a reward that
was mistyped among 100,000 others is still on the page. Trials come one page at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import isnan

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable, State
from alexp.common.validation import count
from alexp.study.figures import standardised
from alexp.study.report import decisive, fit_sentence
from alexp.study.view import Curve, Explanation, History, StudyView, TrialColumns

MOST_POINTS, MOST_ROWS = 5000, 500
_MOST_PENDING = 200


@dataclass(frozen=True)
class Excerpt:
    """How much of a view is wanted.

    Attributes
    ----------
    points : at most so many points of every curve.
    rows : at most so many trials in the table.
    before : the trials of the table have smaller ids than this; the newest ones if None.
    """

    points: int = 600
    rows: int = 25
    before: int | None = None

    def __post_init__(self) -> None:
        if not 10 <= count("points", self.points) <= MOST_POINTS:
            raise ValueError(f"points must be between 10 and {MOST_POINTS}, got {self.points}")
        if count("rows", self.rows, 0) > MOST_ROWS:
            raise ValueError(f"rows must be at most {MOST_ROWS}, got {self.rows}")
        if self.before is not None:
            count("before", self.before, 0)


def decimated(view: StudyView, excerpt: Excerpt) -> State:
    """The view as JSON data with at most `excerpt.points` points of every curve and one page of trials.

    The fields are those of `StudyView.to_dict`, except that `trials` is a page; further there are `rewards` (the
    rewards told over the trials, and the best or, in contextual studies, the mean so far), `curve.played` with
    the rewards at the points, and what the explanation says in words.
    """
    thin = replace(
        view,
        trials=_page(view.trials, excerpt),
        pending=view.pending[:_MOST_PENDING],
        standing=view.standing and replace(view.standing, history=_history(view.standing.history, excerpt.points)),
        curve=view.curve and _curve(view.curve, excerpt.points),
        explanation=None,
    )
    out = thin.to_dict()
    out["rewards"] = _rewards(view, excerpt.points)
    if view.curve is not None:
        out["curve"]["played"] = _played(view, view.curve, excerpt.points)
    if view.explanation is not None:
        out["explanation"] = _explanation(view.explanation, excerpt.points)
    return out


def kept(values: FloatArray, points: int) -> IntArray:
    """Positions of at most `points` of n values, increasing: both ends, and the extremes of equal stretches between.

    >>> kept(np.array([0.0, 1.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]), 6).tolist()
    [0, 1, 5, 6, 9]
    """
    n = values.size
    if n <= points:
        return np.arange(n)
    edges = np.linspace(0, n, max((points - 2) // 2, 1) + 1).astype(np.int64)
    known = np.where(np.isnan(values), -np.inf, values), np.where(np.isnan(values), np.inf, values)
    chosen = {0, n - 1}
    for start, stop in pairwise(edges):
        chosen.add(int(start + known[0][start:stop].argmax()))
        chosen.add(int(start + known[1][start:stop].argmin()))
    return np.array(sorted(chosen), dtype=np.int64)


def _even(n: int, points: int) -> IntArray:
    """Positions of at most `points` of n records, evenly, both ends included."""
    return np.unique(np.linspace(0, n - 1, min(n, points)).round().astype(np.int64)) if n else np.arange(0)


def _page(trials: TrialColumns, excerpt: Excerpt) -> TrialColumns:
    stop = trials.id.size if excerpt.before is None else int(np.searchsorted(trials.id, excerpt.before))
    part = slice(max(stop - excerpt.rows, 0), stop)
    return TrialColumns(**{field.name: getattr(trials, field.name)[part] for field in fields(trials)})


def _history(history: History | None, points: int) -> History | None:
    if history is None:
        return None
    shown = _even(history.told.size, points)
    behind = None if history.behind is None else history.behind[shown]
    return History(history.told[shown], history.q[shown], behind, history.likeliest[shown])


def _curve(curve: Curve, points: int) -> Curve:
    shown = _even(curve.points.size, points) if curve.estimate is None else kept(curve.estimate, points)

    def at(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else values[shown]

    return Curve(
        curve.points[shown], at(curve.estimate), at(curve.spread), at(curve.lower), at(curve.upper), curve.played[:0]
    )


def _told(view: StudyView) -> IntArray:
    """Positions of the trials that have a reward."""
    return np.flatnonzero(~np.isnan(view.trials.reward))


def _origin(trials: TrialColumns, position: int) -> str:
    if trials.state[position] == "observed":
        return "observed"
    return "explored" if trials.explored[position] else "model"


def _rewards(view: StudyView, points: int) -> State:
    trials, told = view.trials, _told(view)
    reward = trials.reward[told]
    if view.is_contextual:  # the best reward of all contexts says little
        line = np.cumsum(reward) / np.arange(1, told.size + 1)
        turns = _even(told.size, points)
    else:
        line = np.maximum.accumulate(reward) if view.direction == "maximize" else np.minimum.accumulate(reward)
        turns = np.unique(np.r_[0, np.flatnonzero(np.diff(line)) + 1, told.size - 1]) if told.size else told
        turns = turns[_even(turns.size, points)]
    shown = told[kept(reward, points)]
    return {
        "id": trials.id[shown].tolist(),
        "reward": trials.reward[shown].tolist(),
        "label": [trials.label[k] for k in shown],
        "origin": [_origin(trials, int(k)) for k in shown],
        "so_far": {"id": trials.id[told][turns].tolist(), "reward": line[turns].tolist()},
        "n": int(told.size),
    }


def _played(view: StudyView, curve: Curve, points: int) -> State:
    told = _told(view)
    shown = told[kept(view.trials.reward[told], points)]
    columns = {"x": curve.played, "reward": view.trials.reward, "id": view.trials.id}
    return {name: values[shown].tolist() for name, values in columns.items()}


def _explanation(seen: Explanation, points: int) -> State:
    """What was expected, at the rewards with the largest surprises among them; odds after `odds_at` rewards."""
    known = np.flatnonzero(np.isfinite(seen.expected))
    shown = known[kept(standardised(seen)[known], points)]
    out: State = {
        "leader": seen.leader,
        "runner_up": seen.runner_up,
        "told": int(seen.trial.size),
        "after": (shown + 1).tolist(),
        "trial": seen.trial[shown].tolist(),
        "label": [seen.label[k] for k in shown],
        "reward": seen.reward[shown].tolist(),
        "expected": seen.expected[shown].tolist(),
        "spread": _finite(seen.spread[shown]),
        "fit": fit_sentence(seen),
        "decisive": decisive(seen),
        "odds": None,
        "odds_at": None,
    }
    if seen.odds is not None:
        at = kept(seen.odds, points)
        out |= {"odds": _finite(seen.odds[at]), "odds_at": at.tolist()}
    return out


def _finite(values: FloatArray) -> list[Packable]:
    """JSON has neither NaN nor infinity: what is beyond all numbers is the largest one, what is unknown nothing."""
    most = np.finfo(np.float64).max
    return [None if isnan(value) else value for value in np.clip(values, -most, most).tolist()]
