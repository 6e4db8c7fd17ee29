"""Kill -9 at random moments: every acknowledged tell is there, no trial is doubled, and the end result is the same."""

import json
import os
import signal

import numpy as np
import pytest
import sqlalchemy as sa

from alexp.study import load_study, replay as replay_module
from tests.adversarial.kills import MARK, STEP, start_worker

from .conftest import in_memory, new_study, reward

KILLS = 40
MOST_MARKS = 180  # in a life


def work_for_ever(storage, pipe):
    """What a worker does: tell what was left pending, then ask and tell; acknowledge every tell.

    Before and after every statement and every commit it says so, for the one who is going to kill it.
    """

    def step(*_):
        os.write(pipe, MARK.pack(STEP, 0.0))

    study = load_study("s", storage)
    for moment in ("begin", "before_cursor_execute", "after_cursor_execute", "commit", "rollback"):
        sa.event.listen(study.storage.engine, moment, step)
    while True:
        for trial in study.pending() or [study.ask()]:
            value = reward(trial)
            study.tell(trial, value)
            os.write(pipe, MARK.pack(trial.id, value))


def acknowledged_before_death(storage, marks):
    """Kill a worker when it has given so many signs of life, however long that takes; what had it acknowledged?"""
    pid, reading = start_worker(storage, work_for_ever)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read(marks * MARK.size)
        assert len(data) == marks * MARK.size, "the worker ended by itself"
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        data += pipe.read()
    assert os.WIFSIGNALED(status)
    whole = data[: len(data) - len(data) % MARK.size]
    return [(trial, value) for trial, value in MARK.iter_unpack(whole) if trial != STEP]


def test_kill_minus_nine(storage, monkeypatch):
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 40)  # so that snapshots are hit as well
    monkeypatch.setattr(replay_module, "REPLAY_SECONDS", np.inf)  # nothing depends on how fast the machine is
    new_study(storage).close()
    in_memory(3)  # compiles and loads everything before the first fork
    rng, acknowledged = np.random.default_rng(1), []
    for _ in range(KILLS):
        acknowledged += acknowledged_before_death(storage, int(rng.integers(1, MOST_MARKS)))
    study = load_study("s", storage)
    for trial in study.pending():
        study.tell(trial, reward(trial))
    frame = study.trials_dataframe()
    print(f"{KILLS} kills, {len(frame)} trials, {len(acknowledged)} acknowledged tells")
    assert len(acknowledged) > KILLS  # the kills did not all come before the first tell
    assert len({trial for trial, _ in acknowledged}) == len(acknowledged)
    assert all(frame["reward"][trial] == value for trial, value in acknowledged)
    events = study.events_dataframe()
    assert not events.duplicated(["kind", "trial"]).any()
    never_interrupted = in_memory(len(frame))
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(never_interrupted.to_dict())
    with study.storage.writing() as connection:
        connection.exec_driver_sql("DELETE FROM alexp_snapshots")
    assert json.dumps(load_study("s", storage).algorithm.to_dict()) == json.dumps(never_interrupted.to_dict())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_commit_leaves_memory_and_log_in_agreement(storage, monkeypatch, when):
    """The process survives, the commit does not (or its confirmation is lost): the study reads the log again."""
    from sqlalchemy.engine import Engine

    study = new_study(storage)
    trial = study.ask()
    commit, failures = study.storage.engine.dialect.do_commit, [1]

    def failing(connection):
        if failures:
            failures.pop()
            if when == "after":
                commit(connection)
            raise RuntimeError("the line went dead")
        commit(connection)

    assert isinstance(study.storage.engine, Engine)
    monkeypatch.setattr(study.storage.engine.dialect, "do_commit", failing)
    with pytest.raises(RuntimeError, match="dead"):
        study.tell(trial, reward(trial))
    assert study.counts["told"] == (1 if when == "after" else 0)
    if when == "before":
        study.tell(trial, reward(trial))
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, reward(trial))
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(in_memory(5).to_dict())
    assert json.dumps(load_study("s", storage).algorithm.to_dict()) == json.dumps(in_memory(5).to_dict())
