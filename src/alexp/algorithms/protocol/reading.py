"""Reading stored trials: everything is held against the problem and against everything else before it is believed."""

from __future__ import annotations

import numpy as np

from alexp.algorithms.protocol.contextual.record import OfferLog
from alexp.algorithms.protocol.course import Course
from alexp.algorithms.protocol.trials import SeenRewards, TrialLog
from alexp.common.arrays import IntArray
from alexp.common.codec import Packable, State
from alexp.common.schema import a_dict, booleans, floats, integers, maybe, record
from alexp.common.validation import LARGEST

_NOBODY: IntArray = np.empty(0, dtype=np.int64)
_CERTAIN = 1.0 + 1e-6  # the largest propensity, up to rounding


def read_log(state: State, n_candidates: int, n_models: int, offers: OfferLog | None = None) -> TrialLog:
    """Invert `TrialLog.state`; without a course the caller has to say where the log originates.

    Rounds of contextual runs are read into `offers`, and every one has its own number of candidates.
    """
    n = len(record("log", state, {"index": integers(None)})["index"])
    if offers is not None:
        offers.restore(record("log", state, {"offers": a_dict})["offers"], n)
        n_candidates = max(offers.n_candidates, default=1)
    ids = integers(None, low=0, high=n - 1)
    checks = {
        "index": integers(n, low=0, high=n_candidates - 1),
        "model": integers(n, low=-1, high=n_models - 1),
        "explored": booleans(n),
        "propensity": floats(n, low=0.0, high=_CERTAIN, missing=True),
        "reward": floats(n, low=-LARGEST, high=LARGEST, missing=True),
        "abandoned": ids,
        "retracted": ids,
        "course": maybe(a_dict),
    }
    known = record("log", state, checks, optional=["abandoned", "retracted", "course"])  # which 0.1.0 did not store
    out = TrialLog(offers)
    for name in ("index", "model", "explored", "propensity", "reward"):
        getattr(out, name).frombytes(known[name].tobytes())  # a truth value is one byte, here and there
    out.abandoned = set(known.get("abandoned", _NOBODY).tolist())
    out.retracted = set(known.get("retracted", _NOBODY).tolist())
    out.seen = SeenRewards.of(known["reward"])
    missing = np.flatnonzero(np.isnan(known["reward"])).tolist()
    if not out.retracted <= out.abandoned <= set(missing):
        raise ValueError("log['abandoned'] must be trials without a reward, log['retracted'] some of them")
    out.waiting = {i: out.index[i] for i in missing if i not in out.abandoned}
    if offers is not None:
        offers.check(out)
    if known.get("course") is not None:
        out.happened = Course.read(known["course"], n_candidates)
        _check_course(out)
    return out


def _check_course(log: TrialLog) -> None:
    """Raise unless a course tells of the trials of its log, in an order in which they can have happened."""
    steps, trials = log.happened.as_arrays()
    made = np.isin(steps, ("ask", "observe"))
    if int(made.sum()) != len(log) or np.any(trials >= np.cumsum(made)):
        raise ValueError(f"log['course'] must make the {len(log)} trials of the log, each before what happens to it")
    has_reward = ~np.isnan(np.array(log.reward, dtype=np.float64))
    has_reward[list(log.retracted)] = True
    if not np.array_equal(np.sort(trials[np.isin(steps, ("tell", "observe"))]), np.flatnonzero(has_reward)):
        raise ValueError("log['course'] must tell of every reward in log['reward'] once, and of no others")
    if not np.array_equal(np.sort(trials[steps == "abandon"]), sorted(log.abandoned - log.retracted)):
        raise ValueError("log['course'] must tell of every trial in log['abandoned'] once, and of no others")
    by_chance = ~np.isnan(np.array(log.propensity, dtype=np.float64))
    asked = trials[steps == "ask"]
    if not np.array_equal(asked, np.flatnonzero(by_chance)) and (log.offers is None or not by_chance[asked].all()):
        raise ValueError("log['propensity'] must be missing for observations, and for them alone")


def read_notes(name: str, notes: Packable) -> dict[int, Packable]:
    """What was noted about trials, which is stored by their ids as text."""
    if not isinstance(notes, dict) or not all(isinstance(key, str) and key.isdigit() for key in notes):
        raise ValueError(f"{name} must be a dict by the numbers of trials")
    return {int(trial): note for trial, note in notes.items()}
