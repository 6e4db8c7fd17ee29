"""The fastest multiply-adds this machine can do on one core, as a yardstick."""

from __future__ import annotations

import time

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.compiling import checked

_WIDTH = 64  # independent chains: enough to keep every arithmetic unit busy, few enough for the registers
_REPEATS = 64


@checked.fused_entry  # lets the compiler fuse, as a peak loop should
def _chains(values: FloatArray, factor: float, term: float, rounds: int) -> None:
    """values <- values * factor + term, 64 times per round, in chunks that stay in registers."""
    for _ in range(rounds):
        for begin in range(0, values.shape[0], _WIDTH):
            chunk = values[begin : begin + _WIDTH]
            for _ in range(_REPEATS):
                for i in range(_WIDTH):
                    chunk[i] = chunk[i] * factor + term


def peak_multiply_adds(rounds: int = 400) -> float:
    """Multiply-adds per second of the peak loop, in CPU time of this thread."""
    values = np.linspace(0.5, 1.5, 8 * _WIDTH)
    _chains(values, 0.999, 0.001, 1)
    start = time.thread_time()
    _chains(values, 0.999, 0.001, rounds)
    return rounds * values.size * _REPEATS / (time.thread_time() - start)
