"""Open studies of a service, one object per study for all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from alexp.common.warning import heard
from alexp.estimation.announcing import expected
from alexp.service.monitoring import Metrics
from alexp.service.problems import NO_FIELDS, RETRY_AFTER, Kind, ProblemError, as_problems
from alexp.service.security import Limits
from alexp.study import Storage, Study, StudyNotFoundError, delete_study, load_study
from alexp.study.errors import StorageError, StudyError
from alexp.study.events import acting_as

T = TypeVar("T")


class CallResult(NamedTuple, Generic[T]):
    """The result of a call, and the warnings of the library during it."""

    value: T
    warnings: list[str]


@contextmanager
def gathered() -> Iterator[list[str]]:
    """What is warned of in this block, each text once, in place of a warning on the process's output.

    `warnings.catch_warnings` would mix up the warnings of all threads.
    """
    messages: list[str] = []
    token = heard.set(messages)
    try:
        yield messages
    finally:
        heard.reset(token)


class _Turns:
    """A lock that threads get in the order in which they came; `threading.Lock` lets some of many wait for long."""

    def __init__(self) -> None:
        self._mutex, self._is_taken = threading.Lock(), False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._mutex:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


@dataclass
class OpenStudy:
    """An open study, and the bytes that its posteriors may take, as estimated; `turns` is held while it is changed."""

    study: Study
    bytes: float
    users: int = field(default=0, compare=False)
    turns: _Turns = field(default_factory=_Turns, compare=False)


class StudyCache:
    """Open studies of one storage by name. Several processes may hold the same study open.

    Attributes
    ----------
    stopping : set when the service shuts down; event streams then end.
    """

    def __init__(self, storage: Storage, limits: Limits, metrics: Metrics) -> None:
        self.storage, self.metrics, self._limits = storage, metrics, limits
        self.stopping = threading.Event()
        self._reserved = 0.0  # bytes of studies that are being created
        self._mutex = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._open: OrderedDict[str, OpenStudy] = OrderedDict()
        metrics.count_open_studies(lambda: len(self._open))

    def change(
        self, name: str, work: Callable[[OpenStudy], T], worker: str | None, fields: Mapping[str, str] = NO_FIELDS
    ) -> CallResult[T]:
        """As `use`, under a worker's name, for what changes the study: first come, first served."""

        def in_turn(opened: OpenStudy) -> T:
            with opened.turns:
                return work(opened)

        with acting_as(worker):
            return self.use(name, in_turn, fields)

    def use(self, name: str, work: Callable[[OpenStudy], T], fields: Mapping[str, str] = NO_FIELDS) -> CallResult[T]:
        """Call `work` with an open study; errors become problems.

        `fields` gives the place in the request body by argument name. If another process has deleted the study, it is
        opened again, in case it was created anew; `work` has changed nothing by then.
        """
        with as_problems(fields), gathered() as warnings:
            for is_last in (False, True):
                with self._using(name) as opened:
                    try:
                        return CallResult(work(opened), warnings)
                    except StudyNotFoundError:
                        self._discard(name, opened)
                        if is_last:
                            raise
        raise AssertionError  # the second attempt returns or raises

    @contextmanager
    def _using(self, name: str) -> Iterator[OpenStudy]:
        opened = self._take(name) or self._load(name)
        try:
            yield opened
        finally:
            with self._mutex:
                opened.users -= 1
            self._close_unused()

    def _take(self, name: str) -> OpenStudy | None:
        with self._mutex:
            opened = self._open.get(name)
            if opened is not None:
                opened.users += 1
                self._open.move_to_end(name)
            return opened

    def _load(self, name: str) -> OpenStudy:
        """Open a study once, even if several threads ask for it at the same time."""
        if not name.isprintable():
            raise StudyNotFoundError("there is no study of this name: names have no control characters")
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

    def put(self, study: Study, users: int = 0) -> OpenStudy:
        """Add a study that was just created or opened."""
        algorithm = study.algorithm
        cost = expected(algorithm.models, algorithm.domain.n_candidates or 0, algorithm.ridges_per_model)
        opened = OpenStudy(study, cost.later, users)
        with self._mutex:
            self._open[study.name] = opened
        self._close_unused()
        return opened

    @contextmanager
    def room_for(self, needed: float) -> Iterator[None]:
        """Room in memory for so many bytes of a study that is created in this block; unused studies are closed."""
        with self._mutex:
            self._reserved += needed
        try:
            self._close_unused()
            if self._bytes() > self._limits.memory:
                raise ProblemError(
                    Kind(503, "busy"),
                    "the studies in use at the moment leave too little memory for this one; try again",
                    headers={"Retry-After": str(RETRY_AFTER)},
                )
            yield
        finally:
            with self._mutex:
                self._reserved -= needed

    def _bytes(self) -> float:
        return self._reserved + sum(opened.bytes for opened in self._open.values())

    def _discard(self, name: str, opened: OpenStudy) -> None:
        with self._mutex:
            if self._open.get(name) is opened:
                del self._open[name]

    def _close_unused(self) -> None:
        """Close unused studies, the least recently used first, while too many or too large ones are open."""
        closing: list[OpenStudy] = []
        with self._mutex:
            for name in [name for name, opened in self._open.items() if opened.users == 0]:
                if len(self._open) <= self._limits.open_studies and self._bytes() <= self._limits.memory:
                    break
                closing.append(self._open.pop(name))
        for opened in closing:
            with suppress(StudyError):  # closing only writes a snapshot, which saves time
                opened.study.close()

    def delete(self, name: str) -> None:
        """Delete a study from the storage."""
        with as_problems():
            if not name.isprintable():
                raise StudyNotFoundError("there is no study of this name: names have no control characters")
            delete_study(name, self.storage)
        with self._mutex:
            self._open.pop(name, None)
        self.metrics.forget(name)

    def status(self, ask_storage: bool = False) -> Literal["ok", "stopping", "storage"]:
        """Whether requests are taken: not while stopping, nor if the open SQLite file is no longer the one at its path.

        With `ask_storage` the storage must also answer a query.
        """
        if self.stopping.is_set():
            return "stopping"
        try:
            self.storage.check_file()
            if ask_storage:
                self.storage.exists()
        except StorageError:
            return "storage"
        return "ok"

    def stop(self) -> None:
        """Announce the shutdown: event streams end."""
        self.stopping.set()

    def close(self) -> None:
        """Close all studies and the storage, once no request is running."""
        self.stop()
        with self._mutex:
            closing = list(self._open.values())
            self._open.clear()
        for opened in closing:
            with suppress(StudyError):
                opened.study.close()
        self.storage.close()
