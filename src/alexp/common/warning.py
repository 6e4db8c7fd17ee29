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
heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)  # takes messages in place of a warning


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
    if (kept := heard.get()) is not None:
        if message not in kept:
            kept.append(message)
        return True
    warnings.warn(message, category, stacklevel=_frames_inside())
    return True


def deprecated(what: str, instead: str, removed_in: str) -> None:
    """Warn that something public will go: what, what to use instead, and the version that no longer has it.

    `tests/test_project.py` fails once the library has reached that version.
    """
    warnings.warn(
        f"{what} is deprecated and goes in alexp {removed_in}; use {instead}",
        FutureWarning,
        stacklevel=_frames_inside(),
    )


def _frames_inside() -> int:
    """How many calls up the line is that called the library: a warning points there."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        level, frame = level + 1, frame.f_back
    return level
