"""Versions of the tables: recorded databases open and go on, on both storages; unknown versions are refused."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from alexp.study import Storage, StorageError, check, list_studies, load_study, salvage, storage as storage_module
from alexp.study.storage import VERSION, VERSION_TABLE, parse_url, studies

from .conftest import new_study, play, reward

DATA = Path(__file__).parent / "data"
RECORDED = sorted(DATA.glob("v*.db"))


def change(storage, statement):
    with Storage(storage).writing() as connection:
        connection.exec_driver_sql(statement)


@pytest.fixture(params=RECORDED, ids=lambda path: path.stem)
def recorded(request, storage, tmp_path):
    """A copy of a recorded database on either storage, and the facts about it."""
    copy = tmp_path / "recorded.db"
    shutil.copy(request.param, copy)
    facts = json.loads(request.param.with_suffix(".json").read_text())
    if storage.startswith("sqlite"):
        return f"sqlite:///{copy}", facts
    salvage(copy, storage)
    return storage, facts


def test_recorded_databases_open_and_go_on(recorded, tmp_path):
    where, expected = recorded
    assert [summary.name for summary in list_studies(where)] == sorted(expected)
    for name, facts in expected.items():
        report = check(name, where)
        assert report.ok, str(report)
        study = load_study(name, where)
        frame = study.trials_dataframe()
        assert study.counts == facts["counts"]
        assert frame["index"].tolist() == facts["index"]
        assert frame["state"].tolist() == facts["states"]
        assert frame["reward"].dropna().tolist() == facts["rewards"]
        if facts["q"] is not None:
            assert study.probabilities.tolist() == pytest.approx(facts["q"], rel=1e-3, abs=1e-6)
        presented = {"context": np.array([0.5, 1.0, -0.5])} if study.algorithm.is_contextual else {}
        for _ in range(2):
            trial = study.ask(**presented)
            study.tell(trial, reward(trial))
        study.report(tmp_path / "report.html")
        study.close()
        assert check(name, where).ok


def test_checksums_are_the_same_everywhere_and_for_ever(recorded):
    """What is hashed must not depend on the database, and never change: stored logs would not open."""
    where, expected = recorded
    with Storage(where).reading() as connection:
        found = connection.execute(sa.select(studies.c.name, studies.c.chain)).all()
    assert {name: newest.hex() for name, newest in found} == {name: facts["chain"] for name, facts in expected.items()}


def test_tables_change_only_with_their_version(tmp_path):
    """Those that are made today are those of the recorded database of the same version."""

    def tables(path):
        with sqlite3.connect(path) as plain:
            return sorted(plain.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())

    Storage(tmp_path / "new.db").prepare()
    shutil.copy(DATA / f"v{VERSION}.db", tmp_path / "recorded.db")
    assert tables(tmp_path / "new.db") == tables(tmp_path / "recorded.db")


def test_many_create_the_tables_at_once(storage):
    code = f"""
import sys
sys.stdin.read()
from alexp.study import Storage, list_studies
Storage({storage!r}).prepare()
print(len(list_studies({storage!r})))
"""
    crowd = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in crowd:
        process.stdin.close()
    assert [process.stdout.read().strip() for process in crowd] == ["0"] * 4
    assert [process.wait() for process in crowd] == [0] * 4
    with Storage(storage).reading() as connection:
        assert connection.exec_driver_sql(f"SELECT version FROM {VERSION_TABLE}").scalars().all() == [VERSION]


def test_a_database_of_the_future_is_left_alone(storage):
    new_study(storage)
    change(storage, f"UPDATE {VERSION_TABLE} SET version = 9999")
    with pytest.raises(StorageError, match="has version 9999 .* written by a newer version"):
        load_study("s", storage)


def test_an_older_version_is_upgraded_once(sqlite, monkeypatch):
    """As it will be when the tables change."""
    steps = []
    play(new_study(sqlite), 1)
    monkeypatch.setattr(storage_module, "VERSION", VERSION + 1)
    monkeypatch.setitem(storage_module.UPGRADES, VERSION, lambda connection: steps.append(connection.in_transaction()))
    for _ in range(2):
        assert load_study("s", sqlite).counts["told"] == 1
    assert steps == [True]
    monkeypatch.undo()
    with pytest.raises(StorageError, match="written by a newer version"):
        load_study("s", sqlite)


def test_other_tables_in_the_database_are_no_matter(storage):
    engine = sa.create_engine(parse_url(storage))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num varchar(32))")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('somebody else')")
    assert list_studies(storage) == []
    play(new_study(storage), 1)
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == "somebody else"
    engine.dispose()
