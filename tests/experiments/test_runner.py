import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from alexp_experiments.core import runner
from alexp_experiments.core.cache import ResultCache
from alexp_experiments.core.runner import spread, sweep
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.core.tasks import Task, algorithm_names, run_seeds, run_task

SMALL = Scenario(size=2, degree=4, resolution=40, steps=15)
TASKS = [Task(SMALL, name, {}, seed) for name in ("alexp", "oracle", "etc", "corral") for seed in range(4)]


def same(one, two):
    """Equal apart from the time they took."""
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.regret, b.regret)
        assert np.array_equal(a.visited, b.visited)
        assert np.array_equal(a.q_true, b.q_true)
        assert np.array_equal(a.snapshot, b.snapshot)
        assert (a.true_model, a.recommended, a.final_gap) == (b.true_model, b.recommended, b.final_gap)


@pytest.fixture(scope="module")
def expected():
    return [run_task(task) for task in TASKS]


def test_results_do_not_depend_on_workers_or_order(expected, monkeypatch):
    same(sweep(TASKS, workers=1, cache=None, progress=False), expected)
    monkeypatch.setattr(runner, "_AHEAD", 1)  # so that tasks are left to hand out
    same(sweep(TASKS[::-1], workers=2, cache=None, progress=False)[::-1], expected)


def test_records_say_what_happened(expected):
    for task, record in zip(TASKS, expected, strict=True):
        assert record.regret.shape == (15,)
        assert np.all(np.diff(record.regret) >= 0.0)
        assert record.seconds > 0.0
        environment = SMALL.environment(run_seeds(task.seed)[0])
        assert record.true_model == environment.true_model
        if task.algorithm in ("alexp", "corral"):
            assert record.q_true.shape == (15,)
            assert record.snapshot.shape == (10,)
            assert abs(record.snapshot.sum() - 1.0) < 1e-5
            assert record.visited[0] <= 1 <= record.visited[-1] <= 10
        if task.algorithm == "oracle":
            assert record.recommended == record.true_model
            assert record.visited.tolist() == [1] * 15
        if task.algorithm == "etc":
            assert record.q_true.size == record.snapshot.size == 0
            assert record.visited.tolist() == [0] * 15


def test_all_algorithms_meet_the_same_environment_under_a_seed():
    a, b = run_seeds(3)
    assert a != b
    assert run_seeds(3) == (a, b)
    assert run_seeds(4) != (a, b)


def test_cache_runs_each_task_once(tmp_path, monkeypatch, expected):
    ran = []
    monkeypatch.setattr(runner, "run_task", lambda task: ran.append(task.key) or run_task(task))
    same(sweep(TASKS + TASKS[:3], workers=1, cache=ResultCache(tmp_path), progress=False), expected + expected[:3])
    assert len(ran) == len(TASKS)
    same(sweep(TASKS, workers=1, cache=ResultCache(tmp_path), progress=False), expected)
    assert len(ran) == len(TASKS)


class Interrupting(ResultCache):
    """Stops the sweep as Ctrl-C would, after some records."""

    def __init__(self, directory, after):
        super().__init__(directory)
        self.after = after

    def put(self, task, record):
        super().put(task, record)
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_sweep_keeps_what_is_finished(tmp_path, monkeypatch, expected, workers):
    with pytest.raises(KeyboardInterrupt):
        sweep(TASKS, workers=workers, cache=Interrupting(tmp_path, after=5), progress=False)
    kept = ResultCache(tmp_path)
    assert sum(kept.get(task) is not None for task in TASKS) >= 5
    ran = []
    monkeypatch.setattr(runner, "run_task", lambda task: ran.append(task.key) or run_task(task))
    same(sweep(TASKS, workers=1, cache=ResultCache(tmp_path), progress=False), expected)
    assert len(ran) <= len(TASKS) - 5


def test_a_killed_worker_changes_nothing(tmp_path, monkeypatch, expected):
    pools = []

    class Watched(runner.ProcessPoolExecutor):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            pools.append(self)

    class Killing(ResultCache):
        def put(self, task, record):
            super().put(task, record)
            if len(pools) == 1 and not self.killed:
                self.killed = True
                os.kill(next(iter(pools[0]._processes)), signal.SIGKILL)

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Watched)
    store = Killing(tmp_path)
    store.killed = False
    longer = [Task(SMALL.with_(steps=60), task.algorithm, {}, task.seed) for task in TASKS]
    found = sweep(longer, workers=2, cache=store, progress=False)
    assert store.killed
    same(found, [run_task(task) for task in longer])


ORPHANS = """
from alexp_experiments.core import runner
from alexp_experiments.core.runner import Task, sweep
from alexp_experiments.core.scenarios import Scenario

class Telling(runner.ProcessPoolExecutor):
    def submit(self, *arguments):
        future = super().submit(*arguments)
        print("worker", *self._processes, flush=True)
        return future

if __name__ == "__main__":
    runner.ProcessPoolExecutor = Telling
    scenario = Scenario(size=2, degree=4, resolution=40, steps=20_000)
    sweep([Task(scenario, "uniform", {}, seed) for seed in range(200)], workers=2, cache=None, progress=False)
"""


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks processes up in /proc")
def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in parent.stdout.readline().split()[1:]]
    assert pids
    parent.kill()
    parent.wait()
    for _ in range(300):
        if not any(alive(pid) for pid in pids):
            break
        time.sleep(0.1)
    assert not any(alive(pid) for pid in pids)


def test_nothing_to_do():
    assert sweep([], cache=None) == []


def test_placeholders_and_objects_in_settings():
    schedules = {"kind": "Schedules", "gamma": 0.5, "eta": 2.0}
    record = run_task(Task(SMALL, "alexp", {"schedules": schedules}, 0))
    assert record.regret[-1] != run_task(Task(SMALL, "alexp", {}, 0)).regret[-1]
    assert Task(SMALL, "alexp", {"schedules": schedules}).key != Task(SMALL, "alexp").key
    assert Task(SMALL, "oracle").key != Task(SMALL, "naive").key


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"no algorithm 'alxp'; known are alexp, .*corral.*oracle"):
        Task(SMALL, "alxp")
    assert {"alexp", "oracle", "naive", "etc", "ets", "corral", "exp4-ix"} <= set(algorithm_names())
    with pytest.raises(ValueError, match="workers must be at least 1"):
        sweep(TASKS, workers=0, cache=None)


@pytest.mark.parametrize("workers", [1, 2])
def test_work_that_is_no_task_is_spread_and_keeps_its_order(workers):
    assert spread(abs, (-3, 2, -1), workers) == [3, 2, 1]
    assert spread(abs, [], workers) == []
