"""Threads for loops that are worth it; results never depend on how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_pid = 0


def pool(threads: int) -> ThreadPoolExecutor:
    """Shared pool of ``threads`` workers, made on first use and again in a forked child (threads do not fork)."""
    global _pools_pid
    if _pools_pid != os.getpid():
        _pools.clear()
        _pools_pid = os.getpid()
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="alexp-ridge")
    return _pools[threads]


def run_parts(task: Callable[[int, int], None], cuts: Iterable[int], threads: int) -> None:
    """Run task(low, high) between neighbouring cuts, at the same time."""
    for job in [pool(threads).submit(task, low, high) for low, high in pairwise(cuts)]:
        job.result()
