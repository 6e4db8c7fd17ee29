"""The part of a remote study that reads its log: what has happened, and what happens while one looks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from alexp.client.line import Line
from alexp.common.codec import State
from alexp.common.validation import count
from alexp.study.errors import StorageError, StudyNotFoundError

if TYPE_CHECKING:
    import httpx

    from alexp.study.events import EventDict

_PAUSE = 1.0  # seconds before a stream that has ended is opened again


class RemoteLog:
    """The log of a study, asked of its service."""

    _line: Line
    _path: str

    def summary(self) -> State:
        """What the study is, as JSON data: algorithm, direction, counts, domain, settings and what they mean."""
        return cast(State, self._line.read(self._path))

    def events(self, since: int = 0, limit: int | None = None) -> list[EventDict]:
        """What happened after the first `since` events, oldest first and at most `limit` of them, as JSON data.

        To follow a study, use `follow`, or ask again with the number of events seen so far, `events[-1]["seq"] + 1`.
        """
        start, stop = count("since", since, 0), int(self.summary()["n_events"])
        if limit is not None:
            stop = min(stop, start + count("limit", limit))
        found: list[EventDict] = []
        if start < stop:
            for event in self.follow(start):
                found.append(event)
                if event["seq"] + 1 >= stop:
                    break
        return found

    def follow(self, since: int | None = None) -> Iterator[EventDict]:
        """Events as they happen, after the first `since`, or from now on; ends with an error if the study is deleted.

        A connection that is lost is opened again, and nothing is missed.
        """
        import httpx

        attempts, position = 0, int(self.summary()["n_events"]) if since is None else count("since", since, 0)
        while True:
            try:
                with self._line.stream(f"{self._path}/events", since=position) as response:
                    for event in _events(response):
                        position, attempts = event["seq"] + 1, 0
                        yield event
            except httpx.TransportError as error:
                attempts += 1
                if attempts > self._line.retries:
                    raise StorageError(f"the events of the study cannot be read: {error}") from error
            time.sleep(_PAUSE)


def _events(response: httpx.Response) -> Iterator[EventDict]:
    """The events of a stream; comments, which only say that it is alive, are passed over."""
    kind = ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data" and kind == "gone":
            raise StudyNotFoundError(json.loads(value)["detail"])
        elif name == "data" and kind == "":
            yield json.loads(value)
        elif line == "":
            kind = ""
