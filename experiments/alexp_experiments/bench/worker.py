"""Measurements that need a process of their own: memory, a long study, wide tables.

`python -m alexp_experiments.bench.worker TASK JSON` prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from alexp.algorithms import ALExp, EvidenceMixture
from alexp.algorithms.warming import warm_up
from alexp.common.arrays import AnyArray
from alexp.problem import FiniteSet, ModelClass
from alexp_experiments.bench.problems import LegendreProblem, Player
from alexp_experiments.bench.records import Measurement, record, timed

EARLY = 1_000  # round at which a long study is first looked at


def in_fresh_process(task: str, **arguments: int) -> dict[str, float]:
    """What `task` measures in a new process with one BLAS thread."""
    command = [sys.executable, "-m", "alexp_experiments.bench.worker", task, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=one_blas_thread_environment())
    if done.returncode != 0:
        raise RuntimeError(f"the benchmark process {task!r} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def one_blas_thread_environment() -> dict[str, str]:
    """The environment of this process, with linear algebra libraries kept on one core."""
    return os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def peak_mb() -> float:
    """Most memory this process has ever held, in MB of 10^6 bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage on Linux would start from what the parent held when it forked
        kilobytes = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(kilobytes) * 1024 / 1e6
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return float(psutil.Process().memory_info().peak_wset) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6  # bytes on macOS, kilobytes elsewhere


def resident_mb() -> float:
    """Memory this process holds now, in MB of 10^6 bytes."""
    import psutil

    return float(psutil.Process().memory_info().rss) / 1e6


def memory(degree: int, size: int, resolution: int, steps: int) -> dict[str, float]:
    """Peak memory of importing, of constructing a run and of some steps of it."""
    imported = peak_mb()
    player = Player.of(LegendreProblem(degree, size, resolution))
    constructed = peak_mb()
    laps = [timed(player.step)[1] for _ in range(steps)]
    return {
        "imported_mb": imported,
        "constructed_mb": constructed,
        "peak_mb": peak_mb(),
        "step_ms": 1e3 * float(np.median([lap.wall for lap in laps[1:]])),
        "step_cpu_ms": 1e3 * float(np.median([lap.cpu for lap in laps[1:]])),
    }


def long_study(tells: int, early: int, compared: int) -> dict[str, float]:
    """Time per step early and late, taken in turns, and the growth of memory in between.

    The state at round `early` is kept and continued at the end, so that both are timed on the same minute of the
    same machine.
    """
    player = Player.of(LegendreProblem(10, 3))
    for _ in range(early):
        player.step()
    saved = player.algorithm.to_dict()
    log_before, resident_before = log_mb(player.algorithm), resident_mb()
    for _ in range(tells - early):
        player.step()
    log_after, resident_after = log_mb(player.algorithm), resident_mb()
    young = Player.of(LegendreProblem(10, 3))
    young.algorithm = ALExp.from_dict(saved)
    laps = [(timed(young.step)[1], timed(player.step)[1]) for _ in range(compared)]
    young_s, old_s = (np.array([lap[k].thread for lap in laps[1:]]) for k in (0, 1))
    return {
        "early_ms": 1e3 * float(np.median(young_s)),
        "late_ms": 1e3 * float(np.median(old_s)),
        "slowdown": float(np.median(old_s) / np.median(young_s)),
        "mean_slowdown": float(old_s.mean() / young_s.mean()),
        "growth_mb": resident_after - resident_before,
        "log_growth_mb": log_after - log_before,
    }


def wide(n: int, d: int, single: int, steps: int) -> dict[str, float]:
    """Steps of a mixture on three tables, taken in turns with one product of each table with a vector."""
    kind, rng = np.float32 if single else np.float64, np.random.default_rng(0)
    few = ModelClass.from_matrices({name: rng.standard_normal((64, d), dtype=kind) for name in "abc"})
    warm_up(EvidenceMixture(few, FiniteSet(np.arange(64)), random_state=0))
    imported = peak_mb()  # with all code that steps need
    tables: dict[str, AnyArray] = {name: rng.standard_normal((n, d), dtype=kind) for name in "abc"}
    vector: AnyArray = rng.standard_normal(d, dtype=kind)
    rewards = tables["b"] @ vector / np.sqrt(d) + 0.1 * rng.standard_normal(n)
    opt = EvidenceMixture(ModelClass.from_matrices(tables), FiniteSet(np.arange(n)), repeats=False, random_state=0)

    def step() -> None:
        trial = opt.ask()
        opt.tell(trial, float(rewards[trial.index]))

    def products() -> None:
        for table in tables.values():
            table @ vector

    for _ in range(3):
        step()
    laps = [(timed(step)[1], timed(products)[1]) for _ in range(steps)]
    own, other = (float(np.median([lap[k].cpu for lap in laps])) for k in (0, 1))
    return {
        "step_ms": 1e3 * float(np.median([lap[0].wall for lap in laps])),
        "step_cpu_ms": 1e3 * own,
        "product_ms": 1e3 * other,
        "ratio": own / other,
        "mean_ratio": float(np.mean([lap[0].cpu for lap in laps])) / other,
        "slowest_ms": 1e3 * max(lap[0].cpu for lap in laps),
        "values": float(3 * n * (len(opt.ratio_grid) if opt.ratio_grid else 6)),
        "table_mb": sum(table.nbytes for table in tables.values()) / 1e6,
        "imported_mb": imported,
        "peak_mb": peak_mb(),
    }


def context(subject: int, quick: int, rounds: int, window: int) -> dict[str, float]:
    """A long run with contexts."""
    from alexp_experiments.bench.context import long_contexts

    return long_contexts(subject, quick, rounds, window)


def agreement(case: int, bits: int, rounds: int, rounded: int) -> dict[str, float]:
    """Decisions of a GPU against those of the CPU."""
    from alexp_experiments.bench.device.wide import DUELS, duel

    return asdict(duel(DUELS[case], f"float{bits}", rounds, "cuda", bool(rounded)))


def log_mb(algorithm: ALExp) -> float:
    """Size of the trial log in MB of 10^6 bytes."""
    log = algorithm.log
    columns = (log.index, log.model, log.explored, log.propensity, log.reward)
    return sum(sys.getsizeof(column) for column in columns) / 1e6


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "memory": memory,
    "long_study": long_study,
    "wide": wide,
    "context": context,
    "agreement": agreement,
}


MEMORY_CASES = ((LegendreProblem(10, 3), 20), (LegendreProblem(182, 3), 4))
MEMORY_QUICK = ((LegendreProblem(4, 2, 100), 3),)


def bench_memory(quick: bool = False, tells: int = 100_000) -> list[Measurement]:
    """Fresh processes: peak resident memory at M = 165 and 10^6, and a study of `tells` rounds at M = 165."""
    out = []
    for problem, steps in MEMORY_QUICK if quick else MEMORY_CASES:
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
WIDE_CASES = tuple(
    WideCase(n, d, single=n * d > 2e7, steps=220 if d == 64 else 20) for n in (10_000, 100_000) for d in (64, 512, 2048)
)
HUGE = WideCase(1_000_000, 512, single=True, steps=3)
ROOM_GB = 12.0  # memory of a machine on which the largest case is measured
WIDE_QUICK = (WideCase(500, 64, steps=3), WideCase(500, 64, single=True, steps=3))


def bench_wide(quick: bool = False) -> list[Measurement]:
    """Fresh processes: CPU time of a step, its ratio to three products, and peak memory; the largest if it fits.

    Default settings, but without repeats, so that every round has a new point.
    `limit_mb` is 1.3 times the tables, 60 MB for every million values kept, and what importing took.
    """
    cases = WIDE_QUICK if quick else (*WIDE_CASES, HUGE) if _memory_gb() >= ROOM_GB else WIDE_CASES
    return [_measured(case) for case in cases]


def _memory_gb() -> float:
    """Memory of this machine, in GB of 10^9 bytes."""
    import psutil

    return float(psutil.virtual_memory().total) / 1e9


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


if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))
