"""Databases of released versions: opened for ever, by anybody, by many at once, on both kinds of storage."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from alexp.study import Storage, StorageError, list_studies, load_study
from alexp.study.database import chain, logbook, records
from alexp.study.database.schema import VERSION, VERSION_TABLE, events, metadata, studies

from .conftest import new_study, play

DATA = Path(__file__).parent / "data"
STUDIES = ("alexp_studies", "alexp_events", "alexp_snapshots", "alexp_arrays")


def scripts():
    config = Config()
    config.set_main_option("script_location", str(Path(chain.__file__).parent / "migrations"))
    return config


def tables_of_version(connection, version):
    config = scripts()
    config.attributes["connection"] = connection
    command.upgrade(config, version)


@pytest.fixture
def old(request, storage, tmp_path):
    """The database of 0.1.0 on either storage, as that version left it."""
    if storage.startswith("sqlite"):
        shutil.copy(DATA / "v0_1.db", tmp_path / "study.db")
        return storage
    with Storage(storage).writing() as connection:
        tables_of_version(connection, "0001")
        source = sa.create_engine(f"sqlite:///{DATA / 'v0_1.db'}")
        found = sa.MetaData()
        with source.connect() as reading:
            found.reflect(connection, only=STUDIES)
            for name in STUDIES:
                table = found.tables[name]
                rows = [dict(row._mapping) for row in reading.execute(sa.select(table))]
                connection.execute(table.insert(), rows)
        source.dispose()
        connection.exec_driver_sql("SELECT setval('alexp_studies_id_seq', (SELECT max(id) FROM alexp_studies))")
    return storage


def test_versions_follow_each_other():
    known = [script.revision for script in ScriptDirectory.from_config(scripts()).walk_revisions()]
    assert known == [VERSION, "0001"]


def test_old_events_get_checksums(old):
    expected = json.loads((DATA / "v0_1.json").read_text())
    assert [summary.name for summary in list_studies(old)] == sorted(expected)
    for name, facts in expected.items():
        study = load_study(name, old)
        assert study.counts == facts["counts"]
        with study.storage.reading() as connection:
            head = records.head(connection, study._id, lock=False)
            row = records.find_study(connection, name)
            first = chain.beginning(row)
            log = list(logbook.all_before(connection, study._id, head.n_events, first))
            assert log[-1].chain == head.chain
            assert all(event.key is None for event in log)
        play(study, 3)
        study.close()
    with Storage(old).reading() as connection:
        assert connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar() == VERSION


def test_checksums_are_the_same_everywhere_and_for_ever(old):
    """What is hashed must not depend on the database, and never change: stored logs would not open."""
    list_studies(old)
    with Storage(old).reading() as connection:
        found = connection.execute(sa.select(studies.c.name, studies.c.chain)).all()
    assert {name: newest.hex()[:16] for name, newest in found} == {
        "intervals": "e844a46af6f03c29",
        "linucb": "71a1a9cb3ca1914a",
        "tables": "da26a13c15084275",
    }


def test_a_log_that_had_lost_its_tail_before(old):
    with Storage(old).writing() as connection:
        connection.exec_driver_sql("DELETE FROM alexp_events WHERE study_id = 3 AND seq > 5")
    with pytest.raises(StorageError, match=r"event 6 is missing, of 10 .* The 6 events before it are intact"):
        load_study("linucb", old).ask()
    assert load_study("tables", old).counts["told"] == 6


def test_a_process_of_the_old_version_cannot_go_on(old):
    """It is refused by the database, instead of writing what nobody can verify."""
    Storage(old).prepare()
    names = ["study_id", "seq", "kind", "trial", "reward", "at", "worker"]
    insert = sa.text(f"INSERT INTO alexp_events ({', '.join(names)}) VALUES (3, 10, 'tell', 4, 0.5, 0.0, 'old')")
    with pytest.raises(sa.exc.IntegrityError), Storage(old).engine.begin() as connection:
        connection.execute(insert)
    assert load_study("linucb", old).counts["told"] == 5


def test_many_open_an_old_database_at_once(old):
    code = f"""
import sys
sys.stdin.read()
from alexp.study import load_study
print(load_study("tables", {old!r}).counts["told"])
"""
    folder = Path(__file__).parents[2]
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in crowd:
        process.stdin.close()
    assert [process.stdout.read().strip() for process in crowd] == ["6"] * 4
    assert [process.wait() for process in crowd] == [0] * 4
    with Storage(old).reading() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(events)).scalar() == 60


def test_going_back_is_possible(tmp_path):
    """A downgrade drops what was added; released versions read the rest."""
    path = tmp_path / "study.db"
    with new_study(path) as study:
        play(study, 2)
    with Storage(path).writing() as connection:
        config = scripts()
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
    with sqlite3.connect(path) as plain:
        columns = [row[1] for row in plain.execute("PRAGMA table_info(alexp_events)")]
    now = [column.name for column in metadata.tables["alexp_events"].columns]
    assert columns == [name for name in now if name not in ("key", "chain")]
