"""A lack of memory is an error of its own: never damage, and nothing is salvaged from it."""

import errno
import json
import multiprocessing
import re
import resource
import sqlite3
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import alexp
from alexp.common import codec
from alexp.common.memory import OutOfMemoryError, exceeds_memory, is_lack_of_memory
from alexp.study import Storage, StorageError, check, create_study, load_study, logbook, records, salvage
from alexp.study.storage import damage_errors

from .conftest import in_memory, new_study, play, reward

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.study.conftest"])
HEADROOM = (1, 2, 4, 8, 12, 16, 24, 32, 39)  # MB; a table of 16 MB is read
try:
    np.empty(2**50)
except MemoryError as error:
    ArrayShort = type(error)
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the size of a process is read from /proc")


def short_of(megabytes):
    """Let this process have only so much more memory."""
    (size,) = re.findall(r"VmSize:\s+(\d+) kB", Path("/proc/self/status").read_text())
    resource.setrlimit(resource.RLIMIT_AS, (int(size) * 1024 + megabytes * 2**20, resource.RLIM_INFINITY))


def in_want(task, path, megabytes, line):
    short_of(megabytes)
    try:
        text = ["done", task(path)]
    except Exception as error:
        text = [type(error).__name__, str(error)]
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    line.send(text)


def tried(task, path, megabytes):
    """What a process with so little memory makes of it: ["done", result], or type and text of its error."""
    line, its = FORKS.Pipe()
    process = FORKS.Process(target=in_want, args=(task, path, megabytes, its))
    process.start()
    assert line.poll(120)
    answer = line.recv()
    process.join(60)
    assert process.exitcode == 0
    return answer


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A study with a table of 16 MB and a snapshot."""
    path = tmp_path_factory.mktemp("large") / "study.db"
    rows = np.random.default_rng(0).standard_normal((20_000, 100))
    models = alexp.ModelClass.from_matrices({"a": rows[:, :60], "b": rows[:, 60:]})
    with create_study(models, alexp.FiniteSet(np.arange(20_000)), name="s", storage=path, random_state=0) as study:
        play(study, 2)
    return path


def opened(path):
    return load_study("s", path).counts["told"]


def checked(path):
    return check("s", path).problems


def salvaged(path):
    return [report.lost for report in salvage(path, f"{path}.salvaged")]


@linux
@pytest.mark.parametrize("task", [opened, checked, salvaged], ids=lambda task: task.__name__)
def test_databases_are_not_called_damaged(task, large):
    short = 0
    for megabytes in HEADROOM if task is opened else HEADROOM[::3]:
        kind, said = tried(task, large, megabytes)
        if kind == "done":
            assert said in (2, [], [[]])
        else:
            short += 1
            assert kind in ("OutOfMemoryError", "MemoryError", "_ArrayMemoryError"), (megabytes, kind, said)
            assert "damaged" not in said
            if kind == "OutOfMemoryError":
                assert "not enough memory" in said
                assert "Free memory or raise the limit" in said
        left = Path(f"{large}.salvaged")
        assert left.exists() == (task is salvaged and kind == "done")  # all or nothing
        if left.exists():
            assert opened(left) == 2
            left.unlink()
    assert short >= 2
    assert opened(large) == 2


def shortages():
    """A lack of memory in the forms in which libraries report it."""
    shared = sqlite3.OperationalError("disk I/O error")
    shared.sqlite_errorname = "SQLITE_IOERR_SHMMAP"
    nested = ValueError("bad")
    nested.__cause__ = MemoryError()
    return [
        MemoryError(),
        ArrayShort((10, 10), np.dtype(float)),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libx.so: failed to map segment from shared object"),
        ImportError("libx.so: cannot allocate memory in static TLS block"),
        RuntimeError("can't start new thread"),
        zlib.error("Error -4 while decompressing data"),
        shared,
        sa.exc.OperationalError("SELECT 1", {}, sqlite3.OperationalError("out of memory")),
        nested,
    ]


@pytest.mark.parametrize(
    "error", shortages(), ids=lambda error: f"{type(error).__name__}-{str(error)[:12]}".replace(" ", "_")
)
def test_all_words_for_it(error, tmp_path):
    assert is_lack_of_memory(error)
    with pytest.raises(type(error)), damage_errors("a thing"):
        raise error
    storage = Storage(prepared(tmp_path))
    expected = "nothing was changed; the database is intact"
    with pytest.raises(OutOfMemoryError, match=expected) as raised, storage.writing():
        raise error
    assert "study.db" in str(raised.value)


def test_a_module_that_cannot_be_loaded_while_a_study_is_opened(tmp_path, monkeypatch):
    new_study(tmp_path / "study.db").close()

    def rebuild(*_):
        raise ImportError("libx.so: failed to map segment from shared object")

    monkeypatch.setattr("alexp.study.problem.rebuild", rebuild)
    with pytest.raises(OutOfMemoryError, match="the database is intact"):
        load_study("s", tmp_path / "study.db")


def prepared(tmp_path):
    Storage(tmp_path / "study.db").prepare()
    return tmp_path / "study.db"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("out of memory"),
        StorageError("study 'out of memory' is damaged"),
        ImportError("no module named x"),
        OSError(errno.ENOENT, "no such file"),
        sa.exc.OperationalError("SELECT 'out of memory'", {}, sqlite3.OperationalError("no such table")),
        None,
    ],
    ids=repr,
)
def test_other_errors_are_something_else(error):
    assert not is_lack_of_memory(error)


def test_what_never_fits():
    with pytest.raises(MemoryError) as raised:
        np.empty((2**40, 2**10))
    assert exceeds_memory(raised.value)
    assert not exceeds_memory(MemoryError())


def test_zlib_runs_out(monkeypatch):
    class Poor:
        def decompress(self, *_):
            raise zlib.error("Error -4 while decompressing data")

    monkeypatch.setattr(codec.zlib, "decompressobj", Poor)
    with pytest.raises(MemoryError, match="decompress"):
        codec.inflate(b"")


@pytest.mark.parametrize("where", [(records, "inflate"), (logbook, "decompress"), (records, "find_study")])
def test_wherever_it_happens(where, tmp_path, monkeypatch):
    """Opening fails as a whole; a snapshot is not passed over, which would hide that, and take even more memory."""
    models = alexp.ModelClass.from_matrices({"a": np.eye(4), "b": np.ones((4, 1))})
    with create_study(models, alexp.FiniteSet(np.arange(4)), name="s", storage=tmp_path / "study.db") as study:
        play(study, 2)
    module, name = where

    def poor(*_args, **_more):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(module, name, poor)
        with pytest.raises(OutOfMemoryError, match="study.db"):
            load_study("s", tmp_path / "study.db").ask()
    assert opened(tmp_path / "study.db") == 2


def test_in_the_middle_of_an_act(tmp_path, monkeypatch):
    study, plain = new_study(tmp_path / "study.db"), in_memory()
    play(study, 2)
    trial = study.ask()

    def poor(*_args, **_more):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(type(study.algorithm), "_learn", poor)
        with pytest.raises(OutOfMemoryError, match="nothing was changed"):
            study.tell(trial, reward(trial))
    study.tell(trial, reward(trial))
    play(plain, 3)
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(plain.to_dict())


def test_while_committing(tmp_path):
    """The commit may have happened: the log says so."""
    study = new_study(tmp_path / "study.db")
    dialect = study.storage.engine.dialect
    for is_stored in (True, False):
        trial = study.ask()

        def commit(connection, is_stored=is_stored):
            del dialect.do_commit
            if is_stored:
                dialect.do_commit(connection)
            raise MemoryError

        dialect.do_commit = commit
        if is_stored:
            study.tell(trial, 0.5)
        else:
            with pytest.raises(StorageError, match="the tell of trial 1 was not stored"):
                study.tell(trial, 0.5)
    assert study.counts["told"] == 1


def test_a_snapshot_that_does_not_fit_is_left_out(tmp_path, monkeypatch):
    """It only saves time: what was stored is acknowledged."""
    study = new_study(tmp_path / "study.db")

    def poor(*_args, **_more):
        raise MemoryError

    play(study, 1)
    monkeypatch.setattr("alexp.study.follower.compress", poor)
    monkeypatch.setattr("alexp.study.replay.REPLAY_EVENTS", 1)
    play(study, 2)
    study.close()
    assert load_study("s", tmp_path / "study.db").counts["told"] == 3
