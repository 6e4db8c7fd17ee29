"""Views of studies for the dashboard: thinned for sending, and computed once for all pages."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from math import isnan
from time import monotonic
from weakref import WeakKeyDictionary

import numpy as np

from alexp.algorithms.assumptions import NotCertified
from alexp.algorithms.several import SeveralObjectivesError
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable, State, jsonable
from alexp.common.validation import count
from alexp.study import Study
from alexp.study.candidates import column_names, labeller, trial_columns
from alexp.study.figures import standardised
from alexp.study.report import decisive, fit_sentence
from alexp.study.view import Curve, Explanation, History, StudyView, TrialColumns

MOST_POINTS, MOST_ROWS = 5000, 500
_MOST_PENDING = 200
_QUICK = 0.1  # seconds below which a part is computed at every request
_SHARE = 5.0  # a slower part is computed again after this many times the seconds it took
_PATIENCE = 0.5  # seconds that a part may take unless requested: it holds the study's lock, and asks wait
_LONGEST = 60.0  # seconds that a part may take at all
_ENOUGH = 50  # rewards after which the measured time per reward is used
_WIDE = 200  # columns beyond which fits keep every candidate's prediction
_PAGES = 16  # encoded views that are kept


@dataclass(frozen=True)
class Excerpt:
    """The size of a view: points per curve and a page of trials.

    Attributes
    ----------
    points : largest number of points of a curve.
    rows : largest number of trials in the table.
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
    the rewards at the points, and the explanation in words. Curves keep their first and last point and the smallest
    and largest value of every section between, so that one outlier among 100,000 rewards remains visible.
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
    """Positions of at most `points` of n values, increasing: both ends, and the extremes of equal sections between.

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
    columns = {one.name: getattr(trials, one.name)[part] for one in fields(trials) if one.name != "values"}
    return TrialColumns(**columns, values={name: values[part] for name, values in trials.values.items()})


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
    if view.is_contextual:  # the best reward over all contexts means little
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
    """Expected rewards, with the largest surprises among them; odds after `odds_at` rewards."""
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
    """Values for JSON: infinity becomes the largest float, NaN becomes None."""
    most = np.finfo(np.float64).max
    return [None if isnan(value) else value for value in np.clip(values, -most, most).tolist()]


@dataclass
class _Part:
    """When a part of a view was last computed, for how many rewards and events, and how long it took."""

    rate: float  # seconds per reward: estimated at first, then measured
    told: int = 0
    n_events: int = -1
    at: float = 0.0
    cost: float = 0.0

    def wait(self, now: float) -> float:
        """Seconds until it may be computed again."""
        return self.at + _SHARE * self.cost - now if self.cost > _QUICK else 0.0

    def record(self, start: float, now: float, rewards: int, told: int, n_events: int) -> None:
        """Record a computation for `rewards` rewards."""
        loaded = self.told > 0  # the first computation loads compiled code, which later ones do not
        self.at, self.cost, self.told, self.n_events = now, now - start, told, n_events
        if rewards >= _ENOUGH or (rewards and loaded and self.cost > _QUICK):
            self.rate = self.cost / rewards


@dataclass
class _Cached:
    """What was computed for one study."""

    certified: _Part
    explained: _Part
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: int = 0  # grows with every change
    view: StudyView | None = None
    check: State | None = None
    explanation: Explanation | None = None
    pages: dict[Excerpt, tuple[tuple[int, bool, float, float], bytes]] = field(default_factory=dict)


class ViewCache:
    """Encoded views of many studies.

    All readers of the same moment get the same bytes. Beside the view they have `columns`, the names of the columns of
    the candidates, and the `cells` of every pending trial. Slow parts are computed at most a sixth of the time;
    `fresh_in` says when to ask again. Certificates take time for every new reward, the explanation for every reward so
    far: they are computed without `deep` only if that is quick. `takes` gives the seconds they would take otherwise,
    and `too_long` says that a part is left out in any case.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._known: WeakKeyDictionary[Study, _Cached] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._clock = clock

    def encoded(self, study: Study, excerpt: Excerpt, deep: bool = False) -> bytes:
        """The view as JSON text in UTF-8; if `deep`, with parts that take up to a minute."""
        with self._lock:
            known = self._known.get(study)
            if known is None:
                known = self._known[study] = _Cached(_Part(5e-4), _Part(_estimated_rate(study)))
        with known.lock:
            view, wait, takes = self._view(study, known, deep)
            later, more = self._explain(study, known, view, deep)
            fresh_in = max(wait, later)
            version = (known.version, fresh_in > 0.0, takes, more)
            if excerpt not in known.pages or known.pages[excerpt][0] != version:
                while len(known.pages) >= _PAGES:
                    del known.pages[next(iter(known.pages))]
                known.pages[excerpt] = (version, _encode(study, known, view, excerpt, fresh_in, (takes, more)))
            return known.pages[excerpt][1]

    def _view(self, study: Study, known: _Cached, deep: bool) -> tuple[StudyView, float, float]:
        """The view, seconds until a newer one may be computed, and seconds that omitted certificates would take."""
        part, start = known.certified, self._clock()
        wait = part.wait(start)
        if known.view is not None and wait > 0.0 and not deep:
            return known.view, wait if study.refresh().n_events > known.view.n_events else 0.0, 0.0
        told = study.counts["told"]
        new = max(told - part.told, 0)
        takes = part.rate * new
        certificates = takes <= (_LONGEST if deep else _PATIENCE)
        view = study.view(certificates=certificates, explanation=False)
        if view is not known.view:
            known.view, known.check = view, _check(study, view) if certificates else None
            known.version += 1
            if certificates:
                part.record(start, self._clock(), new, view.counts["told"], view.n_events)
        return view, 0.0, 0.0 if certificates else takes

    def _explain(self, study: Study, known: _Cached, view: StudyView, deep: bool) -> tuple[float, float]:
        """Update the explanation; returns seconds until it may be updated, and seconds it would take if omitted."""
        part, told, start = known.explained, view.counts["told"], self._clock()
        if view.standing is None or part.n_events == view.n_events:
            return 0.0, 0.0
        if told == 0:  # also after the only reward was withdrawn
            known.explanation = None
            return 0.0, 0.0
        takes, wait = part.rate * told, part.wait(start)
        if takes > (_LONGEST if deep else _PATIENCE):
            return 0.0, takes
        if wait > 0.0 and not deep:
            return wait, 0.0
        known.explanation = study.explanation(view.standing)
        known.version += 1
        part.record(start, self._clock(), told, told, view.n_events)
        return 0.0, 0.0


def _estimated_rate(study: Study) -> float:
    """Estimated seconds per reward of an explanation: wide models predict all candidates."""
    algorithm = study.algorithm
    models, is_wide = algorithm.models, algorithm.models.kernels is not None or algorithm.models.n_columns > _WIDE
    return 1e-3 + (2e-6 * models.n_models * algorithm.domain.n_candidates if is_wide else 0.0)


def _encode(
    study: Study,
    known: _Cached,
    view: StudyView,
    excerpt: Excerpt,
    fresh_in: float,
    left_out: tuple[float, float],
) -> bytes:
    out = decimated(replace(view, explanation=known.explanation), excerpt)
    algorithm = study.algorithm
    out["columns"] = column_names(algorithm)
    for trial in out["pending"]:
        trial["cells"] = [jsonable(value) for value in trial_columns(algorithm, trial["id"]).values()]
    takes = sum(seconds for seconds in left_out if seconds <= _LONGEST)
    out |= {"check": known.check, "fresh_in": fresh_in or None}
    out |= {"takes": takes or None, "too_long": max(left_out) > _LONGEST}
    return json.dumps(out, allow_nan=False, separators=(",", ":")).encode()


def _check(study: Study, view: StudyView) -> State | None:
    """The result of `check_models`; None if nothing was stated that rewards could contradict."""
    if view.counts["told"] == 0:
        return None
    try:
        check = study.check_models()
    except (AttributeError, NotCertified, SeveralObjectivesError):
        return None
    names, what, log = study.algorithm.models.names, labeller(study.algorithm), study.algorithm.log
    return {
        "contradicted": check.contradicted,
        "checked": check.checked,
        "at": check.at,
        "text": check.text,
        "n_rejected": int(check.rejected.size),
        "rejected": [names[int(j)] for j in check.rejected[:20]],
        "missed": [{"id": t, "label": what(t), "reward": log.reward[t]} for t in check.trials],
    }
