"""A SQLite file that is replaced, renamed, removed or overwritten under a running process.

What a call has acknowledged afterwards is in the file at the path, whatever else happens.
"""

import multiprocessing
import os
import shutil
import signal
import sqlite3
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from alexp.study import (
    HistoryReplacedError,
    Storage,
    StorageError,
    StudyNotFoundError,
    UnknownOutcomeError,
    check,
    list_studies,
    load_study,
    logbook,
    openfile,
)
from alexp.study.openfile import Condition

from .conftest import in_memory, new_study, play, reward
from .test_storage import same

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.study.conftest"])
SPAWNS = multiprocessing.get_context("spawn")


def work(path, line):
    """Ask and tell under the keys that come in, until one is None."""
    study = load_study("s", path)
    while (key := line.recv()) is not None:
        try:
            if key == "close":
                study.storage.close()
                line.send("closed")
                continue
            trial = study.ask(key=key)
            study.tell(trial, reward(trial), key=f"{key} told")
            line.send("stored")
        except Exception as error:
            line.send(f"{type(error).__name__}: {error}")
    study.close()


class Worker:
    """A process that has the study open."""

    def __init__(self, path, context=FORKS):
        self.line, its = context.Pipe()
        self.process = context.Process(target=work, args=(path, its))
        self.process.start()

    def pair(self, key):
        """Ask and tell; what the process says of it."""
        self.line.send(key)
        assert self.line.poll(60)
        return self.line.recv()

    def end(self, how):
        if how == "killed":
            self.process.kill()
        else:
            self.line.send(None)
        self.process.join(60)
        assert self.process.exitcode == (-signal.SIGKILL if how == "killed" else 0)


def beside(path, *suffixes):
    return [Path(f"{path}{suffix}") for suffix in suffixes]


def move_over(path, old):
    """The usual way to restore a backup."""
    for file in beside(path, "-wal", "-shm"):
        file.unlink(missing_ok=True)
    os.replace(old, path)


def rename(path, _old):
    os.rename(path, f"{path}.away")


def remove(path, _old):
    for file in beside(path, "", "-wal", "-shm"):
        file.unlink()


def cut_log(path, _old):
    os.truncate(f"{path}-wal", 0)


def halve_log(path, _old):
    os.truncate(f"{path}-wal", Path(f"{path}-wal").stat().st_size // 2)


def remove_log(path, _old):
    Path(f"{path}-wal").unlink()


def remove_index(path, _old):
    Path(f"{path}-shm").unlink()


def copy_in(path, old):
    """The contents of a backup in the same files."""
    shutil.copyfile(old, path)
    shutil.copyfile(f"{old}-wal", f"{path}-wal")


def copy_in_without_log(path, old):
    for file in beside(path, "-wal", "-shm"):
        file.unlink()
    shutil.copyfile(old, path)


def empty(path, _old):
    os.truncate(path, 0)


WAYS = [move_over, rename, remove, empty, cut_log, halve_log, remove_log, remove_index, copy_in, copy_in_without_log]


def with_backup(tmp_path, pairs=3):
    """A study of some pairs, and a backup of database and log."""
    path, old = tmp_path / "study.db", tmp_path / "old.db"
    study = new_study(path)
    play(study, pairs)
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", f"{old}{suffix}")
    return study, path, old


def test_descriptors_are_found_where_nothing_lists_them(tmp_path, monkeypatch):
    """As in a chroot without /dev/fd and /proc: a log that is cut is noticed all the same."""

    listdir = os.listdir

    def without(folder="."):
        if str(folder).startswith(("/dev", "/proc")):
            raise FileNotFoundError(folder)
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", without)
    study, path, old = with_backup(tmp_path)
    trial = study.ask()
    cut_log(path, old)
    with pytest.raises(StorageError, match="overwritten"):
        study.tell(trial, 0.5)


def test_descriptors_behind_many_that_were_closed(tmp_path):
    between = [os.open(tmp_path, os.O_RDONLY) for _ in range(100)]
    files = [(tmp_path / name).open("wb") for name in "ab"]
    for descriptor in between:
        os.close(descriptor)
    wanted = [openfile.inode_of(file.fileno()) for file in files]
    assert openfile._descriptors(wanted) == [file.fileno() for file in files]
    assert openfile._descriptors([*wanted, (0, 0)]) is None
    for file in files:
        file.close()


def closing_writes_the_log(path):
    """Make one file of a database and its log."""
    connection = sqlite3.connect(path)
    connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    connection.close()
    assert not Path(f"{path}-wal").exists()


@pytest.mark.parametrize("end", ["killed", "closed"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_two_processes_acknowledge_is_in_the_file(way, end, tmp_path):
    study, path, old = with_backup(tmp_path)
    study.close()
    if way in (move_over, copy_in_without_log):
        closing_writes_the_log(old)
    # The interpreter of a process that was spawned is taken down in the end, and with it what is left open.
    context = SPAWNS if (way, end) == (copy_in, "closed") else FORKS
    workers = [Worker(path, context), Worker(path, context)]
    for number in range(6):
        assert workers[number % 2].pair(f"before {number}") == "stored"
    way(path, old)
    said = {f"after {number}": workers[number % 2].pair(f"after {number}") for number in range(8)}
    for worker in workers:
        worker.end(end)
    for text in said.values():
        assert text == "stored" or str(path) in text, said
        assert "damaged" not in text or way is empty  # it is
    stored = {key for key, text in said.items() if text == "stored"}
    assert stored == (set(list(said)[2:]) if way is move_over else set()), said
    if way is rename:
        os.rename(f"{path}.away", path)
    if way in (remove, empty):
        assert path.exists() == (way is empty)
        assert not stored
        return
    assert check("s", path).ok
    again = load_study("s", path)
    for key in stored:  # found, and not done again
        before = again.counts["trials"]
        assert again.ask(key=key).id < before
    play(again, 2)
    if way is move_over:  # each process reports the loss once and goes on
        assert all("HistoryReplacedError" in text for text in list(said.values())[:2]), said


def test_an_emptied_database_under_a_log_with_all_pages(tmp_path):
    """All can still be read from the log, which SQLite will delete when it opens the empty database."""
    study, path, _ = with_backup(tmp_path)
    trial = study.ask()
    empty(path, None)
    for _ in range(2):
        with pytest.raises(StorageError, match="was overwritten"):
            study.tell(trial, 0.5)


def test_closing_leaves_an_overwritten_file_alone(tmp_path):
    """SQLite would write the pages that it knows of into the file when the last connection is closed."""
    study, path, old = with_backup(tmp_path)
    study.close()
    worker = Worker(path)
    assert {worker.pair(f"before {number}") for number in range(3)} == {"stored"}
    copy_in(path, old)
    assert worker.pair("close") == "closed"
    worker.end("killed")
    another = Worker(path)
    assert another.pair("after") == "stored"
    another.end("closed")
    assert check("s", path).ok
    assert load_study("s", path).counts["told"] == 4


def test_the_backup_api_of_sqlite(tmp_path):
    """It writes through SQLite, as another process would: the file stays the same, and its log is another one."""
    study, path, old = with_backup(tmp_path)
    play(study, 2)
    source, target = sqlite3.connect(old), sqlite3.connect(path)
    source.backup(target)
    source.close()
    target.close()
    with pytest.raises(HistoryReplacedError, match="it has 6 events and had 10"):
        study.ask()
    play(study, 1)
    assert same(study, in_memory(4))


def test_a_file_that_comes_back(tmp_path):
    """Renamed and back again: nothing is lost, and the study goes on without a word."""
    study, path, _ = with_backup(tmp_path)
    for suffix in ("", "-wal", "-shm"):
        os.rename(f"{path}{suffix}", f"{path}{suffix}.away")
    for call in (
        study.ask,
        lambda: study.counts,
        lambda: list_studies(study.storage),
        lambda: new_study(study.storage, "t"),
    ):
        with pytest.raises(StorageError, match=r"study.db was renamed or removed; put it back"):
            call()
    assert not path.exists()
    for suffix in ("", "-wal"):
        os.rename(f"{path}{suffix}.away", f"{path}{suffix}")
    play(study, 2)
    assert same(study, in_memory(5))
    assert same(load_study("s", path), in_memory(5))


def test_a_copy_with_all_events_is_no_loss(tmp_path):
    study, path, _ = with_backup(tmp_path)
    copy = tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    shutil.copyfile(f"{path}-wal", f"{copy}-wal")
    closing_writes_the_log(copy)
    move_over(path, copy)
    play(study, 2)
    assert same(study, in_memory(5))
    assert same(load_study("s", path), in_memory(5))


@pytest.mark.parametrize("what", ["another study", "no study", "no tables", "no database"])
def test_another_file_in_its_place(what, tmp_path):
    study, path, _ = with_backup(tmp_path)
    other = tmp_path / "other.db"
    if what == "another study":
        with new_study(other, random_state=6) as placed:
            play(placed, 1)
    elif what == "no study":
        new_study(other, "t").close()
    else:
        other.write_bytes(b"" if what == "no tables" else b"no database" * 1000)
    move_over(path, other)
    expected = {
        "another study": (StudyNotFoundError, "open it again"),
        "no study": (StudyNotFoundError, "the database was replaced"),
        "no tables": (StorageError, "replaced by a file without studies"),
        "no database": (StorageError, "not a database"),
    }[what]
    for _ in range(2):
        with pytest.raises(expected[0], match=expected[1]):
            study.ask()
    if what == "another study":
        assert load_study("s", study.storage).counts["told"] == 1
    if what == "no tables":
        assert not Storage(path).exists()


def checkpoint(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def test_an_overwritten_database_under_an_intact_log(tmp_path):
    """Only the chain of the events tells that the database is an older one: pages in memory are not believed."""
    study, path, old = with_backup(tmp_path)
    closing_writes_the_log(old)
    play(study, 2)
    checkpoint(path)
    assert study.counts["told"] == 5
    shutil.copyfile(old, path)
    with pytest.raises(StorageError, match="it has 6 events and had 10|damaged"):
        study.ask()


def test_a_touched_database_is_read_again(tmp_path):
    study, path, _ = with_backup(tmp_path)
    os.utime(path, (0, 0))
    play(study, 2)
    assert study.storage.epoch == 1
    assert same(study, in_memory(5))


def test_checkpoints_are_no_replacement(tmp_path):
    """Neither one's own nor those of other connections, whenever they come."""
    study, path, _ = with_backup(tmp_path)
    other = load_study("s", path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint=3")
    for number in range(40):
        play((study, other)[number % 2], 1)
        connection.execute(f"PRAGMA wal_checkpoint({('PASSIVE', 'FULL', 'RESTART', 'TRUNCATE')[number % 4]})")
        connection.execute(f"PRAGMA user_version={number}")
    assert (study.storage.epoch, other.storage.epoch) == (0, 0)
    connection.close()
    assert same(study, in_memory(43))


@pytest.mark.parametrize("way", [move_over, rename, cut_log, copy_in], ids=lambda way: way.__name__)
def test_replaced_between_the_check_and_the_commit(way, tmp_path, monkeypatch):
    study, path, old = with_backup(tmp_path)
    if way is move_over:
        closing_writes_the_log(old)
    monkeypatch.setattr(logbook, "RECONNECT", 0.2)
    play(study, 1)
    trial = study.ask()
    dialect = study.storage.engine.dialect

    def commit(connection):
        del dialect.do_commit
        dialect.do_commit(connection)
        way(path, old)

    dialect.do_commit = commit
    with pytest.raises(StorageError, match="study.db") as raised:
        study.tell(trial, reward(trial))
    assert ("was not stored" in str(raised.value)) == (way is move_over)
    assert isinstance(raised.value, UnknownOutcomeError) == (way is not move_over)


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = new_study("study.db")
    play(study, 1)
    study.close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    play(study, 1)
    assert not list(elsewhere.iterdir())
    assert load_study("s", tmp_path / "study.db").counts["told"] == 2


def test_what_a_look_at_the_file_costs(tmp_path):
    study, _, _ = with_backup(tmp_path)
    file = study.storage._newest
    times = []
    for _ in range(200):
        start = perf_counter()
        assert file.condition() is Condition.SAME
        times.append(perf_counter() - start)
    assert np.median(times) < 1e-3  # microseconds, and a full sync takes milliseconds
