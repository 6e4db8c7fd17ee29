"""Peak memory of a step, and whether a long study stays fast and small."""

from __future__ import annotations

from alexp_experiments.bench.problems import LegendreProblem
from alexp_experiments.bench.records import Measurement, record
from alexp_experiments.bench.worker import EARLY, in_fresh_process

CASES = ((LegendreProblem(10, 3), 20), (LegendreProblem(182, 3), 4))
QUICK = ((LegendreProblem(4, 2, 100), 3),)


def bench_memory(quick: bool = False, tells: int = 100_000) -> list[Measurement]:
    """Fresh processes: peak resident memory at M = 165 and 10^6, and a study of `tells` rounds at M = 165."""
    out = []
    for problem, steps in QUICK if quick else CASES:
        found = in_fresh_process(
            "memory", degree=problem.degree, size=problem.size, resolution=problem.resolution, steps=steps
        )
        out.append(
            record(
                "memory", problem.label, "peak resident memory",
                median_ms=found["step_ms"], cpu_ms=found["step_cpu_ms"], peak_mb=found["peak_mb"],
                imported_mb=found["imported_mb"], constructed_mb=found["constructed_mb"],
            )
        )  # fmt: skip
    tells, early = (60, 20) if quick else (tells, EARLY)
    found = in_fresh_process("long_study", tells=tells, early=early, compared=5 if quick else 400)
    instance = f"Legendre s=3, p=10, M=165, N=2000, {tells:,} rounds"
    return [
        *out,
        record("memory", instance, f"step at t={early:,}", median_ms=found["early_ms"], ratio=1.0),
        record(
            "memory", instance, f"step at t={tells:,}",
            median_ms=found["late_ms"], ratio=found["slowdown"], mean_ratio=found["mean_slowdown"],
            growth_mb=found["growth_mb"], log_growth_mb=found["log_growth_mb"],
        ),
    ]  # fmt: skip
