"""Every decision on record is made again: same actions, and numbers that differ in their last bits at most.

`python -m tests.golden.record --compare tests/golden/data` looks at every bit; the tests allow for other processors and
library versions, whose exponentials round differently.
"""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import get_args

import pytest

from alexp import load_study
from alexp.algorithms import load
from alexp.study.events import Kind
from alexp.study.integrity import check
from tests.golden import cases, record, studies

DATA = Path(__file__).parent / "data"
RUNS, STATES, STUDIES = (record.read(DATA, name) for name in ("runs", "states", "studies"))
NUMBER = re.compile(r"-?(0x[01]\.?[0-9a-f]*p[+-]\d+|inf|nan)")


def same(old, new, where):
    """Equal up to rounding: hexadecimal floats to 1e-9, everything else exactly."""
    if isinstance(old, str) and NUMBER.fullmatch(old):
        a, b = float.fromhex(old), float.fromhex(new)
        alike = a == b or math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))
        assert alike, (where, a, b)
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


@pytest.mark.parametrize("name", studies.GO_ON)
def test_studies_open_and_go_on(name):
    same(STUDIES[name], studies.continued(DATA / "studies.db", name), name)


@pytest.mark.parametrize("name", studies.GO_ON)
def test_studies_are_replayed_and_reported(name, tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(DATA / "studies.db", path)
    assert check(name, path).ok
    with load_study(name, path) as study:
        study.report(tmp_path / "report.html")


def test_studies_have_every_kind_of_event(tmp_path):
    shutil.copy(DATA / "studies.db", tmp_path / "old.db")
    found = set()
    for name in studies.GO_ON:
        with load_study(name, tmp_path / "old.db") as study:
            found |= {event["kind"] for event in study.events()}
    assert found == set(get_args(Kind))
