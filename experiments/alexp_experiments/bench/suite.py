"""The benchmarks by name, and what is kept of a run that was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TypedDict

from alexp.common.files import write_text
from alexp_experiments.bench.page import machine
from alexp_experiments.bench.records import Measurement
from alexp_experiments.bench.scale import AXES, bench_scale

# What a plain `alexp bench` runs, in the order of the page.
NAMES = ("startup", "step", "lasso", "growth", "memory", "floor", "study", "service", "context", "wide", "routes")
ALONE = ("gpu", *AXES)  # on request only, with pages of their own; `scale` stands for all axes of that page


class Kept(TypedDict):
    """Records by benchmark with the seconds each took, and where and with which version they were measured."""

    version: str
    machine: str
    records: dict[str, list[Measurement]]
    seconds: dict[str, float]


def run_benchmarks(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    progress: Callable[[str], None] = lambda name: None,
    rivals_python: Path | None = None,
    resume: Path | None = None,
) -> Kept:
    """Records of the named benchmarks, of all of them if none is named; `quick` runs a small version of each.

    `rivals_python` is the interpreter of an environment with rival solvers that do not fit into this one. What is
    finished is kept in `resume` and not measured again, on the same machine with the same versions.
    """
    names = [one for name in names for one in (AXES if name == "scale" else [name])]
    unknown = [name for name in names if name not in NAMES + ALONE]
    if unknown:
        raise ValueError(f"there is no benchmark {unknown[0]!r}; choose from {', '.join(NAMES + ALONE)}")
    kept, wanted = _found(resume, quick), names or NAMES
    missing = [name for name in wanted if name not in kept["records"]]
    start = perf_counter()
    for place, name in enumerate(missing):
        progress(_said(name, place, len(missing), perf_counter() - start))
        begin = perf_counter()
        kept["records"][name] = _benchmark(name, quick, rivals_python)
        kept["seconds"][name] = perf_counter() - begin
        if resume is not None:
            write_text(resume, json.dumps(kept, indent=1))
    return {
        "version": kept["version"],
        "machine": kept["machine"],
        "records": {name: kept["records"][name] for name in wanted},
        "seconds": {name: kept["seconds"][name] for name in wanted},
    }


def _said(name: str, place: int, total: int, seconds: float) -> str:
    """What is measured next, and about how long the rest takes if it goes on as before.

    >>> _said("step", 1, 4, 60.0)
    'measuring step (2 of 4), about 3 minutes left'
    """
    left = f", about {max(seconds / place * (total - place) / 60.0, 1.0):.0f} minutes left" if place else ""
    return f"measuring {name} ({place + 1} of {total}){left}"


def stored_benchmarks(path: Path) -> Kept:
    """What a run kept, wherever it was measured."""
    if not path.exists():
        raise FileNotFoundError(
            f"there are no records at {path}; `alexp bench --resume {path}` measures and keeps them"
        )
    kept: Kept = json.loads(path.read_text("utf-8"))
    return kept


def _found(resume: Path | None, quick: bool) -> Kept:
    """What was measured before, if it was in this form with this version on this machine."""
    form = version("alexp") + (", quick" if quick else "")
    empty: Kept = {"version": form, "machine": machine(), "records": {}, "seconds": {}}
    if resume is None or not resume.exists():
        return empty
    before: Kept = json.loads(resume.read_text("utf-8"))
    same = (before["version"], before["machine"]) == (empty["version"], empty["machine"])
    return before if same else empty


def _benchmark(name: str, quick: bool, rivals_python: Path | None) -> list[Measurement]:
    if name in AXES:
        return bench_scale(name, quick)
    # Imported when asked for: rivals, database drivers and compiled loops that another benchmark does not need.
    if name == "startup":
        from alexp_experiments.bench.startup import bench_startup

        return bench_startup(quick)
    if name == "step":
        from alexp_experiments.bench.step import bench_step

        return bench_step(quick)
    if name == "lasso":
        from alexp_experiments.bench.lasso.lasso import bench_lasso

        return bench_lasso(quick, python=rivals_python)
    if name == "growth":
        from alexp_experiments.bench.step import bench_growth

        return bench_growth(quick)
    if name == "memory":
        from alexp_experiments.bench.worker import bench_memory

        return bench_memory(quick)
    if name == "floor":
        from alexp_experiments.bench.floor import bench_floor

        return bench_floor(quick)
    if name == "routes":
        from alexp_experiments.bench.routes import bench_routes

        return bench_routes(quick)
    if name == "context":
        from alexp_experiments.bench.context import bench_context

        return bench_context(quick)
    if name == "gpu":
        from alexp_experiments.bench.device.gpu import bench_gpu

        return bench_gpu(quick)
    if name == "wide":
        from alexp_experiments.bench.worker import bench_wide

        return bench_wide(quick)
    if name == "service":
        from alexp_experiments.bench.service import bench_service

        return bench_service(rounds=5, crowds={8: 64}) if quick else bench_service()
    from alexp_experiments.bench.study import bench_study

    return bench_study(trials=200, rounds=5) if quick else bench_study()
