"""Compile time is user time: the first import, and the first step with and without a compiled cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from alexp.bench.records import Measurement, record
from alexp.bench.worker import one_blas_thread_environment

# A user's first minute, timed from inside; `step` is construction and the first ask and tell, `second` the next one,
# which is the first to fit the group Lasso.
_SCRIPT = """
import json, sys, time
clock, cpu = time.perf_counter, time.process_time
begin, worked = clock(), cpu()
import alexp
imported, imported_cpu = clock() - begin, cpu() - worked
heavy = sorted({"pandas", "matplotlib", "sklearn", "scipy.stats", "sqlalchemy", "rich", "typer"} & set(sys.modules))
begin, worked = clock(), cpu()
models = alexp.ModelClass.legendre(degree=10, size=3)
opt = alexp.ALExp(models, alexp.Interval(-1.0, 1.0, resolution=2000), noise_std=0.01, random_state=0)
def step():
    trial = opt.ask()
    opt.tell(trial, 1.0 - trial.x**2)
step()
first, first_cpu = clock() - begin, cpu() - worked
begin, worked = clock(), cpu()
step()
second, second_cpu = clock() - begin, cpu() - worked
print(json.dumps({"import": [imported, imported_cpu], "first": [first, first_cpu], "second": [second, second_cpu],
                  "heavy": heavy}))
"""

_SUBJECTS = {
    "import": "import alexp",
    "first": "construction and first step, M=165",
    "second": "second step (first group Lasso)",
}


def _fresh(cache: str | None) -> dict[str, list[float]]:
    environment = one_blas_thread_environment() | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, env=environment)
    result: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return result


def bench_startup(quick: bool = False) -> list[Measurement]:
    """Fresh processes, first on an empty cache of compiled code (skipped when `quick`), then on the one it left."""
    if quick:
        return _records("warm cache", [_fresh(os.environ.get("NUMBA_CACHE_DIR")) for _ in range(2)][1:])
    with tempfile.TemporaryDirectory() as cache:
        cold = [_fresh(cache)]
        warm = [_fresh(cache) for _ in range(3)]
    return _records("cold cache", cold) + _records("warm cache", warm)


def _records(instance: str, runs: list[dict[str, list[float]]]) -> list[Measurement]:
    return [
        record(
            "startup", instance, subject,
            median_ms=1e3 * float(np.median([run[key][0] for run in runs])),
            cpu_ms=1e3 * float(np.median([run[key][1] for run in runs])),
            heavy_modules=", ".join(str(name) for name in runs[0]["heavy"]),
        )
        for key, subject in _SUBJECTS.items()
    ]  # fmt: skip
