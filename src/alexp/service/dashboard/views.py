"""Views of studies as pages get them: made once for all pages, and again only when there is something new."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic
from weakref import WeakKeyDictionary

from alexp.algorithms.assumptions import NotCertified
from alexp.common.codec import State
from alexp.service.dashboard.decimation import Excerpt, decimated
from alexp.study import Study
from alexp.study.view import Explanation, StudyView

_QUICK = 0.1  # seconds below which something is made anew whenever it is looked at
_SHARE = 5.0  # what takes longer is made again after so many times the seconds it took
_PATIENCE = 0.5  # seconds that a part may take unasked: the study's lock is held meanwhile, and asks wait
_LONGEST = 60.0  # seconds that it may take at all
_ENOUGH = 50  # rewards after which the time per reward is known
_WIDE = 200  # columns of models whose fits keep every candidate's prediction
_PAGES = 16  # encoded views that are kept


@dataclass
class _Part:
    """A part of a view that takes time with every reward: how far it has got, when, and what it cost."""

    rate: float  # seconds per reward: a guess at first, measured after that
    told: int = 0
    n_events: int = -1
    at: float = 0.0
    cost: float = 0.0

    def wait(self, now: float) -> float:
        """Seconds until making it again would take but a share of the time."""
        return self.at + _SHARE * self.cost - now if self.cost > _QUICK else 0.0

    def made(self, start: float, now: float, rewards: int, told: int, n_events: int) -> None:
        """Note what was just made, for `rewards` rewards."""
        self.at, self.cost, self.told, self.n_events = now, now - start, told, n_events
        if rewards >= _ENOUGH or (rewards and self.cost > _QUICK):
            self.rate = self.cost / rewards


@dataclass
class _Known:
    """What was made of one study, and what it cost."""

    certified: _Part
    explained: _Part
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: int = 0  # grows with everything that is made
    view: StudyView | None = None
    check: State | None = None
    explanation: Explanation | None = None
    pages: dict[Excerpt, tuple[tuple[int, bool, float, float], bytes]] = field(default_factory=dict)


class Views:
    """Encoded views of many studies.

    A view belongs to a number of events: whoever looks at the same moment gets the same bytes. What takes long is made
    again at most a sixth of the time, and `fresh_in` says when to look again. Certificates take time for every new
    reward, looking back for every reward so far: unasked only where that is short; `takes` says how long it would be,
    and `too_long` that some of it is left out in any case.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._known: WeakKeyDictionary[Study, _Known] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._clock = clock

    def encoded(self, study: Study, excerpt: Excerpt, deep: bool = False) -> bytes:
        """The view as JSON text in UTF-8; if `deep`, with everything even where it takes a minute."""
        with self._lock:
            known = self._known.get(study)
            if known is None:
                known = self._known[study] = _Known(_Part(5e-4), _Part(_guess(study)))
        with known.lock:
            view, wait, takes = self._look(study, known, deep)
            later, more = self._look_back(study, known, view, deep)
            fresh_in = max(wait, later)
            made_of = (known.version, fresh_in > 0.0, takes, more)
            if excerpt not in known.pages or known.pages[excerpt][0] != made_of:
                while len(known.pages) >= _PAGES:
                    del known.pages[next(iter(known.pages))]
                known.pages[excerpt] = (made_of, _encode(known, view, excerpt, fresh_in, (takes, more)))
            return known.pages[excerpt][1]

    def _look(self, study: Study, known: _Known, deep: bool) -> tuple[StudyView, float, float]:
        """The view, seconds until a newer one is worth while, and seconds that certificates would take, if left out."""
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
                part.made(start, self._clock(), new, view.counts["told"], view.n_events)
        return view, 0.0, 0.0 if certificates else takes

    def _look_back(self, study: Study, known: _Known, view: StudyView, deep: bool) -> tuple[float, float]:
        """Bring the explanation up to date; seconds until that may be, and seconds it would take, if it was not."""
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
        part.made(start, self._clock(), told, told, view.n_events)
        return 0.0, 0.0


def _guess(study: Study) -> float:
    """Seconds that looking back may take for every reward: where models are wide, all candidates are predicted."""
    algorithm = study.algorithm
    models, is_wide = algorithm.models, algorithm.models.kernels is not None or algorithm.models.n_columns > _WIDE
    return 1e-3 + (2e-6 * models.n_models * algorithm.domain.n_candidates if is_wide else 0.0)


def _encode(known: _Known, view: StudyView, excerpt: Excerpt, fresh_in: float, left_out: tuple[float, float]) -> bytes:
    out = decimated(replace(view, explanation=known.explanation), excerpt)
    takes = sum(seconds for seconds in left_out if seconds <= _LONGEST)
    out |= {"check": known.check, "fresh_in": fresh_in or None}
    out |= {"takes": takes or None, "too_long": max(left_out) > _LONGEST}
    return json.dumps(out, allow_nan=False, separators=(",", ":")).encode()


def _check(study: Study, view: StudyView) -> State | None:
    """What `check_models` says; None where nothing was stated that rewards could contradict."""
    if view.counts["told"] == 0:
        return None
    try:
        check = study.check_models()
    except (AttributeError, NotCertified):
        return None
    names = study.algorithm.models.names
    return {
        "contradicted": check.contradicted,
        "checked": check.checked,
        "at": check.at,
        "text": check.text,
        "n_rejected": int(check.rejected.size),
        "rejected": [names[int(j)] for j in check.rejected[:20]],
    }
