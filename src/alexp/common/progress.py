"""Progress of long work: loops say how far they are, and those who started the work may listen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import NamedTuple, TypeAlias, TypeVar

_OFTEN = 0.1  # seconds between two reports
_PATIENCE = 1.0  # seconds of work before a bar appears

T = TypeVar("T")


class Progress(NamedTuple):
    """What is being done, and how much of it: `done` of `total` steps."""

    what: str
    done: int
    total: int


Listener: TypeAlias = Callable[[Progress], None]
_listener: ContextVar[Listener | None] = ContextVar("alexp_progress", default=None)


@contextmanager
def listening(listener: Listener | bool | None) -> Iterator[None]:
    """Call a function with the `Progress` of all that is done within the block; True shows a bar on standard error.

    A listener of a block around this one hears of it, too.
    """
    if listener is True:
        with _bar() as shown, listening(shown):
            yield
        return
    outer, own = _listener.get(), listener or None

    def both(progress: Progress) -> None:
        for one in (own, outer):
            if one is not None:
                one(progress)

    before = _listener.set(both if own is not None else outer)
    try:
        yield
    finally:
        _listener.reset(before)


def steps(what: str, items: Iterable[T], total: int) -> Iterator[T]:
    """The items, one step each; a listener is told ten times a second how many have been done."""
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    last = monotonic()
    for done, item in enumerate(items):
        if (now := monotonic()) - last > _OFTEN:
            listener(Progress(what, done, total))
            last = now
        yield item
    listener(Progress(what, total, total))


def announce(what: str, done: int, total: int) -> None:
    """Tell a listener, if there is one, how far the work is."""
    if (listener := _listener.get()) is not None:
        listener(Progress(what, done, total))


@contextmanager
def _bar() -> Iterator[Listener]:
    """A bar for each kind of work, with the time left, once a second has passed; nothing if that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console, begin, tasks = Console(stderr=True), monotonic(), {}
    bars = Bars(*columns, console=console, transient=True, disable=not console.is_terminal)

    def show(progress: Progress) -> None:
        if monotonic() - begin < _PATIENCE:
            return
        bars.start()
        if progress.what not in tasks:
            tasks[progress.what] = bars.add_task(progress.what, total=progress.total)
        bars.update(tasks[progress.what], completed=progress.done, total=progress.total)

    try:
        yield show
    finally:
        bars.stop()
