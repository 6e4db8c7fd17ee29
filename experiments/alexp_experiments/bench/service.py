"""What the service adds: asking and telling over HTTP beside the study's own, and what a crowd of clients gets done."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np

from alexp.client import Client
from alexp.problem import Interval, ModelClass
from alexp_experiments.bench.records import Measurement, record

ADDED_MS = 15.0  # what the service may add to an ask
CROWDS = {1: 512, 8: 512, 64: 5_000}  # clients at once: pairs of ask and tell that they share

_MODELS = ModelClass.legendre(degree=6, size=3)
_DOMAIN = Interval(-1.0, 1.0, resolution=200)
_NOISE, _SEED = 0.1, 3
_PATIENCE = 60.0  # seconds within which a server must have started

T = TypeVar("T")


def bench_service(
    rounds: int = 200, crowds: Mapping[int, int] = CROWDS, storage: str | None = None
) -> list[Measurement]:
    """Play turn by turn a study beside us and its twin behind a server, then let crowds of clients play.

    `storage` is a database of one's own; by default a SQLite file that is deleted afterwards. `ratio` is what the
    service adds to the median, divided by its limit: below one is good.
    """
    with tempfile.TemporaryDirectory(prefix="alexp-bench-", dir=os.getcwd()) as folder:
        where = storage or f"sqlite:///{Path(folder) / 'study.db'}"
        with serving(where) as (url, process):
            crowded = partial(_crowded, where, url, process)
            return _playing(where, url, rounds) + [crowded(clients, pairs) for clients, pairs in crowds.items()]


@contextmanager
def serving(where: str) -> Iterator[tuple[str, int]]:
    """The address of a server of its own process, as `alexp serve` starts it, and the number of that process."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "alexp", "serve", "--storage", where, "--port", str(port), "--rate", "0"]
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            _await(f"http://127.0.0.1:{port}", server)
            yield f"http://127.0.0.1:{port}", server.pid
        finally:
            server.terminate()
            server.wait()


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    import httpx

    deadline = time.monotonic() + _PATIENCE
    while server.poll() is None and time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/healthz", trust_env=False)
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"the server did not start within {_PATIENCE:g} s")


def _instance(where: str) -> str:
    return f"on {where.split(':', 1)[0]}"


@contextmanager
def _study(where: str, name: str) -> Iterator[None]:
    """A new study of that name, for the time of a measurement."""
    from alexp.study import create_study, delete_study

    create_study(_MODELS, _DOMAIN, name=name, storage=where, noise_std=_NOISE, random_state=_SEED).close()
    yield
    delete_study(name, where)


def _playing(where: str, url: str, rounds: int) -> list[Measurement]:
    """The same rounds beside us and behind the server, turn by turn."""
    from alexp.study import load_study

    times: dict[str, list[float]] = {}

    def timed(key: str, action: Callable[[], T]) -> T:
        begin = perf_counter()
        answer = action()
        times.setdefault(key, []).append(1e3 * (perf_counter() - begin))
        return answer

    with (
        _study(where, "bench beside"),
        _study(where, "bench behind"),
        load_study("bench beside", where) as own,
        Client(url) as client,
    ):
        served = client.study("bench behind")
        for turn in range(rounds + 5):
            trial, twin = timed("own ask", own.ask), timed("ask", served.ask)
            if trial != twin:
                raise RuntimeError(f"the study asked for {trial}, its twin behind the service for {twin}")
            reward = 1.0 - trial.x**2 + 0.1 * float(np.cos(37.0 * trial.id))
            timed("own tell", partial(own.tell, trial, reward))
            timed("tell", partial(served.tell, trial, reward))
            if turn == 4:
                times.clear()  # the first ones open connections and load what is compiled
    return [_compared(_instance(where), case, times[case], times[f"own {case}"]) for case in ("ask", "tell")]


def _compared(instance: str, case: str, served: list[float], own: list[float]) -> Measurement:
    median, beside = float(np.median(served)), float(np.median(own))
    return record(
        "service",
        instance,
        case,
        median_ms=median,
        ratio=(median - beside) / ADDED_MS,
        limit_ms=ADDED_MS,
        p95_ms=float(np.percentile(served, 95)),
        study_ms=beside,
        study_p95_ms=float(np.percentile(own, 95)),
        added_ms=median - beside,
    )


def _crowded(where: str, url: str, process: int, clients: int, pairs: int) -> Measurement:
    """So many clients, each with a connection and a thread of its own, at one study; times are of single requests.

    `growth_mb` is what the server's memory grew by after the first tenth of the pairs.
    """
    import psutil

    each, times, told, errors = max(1, pairs // clients), list[float](), list[int](), list[BaseException]()
    ready, memory = threading.Barrier(clients + 1), list[float]()
    server = psutil.Process(process)

    def timed(action: Callable[[], T]) -> T:
        begin = perf_counter()
        answer = action()
        times.append(1e3 * (perf_counter() - begin))
        return answer

    def work(first: bool) -> None:
        try:
            with Client(url) as client:
                study = client.study("bench crowd")
                ready.wait()
                for turn in range(each):
                    trial = timed(study.ask)
                    timed(partial(study.tell, trial, 1.0 - trial.x**2))
                    told.append(trial.id)
                    if first and turn == each // 10:
                        memory.append(server.memory_info().rss)
        except BaseException as error:
            errors.append(error)
            ready.abort()

    with _study(where, "bench crowd"):
        threads = [threading.Thread(target=work, args=(k == 0,)) for k in range(clients)]
        for thread in threads:
            thread.start()
        ready.wait(_PATIENCE)
        begin = perf_counter()
        for thread in threads:
            thread.join()
        seconds = perf_counter() - begin
        memory.append(server.memory_info().rss)
    if errors:
        raise errors[0]
    if sorted(told) != list(range(clients * each)):
        raise RuntimeError(f"{clients * each} trials were asked for, and {len(set(told))} different ones came")
    return record(
        "service",
        _instance(where),
        f"a request, {clients} clients",
        median_ms=float(np.median(times)),
        p95_ms=float(np.percentile(times, 95)),
        p99_ms=float(np.percentile(times, 99)),
        per_second=len(times) / seconds,
        growth_mb=(memory[-1] - memory[0]) / 1e6,
    )
