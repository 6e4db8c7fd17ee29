"""Warnings that point at the line which called the library, and silence while a known past is repeated."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_LIBRARY = str(Path(__file__).parents[1])

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def gathered() -> Iterator[list[str]]:
    """What is warned of in this block, each text once, in place of a warning on the process's output.

    For services that pass warnings on to their callers: `warnings.catch_warnings` would mix up those of all threads.
    """
    heard: list[str] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


@contextmanager
def quietly() -> Iterator[None]:
    """No warnings about data: for replaying what a user was warned of when it happened."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def caution(message: str, category: type[Warning]) -> bool:
    """Warn, unless it is time to be quiet, at the line that called the library; returns whether it was said."""
    if _quiet.get():
        return False
    if (heard := _heard.get()) is not None:
        if message not in heard:
            heard.append(message)
        return True
    warnings.warn(message, category, stacklevel=_frames_inside())
    return True


def _frames_inside() -> int:
    """How many calls up the line is that called the library: a warning points there."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        level, frame = level + 1, frame.f_back
    return level
