"""Candidates on the workers of a real Dask cluster, two processes: the same decisions, whoever dies."""

import os
import signal

import numpy as np
import pytest

import alexp
from tests.parts.holding import linear_rewards, mixture, play, tables

distributed = pytest.importorskip("distributed")
arrays = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def client():
    # A cluster gives up a worker that is gone 15 s after it was lost, even if it has come back and was killed again.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        with cluster, distributed.Client(cluster) as own:
            yield own


def as_parquet(given, folder):
    """Two files with the matrices as columns of lists."""
    folder.mkdir()
    n = len(given["a"])
    for k, rows in enumerate((slice(0, n // 3), slice(n // 3, n))):
        columns = {"id": np.arange(n)[rows]} | {
            name: arrow.FixedSizeListArray.from_arrays(arrow.array(own[rows].ravel()), own.shape[1])
            for name, own in given.items()
        }
        parquet.write_table(arrow.table(columns), folder / f"{k}.parquet", row_group_size=90)
    return alexp.Parquet(folder)


def test_decisions_of_200_rounds_are_those_of_one_memory(client, tmp_path):
    given = tables()
    rewards = linear_rewards(given)
    expected = play(mixture(given, 400), rewards, 200)
    files = as_parquet(given, tmp_path / "t")
    models = alexp.ModelClass.from_matrices({name: files.features(name) for name in given})
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(files), random_state=3)
    assert play(opt, rewards, 200) == expected
    trial = opt.ask()
    assert trial.x == {"id": trial.index}
    assert models.device == "2 Dask workers"


def test_dask_and_numpy_arrays_are_the_same_candidates(client):
    given = tables()
    rewards = linear_rewards(given)
    lazily = {"a": arrays.from_array(given["a"], chunks=(77, 20)), "b": given["b"]}
    kept = {"a": arrays.from_array(given["a"], chunks=(100, 64)).persist(), "b": arrays.asarray(given["b"])}
    expected = play(mixture(given, 400, goal="best", repeats=False), rewards, 15)
    for matrices in (lazily, kept):
        assert play(mixture(matrices, 400, goal="best", repeats=False), rewards, 15) == expected
    with pytest.raises(ValueError, match=r"must have shape \(400, d\)"):
        mixture({"a": lazily["a"], "b": given["b"][:5]}, 400)
    with pytest.raises(ValueError, match="with both known"):
        mixture({"a": arrays.from_array(given["b"])[arrays.from_array(given["b"][:, 0]) > 0.0]}, 400)


def test_a_worker_that_is_killed_in_each_of_20_runs_makes_no_difference(client, tmp_path):
    given = tables(200)
    rewards = linear_rewards(given)
    expected = play(mixture(given, 200), rewards, 12)
    files = as_parquet(given, tmp_path / "t")
    for run in range(20):
        models = alexp.ModelClass.from_matrices({name: files.features(name) for name in given})
        opt = alexp.EvidenceMixture(models, alexp.FiniteSet(files), random_state=3)

        def kill(t, run=run):
            if t == 1 + run % 10:
                client.wait_for_workers(2, timeout=100)  # the one that was killed last has come back
                processes = client.run(os.getpid)
                os.kill(processes[sorted(processes)[run % len(processes)]], signal.SIGKILL)

        assert play(opt, rewards, 12, before=kill) == expected, run


def test_wrong_numbers_in_a_part_are_named(client, tmp_path):
    given = tables()
    given["b"][301, 3] = np.nan
    files = as_parquet(given, tmp_path / "t")
    with pytest.raises(ValueError, match=r"features 'b' has nan at row 301, column 3"):
        alexp.ModelClass.from_matrices({name: files.features(name) for name in given})


def test_parts_of_runs_that_are_gone_are_forgotten(client):
    given = tables()
    opt = mixture({name: arrays.asarray(own) for name, own in given.items()}, 400)
    opt.ask()
    key = opt.models.dictionary.device.key
    assert sum(client.run(_held, key).values()) == 2
    del opt
    import gc

    gc.collect()
    for _ in range(50):
        if not sum(client.run(_held, key).values()):
            return
    raise AssertionError("workers still have the parts")


def _held(key):
    from alexp.parts import engines

    return sum(engine == key for engine, _ in engines._PARTS)


def test_a_file_that_is_none_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read as a Parquet file: .*0 bytes"):
        alexp.Parquet(tmp_path)
