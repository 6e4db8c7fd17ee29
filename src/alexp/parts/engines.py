"""Where parts are: in this process, where rows are computed and nothing is kept, or on the workers of a Dask cluster.

A worker keeps rows, means and variances of its parts in its own memory, outside of what Dask manages. It says so when
it lacks something, because it is new or was started again; rows are then read from their source once more and values
computed from the log of directions that every node carries.
"""

from __future__ import annotations

import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Protocol, cast
from weakref import finalize

import numpy as np

from alexp.common.arrays import IntArray
from alexp.common.backends import backend
from alexp.common.extras import require
from alexp.parts.program import NODES, CandidatePart, Node, PartTask
from alexp.problem.rows import RemoteRows

_ROWS = 1 << 22  # of a part, at most
_PATIENCE = 30.0  # seconds that a lost worker has to come back before the others take its parts over
_NO_WORKERS = 120.0  # seconds after which a cluster without workers is an error
_PARTS: dict[tuple[str, int], CandidatePart] = {}  # of this process, as a worker


class PartTable(Protocol):
    """Rows of all candidates as they are described: in files, by a Dask array, or by a rule."""

    key: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def given(self, number: int, low: int, high: int, client: Any) -> Any:
        """What a worker gets to have rows low..high-1 of part `number`: the rows, or a function that reads them."""


class Missing(Exception):
    """What a part lacks to do its task."""

    def __init__(self, tables: frozenset[str]) -> None:
        super().__init__(tables)
        self.tables = tables


class PartEngine(ABC):
    """Consecutive candidates in parts, and tasks on all of them.

    It holds nothing of the parts but what describes them.

    Attributes
    ----------
    name : what decisions are logged as computed on.
    edges : where parts begin and end, (parts + 1,).
    keeps_values : whether parts keep values between two tasks.
    tables : by key.
    stored : for each part, the nodes whose values it has.
    """

    keeps_values: bool
    name: str

    def __init__(self, n_rows: int, n_parts: int) -> None:
        self.key = uuid.uuid4().hex
        self.n_rows = n_rows
        self.edges = np.linspace(0, n_rows, min(n_parts, n_rows) + 1).astype(np.int64)
        self.tables: dict[str, PartTable] = {}
        self.stored: list[dict[int, Node]] = [{} for _ in range(self.edges.size - 1)]

    def add(self, table: PartTable) -> None:
        """Take note of a table."""
        self.tables[table.key] = table

    def adopt(self, name: str, value: Any, n_rows: int | None) -> RemoteRows:
        """A matrix as rows in these parts, checked."""
        return cast(RemoteRows, backend("part_rows")(self, name, value, n_rows))

    def holding(self, candidates: IntArray) -> IntArray:
        """The parts that have some of the candidates, increasing numbers."""
        return np.unique(np.searchsorted(self.edges, candidates, side="right") - 1)

    @abstractmethod
    def run(self, make: Callable[[int], PartTask], parts: Sequence[int] | None = None) -> list[Any]:
        """Results of the task of every part, or of some, in order. `make` is called again for a part that lost values.

        Where a program keeps values, `stored` says so afterwards.
        """


class ThisProcess(PartEngine):
    """Threads of this process, for rows that are computed when they are needed."""

    keeps_values = False

    def __init__(self, n_rows: int) -> None:
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        super().__init__(n_rows, max(8 * self._threads, -(-n_rows // _ROWS)))
        self.name = "cpu"

    def run(self, make: Callable[[int], PartTask], parts: Sequence[int] | None = None) -> list[Any]:
        """By threads."""
        numbers = range(self.edges.size - 1) if parts is None else parts

        def work(number: int) -> Any:
            low, high = int(self.edges[number]), int(self.edges[number + 1])
            task, part = make(number), CandidatePart(low, high)
            part.tables = {key: self.tables[key].given(number, low, high, None) for key in task.tables}
            return task.run(part)

        if self._threads == 1 or len(numbers) == 1:
            return [work(number) for number in numbers]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(work, numbers))


# -- a Dask cluster ------------------------------------------------------------------------------------------------


def distributed() -> Any:
    """The library, or a sentence that says how to get it."""
    require("distributed", subject="a table on several machines")
    return import_module("distributed")


def the_client() -> Any:
    """The client of the cluster that was started last in this process."""
    library = distributed()
    try:
        return library.default_client()
    except ValueError:
        raise ValueError(
            "candidates on several machines need a Dask cluster: start one with `client = dask.distributed.Client()`, "
            "or connect to one with Client('tcp://host:8786'), before the models are made"
        ) from None


class Cluster(PartEngine):
    """Workers of a Dask cluster, each with some of the parts."""

    keeps_values = True

    def __init__(self, n_rows: int, client: Any) -> None:
        workers = client.nthreads()
        if not workers:
            raise ValueError(f"the Dask cluster at {client.scheduler.address} has no workers")
        parts = len(workers) * -(-n_rows // (_ROWS * len(workers)))
        super().__init__(n_rows, parts)
        self._client, self._n_workers = client, len(workers)
        self._owner: dict[int, str] = {}
        self.name = f"{len(workers)} Dask workers"
        finalize(self, _release_all, client, self.key, self._owner).atexit = False

    def run(self, make: Callable[[int], PartTask], parts: Sequence[int] | None = None) -> list[Any]:
        """By workers; parts of one that dies meanwhile are run again by others."""
        numbers = list(range(self.edges.size - 1) if parts is None else parts)
        out, left = dict[int, Any](), set(numbers)
        while left:
            self._assign(left)
            running = dict[Any, tuple[str, list[tuple[int, PartTask]]]]()
            for address in sorted({self._owner[number] for number in left}):
                own = [(number, make(number)) for number in sorted(left) if self._owner[number] == address]
                sent = [(number, int(self.edges[number]), int(self.edges[number + 1]), task) for number, task in own]
                running[self._submit(address, _work, self.key, sent)] = address, own
            for future, (address, own) in running.items():
                found = self._result(future, address)
                for (number, task), result in zip(own, found or [], strict=False):
                    if isinstance(result, Missing):
                        self.stored[number] = {}
                        self._load(address, number, result.tables)
                        continue
                    if isinstance(result, Exception):
                        self.stored[number] = {}
                        raise result
                    out[number] = result
                    for gone in task.dropped:
                        self.stored[number].pop(gone, None)
                    self.stored[number] |= {kept: NODES[kept] for kept in task.kept}
                    left.discard(number)
        return [out[number] for number in numbers]

    def _submit(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        name = f"alexp-{function.__name__}-{uuid.uuid4().hex}"
        return self._client.submit(
            function, *arguments, workers=[address], allow_other_workers=False, pure=False, key=name, retries=0
        )

    def _result(self, future: Any, address: str) -> Any:
        """The result of a task; None if its worker is gone."""
        library, paused = distributed(), 0
        while True:
            try:
                return future.result(timeout=1.0)
            except (TimeoutError, library.TimeoutError):
                status = self._client.run_on_scheduler(_statuses).get(address)
                if status is None:
                    break
                paused = paused + 1 if status == "paused" else 0
                if paused > _PATIENCE:
                    raise MemoryError(
                        f"Dask has paused the worker {address}, because it uses most of its memory: start workers with "
                        "a larger memory_limit, or more of them"
                    ) from None
            except (library.scheduler.KilledWorker, library.client.FutureCancelledError, OSError):
                break
        future.cancel()
        return None

    def _load(self, address: str, number: int, keys: frozenset[str]) -> None:
        """Have a worker read rows of a part."""
        low, high = int(self.edges[number]), int(self.edges[number + 1])
        for key in sorted(keys):
            given = self.tables[key].given(number, low, high, self._client)
            self._result(self._submit(address, _load, self.key, number, low, high, key, given), address)

    def _assign(self, parts: set[int]) -> None:
        """Give parts without a worker to those that have the fewest; a worker that died has some time to come back."""
        alive, since = set(self._client.nthreads()), time.monotonic()
        lost = {number for number in parts if self._owner.get(number) not in alive}
        while lost and (len(alive) < self._n_workers or not alive):
            waited = time.monotonic() - since
            if alive and waited > _PATIENCE:
                self._n_workers = len(alive)
            elif waited > _NO_WORKERS:
                raise RuntimeError(f"the Dask cluster at {self._client.scheduler.address} has had no workers for 2 min")
            else:
                time.sleep(0.05)
                alive = set(self._client.nthreads())
        for number in sorted(lost):
            counts = dict.fromkeys(sorted(alive), 0)
            for other, address in self._owner.items():
                if address in counts and other not in lost:
                    counts[address] += 1
            self._owner[number] = min(counts, key=lambda address: counts[address])
            self.stored[number] = {}
            lost = lost - {number}


def _statuses(dask_scheduler: Any) -> dict[str, str]:
    return {address: str(worker.status.name) for address, worker in dask_scheduler.workers.items()}


def _part(engine: str, number: int, low: int, high: int) -> CandidatePart:
    return _PARTS.setdefault((engine, number), CandidatePart(low, high))


def _load(engine: str, number: int, low: int, high: int, key: str, given: Any) -> None:
    """Have rows of a part in this worker."""
    rows = given() if callable(given) else given
    _part(engine, number, low, high).tables[key] = np.asarray(rows) if isinstance(rows, np.ndarray) else rows


def _work(engine: str, tasks: list[tuple[int, int, int, PartTask]]) -> list[Any]:
    """Results of tasks on parts of this worker, by as many threads as it has; errors among them."""
    threads = min(len(tasks), int(getattr(distributed().get_worker().state, "nthreads", 1)))

    def work(given: tuple[int, int, int, PartTask]) -> Any:
        number, low, high, task = given
        part = _part(engine, number, low, high)
        lacking = frozenset(task.tables - part.tables.keys())
        if lacking or not task.known <= part.values.keys():
            part.values.clear()
            return Missing(lacking)
        try:
            return task.run(part)
        except Exception as error:
            return error

    if threads <= 1:
        return [work(given) for given in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, tasks))


def _release(engine: str) -> None:
    for key in [key for key in _PARTS if key[0] == engine]:
        del _PARTS[key]


def _release_all(client: Any, engine: str, owners: dict[int, str]) -> None:
    """Let workers forget the parts of a run that is gone."""
    if client.status == "running":
        for address in set(owners.values()):
            own = {"workers": [address], "allow_other_workers": True, "pure": False}
            distributed().fire_and_forget(client.submit(_release, engine, **own))
