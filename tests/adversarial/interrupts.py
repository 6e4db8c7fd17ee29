"""Interrupts at single instructions of asks, tells, observations, corrections and looks, over all algorithms.

A deed is done under `sys.settrace`, and the trace function raises before one randomly chosen instruction, wherever it
is: in the algorithm, in NumPy, in the guard itself. The optimiser must then be, to the last bit of its saved state,
what it was before the deed or what it is after it in an undisturbed run. Then the deed is tried again: it must be
refused if it had happened, and be accepted if not, and the rest of the run must be that of the undisturbed one.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Any

import numpy as np

import alexp
from alexp.algorithms.base import Algorithm
from alexp.algorithms.log import AbandonedTrialError, AlreadyToldError
from alexp.estimation.ridge import bank as grid
from alexp.testing.settings import Setting, make, on_tables, reward, settings_for

ERRORS: tuple[type[BaseException], ...] = (KeyboardInterrupt, MemoryError, ArithmeticError)
INTERRUPTS = 2000  # what scale 1 means
PATIENCE = 20.0  # seconds until an optimiser counts as locked
AT_ONCE = 5  # interrupts tried on one copy of the undisturbed run


@dataclass(frozen=True)
class Deed:
    """One call, whether it changes the state, and the error if it has happened already (None if it may again)."""

    name: str
    do: Callable[[Algorithm], object]
    changes: bool = True
    repeated: type[Exception] | None = None


def deeds(setting: Setting, rng: np.random.Generator) -> list[Deed]:
    """A run with plates, late rewards, observations, corrections, withdrawals, abandonments and looks."""
    out: list[Deed] = []
    waiting: list[int] = []
    told: list[int] = []
    gone: list[int] = []
    n_trials = 0

    def ask(n: int) -> None:
        nonlocal n_trials
        available = setting.available(n_trials)
        out.append(Deed(f"ask({n})", lambda run: run.ask(n, available=available)))
        waiting.extend(range(n_trials, n_trials + n))
        n_trials += n

    def tell(trial: int) -> None:
        out.append(Deed("tell", lambda run: run.tell(trial, value(run, trial)), repeated=AlreadyToldError))
        waiting.remove(trial)
        told.append(trial)

    def observe(index: int) -> None:
        nonlocal n_trials
        out.append(Deed("observe", lambda run: run.observe(index, reward(index))))
        told.append(n_trials)
        n_trials += 1

    def amend(trial: int, by: float) -> None:
        out.append(Deed("amend", lambda run: run.amend(trial, value(run, trial) + by)))

    def retract(trial: int) -> None:
        out.append(Deed("retract", lambda run: run.retract(trial), repeated=ValueError))
        told.remove(trial)
        gone.append(trial)

    def abandon(trial: int) -> None:
        out.append(Deed("abandon", lambda run: run.abandon(trial), repeated=AbandonedTrialError))
        waiting.remove(trial)

    for _ in range(int(rng.integers(6, 12))):
        ask(int(rng.integers(1, 4)))
        while waiting and rng.random() < 0.8:
            tell(int(rng.choice(waiting)))
        if waiting and rng.random() < 0.2:
            abandon(int(rng.choice(waiting)))
        if rng.random() < 0.3:
            observe(int(rng.integers(setting.n_candidates)))
        if told and rng.random() < 0.3:
            amend(int(rng.choice(told)), float(rng.normal()))
        if len(told) > 1 and rng.random() < 0.2:
            retract(int(rng.choice(told)))
        out.append(Deed("looks", look, changes=False))
    return out


def value(run: Algorithm, trial: int) -> float:
    """What a trial pays."""
    return reward(run.trial(trial).index)


def look(run: Algorithm) -> None:
    """Ask for everything that is computed and remembered between two rewards."""
    with suppress(ValueError, RuntimeError):  # no reward yet, nothing to certify
        run.best()
        if isinstance(run, alexp.algorithms.certified.Certified):
            run.stop_report()
        _ = getattr(run, "probabilities", None)


def digest(run: Algorithm) -> str:
    """Every bit of the state, and what it would be asked next."""
    state = json.dumps(run.to_dict(problem=False), sort_keys=True)
    return hashlib.sha256(state.encode()).hexdigest()


# -- raising at one instruction ----------------------------------------------------------------------------------


class Instructions:
    """Counts the instructions of this thread, and raises before one of them."""

    def __init__(self, error: type[BaseException] | None = None, at: int = -1) -> None:
        self.count, self._error, self._at = 0, error, at

    def __enter__(self) -> Instructions:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code in LEFT_OUT:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.count += 1
            if self.count - 1 == self._at:
                sys.settrace(None)
                assert self._error is not None
                raise self._error("here")
        return self._trace


# Up to Python 3.11, cached properties hold a lock of their own in a `with`, which an exception between the last
# instruction of the block and the release would leave locked. Python itself never raises there.
LEFT_OUT = (Instructions.__exit__.__code__, cached_property.__get__.__code__)


# -- one run, many interrupts ------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What came of some interrupts."""

    tried: int = 0
    before: int = 0  # the deed had not happened
    after: int = 0  # it had
    torn: int = 0
    locked: int = 0  # another thread could not use the optimiser any more
    refused_wrongly: int = 0  # the retry was refused, or accepted, where it should not have been
    diverged: int = 0  # the run went on otherwise

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def violations(self) -> int:
        """How many were not all or nothing."""
        return self.torn + self.locked + self.refused_wrongly + self.diverged


def interrupt(make_run: Callable[[], Algorithm], script: list[Deed], n: int, rng: np.random.Generator) -> Tally:
    """Interrupt a script at `n` random instructions of its deeds, each on a copy of the undisturbed run."""
    run = make_run()
    stages, digests = [deepcopy(run)], [digest(run)]
    for action in script:
        action.do(run)
        stages.append(deepcopy(run))
        digests.append(digest(run))
    tally = Tally()
    while tally.tried < n:
        k = int(rng.integers(len(script)))
        copy = deepcopy(stages[k])
        with Instructions() as counted:
            script[k].do(copy)
        for at in rng.integers(counted.count, size=min(AT_ONCE, n - tally.tried)).tolist():
            tally += one(stages[k], script[k:], digests[k:], ERRORS[int(rng.integers(len(ERRORS)))], at)
    return tally


def one(start: Algorithm, script: list[Deed], digests: list[str], error: type[BaseException], at: int) -> Tally:
    """Interrupt the first deed of a script at instruction `at`; digests are those before and after each deed."""
    run, action, out = deepcopy(start), script[0], Tally(tried=1)
    try:
        with Instructions(error, at):
            action.do(run)
    except BaseException:  # compiled code that calls Python back, and NumPy, make other errors of it
        pass
    else:
        return Tally()  # something was computed for the first time when the instructions were counted
    out.locked = int(not usable_elsewhere(run))
    if out.locked:
        return out
    now = digest(run)
    if now not in digests[:2]:
        out.torn = 1
        return out
    done = now == digests[1] and action.changes
    out.before, out.after = int(not done), int(done)
    out.refused_wrongly = int(not retry(run, action, done))
    for later, expected in zip(script[1:4], digests[2:5], strict=False):
        later.do(run)
        if digest(run) != expected:
            out.diverged = 1
            break
    return out


def retry(run: Algorithm, action: Deed, done: bool) -> bool:
    """Try a deed again, as a user would who does not know whether it was done; whether the answer is right."""
    if done and action.repeated is None:
        return True  # it may be done twice, and would be
    try:
        action.do(run)
    except Exception as error:
        return done and action.repeated is not None and isinstance(error, action.repeated)
    return not done


def usable_elsewhere(run: Algorithm) -> bool:
    """Whether another thread gets an answer."""
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(run.n_asked), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return bool(answers)


# -- all algorithms ----------------------------------------------------------------------------------------------


def built_in() -> dict[str, type[Algorithm]]:
    """The library's own algorithms on tables by name; other tests register some of theirs."""
    every = {name: Algorithm.registry[name] for name in on_tables()}
    mine = {name: kind for name, kind in every.items() if kind.__module__.startswith("alexp.")}
    assert len(mine) > 10
    return mine


def subjects() -> list[tuple[str, Setting, bool]]:
    """Every registered algorithm in every setting that says something about it; the last is whether models sleep."""
    kinds = built_in()
    out = [(name, setting, False) for name, kind in kinds.items() for setting in settings_for(kind)]
    return [*out, ("evidence-mixture", settings_for(kinds["evidence-mixture"])[0], True)]


@contextmanager
def sleeping(enabled: bool) -> Iterator[None]:
    """Let components of negligible evidence sleep in small problems, too."""
    before = grid._LAZY
    grid._LAZY = 1 if enabled else before
    try:
        yield
    finally:
        grid._LAZY = before


def soak(scale: float = 1.0, seed: int = 0) -> dict[str, int | float | str]:
    """2,000 interrupts at scale 1."""
    rng = np.random.default_rng(seed)
    wanted = max(1, round(INTERRUPTS * scale))
    everyone = subjects()
    if wanted < AT_ONCE * len(everyone):  # every algorithm, in one setting each
        everyone = [everyone[k] for k in rng.permutation(len(everyone))]
        everyone = list({(name, sleeps): (name, setting, sleeps) for name, setting, sleeps in everyone}.values())
    shares = np.full(len(everyone), wanted // len(everyone)) + (np.arange(len(everyone)) < wanted % len(everyone))
    total = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (name, setting, sleeps), n in zip(everyone, shares.tolist(), strict=True):
            kind = built_in()[name]
            with sleeping(sleeps):
                total += interrupt(lambda k=kind, s=setting: make(k, s, reward_bound=1.0), deeds(setting, rng), n, rng)
    return vars(total) | {"violations": total.violations}
