"""The same seed, the same decisions: golden runs and runs full of ties, on what stands for three processors."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest

from tests.golden import processors

PARTS = ("golden", "ties")


def played(kind):
    """What a process decides that takes this kind of processor for its own."""
    own, architecture = processors.KINDS[kind]
    known = set(processors.features())
    wanted = {name: " ".join(one for one in value.split() if one in known) for name, value in own.items()}
    given = {"OPENBLAS_CORETYPE": kind, "OPENBLAS_NUM_THREADS": "1", **{name: v for name, v in wanted.items() if v}}
    command = [sys.executable, "-W", "ignore", "-m", "tests.golden.processors", *PARTS]
    done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode < 0:
        pytest.skip(f"this processor does not run what OpenBLAS has for {kind} (signal {-done.returncode})")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    if out["blas"] != [architecture]:
        pytest.skip(f"OPENBLAS_CORETYPE={kind} has no effect here: NumPy and SciPy compute with {out['blas']}")
    return out["runs"]


@pytest.fixture(scope="module")
def reference():
    return played("Haswell")


def differing(one, other, where=""):
    """Where two runs differ: decisions exactly, numbers by more than the tolerance of a solver."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in differing(one[key], other[key], f"{where}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            found for k, pair in enumerate(zip(one, other, strict=True)) for found in differing(*pair, f"{where}[{k}]")
        ]
    a, b = (float.fromhex(x) if isinstance(x, str) and "0x" in x else x for x in (one, other))
    if isinstance(a, float) and isinstance(b, float):
        return [] if math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-9) else [(where, a, b)]
    return [] if a == b else [(where, a, b)]


@pytest.mark.parametrize("kind", [kind for kind in processors.KINDS if kind != "Haswell"])
def test_decisions_are_the_same(kind, reference):
    runs = played(kind)
    assert [len(part) for part in reference.values()] == [len(part) for part in runs.values()]
    assert len(reference["golden"]) > 300
    found = differing(reference, runs)
    assert not found, found[:5]


def test_differences_are_found():
    one = {"a": [[3, None, False, 0.5], (0.1).hex()]}
    assert not differing(one, {"a": [[3, None, False, 0.5 + 1e-12], (0.1 + 1e-12).hex()]})
    assert differing(one, {"a": [[4, None, False, 0.5], (0.1).hex()]})
    assert differing(one, {"a": [[3, None, False, 0.51], (0.1).hex()]})
    assert differing(one, {"b": []})
