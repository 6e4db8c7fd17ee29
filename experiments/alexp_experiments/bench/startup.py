"""Compile time is user time: the first import and the first steps, with and without a compiled cache."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import alexp
from alexp_experiments.bench.records import Measurement, record
from alexp_experiments.bench.worker import one_blas_thread_environment

# A user's first minute, timed from inside; `steps` are construction and two asks and tells, of which the second is the
# first to fit the group Lasso.
_SCRIPT = """
import json, sys, time
clock, cpu = time.perf_counter, time.process_time
begin, worked = clock(), cpu()
import alexp
imported = [clock() - begin, cpu() - worked]
slow = {"pandas", "matplotlib", "sklearn", "scipy.stats", "scipy.special", "sqlalchemy", "rich", "typer"}
heavy = sorted(slow & set(sys.modules))
import numpy as np
after, worked = clock(), cpu()
case = sys.argv[1]
if case == "matrices":
    rng = np.random.default_rng(0)
    sizes = {"a": 3, "b": 5, "c": 2}
    matrices = {name: rng.standard_normal((200, d)) for name, d in sizes.items()}
    models = alexp.ModelClass.from_matrices(matrices, intercept=False)
    domain = alexp.FiniteSet(np.arange(200.0))
else:
    models, domain = alexp.ModelClass.legendre(degree=10, size=3), alexp.Interval(-1.0, 1.0, resolution=2000)
kind = alexp.ALExp if case == "alexp" else alexp.EvidenceMixture
opt = kind(models, domain, noise_std=0.01, random_state=0)
for _ in range(2):
    trial = opt.ask()
    opt.tell(trial, 1.0 - 1e-4 * float(trial.x) ** 2)
steps = [clock() - after, cpu() - worked]
print(json.dumps({"import": imported, "steps": steps, "all": [clock() - begin, cpu()], "heavy": heavy}))
"""

CASES = {
    "alexp": "ALExp, M=165",
    "mixture": "EvidenceMixture, M=165",
    "matrices": "EvidenceMixture, three matrices",
}
_PACKAGE = Path(alexp.__file__).parent
_PARTS = {"import": "import alexp", "steps": "construction and two steps", "all": "process"}


def _fresh(case: str, home: Path | None) -> dict[str, list[float]]:
    """What a fresh process took: wall and CPU seconds of its import, of its steps, and of all of it.

    With a `home`, it has nothing but the sources that are there: code that was compiled elsewhere is not found.
    """
    environment = one_blas_thread_environment()
    if home is not None:
        own = {"HOME": home, "XDG_CACHE_HOME": home / "cache", "NUMBA_CACHE_DIR": home / "code", "PYTHONPATH": home}
        environment |= {name: str(value) for name, value in own.items()} | {"TMPDIR": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    command = [sys.executable, "-c", _SCRIPT, case]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    result: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return result


def bench_startup(quick: bool = False) -> list[Measurement]:
    """Fresh processes, first on an empty cache of compiled code (skipped when `quick`), then on the one it left."""
    if quick:
        return _records("warm cache", "alexp", [_fresh("alexp", None) for _ in range(2)][1:])
    out: list[Measurement] = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            shutil.copytree(_PACKAGE, home / _PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
            out += _records("cold cache", case, [_fresh(case, home)])
            out += _records("warm cache", case, [_fresh(case, home) for _ in range(5)])
    return out


def _records(instance: str, case: str, runs: list[dict[str, list[float]]]) -> list[Measurement]:
    return [
        record(
            "startup", f"{instance}, {CASES[case]}", subject,
            median_ms=1e3 * float(np.median([run[key][0] for run in runs])),
            cpu_ms=1e3 * float(np.median([run[key][1] for run in runs])),
            heavy_modules=", ".join(str(name) for name in runs[0]["heavy"]),
        )
        for key, subject in _PARTS.items()
    ]  # fmt: skip
