"""The studies that a service holds open, one object each for all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from alexp.common.warning import gathered
from alexp.problem.domains import Domain
from alexp.service.metrics import Meters
from alexp.service.problems import NO_FIELDS, translated
from alexp.study import Storage, Study, StudyNotFoundError, delete_study, load_study
from alexp.study.errors import StorageError, StudyError
from alexp.study.events import acting_as

T = TypeVar("T")


class Acted(NamedTuple, Generic[T]):
    """What came of a call, and what the library warned of on the way."""

    value: T
    warnings: list[str]


@dataclass
class Opened:
    """A study that is held open, and its domain, which nothing but new arms ever changes."""

    study: Study
    domain: Domain
    users: int = field(default=0, compare=False)


class Shelf:
    """Open studies of one storage by name. Several processes may have the same studies on their shelves.

    Attributes
    ----------
    stopping : set when the service ends: streams end, and no study is opened any more for long.
    """

    def __init__(self, storage: Storage, most: int, meters: Meters) -> None:
        self.storage, self.meters, self._most = storage, meters, most
        self.stopping = threading.Event()
        self._mutex = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._open: OrderedDict[str, Opened] = OrderedDict()
        meters.count_open(lambda: len(self._open))

    def act(
        self,
        name: str,
        work: Callable[[Opened], T],
        worker: str | None = None,
        fields: Mapping[str, str] = NO_FIELDS,
    ) -> Acted[T]:
        """Do something with a study, under the name of a worker; errors become problems, which `fields` helps to place.

        A study that was deleted elsewhere, and perhaps created anew, is opened again: nothing has happened by then.
        """
        with translated(fields), acting_as(worker), gathered() as heard:
            for is_last in (False, True):
                with self._using(name) as opened:
                    try:
                        return Acted(work(opened), heard)
                    except StudyNotFoundError:
                        self._discard(name, opened)
                        if is_last:
                            raise
        raise AssertionError  # the second attempt returns or raises

    @contextmanager
    def _using(self, name: str) -> Iterator[Opened]:
        opened = self._take(name) or self._load(name)
        try:
            yield opened
        finally:
            with self._mutex:
                opened.users -= 1
            self._tidy()

    def _take(self, name: str) -> Opened | None:
        with self._mutex:
            opened = self._open.get(name)
            if opened is not None:
                opened.users += 1
                self._open.move_to_end(name)
            return opened

    def _load(self, name: str) -> Opened:
        """Open a study once, however many ask for it at the same time."""
        if not name.isprintable():
            raise StudyNotFoundError("there is no study of such a name: names have no control characters")
        with self._mutex:
            opening = self._opening.setdefault(name, threading.Lock())
        with opening:
            if (opened := self._take(name)) is not None:
                return opened
            try:
                study = load_study(name, self.storage)
                return self.put(study, users=1)
            finally:
                with self._mutex:
                    self._opening.pop(name, None)

    def put(self, study: Study, users: int = 0) -> Opened:
        """Hold a study open that was just created or opened."""
        opened = Opened(study, study.algorithm.domain, users)
        with self._mutex:
            self._open[study.name] = opened
        return opened

    def _discard(self, name: str, opened: Opened) -> None:
        with self._mutex:
            if self._open.get(name) is opened:
                del self._open[name]

    def _tidy(self) -> None:
        """Close studies that nobody uses, the least recently used first, until few enough are open."""
        with self._mutex:
            spare = [name for name, opened in self._open.items() if opened.users == 0]
            closing = [self._open.pop(name) for name in spare[: max(0, len(self._open) - self._most)]]
        for opened in closing:
            with suppress(StudyError):  # closing saves time, and nothing else
                opened.study.close()

    def delete(self, name: str) -> None:
        """Delete a study for ever."""
        with translated():
            if not name.isprintable():
                raise StudyNotFoundError("there is no study of such a name: names have no control characters")
            delete_study(name, self.storage)
        with self._mutex:
            self._open.pop(name, None)

    def storage_status(self) -> Literal["ok", "storage"]:
        """Whether the SQLite file that is open is the one at its path; a look that notices a new file opens it."""
        try:
            self.storage.check_file()
        except StorageError:
            return "storage"
        return "ok"

    def stop(self) -> None:
        """Say that the service ends."""
        self.stopping.set()

    def close(self) -> None:
        """Close all studies: nobody uses them any more."""
        self.stop()
        with self._mutex:
            closing = list(self._open.values())
            self._open.clear()
        for opened in closing:
            with suppress(StudyError):
                opened.study.close()
        self.storage.close()
