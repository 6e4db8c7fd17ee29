"""Damage: noticed when a study is opened or checked, named, and what is intact can be saved."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.common.codec import pack, unpack
from alexp.study import (
    Storage,
    StorageError,
    StorageWarning,
    StudyExistsError,
    StudyNotFoundError,
    check,
    list_studies,
    load_study,
    logbook,
    replay as replay_module,
    salvage,
)
from alexp.study.events import Event, compress, decompress, verify, with_checksums
from alexp.study.logbook import snapshot_checksum
from alexp.study.storage import VERSION_TABLE, snapshots

from .conftest import in_memory, new_study, play, resealed


def same(study, algorithm):
    return json.dumps(study.algorithm.to_dict()) == json.dumps(algorithm.to_dict())


def change(storage, *statements):
    with Storage(storage).writing() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def make_behind(storage):
    with new_study(storage) as study:
        play(study, 10)
    study = load_study("s", storage)
    play(study, 2)
    study.storage.close()
    return storage


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    return Path(make_behind(tmp_path_factory.mktemp("template") / "study.db")).read_bytes()


@pytest.fixture
def behind(storage, request, tmp_path):
    """A study of 24 events with a snapshot after 20."""
    if storage.startswith("postgres"):
        return make_behind(storage)
    (tmp_path / "study.db").write_bytes(request.getfixturevalue("template"))
    return storage


def opened(storage):
    with warnings.catch_warnings():
        warnings.simplefilter("error", StorageWarning)
        return load_study("s", storage).counts


# -- noticed when opened ---------------------------------------------------------------------------------------

AT_OPEN = {
    "tail": (["DELETE FROM alexp_events WHERE seq >= 22"], "event 22 is missing of the 24"),
    "tail and its count": (
        ["DELETE FROM alexp_events WHERE seq >= 22", "UPDATE alexp_studies SET n_events = 22"],
        "event 21 is not the last event that the study records",
    ),
    "tail behind the snapshot": (["DELETE FROM alexp_events WHERE seq >= 15"], "event 15 is missing of the 24"),
    "all": (["DELETE FROM alexp_events"], "event 0 is missing of the 24"),
    "a row behind the snapshot": (["DELETE FROM alexp_events WHERE seq = 3"], "event 3 is missing of the 24"),
    "one too many": (
        [
            "INSERT INTO alexp_events (study_id, seq, kind, trial, reward, at, worker, key, chain) "
            "SELECT study_id, 24, kind, trial, reward, at, worker, 'more:0', chain FROM alexp_events WHERE seq = 23"
        ],
        "the study records 24 events, but the log has more",
    ),
    "a reward": (["UPDATE alexp_events SET reward = reward + 1 WHERE seq = 23"], "event 23 is damaged"),
    "a time": (["UPDATE alexp_events SET at = at + 1 WHERE seq = 22"], "event 22 is damaged"),
    "a worker": (["UPDATE alexp_events SET worker = 'me' WHERE seq = 22"], "event 22 is damaged"),
    "a detail": (["UPDATE alexp_events SET detail = NULL WHERE seq = 22"], "event 22 is damaged"),
    "a key": (["UPDATE alexp_events SET key = 'another:0' WHERE seq = 22"], "event 22 is damaged"),
    "a checksum": (
        ["UPDATE alexp_events SET chain = checksum FROM alexp_studies WHERE seq = 21"],
        "event 21 is damaged",
    ),
    "two that changed places": (
        [
            "UPDATE alexp_events SET seq = 99 WHERE seq = 22",
            "UPDATE alexp_events SET seq = 22 WHERE seq = 23",
            "UPDATE alexp_events SET seq = 23 WHERE seq = 99",
        ],
        "event 22 is damaged",
    ),
    "settings": (["UPDATE alexp_studies SET settings = '{}'"], "study 's' itself has a wrong checksum"),
    "seed": (["UPDATE alexp_studies SET entropy = '6'"], "study 's' itself has a wrong checksum"),
    "creation": (["UPDATE alexp_studies SET created_at = 0"], "study 's' itself has a wrong checksum"),
    "name": (["UPDATE alexp_studies SET name = 'r'"], "study 'r' itself has a wrong checksum"),
    "the row of the study": (["DELETE FROM alexp_studies"], "rows of a study that is missing in the table of studies"),
    "the last checksum": (
        ["UPDATE alexp_studies SET chain = checksum"],
        "is not the last event that the study records",
    ),
    "version": ([f"DELETE FROM {VERSION_TABLE}"], "0 records of their version"),
    "version table": ([f"DROP TABLE {VERSION_TABLE}"], "no table alexp_version"),
    "a column of events": (["ALTER TABLE alexp_events DROP COLUMN detail"], "a table or a column is missing"),
    "a column of studies": (["ALTER TABLE alexp_studies DROP COLUMN library"], "a table or a column is missing"),
    "a column of snapshots": (["ALTER TABLE alexp_snapshots DROP COLUMN format"], "a table or a column is missing"),
    "the table of events": (["DROP TABLE alexp_events"], "a table or a column is missing"),
    "a matrix": (["DELETE FROM alexp_arrays"], r"a stored matrix \(.*\) is missing"),
}


ON_SERVER = ("tail and its count", "a reward", "name", "the row of the study", "version", "a column of events")


@pytest.mark.parametrize(
    ("storage", "what"),
    [
        pytest.param(kind, what, id=f"{kind}-{what.replace(' ', '_')}")  # ids are given to tools that split at spaces
        for kind, chosen in (("sqlite", AT_OPEN), ("postgres", ON_SERVER))
        for what in chosen
    ],
    indirect=["storage"],
)
def test_damage_is_noticed_when_the_study_is_opened(behind, what):
    statements, message = AT_OPEN[what]
    assert opened(behind)["told"] == 12
    if behind.startswith("postgres") and what == "the row of the study":
        statements = [
            "ALTER TABLE alexp_events DROP CONSTRAINT alexp_events_study_id_fkey",
            "ALTER TABLE alexp_snapshots DROP CONSTRAINT alexp_snapshots_study_id_fkey",
            "ALTER TABLE alexp_arrays DROP CONSTRAINT alexp_arrays_study_id_fkey",
            *statements,
        ]
    change(behind, *statements)
    with pytest.raises(StorageError, match=message) as raised:
        opened(behind)
    assert "salvage" in str(raised.value)


def test_a_gap_is_called_so():
    log = list(with_checksums(b"first", [Event(seq, "tell", seq, reward=0.5) for seq in range(4)], "call"))
    assert verify(b"first", log, 0, 4) == log[-1].chain
    with pytest.raises(StorageError, match="event 1 is missing") as raised:
        verify(b"first", [log[0], *log[2:]], 0, 4)
    assert raised.value.intact == 1
    with pytest.raises(StorageError, match="event 2 is missing, and all after it up to event 3"):
        verify(b"first", log[:2], 0, 4)


def test_a_list_does_not_show_what_is_wrong(behind):
    new_study(behind, "other")
    assert [summary.name for summary in list_studies(behind)] == ["other", "s"]
    change(behind, "UPDATE alexp_studies SET algorithm = 'linucb' WHERE name = 's'")
    with pytest.raises(StorageError, match="study 's' itself has a wrong checksum"):
        list_studies(behind)
    assert load_study("other", behind).ask().id == 0


def test_a_dropped_column_that_came_back_empty(behind):
    change(behind, "ALTER TABLE alexp_events DROP COLUMN worker")
    change(behind, "ALTER TABLE alexp_events ADD COLUMN worker VARCHAR(200)")
    with pytest.raises(StorageError, match="event 20 is damaged"):
        opened(behind)


@pytest.mark.parametrize("column", ["data", "chain", "library"])
def test_a_changed_snapshot_is_noticed_and_done_without(behind, column):
    value = {"data": "alexp_arrays.data", "chain": "alexp_arrays.data", "library": "'9.9'"}[column]
    change(behind, f"UPDATE alexp_snapshots SET {column} = {value} FROM alexp_arrays")
    study = load_study("s", behind)
    with pytest.warns(StorageWarning, match="the snapshot after 20 events is damaged; the log is replayed instead"):
        assert same(study, in_memory(12))
    assert not check("s", behind).ok
    study.close()
    assert check("s", behind).ok


def test_a_changed_snapshot_of_the_whole_log_is_replaced(behind):
    with load_study("s", behind) as study:
        study.abandon(study.ask())  # a snapshot that no event follows, when the study is closed
    change(behind, "UPDATE alexp_snapshots SET library = '9.9' WHERE n_events = 26")
    study = load_study("s", behind)
    with pytest.warns(StorageWarning, match="the snapshot after 26 events is damaged"):
        study.best()
    study.close()
    assert check("s", behind).ok


def test_a_changed_event_behind_a_changed_snapshot(behind):
    """Neither takes the other's place."""
    change(behind, "UPDATE alexp_events SET reward = 9 WHERE seq = 5", "UPDATE alexp_snapshots SET library = ''")
    study = load_study("s", behind)
    with (
        pytest.warns(StorageWarning),
        pytest.raises(StorageError, match="event 5 is damaged.*The 5 events before it are intact"),
    ):
        study.ask()


def test_a_snapshot_that_the_log_does_not_lead_to(behind):
    change(behind, "UPDATE alexp_events SET chain = checksum FROM alexp_studies WHERE seq = 19")
    study = load_study("s", behind)
    with pytest.warns(StorageWarning), pytest.raises(StorageError, match="event 19 is damaged"):
        study.ask()


def test_a_running_process_notices_that_history_was_replaced(behind, tmp_path):
    """An old copy was put back and went another way: as many events, and not the same."""
    study = load_study("s", behind)
    assert study.counts["told"] == 12
    change(behind, "UPDATE alexp_events SET worker = 'somebody else'", "DELETE FROM alexp_snapshots")
    resealed(behind)
    with pytest.raises(StorageError, match="event 23 is another one"):
        study.ask()
    assert load_study("s", behind).counts["told"] == 12


def test_what_is_read_behind_a_snapshot_is_verified(behind):
    change(behind, "UPDATE alexp_events SET worker = 'me' WHERE seq = 4")
    study = load_study("s", behind)
    assert study.counts["told"] == 12  # from the snapshot
    for look in (study.events, study.events_dataframe, study.beliefs, study.view):
        with pytest.raises(StorageError, match="event 4(,| is damaged)"):
            look()
    assert len(study.events(since=6)) == 18


# -- check -----------------------------------------------------------------------------------------------------


def test_check_of_a_sound_study(behind):
    report = check("s", behind)
    assert report.ok
    assert (report.events, report.intact, report.snapshots) == (24, 24, 1)
    assert "24 events and 1 snapshots verified, replayed and compared: all is well" in str(report)


def test_check_looks_behind_the_snapshot(behind):
    change(behind, "UPDATE alexp_events SET reward = reward + 1 WHERE seq = 7")
    assert opened(behind)["told"] == 12  # the snapshot is right
    report = check("s", behind)
    assert not report.ok
    assert report.intact == 7
    assert "7 of 24 events are intact" in str(report)
    assert any("event 7 is damaged" in problem for problem in report.problems)


def test_check_replays_and_compares(behind, monkeypatch):
    """A log that is sound in itself but is not what the snapshot was made of."""
    change(behind, "UPDATE alexp_events SET reward = reward + 1e-9 WHERE seq = 19")
    resealed(behind)
    with Storage(behind).writing() as connection:
        shot = logbook.read_snapshot(connection, 1, 20)
        newest = logbook.checksum_after(connection, 1, 20)
        checksum = snapshot_checksum(20, shot.format, shot.library, newest, shot.data)
        connection.execute(snapshots.update().values(chain=newest, checksum=checksum))
    assert opened(behind)["told"] == 12
    report = check("s", behind)
    assert report.intact == 24
    assert "replaying the log gives another log than the newest snapshot and what followed" in report.problems


def scaled(state, factor):
    if isinstance(state, dict):
        return {key: scaled(value, factor) for key, value in state.items()}
    if isinstance(state, list):
        return [scaled(value, factor) for value in state]
    return state * factor if isinstance(state, np.ndarray) and state.dtype.kind == "f" else state


@pytest.mark.parametrize(("factor", "sound"), [(1 + 1e-12, True), (1 + 1e-3, False)])
def test_check_allows_for_the_rounding_of_another_processor(sqlite, factor, sound):
    with new_study(sqlite, algorithm="evidence-mixture") as study:
        play(study, 6)
    with Storage(sqlite).writing() as connection:
        shot = logbook.read_snapshot(connection, 1, 12)
        held = decompress(shot.data)
        data = compress(held | {"state": pack(scaled(unpack(held["state"]), factor))})
        checksum = snapshot_checksum(12, shot.format, shot.library, shot.chain, data)
        connection.execute(snapshots.update().values(data=data, checksum=checksum))
    assert check("s", sqlite).ok == sound


def test_check_on_the_command_line(behind):
    run = CliRunner()
    assert "all is well" in run.invoke(app, ["study", "check", "--storage", behind]).output
    change(behind, "UPDATE alexp_events SET reward = 0.5 WHERE seq = 1")
    answer = run.invoke(app, ["study", "check", "s", "--storage", behind])
    assert answer.exit_code == 1
    assert "1 of 24 events are intact" in answer.output
    missing = run.invoke(app, ["study", "check", "nobody", "--storage", behind])
    assert missing.exit_code == 1
    assert "there is no study 'nobody'" in missing.output


# -- salvage ---------------------------------------------------------------------------------------------------


def test_salvage_of_a_sound_database_is_a_copy(behind, tmp_path):
    new_study(behind, "empty")
    reports = salvage(behind, tmp_path / "copy.db")
    assert {report.name: (report.saved, report.lost) for report in reports} == {"s": (24, []), "empty": (0, [])}
    assert check("s", tmp_path / "copy.db").ok
    assert [summary.name for summary in list_studies(tmp_path / "copy.db")] == ["empty", "s"]
    copy = load_study("s", tmp_path / "copy.db")
    assert copy.refresh().snapshot_at == 20
    play(copy, 2)
    assert same(copy, in_memory(14))


@pytest.mark.parametrize(
    ("statement", "saved"),
    [
        ("UPDATE alexp_events SET reward = 0.5 WHERE seq = 7", 7),
        ("DELETE FROM alexp_events WHERE seq = 22", 22),
        ("UPDATE alexp_studies SET n_events = 17", 24),
        ("ALTER TABLE alexp_events DROP COLUMN reward", 1),
        (f"DELETE FROM {VERSION_TABLE}", 24),
    ],
    ids=["reward", "row", "count", "column", "version"],
)
def test_salvage_saves_the_longest_part_that_is_right(behind, tmp_path, statement, saved):
    change(behind, statement)
    (report,) = salvage(behind, tmp_path / "saved.db")
    assert report.saved == saved
    if 7 <= saved < 24:
        assert f"event {saved}, which is " in str(report)
    study = load_study("s", tmp_path / "saved.db")
    assert len(study.events()) == saved
    assert check("s", tmp_path / "saved.db").ok
    for trial in study.pending():
        study.tell(trial, 0.5)
    study.ask()


def test_salvage_of_a_study_whose_row_is_wrong(behind, tmp_path):
    new_study(behind, "other")
    change(behind, "UPDATE alexp_studies SET settings = '{}' WHERE name = 's'")
    lost, other = salvage(behind, tmp_path / "saved.db")
    assert "the study itself, row 0 of alexp_studies: its checksum is wrong" in str(lost)
    assert other.lost == []
    assert [summary.name for summary in list_studies(tmp_path / "saved.db")] == ["other"]


def test_salvage_goes_on_where_only_the_checksum_of_the_row_is_wrong(behind, tmp_path):
    change(behind, "UPDATE alexp_studies SET checksum = chain")
    (report,) = salvage(behind, tmp_path / "saved.db")
    assert report.saved == 24
    assert same(load_study("s", tmp_path / "saved.db"), in_memory(12))


def test_salvage_says_which_matrix_is_lost(storage, tmp_path):
    models = alexp.ModelClass.from_matrices({"a": np.eye(4), "b": np.ones((4, 1))})
    alexp.create_study(models, alexp.FiniteSet([1, 2, 3, 4]), name="m", storage=storage).ask()
    with Storage(storage).reading() as connection:
        key = connection.exec_driver_sql("SELECT hash FROM alexp_arrays ORDER BY hash").scalar()
    change(storage, f"DELETE FROM alexp_arrays WHERE hash = '{key}'")
    (report,) = salvage(storage, tmp_path / "saved.db")
    assert report.saved == 1
    assert [line[:23] for line in report.lost] == [f"the matrix {key[:12]}"]


def test_salvage_needs_a_new_target(behind, tmp_path):
    with pytest.raises(ValueError, match="another storage"):
        salvage(behind, behind)
    new_study(tmp_path / "taken.db")
    with pytest.raises(StudyExistsError, match=r"taken\.db holds studies already"):
        salvage(behind, tmp_path / "taken.db")
    with pytest.raises(StudyNotFoundError, match="there is no database"):
        salvage(tmp_path / "nothing.db", tmp_path / "new.db")
    assert not (tmp_path / "nothing.db").exists()


def test_salvage_on_the_command_line(behind, tmp_path):
    change(behind, "UPDATE alexp_events SET reward = 0.5 WHERE seq = 23")
    answer = CliRunner().invoke(app, ["study", "salvage", behind, str(tmp_path / "saved.db")])
    assert answer.exit_code == 0
    assert "s: 23 of 24 events saved\n  lost: event 23, which is damaged, and all after it" in answer.output
    again = CliRunner().invoke(app, ["study", "salvage", behind, str(tmp_path / "saved.db")])
    assert again.exit_code == 1
    assert "holds studies already" in again.output


def test_a_table_of_snapshots_without_end(behind, monkeypatch):
    """Whatever the number of snapshots was meant to be: those that are kept are the newest."""
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 2)
    play(load_study("s", behind), 6)
    with Storage(behind).reading() as connection:
        kept = connection.execute(sa.text("SELECT n_events FROM alexp_snapshots ORDER BY n_events")).scalars().all()
    assert kept == [34, 36]
