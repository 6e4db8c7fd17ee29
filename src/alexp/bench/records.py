"""What every benchmark returns: flat records, and the clocks behind their numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

Measurement = dict[str, Any]
FIELDS = ("benchmark", "instance", "subject", "median_ms", "path_s", "max_gap", "ratio")

T = TypeVar("T")


def record(
    benchmark: str,
    instance: str,
    subject: str,
    *,
    median_ms: float | None = None,
    path_s: float | None = None,
    max_gap: float | None = None,
    ratio: float | None = None,
    **extra: Any,
) -> Measurement:
    """One flat record; numbers that a benchmark does not measure are None, and `extra` follows the common fields.

    >>> record("step", "M=55", "sweep", median_ms=0.2, cpu_ms=0.2)["cpu_ms"]
    0.2
    """
    common = (benchmark, instance, subject, median_ms, path_s, max_gap, ratio)
    return {key: _plain(value) for key, value in (*zip(FIELDS, common, strict=True), *extra.items())}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Lap:
    """Seconds one call took: on the wall, of the whole process, and of the calling thread alone."""

    wall: float
    cpu: float
    thread: float


def timed(call: Callable[[], T]) -> tuple[T, Lap]:
    """The result of a call and what it cost.

    Wall time is what a user waits and includes waiting for other programs; CPU time does not, so ratios of work
    that runs on one core compare the time of the calling thread.
    """
    wall, cpu, thread = time.perf_counter(), time.process_time(), time.thread_time()
    result = call()
    return result, Lap(time.perf_counter() - wall, time.process_time() - cpu, time.thread_time() - thread)


def median_ms(seconds: list[float]) -> float:
    """Median of some durations, in milliseconds."""
    return 1e3 * float(np.median(seconds))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep linear algebra libraries on one core where threadpoolctl (part of scikit-learn) can tell them."""
    try:
        limits = import_module("threadpoolctl").threadpool_limits(limits=1)
    except ImportError:
        yield
        return
    with limits:
        yield
