"""Every decision on record is made again: same actions, and numbers that differ in their last bits at most.

`python -m tests.golden.record --compare tests/golden/data` looks at every bit; the tests allow for other processors and
library versions, whose exponentials round differently.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from alexp import load_study
from alexp.algorithms import load
from tests.golden import cases, record

DATA = Path(__file__).parent / "data"
RUNS, STATES = record.read(DATA, "runs"), record.read(DATA, "states")


def same(old, new, where):
    """Equal up to rounding: hexadecimal floats to 1e-9, everything else exactly."""
    if isinstance(old, str) and old.lstrip("-").startswith(("0x", "inf", "nan")):
        a, b = float.fromhex(old), float.fromhex(new)
        assert a == b or math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-9), (where, a, b)
    elif isinstance(old, dict):
        assert old.keys() == new.keys(), where
        for key in old:
            same(old[key], new[key], f"{where}/{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), where
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            same(a, b, f"{where}[{k}]")
    else:
        assert old == new, (where, old, new)


@pytest.mark.parametrize("variant", cases.VARIANTS)
def test_runs_repeat(variant):
    mine = [case for case in cases.cases() if case[0] == variant]
    assert mine
    for case in mine:
        same(RUNS["/".join(case)], cases.record(*case), "/".join(case))


@pytest.mark.parametrize("variant", cases.VARIANTS)
def test_states_go_on(variant):
    for name in record.SAVED_ON:
        old = STATES[f"{variant}/{name}"]
        same(old["after"], cases.play(load(old["state"]), "batches", 4, 4), f"{variant}/{name}")


@pytest.mark.parametrize("variant", record.STUDIES)
def test_studies_open_and_go_on(variant, tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(DATA / "studies.db", path)
    with load_study(variant, path) as study:
        assert study.counts == {"trials": 21, "told": 18, "pending": 2, "abandoned": 1}
        old = record.play_study(study, 16, 6)
        study.report(tmp_path / "report.html")
    fresh = tmp_path / "fresh.db"
    shutil.copy(DATA / "studies.db", fresh)
    with load_study(variant, fresh) as study:
        assert record.play_study(study, 16, 6) == old  # and once more, from the file as it was
