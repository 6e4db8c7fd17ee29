"""Event streams of studies: one poller per study and process, for any number of readers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import islice

from anyio.to_thread import run_sync

from alexp.common.codec import State
from alexp.service.problems import RETRY_AFTER, Kind, ProblemError
from alexp.service.studies import StudyCache

_BATCH = 500  # events read at once
_KEPT = 2000  # newest events in memory, for readers that are a little behind


@dataclass
class _Watch:
    """The newest events of one study's log, the number of all its events, and the task that polls it."""

    n_events: int
    newest: deque[State] = field(default_factory=lambda: deque(maxlen=_KEPT))
    readers: int = 0
    trouble: str | None = None
    gone: bool = False
    pulse: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def after(self, position: int) -> list[State] | None:
        """At most 500 events from `position` on; None if they are no longer kept."""
        first = self.n_events - len(self.newest)
        if position < first:
            return None
        return list(islice(self.newest, position - first, position - first + _BATCH))

    def beat(self) -> None:
        """Wake all streams."""
        pulse, self.pulse = self.pulse, asyncio.Event()
        pulse.set()


class EventStreams:
    """Streams of server-sent events, by the name of the study.

    Parameters
    ----------
    studies
        Where the studies are. When it is stopping, all streams end, so that the server can stop.
    most
        Number of concurrent streams; one caller may have a quarter of them.
    every
        Seconds between two polls of the log of a study that has readers.
    heartbeat
        Seconds of silence after which a comment is sent; sending it shows whether the reader is still there.
    """

    def __init__(self, studies: StudyCache, most: int, every: float = 0.4, heartbeat: float = 5.0) -> None:
        self._studies, self._every, self._heartbeat, self._most = studies, every, heartbeat, most
        self._watches: dict[str, _Watch] = {}
        self._callers: Counter[str] = Counter()

    @property
    def n_readers(self) -> int:
        """Number of streams."""
        return sum(watch.readers for watch in self._watches.values())

    async def stream(self, name: str, since: int | None, caller: str) -> AsyncIterator[str]:
        """The stream of a study from its event number `since` on, by default from the next one.

        Raises before the first line if there is no such study, or too many streams.
        """
        for number, most, whose in (
            (self.n_readers, self._most, "this server has"),
            (self._callers[caller], max(1, self._most // 4), "you have"),
        ):
            if number >= most:
                raise ProblemError(
                    Kind(503, "too-many-streams"),
                    f"{whose} {most} event streams, the limit; close some",
                    headers={"Retry-After": str(RETRY_AFTER)},
                )
        n_events = await run_sync(self._count, name)
        return self._lines(name, n_events if since is None else min(since, n_events), n_events, caller)

    async def _lines(self, name: str, position: int, n_events: int, caller: str) -> AsyncIterator[str]:
        watch = self._enter(name, n_events)
        self._callers[caller] += 1
        troubled = False
        try:
            yield "retry: 2000\n: events of a study\n\n"
            while not self._studies.stopping.is_set():
                pulse = watch.pulse
                if watch.gone:
                    yield _message("gone", {"detail": f"study {name!r} has been deleted"})
                    return
                if troubled != (watch.trouble is not None):
                    troubled = watch.trouble is not None
                    yield _message("trouble" if troubled else "well", {"detail": watch.trouble})
                batch = watch.after(position)
                if batch is None:
                    batch = await self._read(watch, name, position)
                for event in batch:
                    position = event["seq"] + 1
                    yield f"id: {position}\ndata: {json.dumps(event)}\n\n"
                if not batch:
                    try:
                        await asyncio.wait_for(pulse.wait(), self._heartbeat)
                    except TimeoutError:
                        yield ": still here\n\n"
        finally:
            self._leave(name, watch)
            self._callers -= Counter([caller])

    def _enter(self, name: str, n_events: int) -> _Watch:
        watch = self._watches.get(name)
        if watch is None or watch.gone:
            watch = self._watches[name] = _Watch(n_events)
            watch.task = asyncio.create_task(self._poll(name, watch))
        watch.readers += 1
        return watch

    def _leave(self, name: str, watch: _Watch) -> None:
        watch.readers -= 1
        if watch.readers == 0 and watch.task is not None:
            watch.task.cancel()
            if self._watches.get(name) is watch:
                del self._watches[name]

    async def _poll(self, name: str, watch: _Watch) -> None:
        while not (watch.gone or self._studies.stopping.is_set()):
            events = await self._read(watch, name, watch.n_events)
            if events:
                watch.newest.extend(events)
                watch.n_events = events[-1]["seq"] + 1
                watch.beat()
            if len(events) < _BATCH:
                await asyncio.sleep(self._every if watch.trouble is None else 5.0 * self._every)
        watch.beat()

    async def _read(self, watch: _Watch, name: str, position: int) -> list[State]:
        """The next events; none, with `watch.trouble` or `watch.gone` set, if they cannot be read."""
        trouble, gone, events = None, False, []
        try:
            events = await run_sync(self._events, name, position)
        except ProblemError as problem:
            gone = problem.kind.status == 404
            trouble = None if gone else problem.detail
        if (trouble, gone) != (watch.trouble, watch.gone):
            watch.trouble, watch.gone = trouble, gone
            watch.beat()
        return events

    def _events(self, name: str, position: int) -> list[State]:
        return [
            dict(event) for event in self._studies.use(name, lambda opened: opened.study.events(position, _BATCH)).value
        ]

    def _count(self, name: str) -> int:
        return self._studies.use(name, lambda opened: opened.study.refresh().n_events).value


def _message(kind: str, data: State) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
