"""Saved states with something changed in them: refused with a word on what is wrong, or sound.

Every leaf of the state of a run (settings, log, state and problem, with trials pending, given up and withdrawn) is
dropped, replaced by something of another type, made negative, huge or NaN, reshaped, cut or exchanged with another one;
states of other algorithms and problems are put together. `from_dict` must raise a ValueError, or return a run that

* goes on exactly like the unchanged one ("same"), or
* is sound ("valid"): its asks, tells, corrections and saves raise nothing, and all its numbers are finite. A seed that
  is another seed, or a reward that might have been told, cannot be told from the real one.

The digest that protects a state as a whole is taken out for this; with it, everything but the problem is refused.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.common.codec import pack, unpack
from alexp.testing.settings import Setting, make, reward, settings_for
from tests.adversarial.interrupts import built_in

STATES = 2000  # what scale 1 means
Path = tuple[Any, ...]
Change = Callable[[Any, np.random.Generator], Any]


def saved(kind: type[Algorithm], setting: Setting) -> dict[str, Any]:
    """A state with everything in it, as JSON gives it back."""
    run = make(kind, setting, reward_bound=1.0)
    for step in range(6):
        trial = run.ask(available=setting.available(step))
        run.tell(trial, reward(trial.index))
    run.observe(3, reward(3))
    run.retract(1)
    run.ask(3, available=setting.available(1))
    run.abandon(8)
    state = json.loads(json.dumps(run.to_dict()))
    del state["digest"]
    return dict(state)


# -- changes -------------------------------------------------------------------------------------------------------


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths to everything in a state; a stored array is one thing."""
    if path:
        yield path
    if isinstance(value, dict) and "__array__" not in value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value[:3]):
            yield from leaves(item, (*path, number))


def at(state: Any, path: Path) -> Any:
    """What is there."""
    for key in path:
        state = state[key]
    return state


def _array(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Change:
    return lambda value, rng: pack(change(unpack(value), rng))


def _with(array: np.ndarray, entry: float, rng: np.random.Generator) -> np.ndarray:
    out = array.astype(np.float64)
    if out.size:
        out.flat[int(rng.integers(out.size))] = entry
    return out


ANYTHING: dict[str, Change] = {
    "none": lambda value, rng: None,
    "text": lambda value, rng: "nonsense",
    "negative": lambda value, rng: -1,
    "huge": lambda value, rng: 10**18,
    "enormous": lambda value, rng: 10**400,
    "nan": lambda value, rng: float("nan"),
    "list": lambda value, rng: [],
    "dict": lambda value, rng: {},
    "kind": lambda value, rng: {"kind": "nonsense"},
    "true": lambda value, rng: True,
}
ARRAYS: dict[str, Change] = {
    "nan inside": _array(lambda a, rng: _with(a, np.nan, rng)),
    "infinity inside": _array(lambda a, rng: _with(a, np.inf, rng)),
    "negative inside": _array(lambda a, rng: _with(a, -7.0, rng)),
    "huge inside": _array(lambda a, rng: _with(a, 1e200, rng)),
    "too short": _array(lambda a, rng: a.ravel()[:-1]),
    "too long": _array(lambda a, rng: np.append(a.ravel(), a.ravel()[:1])),
    "another shape": _array(lambda a, rng: a.reshape(1, *a.shape)),
    "zeros": _array(lambda a, rng: np.zeros_like(a)),
    "reversed": _array(lambda a, rng: a.ravel()[::-1].reshape(a.shape)),
    "text inside": _array(lambda a, rng: np.full(a.shape, "x")),
    "more than it holds": lambda value, rng: value | {"shape": [10**12]},
    "cut": lambda value, rng: value | {"data": value["data"][: len(value["data"]) // 2]},
    "no base64": lambda value, rng: value | {"data": "%" + value["data"]},
    "objects": lambda value, rng: value | {"__array__": "|O"},
}


def change(state: dict[str, Any], others: list[dict[str, Any]], rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """A changed copy of a state, and what was done to it."""
    out = deepcopy(state)
    everything = list(leaves(out))
    path = everything[int(rng.integers(len(everything)))]
    parent, value = at(out, path[:-1]), at(out, path)
    stored = isinstance(value, dict) and "__array__" in value
    how = float(rng.random())
    if how < 0.08:
        other, part = others[int(rng.integers(len(others)))], str(rng.choice(["state", "log", "settings", "algorithm"]))
        out[part] = deepcopy(other[part])
        return f"{part} of {other['algorithm']}", out
    if how < 0.2 and isinstance(parent, dict):
        del parent[path[-1]]
        return f"drop {path}", out
    if how < 0.3:
        twin = everything[int(rng.integers(len(everything)))]
        shorter = min(len(path), len(twin))
        if path[:shorter] != twin[:shorter]:
            at(out, twin[:-1])[twin[-1]], parent[path[-1]] = value, at(out, twin)
        return f"exchange {path} and {twin}", out
    changes = ARRAYS if stored and rng.random() < 0.8 else ANYTHING
    name = str(rng.choice(list(changes)))
    parent[path[-1]] = changes[name](value, rng)
    return f"{name} at {path}", out


# -- judging -------------------------------------------------------------------------------------------------------


def verdict(kind: type[Algorithm], state: dict[str, Any], unchanged: list[str]) -> str:
    """What becomes of a changed state: refused, same or valid, or what is wrong with that."""
    try:
        run = kind.from_dict(state)
    except ValueError as error:
        return "refused" if str(error) and not isinstance(error, UnicodeError) else f"says nothing: {error!r}"
    except BaseException as error:  # whatever it is, it is not documented
        return f"raw: {error!r:.200}"
    try:
        after = going_on(run)
    except BaseException as error:
        return f"breaks later: {error!r:.200}"
    if after == unchanged:
        return "same"
    return "valid" if sound(run) else "not finite"


def going_on(run: Algorithm) -> list[str]:
    """How a run goes on: told, asked, corrected and saved."""
    out = []
    for trial in run.pending():
        run.tell(trial, reward(trial.index))
    for _ in range(3):
        trial = run.ask()
        out.append(repr(trial))
        run.tell(trial, reward(trial.index))
    if run.n_told > 2:
        run.amend(run.log.told_in_order()[0], 0.25)
    out.append(repr(run.best()))
    type(run).from_dict(json.loads(json.dumps(run.to_dict(problem=False))), run.models, run.domain)
    return out


def sound(run: Algorithm) -> bool:
    """Whether everything that a run says is a number."""
    trials = [run.trial(k) for k in range(run.n_asked)][-3:]
    weights = np.asarray(getattr(run, "probabilities", [1.0]))
    return (
        all(0.0 < trial.propensity <= 1.0 + 1e-6 for trial in trials)
        and bool(np.isfinite(run.best().value))
        and bool(np.isfinite(weights).all())
        and abs(float(weights.sum()) - 1.0) < 1e-6
    )


def soak(scale: float = 1.0, seed: int = 0, report: list[str] | None = None) -> dict[str, int | float | str]:
    """2,000 changed states at scale 1, over all algorithms; `report` collects what was done where it went wrong."""
    rng, kinds = np.random.default_rng(seed), list(built_in().values())
    counts = {"refused": 0, "same": 0, "valid": 0, "violations": 0}
    wanted = max(len(kinds), round(STATES * scale))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = [settings_for(kind)[int(rng.integers(len(settings_for(kind))))] for kind in kinds]
        states = [saved(kind, setting) for kind, setting in zip(kinds, settings, strict=True)]
        after = [going_on(kind.from_dict(state)) for kind, state in zip(kinds, states, strict=True)]
        for number in range(wanted):
            k = number % len(kinds)
            what, changed = change(states[k], states, rng)
            found = verdict(kinds[k], changed, after[k])
            if found not in counts:
                (report if report is not None else []).append(f"{kinds[k].name}: {what}: {found}")
            counts[found if found in counts else "violations"] += 1
    return {"tried": wanted} | counts
