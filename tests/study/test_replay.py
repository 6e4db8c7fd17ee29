"""Following the log: what is checked, what is kept, and what an unreadable or stale snapshot does."""

import json
import sqlite3
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

import alexp
from alexp.study import (
    ReplayError,
    Storage,
    StorageError,
    StorageWarning,
    follower,
    load_study,
    replay as replay_module,
)
from alexp.study.events import compress
from alexp.study.logbook import read_snapshot, snapshot_checksum
from alexp.study.replay import Replica
from alexp.study.storage import snapshots, studies

from .conftest import in_memory, new_study, play, resealed, reward


def same(study, algorithm):
    return json.dumps(study.algorithm.to_dict()) == json.dumps(algorithm.to_dict())


def log_of(rounds=6, **settings):
    """Events of a short run, and a fresh algorithm to which they can be applied."""
    writer, events = Replica(in_memory(**settings)), []
    for _ in range(rounds):
        events += writer.ask(1, None, distinct=False)
        trial = writer.algorithm.trial(events[-1].trial)
        events += writer.tell(trial.id, reward(trial))
    return events, Replica(in_memory(**settings))


def changed(events, seq, **values):
    return [replace(event, **values) if event.seq == seq else event for event in events]


def test_the_log_as_it_is_can_be_followed():
    events, reader = log_of()
    reader.follow(events)
    assert reader.algorithm.log.reward == in_memory(6).log.reward


def test_an_ask_of_another_decision_is_refused():
    """The candidate may be the same and the decision another: by another model, or to explore."""
    events, _ = log_of(schedules=alexp.Schedules(gamma=0.5))
    asks = [event for event in events if event.kind == "ask"]
    assert {event.explored for event in asks} == {True, False}
    for ask in asks:
        others = {
            "trial": ask.trial + 1,
            "candidate": (ask.candidate + 1) % 21,
            "model": 0 if ask.model is None else (ask.model + 1) % 6,
            "explored": not ask.explored,
        }
        for name, value in others.items():
            reader = Replica(in_memory(schedules=alexp.Schedules(gamma=0.5)))
            with pytest.raises(ReplayError, match=f"event {ask.seq}: the log says"):
                reader.follow(changed(events, ask.seq, **{name: value}))
            assert reader.n_events == ask.seq


@pytest.mark.parametrize("factor", [0.99, 1.01, 0.5, 2.0])
def test_an_ask_of_another_propensity_is_refused(factor):
    events, reader = log_of()
    with pytest.raises(ReplayError, match="with propensity"):
        reader.follow(changed(events, 4, propensity=factor * events[4].propensity))


def test_rounding_of_another_machine_is_let_pass_and_the_logged_propensity_counts():
    """Everybody who weights by propensities must divide by the number with which the action was played."""
    events, reader = log_of()
    logged = (1.0 + 1e-6) * events[4].propensity
    reader.follow(changed(events, 4, propensity=logged))
    assert reader.algorithm.log.propensity[2] == logged
    assert reader.algorithm.trial(2).propensity == logged


def test_studies_show_the_logged_propensity(storage):
    study = new_study(storage)
    play(study, 4)
    study.close()
    logged = study.trial(2).propensity * (1.0 + 1e-6)
    with Storage(storage).writing() as connection:
        connection.execute(sa.text("UPDATE alexp_events SET propensity = :p WHERE seq = 4"), {"p": logged})
        connection.exec_driver_sql("DELETE FROM alexp_snapshots")
    resealed(storage)
    assert load_study("s", storage).trial(2).propensity == logged


def kept_snapshots(study):
    with study.storage.reading() as connection:
        kept = connection.execute(sa.select(snapshots.c.n_events).order_by(snapshots.c.n_events)).scalars().all()
        return kept, connection.execute(sa.select(studies.c.snapshot_at)).scalar_one()


def test_a_stale_snapshot_does_not_take_the_place_of_a_newer_one(storage):
    slow = new_study(storage)
    play(slow, 3)
    fast = load_study("s", storage)
    play(fast, 4)
    fast.close()
    assert kept_snapshots(fast) == ([14], 14)
    slow.close()  # has seen six events, and must not say that these are the newest
    assert kept_snapshots(fast) == ([14], 14)
    assert load_study("s", storage).refresh().snapshot_at == 14


def test_a_snapshot_of_another_version_costs_time_only(storage):
    """It can be read, but the algorithm cannot make sense of it: the log is the truth."""
    study = new_study(storage)
    play(study, 5)
    study.close()
    foreign = {"log": {"index": np.arange(3)}, "state": {"of": "another version"}}
    with study.storage.writing() as connection:
        shot = read_snapshot(connection, 1, 10)
        checksum = snapshot_checksum(10, shot.format, shot.library, shot.chain, compress(foreign))
        connection.execute(snapshots.update().values(data=compress(foreign), checksum=checksum))
    again = load_study("s", storage)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StorageWarning)  # it is not damaged
        assert same(again, in_memory(5))
    assert again.ask() == in_memory(5).ask()


def test_a_snapshot_that_cannot_be_written_is_no_failure_of_the_tell(tmp_path, monkeypatch):
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 2)
    study = new_study(Storage(tmp_path / "study.db", timeout=0.05))
    play(study, 1)
    write, attempts = follower.write_snapshot, []

    def busy(connection, *arguments):
        attempts.append(arguments[1])
        raise sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database is locked"))

    monkeypatch.setattr(follower, "write_snapshot", busy)
    play(study, 3)
    assert attempts == [4, 6, 8]  # tried again, but not at every step
    assert study.counts["told"] == 4
    assert study.refresh().is_ahead
    monkeypatch.setattr(follower, "write_snapshot", write)
    study.close()
    assert kept_snapshots(study)[1] == 8
    assert same(load_study("s", tmp_path / "study.db"), in_memory(4))


def test_a_missing_end_of_the_log_is_noticed(storage):
    play(new_study(storage), 2)
    with Storage(storage).writing() as connection:
        connection.exec_driver_sql("DELETE FROM alexp_events WHERE seq = 3")
    with pytest.raises(StorageError, match="event 3 is missing"):
        load_study("s", storage).ask()


@pytest.mark.parametrize("name", ["exp4-ix", "corral"])
def test_abandoned_trials_leave_nothing_behind(storage, name):
    """A snapshot after a hundred broken vials holds what it would hold without them, beside the trials themselves."""
    kind = alexp.Algorithm.registry[name]
    study = new_study(storage, algorithm=name, **kind.example)
    play(study, 4)
    before = json.dumps(study.algorithm.state())
    for trial in study.ask(100):
        study.abandon(trial)
    assert json.dumps(study.algorithm.state()) == before
    study.close()
    again = load_study("s", storage)
    assert json.dumps(again.algorithm.state()) == before
    play(again, 2)
