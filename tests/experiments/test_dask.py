import os
import re
import signal

import numpy as np
import pytest
from typer.testing import CliRunner

from alexp.cli import app
from alexp_experiments.board import tables
from alexp_experiments.board.tables import ListedTable
from alexp_experiments.comparison.tables.data import load_table
from alexp_experiments.core.cache import ResultCache
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.core.tasks import Task, run_task

from .test_runner import same

distributed = pytest.importorskip("distributed")

TASKS = [
    Task(Scenario(size=2, degree=5, resolution=60, steps=60), name, {}, seed)
    for name in ("alexp", "corral")
    for seed in range(10)
]


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and two worker processes, as on a real cluster, each restarted by its nanny when it dies."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
    ) as started:
        yield started


@pytest.fixture(scope="module")
def expected():
    return [run_task(task) for task in TASKS]


def test_a_cluster_gives_the_same_records(cluster, expected):
    same(sweep(TASKS, dask=cluster.scheduler_address, cache=None, progress=False), expected)


def test_the_board_plays_on_a_cluster(cluster, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "hill.npz", y=rng.standard_normal(60), m_linear=rng.standard_normal((60, 2)).astype(np.float32))
    own = [ListedTable("hill", "tune", "a test", load_table(str(tmp_path / "hill.npz")).digest)]
    monkeypatch.setattr(tables, "listed_tables", lambda role: own)
    arguments = ["board", "--quick", "--tune", "--players", "random", "--tables", str(tmp_path)]
    where = [["--workers", "1"], ["--dask", cluster.scheduler_address]]
    caches = [["--cache", str(tmp_path / name)] for name in ("here", "there")]
    shown = [CliRunner().invoke(app, [*arguments, *w, *c]) for w, c in zip(where, caches, strict=True)]
    assert [one.exit_code for one in shown] == [0, 0], shown[1].output
    here, there = (re.findall(r"^hill .*", one.output, flags=re.M)[0].split()[:4] for one in shown)
    assert here == there  # all but the seconds
    assert list((tmp_path / "there").rglob("*.parquet"))


def test_killing_a_worker_in_the_middle_changes_nothing(cluster, expected, tmp_path):
    with distributed.Client(cluster, set_as_default=False) as client:
        pids = list(client.run(os.getpid).values())

    class Killing(ResultCache):
        finished = 0

        def put(self, task, record):
            super().put(task, record)
            self.finished += 1
            if self.finished == 2:
                os.kill(pids[0], signal.SIGKILL)

    store = Killing(tmp_path)
    found = sweep(TASKS[::-1], dask=cluster.scheduler_address, cache=store, progress=False)[::-1]
    assert store.finished == len(TASKS)
    same(found, expected)
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(1)
        assert pids[0] not in client.run(os.getpid).values()
