"""What happens under a study's lock: little, once, and nothing that compiles; and threads that share a study."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.estimation.lasso.group_lasso import GroupLasso
from alexp.study import Storage, follower, load_study, logbook, replay, study as study_module
from alexp.study.events import belief
from alexp.study.replay import Replica
from alexp.study.view import HeldTrial, StudyView
from alexp.testing import on_tables

from .conftest import in_memory, new_study, play, reward

FULL = os.environ.get("ALEXP_FULL") == "1"


# -- one solve per round ---------------------------------------------------------------------------------------


class Counting(GroupLasso):
    """The group Lasso, which counts how often it is solved."""

    def bind(self, models):
        data, self_solved = super().bind(models), SOLVED
        solve = data.solve

        def counted(*arguments, **keywords):
            self_solved.append(1)
            return solve(*arguments, **keywords)

        object.__setattr__(data, "solve", counted)
        return data


SOLVED = []


@pytest.mark.parametrize("available", [None, [1, 5, 6, 20]])
def test_an_ask_solves_its_lasso_once(sqlite, available):
    study = new_study(sqlite, oracle=Counting())
    play(study, 1)  # with the solves of warming up
    for _ in range(4):
        SOLVED.clear()
        trial = study.ask(available=available)
        assert len(SOLVED) == 1
        study.tell(trial, reward(trial))


def recorded(study):
    return [(trial, {key: np.asarray(value).tolist() for key, value in known.items()}) for trial, known in study]


@pytest.mark.parametrize("name", on_tables())
def test_beliefs_of_full_rounds_are_those_before_the_ask(sqlite, name):
    """Asking teaches nothing: what is recorded after it is, bit for bit, what was true before it."""
    kind = alexp.Algorithm.registry[name]
    study, plain = new_study(sqlite, algorithm=name, **kind.example), in_memory(kind=kind, **kind.example)
    expected = []
    for step in range(7):
        now = belief(plain)
        trial = study.ask()
        assert plain.ask() == trial
        expected += [] if now is None else [(trial.id, now)]
        if step != 3:
            study.tell(trial, reward(trial))
            plain.tell(trial, reward(trial))
        else:  # while it is pending, rounds are not full
            study.abandon(trial)
            plain.abandon(trial)
    assert recorded(study.beliefs()) == recorded(expected)


def test_beliefs_of_restricted_rounds_are_those_in_force(sqlite):
    """The agents are scored on the candidates they could choose from, and q is the one the round was drawn with."""
    study, plain = new_study(sqlite), in_memory()
    for step in range(6):
        allowed = [step, 10, 19 - step]
        trial = study.ask(available=allowed)
        assert plain.ask(available=allowed) == trial
        _, known = study.beliefs()[-1]
        np.testing.assert_array_equal(known["q"], plain.probabilities.astype(np.float32))
        np.testing.assert_array_equal(known["returns"], plain.cumulative_returns.astype(np.float32))
        study.tell(trial, reward(trial))
        plain.tell(trial, reward(trial))
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(plain.to_dict())


# -- compiling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["compiled", pytest.param("alexp", marks=pytest.mark.skipif(not FULL, reason="compiles for minutes"))]
)
def test_a_cold_worker_beside_a_warm_one(tmp_path, monkeypatch, name):
    """Compiling takes longer than anybody waits for the lock, and nobody is turned away."""
    from . import cold_worker

    monkeypatch.setitem(alexp.Algorithm.registry, "compiled", cold_worker.Compiled)
    url = f"sqlite:///{tmp_path / 'study.db'}"
    warm = new_study(Storage(url, timeout=cold_worker.TIMEOUT), algorithm=name)
    play(warm, 2)
    folder = Path(__file__).parents[2]
    cold = subprocess.Popen(
        [sys.executable, "-m", "tests.study.cold_worker", url, "6"],
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "empty"), "PYTHONPATH": f"{folder / 'src'}:{folder}"},
        stdout=subprocess.PIPE,
    )
    while cold.poll() is None:
        play(warm, 1)
        time.sleep(0.02)
    assert cold.returncode == 0
    told = json.loads(cold.stdout.read())
    assert told["compiled"] >= 2
    assert told["under_lock"] == []
    assert warm.events_dataframe()["worker"].nunique() == 2
    pending = len(warm.pending())
    assert pending == 2
    assert json.dumps(load_study("s", url).algorithm.to_dict()) == json.dumps(warm.algorithm.to_dict())


def test_warming_up_happens_once_and_before_the_lock(sqlite, monkeypatch):
    study, warmed = new_study(sqlite), []
    with locked(monkeypatch) as lock:
        monkeypatch.setattr(follower, "warm_up", lambda algorithm: warmed.append((algorithm.name, lock.held)))
        study.counts  # noqa: B018 (looking needs no warm-up)
        study.view()
        assert warmed == []
        play(study, 2)
        study.abandon(study.ask())
    assert warmed == [("alexp", False)]


# -- catching up -----------------------------------------------------------------------------------------------


class Lock:
    held = False
    taken = 0


@contextmanager
def locked(monkeypatch):
    """Whether, and how often, somebody holds the lock of a study."""
    lock, writing = Lock(), Storage.writing

    @contextmanager
    def watched(self):
        with writing(self) as connection:
            lock.held, lock.taken = True, lock.taken + 1
            try:
                yield connection
            finally:
                lock.held = False

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "writing", watched)
        yield lock


@contextmanager
def applied_events(monkeypatch, lock, before=lambda: None):
    """(event number, whether under the lock) of everything that is followed meanwhile."""
    applied, apply = [], Replica._apply

    def noted(self, event):
        before()
        applied.append((event.seq, lock.held))
        apply(self, event)

    with monkeypatch.context() as patch:
        patch.setattr(Replica, "_apply", noted)
        yield applied


def test_a_long_log_is_caught_up_with_before_the_lock(storage, monkeypatch):
    study, other = new_study(storage), load_study("s", storage)
    play(study, 1)
    play(other, 20)
    with locked(monkeypatch) as lock, applied_events(monkeypatch, lock) as applied:
        monkeypatch.setattr(follower, "_PATIENCE", 1e-6)
        trial = study.ask()
    assert applied == [(seq, False) for seq in range(2, 42)]
    assert lock.taken == 2  # looked, let go, caught up, and acted
    assert trial == in_memory(21).ask()


def test_a_few_events_are_applied_at_once(storage, monkeypatch):
    study, other = new_study(storage), load_study("s", storage)
    play(study, 1)
    play(other, 1)
    monkeypatch.setattr(follower, "_PATIENCE", 60.0)
    with locked(monkeypatch) as lock, applied_events(monkeypatch, lock) as applied:
        assert study.ask() == in_memory(2).ask()
    assert applied == [(2, True), (3, True)]
    assert lock.taken == 1


def test_the_pace_decides(sqlite, monkeypatch):
    """How long events will take is judged by how long they took of late."""
    study, other = new_study(sqlite), load_study("s", sqlite)
    play(study, 1)
    play(other, 20)
    with applied_events(monkeypatch, Lock(), lambda: time.sleep(0.005)):
        replica = study.refresh()
    assert replica.seconds_for(100) > 100 * 0.004
    assert replica.seconds_for(0) == 0.0
    assert Replica(in_memory()).seconds_for(1_000_000) > follower._PATIENCE  # before anything is known


def test_whoever_never_catches_up_acts_all_the_same(sqlite, monkeypatch):
    """Others append between every two looks: after some attempts the rest is applied under the lock."""
    study, other = new_study(sqlite), load_study("s", sqlite)
    play(study, 1)
    play(other, 1)
    refresh = follower.Follower.refresh

    def overtaken(self):
        replica = refresh(self)
        if self is study._follower:
            play(other, 1)
        return replica

    monkeypatch.setattr(follower, "_PATIENCE", 1e-9)
    monkeypatch.setattr(follower.Follower, "refresh", overtaken)
    trial = study.ask()
    monkeypatch.undo()
    assert trial == in_memory(5).ask()
    assert json.dumps(load_study("s", sqlite).algorithm.to_dict()) == json.dumps(study.algorithm.to_dict())


def test_long_logs_are_read_in_parts(storage, monkeypatch):
    play(new_study(storage), 10)
    monkeypatch.setattr(logbook, "BATCH", 3)
    assert json.dumps(load_study("s", storage).algorithm.to_dict()) == json.dumps(in_memory(10).to_dict())
    study = load_study("s", storage)
    with study._follower.moment() as (replica, _):
        assert replica.n_events == 20


def test_a_snapshot_is_packed_before_the_lock(sqlite, monkeypatch):
    study, packed = new_study(sqlite), []
    play(study, 2)
    snapshot = Replica.snapshot
    with locked(monkeypatch) as lock:
        monkeypatch.setattr(Replica, "snapshot", lambda self: packed.append(lock.held) or snapshot(self))
        study.close()
    assert packed == [False]


# -- threads ---------------------------------------------------------------------------------------------------


def in_threads(*actions):
    answers, errors = [None] * len(actions), []

    def run(k, action):
        try:
            answers[k] = action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    return answers


LOOKS = ("view", "trials_dataframe", "log_frame", "pending", "stop_report", "plausible_models", "check_models")


@pytest.mark.parametrize("look", ["counts", "best", "probabilities", "ask", *LOOKS])
def test_threads_do_not_apply_the_same_events_twice(storage, monkeypatch, look):
    """Two threads find that others have acted; one applies the events while the other waits for it."""
    study, other = new_study(storage, reward_bound=1.0), load_study("s", storage)
    play(study, 1)
    study.view()
    play(other, 4)

    def action():
        value = getattr(study, look)
        return value() if callable(value) else value

    both = (study.view, study.pending) if look in LOOKS else (lambda: study.counts, lambda: study.trial(3))
    with applied_events(monkeypatch, Lock(), lambda: time.sleep(0.01)) as applied:
        in_threads(action, *both)
    assert [seq for seq, _ in applied] == list(range(2, 10))
    assert study.counts["told"] == 5


@pytest.mark.parametrize("look", LOOKS)
def test_whoever_writes_does_not_wait_for_whoever_looks(storage, monkeypatch, look):
    """The reader stops in the middle of its work until another thread has asked and told."""
    study = new_study(storage, algorithm="evidence-mixture", reward_bound=1.0)
    play(study, 6)
    expected = comparable(getattr(study, look)())
    inside, written = threading.Event(), threading.Event()
    opened = follower.Follower._opened

    def halted(self):
        replica = opened(self)
        if self is study._reader:
            inside.set()
            assert written.wait(20.0)
        return replica

    def write():
        assert inside.wait(20.0)
        play(study, 2)
        written.set()

    monkeypatch.setattr(follower.Follower, "_opened", halted)
    seen, _ = in_threads(getattr(study, look), write)
    monkeypatch.undo()
    assert study.counts["told"] == 8
    later = comparable(getattr(study, look)())
    assert comparable(seen) in (expected, later)  # of one moment: before or after what was written
    assert later == comparable(getattr(load_study("s", storage), look)())


def test_a_view_is_of_its_own_moment_while_others_write(storage, monkeypatch):
    study = new_study(storage, algorithm="evidence-mixture")
    play(study, 6)
    expected, make = comparable(load_study("s", storage).view()), study_module.make_view

    def halted(*arguments):
        in_threads(lambda: play(study, 4))  # in another thread, for which no lock is free to enter again
        return make(*arguments)

    monkeypatch.setattr(study_module, "make_view", halted)
    seen = study.view()
    monkeypatch.undo()
    assert comparable(seen) == expected
    assert study.counts["told"] == 10
    assert comparable(study.view()) == comparable(load_study("s", storage).view())


def test_a_process_that_only_reads_has_one_replica(sqlite, monkeypatch):
    play(new_study(sqlite), 3)
    study = load_study("s", sqlite)
    with applied_events(monkeypatch, Lock()) as applied:
        study.view()
        assert study.counts["told"] == 3
        study.best(), study.algorithm, study.domain
    assert [seq for seq, _ in applied] == list(range(6))


def test_a_reader_that_is_far_behind_starts_from_a_snapshot(sqlite, monkeypatch):
    study, other = new_study(sqlite), load_study("s", sqlite)
    play(study, 2)
    before = study.view()
    play(other, 10)
    other.close()  # writes a snapshot
    play(other, 1)
    monkeypatch.setattr(replay, "REPLAY_SECONDS", 0.0)
    monkeypatch.setattr(follower, "_PATIENCE", 0.0)
    with applied_events(monkeypatch, Lock()) as applied:
        after = study.view()
    assert [seq for seq, _ in applied] == [24, 25]
    assert before.counts["told"] == 2
    assert comparable(after) == comparable(load_study("s", sqlite).view())


def comparable(value):
    """A result as text, without ages and times of reading."""
    if isinstance(value, StudyView):
        value = [value.n_events, value.counts, value.best, value.standing, value.explanation, value.stopping]
    if isinstance(value, list):
        value = [replace(one, age=0.0) if isinstance(one, HeldTrial) else one for one in value]
    return value.to_csv() if isinstance(value, pd.DataFrame) else str(value)


def test_nobody_looks_at_an_algorithm_while_it_acts(sqlite, monkeypatch):
    """While one thread is in the middle of a plate, no other thread of the study gets an answer."""
    study = new_study(sqlite)
    play(study, 2)
    inside, answered = threading.Event(), threading.Event()
    ask, seen = Replica.ask, []

    def slow(self, *arguments):
        inside.set()
        events = ask(self, *arguments)
        seen.append(answered.wait(0.3))
        return events

    def look():
        inside.wait(60.0)
        counts = study.counts
        answered.set()
        return counts

    monkeypatch.setattr(Replica, "ask", slow)
    _, counts = in_threads(lambda: study.ask(3), look)
    assert seen == [False]
    assert counts == {"trials": 5, "told": 2, "pending": 3, "abandoned": 0}
