"""The benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from alexp.bench.records import Measurement

NAMES = ("startup", "step", "lasso", "growth", "memory", "floor")  # what a plain `alexp bench` runs
ALONE = ("study", "service", "context", "wide", "huge", "routes", "gpu")  # on request only


def run_benchmarks(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    progress: Callable[[str], None] = lambda name: None,
    rivals_python: Path | None = None,
) -> list[Measurement]:
    """Records of the named benchmarks, of all of them if none is named; `quick` runs a small version of each.

    `rivals_python` is the interpreter of an environment with rival solvers that do not fit into this one.
    """
    unknown = [name for name in names if name not in NAMES + ALONE]
    if unknown:
        raise ValueError(f"there is no benchmark {unknown[0]!r}; choose from {', '.join(NAMES + ALONE)}")
    out: list[Measurement] = []
    for name in names or NAMES:
        progress(name)
        out += _benchmark(name, quick, rivals_python)
    return out


def _benchmark(name: str, quick: bool, rivals_python: Path | None) -> list[Measurement]:
    # Imported when asked for: rivals, database drivers and compiled loops that another benchmark does not need.
    if name == "startup":
        from alexp.bench.startup import bench_startup

        return bench_startup(quick)
    if name == "step":
        from alexp.bench.step import bench_step

        return bench_step(quick)
    if name == "lasso":
        from alexp.bench.lasso.lasso import bench_lasso

        return bench_lasso(quick, python=rivals_python)
    if name == "growth":
        from alexp.bench.growth import bench_growth

        return bench_growth(quick)
    if name == "memory":
        from alexp.bench.memory import bench_memory

        return bench_memory(quick)
    if name == "floor":
        from alexp.bench.floor import bench_floor

        return bench_floor(quick)
    if name == "routes":
        from alexp.bench.routes import bench_routes

        return bench_routes(quick)
    if name == "context":
        from alexp.bench.context import bench_context

        return bench_context(quick)
    if name == "gpu":
        from alexp.bench.device.gpu import bench_gpu

        return bench_gpu(quick)
    if name in ("wide", "huge"):
        from alexp.bench.wide import bench_wide

        return bench_wide(quick, huge=name == "huge")
    if name == "service":
        from alexp.bench.service import bench_service

        return bench_service(rounds=5, pairs=64) if quick else bench_service()
    from alexp.bench.study import bench_study

    return bench_study(trials=200, rounds=5) if quick else bench_study()
