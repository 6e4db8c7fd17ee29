"""Stored runs: their format, their digest, the problem that they carry, and their logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from alexp.algorithms.log import EventLog, SeenRewards, TrialLog, check_remark
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable, State, unpack
from alexp.common.memory import exceeds_memory, is_lack_of_memory
from alexp.common.schema import MOST, Check, a_dict, booleans, floats, integers, record, same, text, whole
from alexp.common.ties import TIE
from alexp.common.validation import LARGEST

if TYPE_CHECKING:
    from alexp.algorithms.offer_log import OfferLog

_T = TypeVar("_T")
_CERTAIN = 1.0 + 1e-6  # the largest propensity, up to rounding
FORMAT = 1  # version of what to_dict writes
TIES = "first"  # how ties go: to the first in visiting order
FIELDS: dict[str, Check] = {
    "format": whole(FORMAT, FORMAT),
    "settings": a_dict,
    "problem": a_dict,
    "fingerprint": text(),
    "entropy": text(most=1000),
    "digest": text(),  # optional, so that a state can be edited by hand
    "log": a_dict,
    "state": a_dict,
}
_SIZES = {
    "resolution": 10**8, "subset_size": 64, "degree": 10**5, "frequencies": 10**5, "n_features": 10**6, "dim": 10**4,
}  # fmt: skip


def read_stored(problem: State, key: str, build: Callable[[State], _T]) -> _T:
    """`build` what a stored problem has under `key`; an error tells to pass it where that is not possible."""
    if problem.get(key) is None:
        raise ValueError(f"the saved run does not contain its {key}; pass {key}= as it was constructed")
    try:
        _check_sizes(problem[key])
        return build(unpack(problem[key]))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
        if is_lack_of_memory(error) and not exceeds_memory(error):
            raise
        message = f"state['problem'][{key!r}] cannot be read; pass {key}= as it was constructed"
        raise ValueError(f"{message}: {type(error).__name__}: {error}") from error


def take_ties(settings: State) -> float:
    """What a stored run takes for a tie, taken out of its settings: nothing before these said so, in version 1.0.0."""
    stored = settings.pop("ties", None)
    if stored not in (None, TIES):
        raise ValueError(f"settings['ties'] must be {TIES!r}, got {stored!r:.80}")
    return 0.0 if stored is None else TIE


def content_digest(data: State) -> str:
    """Hash of a stored run, apart from its problem, which has a fingerprint; 1 and 1.0 are the same."""
    told = {key: value for key, value in data.items() if key not in ("problem", "digest")}
    return sha256(json.dumps(_with_floats(told), sort_keys=True).encode()).hexdigest()


def _with_floats(value: Packable) -> Packable:
    if isinstance(value, dict):
        return {key: _with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST:
        return float(value)
    return value


def _check_sizes(description: Packable) -> None:
    """Raise if what is to be made of a description is out of all proportion to it."""
    for name, value in description.items() if isinstance(description, dict) else ():
        _check_sizes(value)
        if name in _SIZES and isinstance(value, int) and value > _SIZES[name]:
            raise ValueError(f"{name} must be at most {_SIZES[name]} in a stored problem")


def read_log(
    state: State,
    n_candidates: int,
    n_models: int,
    offers: OfferLog | None = None,
    objectives: tuple[str, ...] = (),
) -> TrialLog:
    """Invert `TrialLog.state`.

    Rounds of contextual runs are read into `offers`, and every one has its own number of candidates; `objectives`
    names those that are measured, where there are several.
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
        "events": a_dict,
        "failed": ids,
        "remarks": a_dict,
        "replicates": ids,
        "further": floats(None, low=-LARGEST, high=LARGEST),
        "arrivals": integers(None, low=0),
    }
    known = record("log", state, checks, optional=["failed", "remarks", "replicates", "further", "arrivals"])
    out = TrialLog(offers, objectives)
    for name in ("index", "model", "explored", "propensity", "reward"):
        getattr(out, name).frombytes(known[name].tobytes())  # a truth value is one byte, here and there
    out.abandoned = set(known["abandoned"].tolist())
    out.retracted = set(known["retracted"].tolist())
    out.seen = SeenRewards.of(known["reward"])
    missing = np.flatnonzero(np.isnan(known["reward"])).tolist()
    if not out.retracted <= out.abandoned <= set(missing):
        raise ValueError("log['abandoned'] must be trials without a reward, log['retracted'] some of them")
    out.failed = set(known["failed"].tolist()) if "failed" in known else set()
    if not out.failed <= out.abandoned - out.retracted:
        raise ValueError("log['failed'] must be trials in log['abandoned'] that are not in log['retracted']")
    out.replicates = _read_replicates(known.get("replicates", np.empty(0, dtype=np.int64)), out.index)
    out.remarks = _read_remarks(known.get("remarks", {}), n)
    out.further = _read_further(known.get("further", np.empty(0)), known["reward"], len(objectives) - 1)
    out.arrivals = _read_arrivals(known.get("arrivals", np.empty(0, dtype=np.int64)), n, n_candidates)
    out.pending = {i: out.index[i] for i in missing if i not in out.abandoned}
    if offers is not None:
        offers.check(out)
    out.events = EventLog.read(known["events"], [*(candidates for _, candidates in out.arrivals), n_candidates])
    _check_events(out)
    return out


def _read_replicates(flat: IntArray, index: Sequence[int]) -> dict[int, list[int]]:
    pairs = flat.tolist()
    out: dict[int, list[int]] = {}
    for head, one in zip(pairs[::2], pairs[1::2], strict=False):
        out.setdefault(head, []).append(one)
    own = pairs[1::2]
    if len(pairs) % 2 or len(set(own)) != len(own) or any(a >= b or index[a] != index[b] for a in out for b in out[a]):
        raise ValueError("log['replicates'] must be pairs of a trial and a later one of the same candidate")
    return out


def _read_further(flat: FloatArray, rewards: FloatArray, n: int) -> dict[int, tuple[float, ...]]:
    """Values of n further objectives, for all trials with a reward."""
    told = np.flatnonzero(~np.isnan(rewards)).tolist()
    if n < 1 or not told:
        same("length of log['further']", flat.size, 0, "that of a run with one objective")
        return {}
    same("length of log['further']", flat.size, len(told) * n, "rewards times further objectives")
    return {trial: tuple(own) for trial, own in zip(told, flat.reshape(-1, n).tolist(), strict=True)}


def _read_arrivals(flat: IntArray, n: int, n_candidates: int) -> list[tuple[int, int]]:
    pairs = list(zip(flat[::2].tolist(), flat[1::2].tolist(), strict=False))
    trials, candidates = [pair[0] for pair in pairs], [*(pair[1] for pair in pairs), n_candidates]
    growing = all(a < b for a, b in pairwise(candidates)) and candidates[0] > 0
    if flat.size % 2 or trials != sorted(trials) or any(one > n for one in trials) or not growing:
        raise ValueError("log['arrivals'] must be growing numbers of trials and of candidates, in pairs")
    return pairs


def _read_remarks(stored: State, n: int) -> dict[int, str]:
    if not all(isinstance(key, str) and key.isdigit() and int(key) < n and stored[key] for key in stored):
        raise ValueError(f"log['remarks'] must be texts by the numbers of trials, below {n}")
    return {int(trial): check_remark("log['remarks']", text) for trial, text in stored.items()}


def _check_events(log: TrialLog) -> None:
    """Raise unless the events are those of the trials of the log, in a possible order."""
    steps, trials = log.events.as_arrays()
    creates = np.isin(steps, ("ask", "observe"))
    if int(creates.sum()) != len(log) or np.any(trials >= np.cumsum(creates)):
        raise ValueError(f"log['events'] must create the {len(log)} trials of the log, each before its other events")
    has_reward = ~np.isnan(np.array(log.reward, dtype=np.float64))
    has_reward[list(log.retracted)] = True
    if not np.array_equal(np.sort(trials[np.isin(steps, ("tell", "observe"))]), np.flatnonzero(has_reward)):
        raise ValueError("log['events'] must have every reward in log['reward'] once, and of no others")
    if not np.array_equal(np.sort(trials[steps == "abandon"]), sorted(log.abandoned - log.retracted)):
        raise ValueError("log['events'] must have every trial in log['abandoned'] once, and of no others")
    by_chance = ~np.isnan(np.array(log.propensity, dtype=np.float64))
    asked = trials[steps == "ask"]
    if not np.array_equal(asked, np.flatnonzero(by_chance)) and (log.offers is None or not by_chance[asked].all()):
        raise ValueError("log['propensity'] must be missing for observations, and for them alone")


def read_notes(name: str, notes: Packable) -> dict[int, Packable]:
    """What was noted about trials, which is stored by their ids as text."""
    if not isinstance(notes, dict) or not all(isinstance(key, str) and key.isdigit() for key in notes):
        raise ValueError(f"{name} must be a dict by the numbers of trials")
    return {int(trial): note for trial, note in notes.items()}
