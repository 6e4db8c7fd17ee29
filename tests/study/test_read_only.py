"""A study can be looked at where nothing can be written: on a read-only disk, or in a file of somebody else."""

import json
import multiprocessing
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from alexp.study import StorageError, check, list_studies, load_study

from .conftest import new_study, play
from .test_storage import small_disk

__all__ = ["small_disk"]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.study.conftest"])


def look(path, told):
    """Everything that does not write, and that what does is refused."""
    folder = path.parent
    before = sorted(file.name for file in folder.iterdir())
    assert [summary.told for summary in list_studies(path)] == [told]
    study = load_study("s", path)
    assert study.counts["told"] == told
    assert len(study.events()) == 2 * told + 1
    assert study.view().counts["told"] == told
    assert len(study.pending()) == 1
    assert json.dumps(study.algorithm.log.state(), default=repr)
    assert check("s", path).ok
    with tempfile.TemporaryDirectory() as elsewhere:
        assert study.report(Path(elsewhere) / "report.html").exists()
    for write in (study.ask, lambda: study.tell(study.pending()[0], 0.5), lambda: new_study(path, "other")):
        with pytest.raises(StorageError, match=r"study.db cannot be written to \(read-only\).*Nothing was changed"):
            write()
    assert study.counts["told"] == told
    study.close()
    assert sorted(file.name for file in folder.iterdir()) == before


def filled(path):
    study = new_study(path)
    play(study, 3)
    study.ask()
    return study


def remount(folder, how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


def test_a_read_only_disk(small_disk):
    study = filled(small_disk / "study.db")
    study.close()
    remount(small_disk, "ro")
    try:
        look(small_disk / "study.db", 3)
        assert study.counts["told"] == 3  # a study that was open before, too
    finally:
        remount(small_disk, "rw")
    play(study, 1)  # and it goes on once that is possible
    assert study.counts["told"] == 4


def test_a_read_only_disk_with_a_log_that_was_left_behind(small_disk, tmp_path):
    """As after a crash: the newest events are in the -wal file only."""
    study = filled(tmp_path / "study.db")
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{tmp_path}/study.db{suffix}", f"{small_disk}/study.db{suffix}")
    study.close()
    remount(small_disk, "ro")
    try:
        look(small_disk / "study.db", 3)
    finally:
        remount(small_disk, "rw")


def as_nobody(path, told, line):
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        assert not os.access(path, os.W_OK)
        look(path, told)
        line.send("fine")
    except BaseException as error:
        line.send(f"{type(error).__name__}: {error}")


def nobody_looks(path, told):
    line, its = FORKS.Pipe()
    process = FORKS.Process(target=as_nobody, args=(path, told, its))
    process.start()
    assert line.poll(120)
    answer = line.recv()
    process.join(60)
    return answer


@pytest.mark.parametrize("folder_is_open", [False, True])
def test_a_file_of_somebody_else(folder_is_open):
    """Without write permission; a folder that can be written to gets no files that the owner could not use."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "study.db"
        filled(path).close()
        path.chmod(0o444)
        folder.chmod(0o777 if folder_is_open else 0o555)
        try:
            assert nobody_looks(path, 3) == "fine"
        finally:
            folder.chmod(0o700)


def test_looking_while_the_owner_has_it_open():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = filled(folder / "study.db")
        for file in (folder, *folder.iterdir()):
            file.chmod(0o755 if file is folder else 0o644)
        assert nobody_looks(folder / "study.db", 3) == "fine"
        play(study, 1)


def test_an_unchanging_file_that_changes(tmp_path, monkeypatch):
    """The same in one process, for which the file is made to look read-only."""
    path = tmp_path / "study.db"
    owner = filled(path)
    owner.close()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        reader = load_study("s", path)
        assert reader.counts["told"] == 3
    assert not Path(f"{path}-wal").exists()
    play(owner, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert reader.counts["told"] == 4
    owner.close()
    play(reader, 1)  # it can be written to by now
    assert load_study("s", path).counts["told"] == 5
