"""How cost grows, one axis at a time, and what a large day would need by these measurements.

Every point is measured in a process of its own: CPU time, so that other work on the machine counts little, and peak
memory. `needs` computes the large day from the points alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np

from alexp_experiments.bench.records import Measurement, number, record
from alexp_experiments.bench.worker import peak_mb

AXES: dict[str, tuple[int, ...]] = {
    "scale-candidates": (1_000, 10_000, 100_000, 1_000_000),
    "scale-columns": (8, 32, 128, 512),
    "scale-models": (10, 100, 1_000, 10_000),
    "scale-trials": (1_000, 10_000, 100_000),
    "scale-pending": (0, 100, 1_000, 5_000),
    "scale-pending-ids": (0, 5_000),
    "scale-plates": (96, 384, 1_536),
    "scale-kernel-plates": (24, 96),
    "scale-corrections": (0, 1_000),
    "scale-workers": (1, 2, 4, 8),
    "scale-studies": (10, 100, 1_000),
    "scale-requests": (1, 8, 32),
}
_QUICK = 2  # points of an axis in the quick form, each a fortieth of its size
CANDIDATES, REQUESTS, STUDIES = 10**9, 10**5, 10**6  # of the large day; requests a minute
MACHINE_CORES, MACHINE_MB = 64, 512_000.0  # of one large server, in which needs are counted
MAPS, COLUMNS = 4, 8  # of the axis of candidates
_ROUNDS = 5
PAIRS = 240  # asks and tells of the crowds

Facts = dict[str, float]


def bench_scale(axis: str, quick: bool = False) -> list[Measurement]:
    """The points of one axis, smallest first."""
    values = AXES[axis][:_QUICK] if quick else AXES[axis]
    smaller = max(values[0] // 40, 1) if quick else 1
    out = []
    for value in values:
        size = max(value // smaller, 1) if value else 0
        facts = _in_a_process(axis, size)
        out.append(record(axis, f"{size:,}", axis.removeprefix("scale-"), axis=axis, value=size, **facts))  # type: ignore[arg-type]
    return out


def _in_a_process(axis: str, value: int) -> Facts:
    command = [sys.executable, "-m", "alexp_experiments.bench.scale", axis, str(value)]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | one_thread, check=False)
    if done.returncode:
        raise RuntimeError(f"{axis} at {value} failed: {done.stderr.strip().splitlines()[-1:]}")
    facts: Facts = json.loads(done.stdout.splitlines()[-1])
    return facts


# -- points: each returns CPU milliseconds and what else is worth knowing ----------------------------------------


def _cpu_ms(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return 1e3 * (time.process_time() - begin)


def _mixture(n: int, maps: int, columns: int, kernels: Any = "linear", **settings: Any):  # type: ignore[no-untyped-def]
    """A mixture of maps on n candidates, by default to find the best one, and rewards of one map with noise."""
    import alexp

    rng = np.random.default_rng(0)
    matrices = {f"map {j}": rng.standard_normal((n, columns)) for j in range(maps)}
    truth = matrices["map 0"] @ rng.standard_normal(columns)
    models = alexp.ModelClass.from_matrices(matrices, kernels=kernels)
    settings = {"repeats": False} | (settings or {"goal": "best"})
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(n)), random_state=0, **settings)
    return opt, lambda trial: float(truth[trial.index] + 0.1 * rng.standard_normal())


def _step_of(opt, measure) -> Facts:  # type: ignore[no-untyped-def]
    for _ in range(_ROUNDS):
        trial = opt.ask()
        opt.tell(trial, measure(trial))
    times = []
    for _ in range(_ROUNDS):

        def step() -> None:
            trial = opt.ask()
            opt.tell(trial, measure(trial))

        times.append(_cpu_ms(step))
    return {"cpu_ms": float(np.median(times)), "peak_mb": peak_mb()}


def _candidates(n: int) -> Facts:
    return _step_of(*_mixture(n, MAPS, COLUMNS))


def _columns(d: int) -> Facts:
    return _step_of(*_mixture(10_000, MAPS, d))


def _models(m: int) -> Facts:
    import alexp

    p = next(p for p in range(3, 1000) if p * (p - 1) * (p - 2) // 6 >= m)
    models = alexp.ModelClass.legendre(degree=p - 1, size=3)
    opt = alexp.EvidenceMixture(models, alexp.Interval(-1.0, 1.0, resolution=1_000), random_state=0)
    return _step_of(opt, lambda trial: 1.0 - trial.x**2)


def _study(where: str, name: str):  # type: ignore[no-untyped-def]
    import alexp

    models = alexp.ModelClass.legendre(degree=6, size=3)
    return alexp.create_study(
        models, alexp.Interval(-1.0, 1.0, resolution=200), name=name, storage=where, random_state=3
    )


def _trials(n: int) -> Facts:
    from alexp.study import load_study

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="alexp-scale-") as folder:
        where = f"sqlite:///{folder}/s.db"
        with _study(where, "s") as study:
            for start in range(0, n, 1000):
                plate = study.ask(min(1000, n - start))
                study.tell_many((trial, 1.0 - trial.x**2 + 0.1 * rng.standard_normal()) for trial in plate)
        bytes_each = Path(folder, "s.db").stat().st_size / n
        with load_study("s", where) as study:
            out = {"open_ms": _cpu_ms(lambda: study.counts)}

            def step() -> None:
                study.tell(study.ask(), 0.5)

            step()
            out["cpu_ms"] = float(np.median([_cpu_ms(step) for _ in range(_ROUNDS)]))
            out["first_ms"] = _cpu_ms(study.view)
            step()
            out["view_ms"] = _cpu_ms(study.view)
    return out | {"bytes_each": bytes_each, "peak_mb": peak_mb()}


def _pending(k: int, **settings: Any) -> Facts:
    opt, measure = _mixture(10_000, 50, 5, **settings)
    rng = np.random.default_rng(1)
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, measure(trial))
    free = np.setdiff1d(np.arange(10_000), opt.trials_dataframe()["index"])
    first = len(opt.log)
    for index in rng.permutation(free)[: k + 10].tolist():
        opt.take_trial(None, int(index), None, False, 1.0)
    waiting = [opt.trial(trial) for trial in range(first, first + k + 10)]
    times = []
    for _ in range(2 * _ROUNDS):
        trial = waiting.pop(int(rng.integers(len(waiting))))
        opt.tell(trial, measure(trial))
        times.append(_cpu_ms(opt.ask))
    return {"cpu_ms": float(np.median(times[2:])), "peak_mb": peak_mb()}


def _pending_ids(k: int) -> Facts:
    return _pending(k, rule="ids")


def _plates(n: int, **settings: Any) -> Facts:
    opt, measure = _mixture(10_000, 50, 5, **settings)
    for trial in opt.ask(20):
        opt.tell(trial, measure(trial))
    opt.ask(2)  # what is compiled is loaded
    return {"cpu_ms": _cpu_ms(lambda: opt.ask(n)), "peak_mb": peak_mb()}


def _kernel_plates(n: int) -> Facts:
    from alexp import kernels

    own = [kernels.Matern()]
    best = _plates(n, kernels=own)["cpu_ms"]
    return _plates(n, kernels=own, goal="sum") | {"best_ms": best}


def _corrections(k: int) -> Facts:
    from alexp.study import check

    rng, n = np.random.default_rng(0), 2 * AXES["scale-corrections"][-1]
    with tempfile.TemporaryDirectory(prefix="alexp-scale-") as folder:
        where = f"sqlite:///{folder}/s.db"
        with _study(where, "s") as study:
            for start in range(0, n, 100):
                study.tell_many((trial, float(rng.standard_normal())) for trial in study.ask(min(100, n - start)))
            for trial in np.linspace(0, n - 1, k).astype(int).tolist():
                study.amend(trial, float(rng.standard_normal()))
        return {"cpu_ms": _cpu_ms(lambda: check("s", where)), "peak_mb": peak_mb()}


def _work(where: str, pairs: int) -> Facts:
    """Asks and tells of one worker: its CPU time in ms, and when it began and ended, by the clock."""
    from alexp.study import load_study

    with load_study("s", where) as study:
        study.tell(study.ask(), 0.5)  # what is compiled is loaded

        def work() -> None:
            for _ in range(pairs):
                trial = study.ask()
                study.tell(trial, 1.0 - trial.x**2)

        begin = time.time()
        return {"cpu_ms": _cpu_ms(work), "begin": begin, "end": time.time()}


def _workers(n: int) -> Facts:
    """So many processes at one study: CPU per pair of ask and tell, and pairs a second while any of them works."""
    with tempfile.TemporaryDirectory(prefix="alexp-scale-") as folder:
        where, pairs = f"sqlite:///{folder}/s.db", max(PAIRS // n, 1)
        _study(where, "s").close()
        command = [sys.executable, "-m", "alexp_experiments.bench.scale", "work", where, str(pairs)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n)]
        said: list[Facts] = [json.loads(process.communicate()[0]) for process in started]
    seconds = max(one["end"] for one in said) - min(one["begin"] for one in said)
    return {"cpu_ms": sum(one["cpu_ms"] for one in said) / (n * pairs), "per_second": n * pairs / seconds}


def _studies(n: int) -> Facts:
    """So many studies in one database: creating one, opening one for an ask and a tell, its bytes and memory."""
    from alexp.study import list_studies, load_study

    with tempfile.TemporaryDirectory(prefix="alexp-scale-") as folder:
        where, rng = f"sqlite:///{folder}/s.db", np.random.default_rng(0)

        def make(k: int) -> None:
            with _study(where, f"study {k}") as study:
                for trial in study.ask(8):
                    study.tell(trial, 1.0 - trial.x**2)

        make(0)
        made = [_cpu_ms(lambda k=k: make(k)) for k in range(1, n)]  # type: ignore[misc]
        size, opened, before = Path(folder, "s.db").stat().st_size, [], peak_mb()
        times = []
        for k in rng.permutation(n)[:10].tolist():

            def call(k: int = k) -> None:
                opened.append(load_study(f"study {k}", where))
                opened[-1].tell(opened[-1].ask(), 0.5)

            times.append(_cpu_ms(call))
        listed = _cpu_ms(lambda: list_studies(where))
    return {
        "cpu_ms": float(np.median(times)), "made_ms": float(np.median(made)), "view_ms": listed,
        "bytes_each": size / n, "each_mb": max(peak_mb() - before, 0.0) / len(times), "peak_mb": peak_mb(),
    }  # fmt: skip


def _requests(clients: int) -> Facts:
    """So many clients at one study behind a service: CPU of the server per request, requests a second."""
    from alexp.client import Client
    from alexp_experiments.bench.service import serving

    with tempfile.TemporaryDirectory(prefix="alexp-scale-") as folder:
        where = f"sqlite:///{folder}/s.db"
        _study(where, "s").close()
        with serving(where) as (url, process):
            each = max(PAIRS // clients, 1)

            def work(pairs: int) -> None:
                with Client(url) as client:
                    study = client.study("s")
                    for _ in range(pairs):
                        study.tell(study.ask(), 0.5)

            work(5)
            before, begin = _cpu_of(process), time.perf_counter()
            threads = [threading.Thread(target=work, args=(each,)) for _ in range(clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds, cpu = time.perf_counter() - begin, _cpu_of(process) - before
    n = 2 * each * clients
    return {"cpu_ms": 1e3 * cpu / n, "per_second": n / seconds}


def _cpu_of(process: int) -> float:
    """CPU seconds of a process so far."""
    import psutil

    spent = psutil.Process(process).cpu_times()
    return float(spent.user + spent.system)


# -- what it means -----------------------------------------------------------------------------------------------


def exponent(rows: Sequence[Measurement], key: str = "cpu_ms") -> float:
    """Of the power law between the two largest points of an axis."""
    (a, x), (b, y) = [(float(number(row, "value") or 1.0), float(number(row, key) or 1e-9)) for row in rows[-2:]]
    return log(y / x) / log(b / a)


@dataclass(frozen=True)
class Need:
    """One part of the large day: what is needed, in words, and how many large servers that takes."""

    part: str
    words: str
    servers: float


def needs(points: dict[str, list[Measurement]]) -> list[Need]:
    """What the large day would need, the scarcest part first; costs go on as between the two largest points."""

    def last(axis: str, key: str) -> float:
        return float(number(points[axis][-1], key) or 0.0)

    big = points["scale-candidates"]
    (n0, n1), growth = (float(row["value"]) for row in big[-2:]), exponent(big)
    step = last("scale-candidates", "cpu_ms") / 1e3 * (CANDIDATES / n1) ** max(growth, 1.0)
    each = (float(big[-1]["peak_mb"]) - float(big[-2]["peak_mb"])) / (n1 - n0)
    table = each * CANDIDATES
    per_request = last("scale-requests", "cpu_ms") / 1e3
    rate, cold = REQUESTS / 60.0, last("scale-studies", "cpu_ms") / 1e3
    writes = 1.0 / max(max(float(row["per_second"]) for row in points["scale-workers"]) * 2.0, 1e-9)
    disk, memory = last("scale-studies", "bytes_each") * STUDIES, last("scale-studies", "each_mb") * STUDIES
    made = last("scale-studies", "made_ms") / 1e3 * STUDIES / 86400.0
    return sorted(
        [
            Need(
                "a table of 10^9 candidates in memory",
                f"{table / 1e3:,.0f} GB for {MAPS} maps of {COLUMNS} columns",
                table / MACHINE_MB,
            ),
            Need(
                "a step on 10^9 candidates",
                f"{step:,.0f} s of CPU for an ask and a tell: in a second on {ceil(step):,} cores",
                step / MACHINE_CORES,
            ),
            Need(
                "requests, if the study is open",
                f"{rate * per_request:,.0f} cores: {1e3 * per_request:.1f} ms of CPU each",
                rate * per_request / MACHINE_CORES,
            ),
            Need(
                "requests, if every one opens its study",
                f"{rate * cold / 2.0:,.0f} cores: {1e3 * cold:.0f} ms of CPU for a pair",
                rate * cold / 2.0 / MACHINE_CORES,
            ),
            Need(
                "writes, one database and one study",
                f"{rate * writes:,.0f} times what one study in one SQLite file took here",
                rate * writes,
            ),
            Need("all studies open at once", f"{memory / 1e3:,.0f} GB of memory", memory / MACHINE_MB),
            Need("all studies created in a day", f"{made:,.1f} cores", made / MACHINE_CORES),
            Need("all studies on disk", f"{disk / 1e9:,.0f} GB with 8 rewards each", disk / 20e12),
        ],
        key=lambda need: -need.servers,
    )


POINTS: dict[str, Callable[[int], Facts]] = {
    "scale-candidates": _candidates,
    "scale-columns": _columns,
    "scale-models": _models,
    "scale-trials": _trials,
    "scale-pending": _pending,
    "scale-pending-ids": _pending_ids,
    "scale-plates": _plates,
    "scale-kernel-plates": _kernel_plates,
    "scale-corrections": _corrections,
    "scale-workers": _workers,
    "scale-studies": _studies,
    "scale-requests": _requests,
}

if __name__ == "__main__":
    worker = sys.argv[1] == "work"
    print(json.dumps(_work(sys.argv[2], int(sys.argv[3])) if worker else POINTS[sys.argv[1]](int(sys.argv[2]))))
