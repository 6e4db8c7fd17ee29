"""Damaged, read-only and full disks, URLs: clear errors, and nothing lost afterwards."""

import json
import os
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest
import sqlalchemy as sa

import alexp.study
from alexp.study import (
    ReplayError,
    Storage,
    StorageError,
    StudyNotFoundError,
    list_studies,
    load_study,
    storage as storage_module,
)
from alexp.study.storage import parse_url

from .conftest import in_memory, new_study, play, resealed, reward


def same(study, algorithm):
    return json.dumps(study.algorithm.to_dict()) == json.dumps(algorithm.to_dict())


# -- disks -----------------------------------------------------------------------------------------------------


def test_truncated_file(tmp_path):
    path = tmp_path / "study.db"
    study = new_study(f"sqlite:///{path}")
    play(study, 30)
    study.close()
    whole = path.read_bytes()
    for size in (len(whole) // 2, len(whole) - 4096, 50):
        path.write_bytes(whole[:size])
        with pytest.raises(StorageError, match=r"study\.db is damaged or not a database.*backup"):
            load_study("s", path).counts  # noqa: B018
    path.write_bytes(whole)
    again = load_study("s", path)
    play(again, 2)
    assert same(again, in_memory(32))


def test_not_a_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a database\n" * 100)
    with pytest.raises(StorageError, match="not a database"):
        load_study("s", path)
    with pytest.raises(StorageError, match="not a database"):
        new_study(path)
    assert path.read_text().startswith("these are my notes")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk(small_disk):
    study, plain = new_study(small_disk / "study.db"), in_memory()
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        free = os.statvfs(small_disk)
        file.write(b"x" * (free.f_bavail * free.f_frsize - 64 * 1024))
    with pytest.raises(StorageError, match="Nothing was changed; (free some space and )?try again"):
        play(study, 1000)
    pending = study.pending()
    told = study.counts["told"]
    assert told > 0
    filler.unlink()
    for trial in pending:
        study.tell(trial, reward(trial))
    play(study, 3)
    play(plain, told + len(pending) + 3)
    assert same(study, plain)
    assert same(load_study("s", small_disk / "study.db"), plain)


def test_read_only_disk(small_disk):
    study = new_study(small_disk / "study.db")
    play(study, 3)
    trial = study.ask()
    study.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StorageError, match="read-only|cannot open"):
        study.tell(trial, 0.5)
    with pytest.raises(StorageError, match="read-only|cannot open"):
        new_study(small_disk / "study.db", "other")
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    study.tell(trial, reward(trial))
    assert same(load_study("s", small_disk / "study.db"), in_memory(4))


def test_no_room_left_within_the_file(tmp_path):
    """The same as a full disk, where mounting is not permitted."""
    study = new_study(tmp_path / "study.db")
    play(study, 2)
    with study.storage.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(StorageError, match="Nothing was changed"):
        play(study, 500)
    told, pending = study.counts["told"], study.pending()
    assert told > 2
    study.close()  # the limit belongs to the connection
    for trial in pending:
        study.tell(trial, reward(trial))
    assert same(study, in_memory(told + len(pending)))


def test_missing_folder_and_missing_file(tmp_path):
    with pytest.raises(StorageError, match="cannot open.*Does its folder exist"):
        new_study(tmp_path / "nowhere" / "study.db")
    with pytest.raises(StudyNotFoundError, match="there is no study 's'"):
        load_study("s", tmp_path / "new.db")
    assert list_studies(tmp_path / "new.db") == []
    assert not (tmp_path / "new.db").exists()


def test_busy_for_too_long(tmp_path):
    study = new_study(Storage(tmp_path / "study.db", timeout=0.05))
    blocker = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match=r"busy for more than 0\.05 s"):
        study.ask()
    blocker.execute("ROLLBACK")
    assert study.ask().id == 0


def test_lost_connections_and_a_busy_server(postgres, monkeypatch):
    monkeypatch.setattr(storage_module, "_IDLE_SECONDS", 0.0)
    study = new_study(Storage(postgres, timeout=0.2))
    play(study, 2)
    with sa.create_engine(parse_url(postgres)).connect() as admin:
        admin.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        play(study, 1)
        admin.rollback()
        admin.exec_driver_sql("SELECT * FROM alexp_studies FOR UPDATE")
        with pytest.raises(StorageError, match=r"busy for more than 0\.2 s"):
            study.ask()
        admin.rollback()
    play(study, 1)
    assert same(study, in_memory(4))


def test_server_that_is_not_there():
    with pytest.raises(StorageError, match="the database .* failed") as raised:
        new_study("postgresql://nobody:secret@127.0.0.1:1/none")
    assert "secret" not in str(raised.value)


def test_every_commit_reaches_the_disk(tmp_path):
    """What was acknowledged must survive the crash of the machine, which no test can make happen."""
    study = new_study(tmp_path / "study.db")
    for _ in range(2):
        with study.storage.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        study.close()


# -- the log ---------------------------------------------------------------------------------------------------


def change(storage, statement):
    with Storage(storage).writing() as connection:
        connection.exec_driver_sql(statement)


def test_a_log_that_was_tampered_with(storage):
    play(new_study(storage), 4)
    change(storage, "UPDATE alexp_events SET candidate = candidate + 1 WHERE seq = 2")
    with pytest.raises(StorageError, match="event 2 is damaged: its checksum is wrong. The 2 events before it"):
        load_study("s", storage).ask()
    change(storage, "UPDATE alexp_events SET candidate = candidate - 1 WHERE seq = 2")
    assert load_study("s", storage).counts["told"] == 4
    change(storage, "UPDATE alexp_events SET trial = 0 WHERE seq = 3")
    with pytest.raises(StorageError, match="event 3 is damaged"):
        load_study("s", storage).ask()
    change(storage, "DELETE FROM alexp_events WHERE seq = 3")
    with pytest.raises(StorageError, match="event 3 is missing of the 8 .* The 3 events before it are intact"):
        load_study("s", storage).ask()


def test_a_log_that_was_written_by_other_numerics(storage):
    play(new_study(storage), 4)
    change(storage, "UPDATE alexp_events SET candidate = candidate + 1 WHERE seq = 2")
    resealed(storage)
    with pytest.raises(ReplayError, match="event 2: the log says that trial 1 was candidate"):
        load_study("s", storage).ask()
    change(storage, "UPDATE alexp_events SET candidate = candidate - 1 WHERE seq = 2")
    change(storage, "UPDATE alexp_events SET trial = 0 WHERE seq = 3")
    resealed(storage)
    with pytest.raises(ReplayError, match="contradicts itself: trial 0 already has"):
        load_study("s", storage).ask()


def test_a_matrix_that_was_damaged(storage):
    models = alexp.ModelClass.from_matrices({"a": np.eye(4), "b": np.ones((4, 1))})
    alexp.study.create_study(models, alexp.FiniteSet([1, 2, 3, 4]), name="m", storage=storage)
    change(storage, "UPDATE alexp_arrays SET dtype = '<i8'")
    with pytest.raises(StorageError, match="a stored matrix .* has a wrong checksum"):
        load_study("m", storage)


def test_an_old_copy_put_back(tmp_path):
    study = new_study(tmp_path / "study.db")
    play(study, 2)
    change(tmp_path / "study.db", "UPDATE alexp_studies SET n_events = 2")
    with pytest.raises(StorageError, match="it has 2 events and had 4"):
        study.ask()


# -- addresses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/db", "://", ""])
def test_unsuitable_urls(url):
    with pytest.raises(ValueError, match="storage|study"):
        Storage(url)
