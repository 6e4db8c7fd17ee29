"""What every benchmark returns: flat records of measurements, and the clocks behind their numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TypedDict, TypeVar, Unpack, cast

import numpy as np

FIELDS = ("benchmark", "instance", "subject", "median_ms", "path_s", "max_gap", "ratio")

T = TypeVar("T")


class Details(TypedDict, total=False):
    """What some benchmarks measure or say beyond the common fields; times in ms, memory in MB of 10^6 bytes."""

    cpu_ms: float
    fastest_ms: float
    slowest_ms: float
    heavy_modules: str
    # step
    share: float
    history: str
    n_models: int
    ratio_of: str | None
    # lasso
    median_ratio: float
    known_ratio: float
    canonical_ratio: float
    good_steps: int
    reached: bool
    reached_steps: int
    steps: int
    of_steps: int
    version: str
    error: str
    # growth
    axis: str
    value: int
    fixed: str
    exponent: float
    last_exponent: float
    # memory
    peak_mb: float
    imported_mb: float
    constructed_mb: float
    mean_ratio: float
    growth_mb: float
    log_growth_mb: float
    # wide
    product_ms: float
    table_mb: float
    limit_mb: float
    # gpu
    host_ms: float
    device_mb: float
    reached_gb_s: float
    peak_gb_s: float
    agreement: float
    # floor
    ns_per_pair: float
    multiply_adds_per_pair: float
    peak_per_ns: float
    reached_per_ns: float
    # study
    limit_ms: float
    memory_ms: float
    added_ms: float
    fsync_ms: float
    # scale
    open_ms: float
    first_ms: float
    view_ms: float
    made_ms: float
    bytes_each: float
    each_mb: float
    # service
    p95_ms: float
    p99_ms: float
    study_ms: float
    study_p95_ms: float
    per_second: float


class Measurement(Details):
    """One flat record; numbers that a benchmark does not measure are None."""

    benchmark: str
    instance: str
    subject: str
    median_ms: float | None
    path_s: float | None
    max_gap: float | None
    ratio: float | None


def record(
    benchmark: str,
    instance: str,
    subject: str,
    *,
    median_ms: float | None = None,
    path_s: float | None = None,
    max_gap: float | None = None,
    ratio: float | None = None,
    **details: Unpack[Details],
) -> Measurement:
    """A measurement, with `details` after the common fields.

    >>> record("step", "M=55", "sweep", median_ms=0.2, cpu_ms=0.2)["cpu_ms"]
    0.2
    """
    common = (benchmark, instance, subject, median_ms, path_s, max_gap, ratio)
    pairs = (*zip(FIELDS, common, strict=True), *details.items())
    return cast(Measurement, {key: _plain(value) for key, value in pairs})


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def number(row: Measurement, key: str) -> float | None:
    """One number of a measurement by name; None if it was not measured.

    >>> number(record("step", "M=55", "sweep", cpu_ms=0.2), "cpu_ms")
    0.2
    """
    value = row.get(key)
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"{key} of {row['benchmark']} is {value!r}, not a number")
    return value


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
