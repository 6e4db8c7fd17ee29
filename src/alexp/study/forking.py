"""Forks of processes that use studies.

A child inherits the memory of its parent but not its threads: locks that other threads held stay locked, and data they
were changing stay half changed. SQLite also keeps the locks of a process in memory: a child with an inherited
connection assumes locks that the system has not granted, also on connections that it opens itself. When the parent
closes the file, it deletes the -wal file that the child uses, and commits of the child are lost. Therefore a fork
waits, within the timeout, until no transaction is open, and closes all connections to SQLite files first.

Handlers that are registered first run last before a fork: transactions end before `alexp.common.compiling` waits for
compilations, because a transaction may need to compile.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from weakref import WeakValueDictionary

import alexp.common.compiling  # noqa: F401  registers before what follows


class Forked(ABC):
    """An object with handlers for forks, called once it is `watch`ed."""

    @abstractmethod
    def before_fork(self) -> None:
        """Called before a fork, in the thread that forks."""

    @abstractmethod
    def after_fork(self, in_child: bool) -> None:
        """Called after a fork, in the parent and in the child."""


_watched: WeakValueDictionary[int, Forked] = WeakValueDictionary()
_notified: list[Forked] = []  # of the fork under way
_forking = threading.Lock()


def watch(subject: Forked) -> None:
    """Call the handlers of an object at forks for as long as it exists."""
    _watched[id(subject)] = subject


def _before() -> None:
    _forking.acquire()
    living = (reference() for reference in _watched.valuerefs())
    _notified[:] = [subject for subject in living if subject is not None]
    for subject in _notified:
        subject.before_fork()


def _after_in_parent() -> None:
    _after(in_child=False)
    _forking.release()


def _after_in_child() -> None:
    global _forking
    _forking = threading.Lock()
    _after(in_child=True)


def _after(in_child: bool) -> None:
    for subject in _notified:
        subject.after_fork(in_child)
    _notified.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
