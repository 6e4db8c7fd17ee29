import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import alexp
from alexp.algorithms import Algorithm
from alexp.rivals import etc
from alexp_experiments.core import cache as cache_module, tasks as tasks_module
from alexp_experiments.core.cache import ResultCache, default_directory
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.core.tasks import Record, Task, code_fingerprint, read_module, sources

SMALL = Scenario(size=2, degree=4, resolution=40, steps=5)


def record(value):
    return Record(
        regret=np.array([value, value + 1e-17, np.pi]),
        visited=np.array([1, 2, 2], np.int32),
        q_true=np.array([0.1, 0.2, 0.3], np.float32),
        snapshot=np.empty(0, np.float32),
        true_model=4,
        recommended=-1,
        final_gap=0.125,
        seconds=0.5,
    )


def test_round_trip_is_exact(tmp_path):
    store = ResultCache(tmp_path)
    for seed in (3, 1, 2):
        store.put(Task(SMALL, "alexp", {}, seed), record(float(seed)))
    store.flush()
    again = ResultCache(tmp_path)
    for seed in (1, 2, 3):
        found = again.get(Task(SMALL, "alexp", {}, seed))
        assert np.array_equal(found.regret, record(float(seed)).regret)
        assert found.visited.dtype == np.int32
        assert found.q_true.dtype == found.snapshot.dtype == np.float32
        assert found.snapshot.size == 0
        assert (found.true_model, found.recommended, found.final_gap, found.seconds) == (4, -1, 0.125, 0.5)
    assert again.get(Task(SMALL, "alexp", {}, 4)) is None
    assert again.get(Task(SMALL.with_(steps=6), "alexp", {}, 1)) is None


def test_later_records_join_earlier_ones(tmp_path):
    for seed in (1, 2):
        store = ResultCache(tmp_path)
        store.put(Task(SMALL, "naive", {}, seed), record(0.0))
        store.flush()
    final = ResultCache(tmp_path)
    assert all(final.get(Task(SMALL, "naive", {}, seed)) is not None for seed in (1, 2))
    assert not list(tmp_path.rglob("*.partial"))


def test_records_are_written_while_the_sweep_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "FLUSH_SECONDS", 0.0)
    store = ResultCache(tmp_path)
    store.put(Task(SMALL, "naive", {}, 1), record(0.0))
    assert ResultCache(tmp_path).get(Task(SMALL, "naive", {}, 1)) is not None


def test_files_say_what_they_hold(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    store = ResultCache(tmp_path)
    task = Task(SMALL, "alexp", {"schedules": {"kind": "Schedules", "gamma": 0.25}}, 0)
    store.put(task, record(0.0))
    store.flush()
    text = parquet.read_schema(store.path(task.configuration)).metadata[b"task"].decode()
    assert '"gamma": 0.25' in text
    assert '"degree": 4' in text


def test_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("ALEXP_CACHE", str(tmp_path))
    assert default_directory() == tmp_path
    monkeypatch.delenv("ALEXP_CACHE")
    assert default_directory().parts[-2:] == (".cache", "alexp")


def test_results_are_kept_by_the_code_that_made_them(tmp_path, monkeypatch):
    monkeypatch.setattr(alexp, "__path__", [*alexp.__path__, str(tmp_path)])
    top, below, other = (tmp_path / f"made_up_{name}.py" for name in ("top", "below", "other"))
    top.write_text("from alexp.made_up_below import x\n")
    below.write_text("x = 1\n")
    other.write_text("y = 1\n")

    def fingerprint():
        code_fingerprint.cache_clear()
        read_module.cache_clear()
        return code_fingerprint("alexp.made_up_top")

    first = fingerprint()
    other.write_text("y = 2\n")
    assert fingerprint() == first
    below.write_text("x = 2\n")
    assert fingerprint() != first
    code_fingerprint.cache_clear()


def test_what_is_not_behind_a_result_does_not_make_it_stale():
    lasso, mixture = "alexp.estimation.lasso.group_lasso", "alexp.estimation.mixture.mixture"
    alexp, ours, theirs = map(
        sources, ("alexp.algorithms.alexp", "alexp.algorithms.evidence_mixture", "alexp.rivals.squarecb")
    )
    assert lasso in alexp
    assert mixture in ours
    assert lasso not in {**ours, **theirs}
    assert "alexp.algorithms.evidence_mixture" not in theirs
    named = {"oracle": {"kind": "Evidence"}, "agents": [{"kind": "UCB"}, {"kind": "Greedy"}]}
    with_components = [Task(Scenario(), "alexp", settings).configuration for settings in ({}, named)]
    assert len(set(with_components)) == 2
    assert tasks_module._component_modules(named) == ["alexp.decision.agents", "alexp.estimation.mixture.evidence"]


def test_an_algorithm_of_another_package_depends_on_that_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "made_up_package"
    package.mkdir()
    files = {
        "__init__.py": "",
        "helper.py": "x = 1\n",
        "other.py": "y = 1\n",
        "mine.py": """
from alexp import UniformRandom
from .helper import x

class Mine(UniformRandom):
    name = "made-up-mine"
""",
    }
    for name, text in files.items():
        (package / name).write_text(text)
    kind = importlib.import_module("made_up_package.mine").Mine
    monkeypatch.setattr(tasks_module, "registered", lambda: {**Algorithm.registry, "made-up-mine": kind})

    def configuration():
        code_fingerprint.cache_clear()
        read_module.cache_clear()
        return Task(SMALL, "made-up-mine").configuration

    try:
        first = configuration()
        assert "made-up-mine" in tasks_module.algorithm_names()
        assert tasks_module.run_task(Task(SMALL, "made-up-mine")).regret.shape == (5,)
        (package / "other.py").write_text("y = 2\n")
        assert configuration() == first
        (package / "helper.py").write_text("x = 2\n")
        assert configuration() != first
    finally:
        Algorithm.registry.pop("made-up-mine", None)
        code_fingerprint.cache_clear()


def test_an_algorithm_of_a_script_can_be_kept(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        """
from alexp import UniformRandom
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.core.tasks import Task

class Mine(UniformRandom):
    name = "made-up-in-a-script"

if __name__ == "__main__":
    task = Task(Scenario(size=2, degree=4, resolution=40, steps=5), "made-up-in-a-script")
    print(sweep([task, Task(task.scenario, task.algorithm, {}, 1)], workers=2, progress=False)[0].regret.size)
"""
    )
    environment = os.environ | {"ALEXP_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "5"
    assert list((tmp_path / "cache").rglob("*.parquet"))


def test_an_algorithm_does_not_depend_on_the_code_of_its_rivals():
    assert Task(SMALL, "etc").configuration != Task(SMALL, "ets").configuration
    _, found = read_module(etc.__name__)
    assert "alexp.estimation.lasso.group_lasso" in found
    assert not any("corral" in name for name in found)
