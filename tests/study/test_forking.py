"""Studies in forked, spawned and pickled workers; threads of the parent may be at work on them."""

import json
import multiprocessing
import os
import pickle
import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from numba.core.compiler_lock import global_compiler_lock

from alexp.common import compiling as compiling_forks
from alexp.study import StorageError, load_study
from alexp.study.storage import Transactions

from .conftest import in_memory, new_study, play, reward

FORK = multiprocessing.get_context("fork")


@contextmanager
def busy(study):
    """Another thread uses the study all the time."""
    stop = threading.Event()

    def use():
        while not stop.is_set():
            play(study, 1)
            study.view(history=False, certificates=False)

    thread = threading.Thread(target=use)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def joined(process, seconds=60):
    process.join(seconds)
    alive = process.is_alive()
    if alive:
        process.kill()
    assert not alive, "the child hangs"
    return process.exitcode


def test_forking_while_a_thread_uses_the_study(storage):
    study = new_study(storage)
    play(study, 2)
    with busy(study):
        for _ in range(8):
            time.sleep(0.013)
            assert joined(started(play, study, 2)) == 0
    assert study.counts["pending"] == 0
    log = study.events_dataframe()
    assert log["worker"].nunique() == 9
    again = load_study("s", storage)
    assert json.dumps(again.algorithm.to_dict()) == json.dumps(study.algorithm.to_dict())
    assert again.counts["told"] == len(log) // 2


def started(target, *arguments):
    process = FORK.Process(target=target, args=arguments)
    process.start()
    return process


@pytest.mark.parametrize("slow", ["reading", "deciding"])
def test_a_lock_held_for_long_does_not_hang_the_child(storage, slow, monkeypatch):
    """The thread holds the study's lock, outside or inside a transaction, at the moment of the fork."""
    study = new_study(storage)
    play(study, 2)
    entered, left = threading.Event(), []

    def hold():
        if slow == "reading":
            with study._follower.mutex:
                entered.set()
                time.sleep(1.0)
        else:
            with study.storage.writing():
                entered.set()
                time.sleep(0.5)
        left.append(time.monotonic())

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    child = started(play, study, 1)
    forked = time.monotonic()
    assert joined(child) == 0
    thread.join()
    if slow == "reading":
        assert forked < left[0]  # nobody waited for it
    elif "sqlite" in storage:
        assert forked > left[0]  # a transaction on a file is waited for
    play(study, 1)
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(in_memory(4).to_dict())


def work_and_wait(study, closed, wrote):
    play(study, 1)
    closed.wait(30)
    play(study, 2)
    wrote.set()
    time.sleep(0.2)


def test_what_a_child_commits_survives_that_its_parent_closes(storage):
    """A parent that closes the last connection it knows of deletes SQLite's log, also under a child's feet."""
    study = new_study(storage)
    play(study, 2)
    closed, wrote = FORK.Event(), FORK.Event()
    child = started(work_and_wait, study, closed, wrote)
    while study.counts["told"] < 3:
        time.sleep(0.02)
    study.close()
    closed.set()
    assert wrote.wait(30)
    assert joined(child) == 0
    assert load_study("s", storage).counts["told"] == 5


def test_sqlite_needs_this(tmp_path):
    """Without the care that is taken, a committed row is lost: if this fails, SQLite has changed."""
    path = tmp_path / "plain.db"
    parent = sqlite3.connect(path, isolation_level=None)
    parent.execute("PRAGMA journal_mode=WAL")
    parent.execute("CREATE TABLE t (x)")
    closed, read = FORK.Event(), FORK.Event()

    def write():
        child = sqlite3.connect(path, isolation_level=None)
        child.execute("SELECT count(*) FROM t").fetchall()
        read.set()
        closed.wait(30)
        child.execute("INSERT INTO t VALUES (1)")
        os._exit(0)

    child = started(write)
    read.wait(30)
    parent.close()
    closed.set()
    joined(child)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_the_child_neither_uses_nor_closes_the_connections_of_its_parent(postgres):
    study = new_study(postgres)
    play(study, 2)
    with study.storage.reading() as connection:
        backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()

    def look(answers):
        with study.storage.reading() as connection:
            answers.put(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar())
        study.close()
        os._exit(0)

    answers = FORK.Queue()
    child = started(look, answers)
    assert answers.get(timeout=30) != backend
    assert joined(child) == 0
    with study.storage.reading() as connection:
        assert connection.exec_driver_sql("SELECT pg_backend_pid()").scalar() == backend


def test_a_fork_in_the_middle_of_an_own_transaction(sqlite):
    """The child is told that it cannot use the file; the parent goes on."""
    study = new_study(sqlite)
    play(study, 1)

    def use(answers):
        try:
            load_study("s", sqlite)
            answers.put("opened")
        except StorageError as error:
            answers.put(str(error))

    answers = FORK.Queue()
    with study.storage.writing():
        child = started(use, answers)
        assert "forked in the middle of a transaction" in answers.get(timeout=30)
        joined(child)
    play(study, 1)
    assert study.counts["told"] == 2


def test_forking_halts_others_but_not_itself():
    transactions, order = Transactions(), []
    assert transactions.halt(0.0)

    def later():
        with transactions.one():
            order.append("transaction")

    thread = threading.Thread(target=later)
    thread.start()
    time.sleep(0.05)
    order.append("resumed")
    transactions.resume()
    thread.join()
    assert order == ["resumed", "transaction"]
    with transactions.one():
        assert not transactions.halt(0.0)
        with transactions.one():  # a transaction inside one is no new one
            pass
        transactions.resume()
    assert transactions.halt(0.0)


def by_name(name, storage):
    play(load_study(name, storage), 2)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_is_given_name_and_storage(storage, method):
    study = new_study(storage)
    play(study, 1)
    context = multiprocessing.get_context(method)
    with pytest.raises(TypeError, match="load_study"):
        pickle.dumps(study)
    process = context.Process(target=by_name, args=("s", storage))
    process.start()
    assert joined(process, 120) == 0
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(in_memory(3).to_dict())


def test_new_databases_are_private(tmp_path):
    before = os.umask(0o000)
    try:
        study = new_study(tmp_path / "study.db")
        play(study, 1)
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes.keys() >= {"study.db", "study.db-wal", "study.db-shm"}
    assert set(modes.values()) == {0o600}
    study.close()
    Path(tmp_path / "study.db").chmod(0o660)  # who wants to share a file says so
    study = load_study("s", tmp_path / "study.db")
    study.tell(study.ask(), 0.1)
    assert Path(tmp_path / "study.db-wal").stat().st_mode & 0o777 == 0o660
    assert reward(study.trial(0)) == study.trials_dataframe()["reward"][0]


def compiles():
    """Compile something new."""
    import numba

    assert numba.njit(lambda x: x + 1)(1) == 2


@contextmanager
def compiling_elsewhere(seconds):
    """Another thread holds Numba's lock, as it does while it compiles."""
    entered = threading.Event()

    def compile_slowly():
        with global_compiler_lock:
            entered.set()
            time.sleep(seconds)

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        thread.join()


def test_a_fork_waits_for_other_threads_that_compile():
    with compiling_elsewhere(0.5):
        child = started(compiles)
    assert joined(child) == 0
    assert joined(started(compiles)) == 0
    compiles()


def test_a_child_of_a_process_that_compiles_for_long_is_told_so(monkeypatch):
    monkeypatch.setattr(compiling_forks, "PATIENCE", 0.1)

    def refused():
        with pytest.raises(RuntimeError, match="forked while another thread compiled .* 'spawn'"):
            compiles()

    with compiling_elsewhere(1.0):
        child = started(refused)
        assert joined(child) == 0
    compiles()


def test_a_thread_may_compile_in_a_transaction_while_another_forks(tmp_path):
    """The fork waits for the transaction first: it would else hold the lock that the transaction needs to end."""
    study = new_study(tmp_path / "study.db")
    entered = threading.Event()

    def transact():
        with study.storage.writing():
            entered.set()
            time.sleep(0.3)
            compiles()

    thread = threading.Thread(target=transact)
    thread.start()
    entered.wait()
    start = time.monotonic()
    child = started(play, study, 1)
    assert time.monotonic() - start < 30.0
    thread.join()
    assert joined(child) == 0
    assert study.counts["told"] == 1
