"""The runner: many tasks over many processes, with progress, a cache, and results that depend on neither.

The contract, for everything that sweeps:

    records = sweep(tasks)                       # list of Record, in the order of the tasks
    records = sweep(tasks, workers=4)            # processes on this machine; all cores by default
    records = sweep(tasks, dask="tcp://...")     # the same on a Dask cluster
    records = sweep(tasks, cache=None)           # neither read nor write results

A task runs at most once, however often it is listed, and not at all if the cache has its record. Ctrl-C stops the
workers, writes what is finished and raises KeyboardInterrupt; the next sweep goes on from there. A worker that dies
is replaced and its tasks are run again; since a record follows from its task alone, nothing else changes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import TypeVar

from alexp.common.validation import count
from alexp_experiments.core.cache import ResultCache
from alexp_experiments.core.tasks import Record, Task, run_task

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_MOST_BREAKDOWNS = 3
_AHEAD = 8  # tasks handed out per process; waiting looks at each of them, so that handing out all is quadratic

__all__ = ["Record", "Task", "run_task", "spread", "sweep"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def sweep(
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    dask: str | None = None,
    cache: ResultCache | str | None = "default",
    progress: bool = True,
    title: str = "runs",
) -> list[Record]:
    """Run every task that has no record yet, and return the records of all, in order.

    Parameters
    ----------
    workers
        Processes on this machine, all cores by default; 1 runs in this process. Ignored with `dask`.
    dask
        Address of a Dask scheduler whose workers have this package installed.
    cache
        Where records are kept; "default" is $ALEXP_CACHE or ~/.cache/alexp, None keeps none.
    progress
        Show a bar with the time that is left.
    """
    store = ResultCache() if isinstance(cache, str) else cache
    done: dict[str, Record] = {}
    missing: dict[str, Task] = {}
    for task in tasks:
        found = store.get(task) if store is not None else None
        if found is None:
            missing[task.key] = task
        else:
            done[task.key] = found
    if missing:
        todo = list(missing.values())
        finished = _on_dask(todo, dask) if dask is not None else _locally(todo, _processes(workers, len(todo)))
        try:
            with _bar(title, len(todo), progress) as advance:
                for task, record in finished:
                    done[task.key] = record
                    if store is not None:
                        store.put(task, record)
                    advance()
        finally:
            finished.close()
            if store is not None:
                store.flush()
    return [done[task.key] for task in tasks]


def spread(work: Callable[[_Item], _Result], items: Iterable[_Item], workers: int | None = None) -> list[_Result]:
    """`[work(item) for item in items]`, computed by processes on this machine, one per core by default.

    For experiments that are no tasks; `work` must be a function of a module, or a partial of one.
    """
    todo, out = list(items), list[_Result]()
    processes = _processes(workers, len(todo))
    with ExitStack() as stack:
        advance = stack.enter_context(_bar("runs", len(todo), show=True))
        results: Iterable[_Result] = map(work, todo)
        if processes > 1:
            stack.enter_context(_single_threaded())
            pool = ProcessPoolExecutor(processes, mp_context=_context(), initializer=_start_worker)
            results = stack.enter_context(pool).map(work, todo)
        for result in results:
            out.append(result)
            advance()
    return out


def _processes(workers: int | None, n_tasks: int) -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available if workers is None else count("workers", workers), n_tasks)


Finished = Generator[tuple[Task, Record], None, None]


def _locally(tasks: list[Task], processes: int) -> Finished:
    """Finished tasks as they come, from processes on this machine."""
    if processes == 1:
        for task in tasks:
            yield task, run_task(task)
        return
    # Compiled code is read from a cache on disk. One short run per algorithm fills it before all workers would.
    for algorithm in {task.kind: task for task in tasks}.values():
        run_task(replace(algorithm, scenario=algorithm.scenario.with_(steps=2, resolution=50)))
    remaining = {task.key: task for task in tasks}
    for breakdown in range(_MOST_BREAKDOWNS + 1):
        try:
            for task, record in _through_pool(list(remaining.values()), processes):
                del remaining[task.key]
                yield task, record
            return
        except BrokenProcessPool:
            if breakdown == _MOST_BREAKDOWNS:
                raise


def _through_pool(tasks: list[Task], processes: int) -> Finished:
    with _single_threaded():
        pool = ProcessPoolExecutor(processes, mp_context=_context(), initializer=_start_worker)
        try:
            queue = iter(tasks)
            waiting = {pool.submit(run_task, task): task for task in islice(queue, _AHEAD * processes)}
            while waiting:
                ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
                waiting |= {pool.submit(run_task, task): task for task in islice(queue, len(ready))}
                for future in ready:
                    yield waiting.pop(future), future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _context() -> multiprocessing.context.BaseContext:
    """Fresh processes that inherit no threads; where the system can, forked from a server that has imported all."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes started meanwhile use one thread each for linear algebra; there is one process per core."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _start_worker() -> None:
    """Ctrl-C reaches every process of the terminal, the parent alone decides; and no worker outlives its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _on_dask(tasks: list[Task], address: str) -> Finished:
    """Finished tasks as they come, from a Dask cluster, which runs the tasks of a lost worker again."""
    library = import_module("distributed")  # it has no types

    with library.Client(address, set_as_default=False) as client:
        futures = {
            future.key: (future, task)
            for task in tasks
            for future in [client.submit(run_task, task, key=f"alexp-{task.key}", retries=3)]
        }
        for future in library.as_completed([future for future, _ in futures.values()], loop=client.loop):
            record = future.result()
            yield futures.pop(future.key)[1], record
            future.release()


@contextmanager
def _bar(title: str, total: int, show: bool) -> Iterator[Callable[[], None]]:
    """A progress bar with the time left, as a function to call after each task."""
    if not show:
        yield lambda: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description:<28}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bars:  # what is printed may become a page
        task = bars.add_task(title, total=total)
        yield lambda: bars.advance(task)
