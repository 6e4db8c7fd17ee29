"""What one ask + tell costs on wide tables, against one product of each table with a vector in the same run."""

from __future__ import annotations

import os
from typing import NamedTuple

from alexp_experiments.bench.records import Measurement, record
from alexp_experiments.bench.worker import in_fresh_process


class WideCase(NamedTuple):
    """Three tables of n candidates and d features, in single precision or double, and how many steps are timed."""

    n: int
    d: int
    single: bool = False
    steps: int = 20

    @property
    def label(self) -> str:
        """In words."""
        precision = "single" if self.single else "double"
        return f"three maps, N={self.n:,}, d={self.d:,}, {precision}, rounds 4 to {self.steps + 3}"


# With 64 features the rounds go on until values have been made anew twice, which takes far longer than other steps.
CASES = tuple(
    WideCase(n, d, single=n * d > 2e7, steps=220 if d == 64 else 20) for n in (10_000, 100_000) for d in (64, 512, 2048)
)
HUGE = WideCase(1_000_000, 512, single=True, steps=3)
ROOM_GB = 12.0  # memory of a machine on which the largest case is measured
QUICK = (WideCase(500, 64, steps=3), WideCase(500, 64, single=True, steps=3))


def bench_wide(quick: bool = False) -> list[Measurement]:
    """Fresh processes: CPU time of a step, its ratio to three products, and peak memory; the largest if it fits.

    Default settings, but without repeats, so that every round has a new point.
    `limit_mb` is 1.3 times the tables, 60 MB for every million values kept, and what importing took.
    """
    cases = QUICK if quick else (*CASES, HUGE) if _memory_gb() >= ROOM_GB else CASES
    return [_measured(case) for case in cases]


def _memory_gb() -> float:
    """Memory of this machine; zero if it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    except (AttributeError, ValueError, OSError):
        return 0.0


def _measured(case: WideCase) -> Measurement:
    found = in_fresh_process("wide", n=case.n, d=case.d, single=int(case.single), steps=case.steps)
    return record(
        "wide", case.label, "step",
        median_ms=found["step_ms"], cpu_ms=found["step_cpu_ms"], ratio=found["ratio"],
        mean_ratio=found["mean_ratio"], slowest_ms=found["slowest_ms"], product_ms=found["product_ms"],
        peak_mb=found["peak_mb"], table_mb=found["table_mb"],
        limit_mb=found["imported_mb"] + 1.3 * found["table_mb"] + 60.0 * found["values"] / 1e6,
        ratio_of="one product of each table with a vector, in CPU time",
    )  # fmt: skip
