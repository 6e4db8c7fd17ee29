"""What happens to studies when their process forks.

A child inherits the memory of its parent, but none of its threads: locks that others held stay locked for ever, and
what they were changing stays half changed. With SQLite there is more: the library keeps the locks of a process in
memory, and a child that inherits an open connection believes that it holds locks which the system has not given it,
also on connections that it opens itself. When the parent then closes, it deletes the log of changes under the child's
feet, and what the child has committed is lost. Hence a fork waits for a moment without a transaction, which timeouts
bound, and nothing of SQLite is open while it happens.

What is registered first is called last before a fork: transactions end before `alexp.common.compiling` waits for
compilations, since a transaction may have to compile before it ends.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

import alexp.common.compiling  # noqa: F401  registers before what follows


class Forked(ABC):
    """Something that is told of forks, once `watch`ed."""

    @abstractmethod
    def before_fork(self) -> None:
        """Get ready, in the thread that is going to fork."""

    @abstractmethod
    def after_fork(self, in_child: bool) -> None:
        """Go on, in the parent or in the child."""


class Transactions:
    """Counts who is inside a transaction, so that a fork can wait until nobody is."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()  # by thread
        self._halted = False

    @contextmanager
    def one(self) -> Iterator[None]:
        """To be entered for every transaction; waits while the process forks."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._halted or me in self._inside)
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= Counter((me,))
                self._changed.notify_all()

    def halt(self, timeout: float) -> bool:
        """Let no other begin, and wait for those under way; whether there is none left.

        One of the calling thread itself will not end while we wait, so that it is not waited for.
        """
        me = threading.get_ident()
        with self._changed:
            self._halted = True
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, timeout)
            return not self._inside

    def resume(self) -> None:
        """After `halt`."""
        with self._changed:
            self._halted = False
            self._changed.notify_all()


_watched: WeakValueDictionary[int, Forked] = WeakValueDictionary()
_told: list[Forked] = []  # of the fork under way
_forking = threading.Lock()


def watch(subject: Forked) -> None:
    """Tell a thing of forks for as long as it lives."""
    _watched[id(subject)] = subject


def _before() -> None:
    _forking.acquire()
    living = (reference() for reference in _watched.valuerefs())
    _told[:] = [subject for subject in living if subject is not None]
    for subject in _told:
        subject.before_fork()


def _after_in_parent() -> None:
    _after(in_child=False)
    _forking.release()


def _after_in_child() -> None:
    global _forking
    _forking = threading.Lock()
    _after(in_child=True)


def _after(in_child: bool) -> None:
    for subject in _told:
        subject.after_fork(in_child)
    _told.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
