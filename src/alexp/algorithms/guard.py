"""One caller at a time, and all or nothing: what stands between users and the state of an algorithm.

The log of trials is the truth; everything else can be computed from it by repeating the run, which is what corrections
of rewards do anyway. So a deed that has begun only needs a mark: it is set before anything is touched, and taken off
after the log has grown by the deed, in one step. Whoever comes next and finds the mark repeats the run from the log,
which either has the deed or has not. An interrupt, a lack of memory or an error that nobody foresaw may come anywhere
else, too, and tear what is remembered between two rewards; it is answered in the same way. Nothing of it costs anything
as long as nothing goes wrong.
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
from alexp.estimation.posteriors import NotFiniteError

_P = ParamSpec("_P")
_R = TypeVar("_R")

# What is raised at places where the state is whole, unless the mark is set: wrong input, and answers that are none.
_HARMLESS = (ValueError, TypeError, LookupError, ImportError, Warning, NotCertified, NotFiniteError)

_alive: WeakSet[Guarded] = WeakSet()


class ReentrantLock(AbstractContextManager[bool], Protocol):
    """What `threading.RLock` makes; conditions of the standard library ask it in the same way who holds it."""

    def acquire(self, blocking: bool = ...) -> bool:
        """Wait for it, unless told not to; whether it is ours now."""

    def release(self) -> None:
        """Give it back."""

    def _is_owned(self) -> bool: ...


class Guarded:
    """An object whose public methods and properties run one at a time, and never on a state that was left half-way.

    Subclasses need not do anything: all their functions and properties with public names are guarded when the class is
    made. What changes the state begins with `_begin`, and takes the mark off when the log has grown by it.
    """

    _lock: ReentrantLock
    _changing = False  # the mark: set while a deed is on its way into the log
    _torn = False  # whether something grave has come in between

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Locked before it is made."""
        out = super().__new__(cls)
        out._enrol()
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

    def _begin(self) -> None:
        """From here on the state is not to be trusted."""
        self._changing = True

    def _end(self) -> None:
        """From here on it is again."""
        self._changing = False

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


os.register_at_fork(after_in_child=_after_fork)
