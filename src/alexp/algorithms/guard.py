"""One caller at a time, and all or nothing: the lock and the repair of an algorithm's state.

Everything can be computed from the log of trials by repeating the run, as amended rewards do. A call that changes the
state sets a mark first, and takes it off after the log has grown by the call, in one step. The next call that finds
the mark repeats the run from the log, which either has the interrupted call or has not. An interrupt, a lack of
memory or an unforeseen error outside such a call may spoil cached results; it is answered in the same way. Without an
interrupt, none of this costs anything.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import wraps
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast
from weakref import WeakSet

from alexp.algorithms.assumptions import NotCertified
from alexp.algorithms.log import NoRewardYetError
from alexp.common.ties import rules
from alexp.estimation.posteriors import NotFiniteError

_P = ParamSpec("_P")
_R = TypeVar("_R")

# What is raised at places where the state is whole, unless the mark is set: wrong input, and answers that are none.
_HARMLESS = (
    ValueError, TypeError, LookupError, ImportError, Warning, NoRewardYetError, NotCertified, NotFiniteError,
)  # fmt: skip

_alive: WeakSet[Guarded] = WeakSet()


class ReentrantLock(AbstractContextManager[bool], Protocol):
    """What `threading.RLock` returns, with the method by which the standard library asks for the owner."""

    def acquire(self, blocking: bool = ...) -> bool:
        """Acquire the lock, waiting for it if `blocking`; whether it was acquired."""

    def release(self) -> None:
        """Release the lock."""

    def _is_owned(self) -> bool: ...


class Guarded:
    """An object whose public methods and properties run one at a time, and never on a state that was left half-way.

    Subclasses need not do anything: all their functions and properties with public names are guarded when the class is
    made. What changes the state sets the mark `_changing`, and takes it off when the log has grown by the change.
    """

    _lock: ReentrantLock
    _tie = 0.0  # what it takes for a tie, see `alexp.common.ties`; nothing, if it was made by version 1.0.0
    _changing = False  # the mark: set while a change is on its way into the log
    _torn = False  # whether an interrupt or an unforeseen error has come in between

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Locked before it is made."""
        out = super().__new__(cls)
        out._enrol()
        out._tie = rules.tie
        return out

    def _enrol(self) -> None:
        self._lock = _new_lock()
        _alive.add(self)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            if name.startswith("_") and name != "__repr__":
                continue
            if isinstance(value, FunctionType):
                setattr(cls, name, guarded(value))
            elif isinstance(value, property) and value.fget is not None:
                setattr(cls, name, property(guarded(value.fget), value.fset, value.fdel, value.__doc__))

    def _repair(self) -> None:
        """Compute the state from the log, and take it over in one step."""
        raise NotImplementedError

    def _explanation(self, error: NotFiniteError) -> str:
        """What is wrong, in words that users know."""
        return str(error)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        with self._lock:
            out = memo[id(self)] = type(self).__new__(type(self))
            vars(out).update(deepcopy(self.__getstate__(), memo))
            return out


def guarded(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """The method as others may call it: alone, on a whole state, and leaving word of interrupts."""

    @wraps(method)
    def call(self: Guarded, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        lock = self._lock
        if lock._is_owned():  # from inside another one
            return method(self, *args, **kwargs)
        before, rules.tie = rules.tie, self._tie
        try:  # no `with`: an interrupt between the end of its block and the release would keep the lock for ever
            try:
                lock.acquire()
                if self._torn or self._changing:
                    self._repair()
                out = method(self, *args, **kwargs)
                lock.release()
                return out
            except BaseException as error:
                if lock._is_owned():
                    if not isinstance(error, _HARMLESS):
                        self._torn = True
                    elif isinstance(error, NotFiniteError):
                        error.args = (self._explanation(error),)
                    lock.release()
                raise
        except BaseException:
            if lock._is_owned():  # it was interrupted in the lines above
                self._torn = True
                lock.release()
            raise
        finally:
            rules.tie = before

    return call


def _new_lock() -> ReentrantLock:
    return cast(ReentrantLock, threading.RLock())


def _after_fork() -> None:
    """In a child process: locks of threads that do not exist there are gone, and what they were at may be half done."""
    for one in list(_alive):
        if one._lock.acquire(blocking=False):
            one._lock.release()
        else:
            one._lock, one._torn = _new_lock(), True


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
