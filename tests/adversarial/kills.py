"""Kill -9 of one of several workers, servers that stop at once, full disks: nothing lost, nothing doubled.

Nothing here waits for a while: a worker is killed, and a server stopped, after so many signs of life.
"""

import json
import os
import selectors
import signal
import struct
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import sqlalchemy as sa

import alexp
from alexp.study import Storage, StorageError, check, create_study, load_study, replay as replay_module
from tests.adversarial.servers import PATIENCE, new_database, postgres_server, restart_at_once

KILLS, RESTARTS, FULL_DISKS = 200, 20, 20  # at scale 1
WORKERS = 3
MOST_MARKS = 60  # that a worker makes before it is killed
MARK = struct.Struct("<qd")  # trial and reward of an acknowledged tell, or a step towards it
STEP = -1

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
SETTINGS = {"noise_std": 0.1, "random_state": 5}


def reward(trial):
    return float(np.cos(trial.index / 3.0) + 0.1 * np.sin(37.0 * trial.id))


def insist(action, key):
    """Repeat a call with its key until the storage has answered."""
    while True:
        try:
            return action(key=key)
        except StorageError:
            time.sleep(0.02)


def opened(storage, pipe):
    """The study; before and after every statement and commit its worker says so, for its killer."""

    def step(*_):
        os.write(pipe, MARK.pack(STEP, 0.0))

    study = load_study("s", Storage(storage, timeout=30.0))
    for moment in ("begin", "before_cursor_execute", "after_cursor_execute", "commit", "rollback"):
        sa.event.listen(study.storage.engine, moment, step)
    return study


def work_for_ever(storage, pipe):
    """What a worker does: ask and tell."""
    study, number = opened(storage, pipe), 0
    while True:
        number += 1
        trial = insist(study.ask, f"{os.getpid()} {number} ask")
        value = reward(trial)
        insist(lambda key, trial=trial, value=value: study.tell(trial, value, key=key), f"{os.getpid()} {number} tell")
        os.write(pipe, MARK.pack(trial.id, value))


def start_worker(storage, work=work_for_ever):
    """Fork a worker from this warm process; returns its process id and the end of the pipe to read."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.close(reading)
        work(storage, writing)
    except BaseException as error:
        os.write(2, f"worker failed: {error!r}\n".encode())
    finally:
        os._exit(1)


class Crowd:
    """Several workers at one study, whose marks are read so that none of them ever waits."""

    def __init__(self, storage, workers=WORKERS, work=work_for_ever):
        self.work, self.storage, self.acknowledged, self.problems = work, storage, [], []
        self._selector, self._rest, self.pids = selectors.DefaultSelector(), {}, {}
        for _ in range(workers):
            self.hire()

    def hire(self):
        pid, reading = start_worker(self.storage, self.work)
        self.pids[pid], self._rest[reading] = reading, b""
        self._selector.register(reading, selectors.EVENT_READ)

    def _take(self, reading, data):
        """Note the whole marks that have come; returns their number."""
        data = self._rest[reading] + data
        whole = len(data) - len(data) % MARK.size
        self._rest[reading] = data[whole:]
        self.acknowledged += [(trial, value) for trial, value in MARK.iter_unpack(data[:whole]) if trial != STEP]
        return whole // MARK.size

    def watch(self, pid, marks):
        """Read what everybody says until one of them has made so many marks."""
        while marks > 0:
            ready = self._selector.select(PATIENCE)
            if not ready:
                self.problems.append("nobody gets on")
                return
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                n = self._take(key.fd, data)
                if not data:
                    self.problems.append("a worker ended by itself")
                    return
                if key.fd == self.pids[pid]:
                    marks -= n

    def kill(self, pid):
        """Kill a worker, and hear the last that it had to say."""
        reading = self.pids.pop(pid)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            self.problems.append("a worker ended by itself")
        self._selector.unregister(reading)
        while data := os.read(reading, 65536):
            self._take(reading, data)
        os.close(reading)

    def end(self):
        for pid in list(self.pids):
            self.kill(pid)
        self._selector.close()


def what_is_wrong(storage, acknowledged):
    """Rewards lost or changed, events doubled, replays that differ in any bit."""
    study, wrong = load_study("s", storage), []
    events, told = study.events(), dict(acknowledged)
    done = [(event["kind"], event["trial"]) for event in events]
    if len(set(done)) != len(done) or len(told) != len(acknowledged):
        wrong.append("something happened twice")
    stored = {event["trial"]: event["reward"] for event in events if event["kind"] == "tell"}
    if any(stored.get(trial) != value for trial, value in acknowledged):
        wrong.append("an acknowledged reward is lost")
    plain = alexp.ALExp(MODELS, DOMAIN, **SETTINGS)
    for event in events:
        if event["kind"] == "ask":
            plain.ask()
        else:
            plain.tell(event["trial"], event["reward"])
    if json.dumps(plain.to_dict()) != json.dumps(study.algorithm.to_dict()):
        wrong.append("the log, replayed in memory, gives something else")
    report = check("s", storage)
    return wrong + report.problems


def new_study(storage):
    study = create_study(MODELS, DOMAIN, name="s", storage=storage, algorithm="alexp", **SETTINGS)
    trial = alexp.ALExp(MODELS, DOMAIN, **SETTINGS)  # compiles and loads everything before the first fork
    for _ in range(3):
        asked = trial.ask()
        trial.tell(asked, reward(asked))
    study.close()


def killed(storage, kills, rng, work=work_for_ever):
    """Kill one of several workers again and again; returns (what they acknowledged, what is wrong)."""
    crowd = Crowd(storage, work=work)
    for _ in range(kills):
        victim = int(rng.choice(list(crowd.pids)))
        crowd.watch(victim, int(rng.integers(1, MOST_MARKS)))
        crowd.kill(victim)
        crowd.hire()
    crowd.end()
    return crowd.acknowledged, crowd.problems


def kill_many(storage, kills, rng):
    """Kill one of several workers again and again; returns (acknowledged tells, what is wrong)."""
    new_study(storage)
    acknowledged, problems = killed(storage, kills, rng)
    return len(acknowledged), problems + what_is_wrong(storage, acknowledged)


def restart_many(server, storage, restarts, rng):
    """Stop the server at once, again and again, under workers that repeat with their keys."""
    new_study(storage)
    crowd = Crowd(storage)
    for _ in range(restarts):
        crowd.watch(int(rng.choice(list(crowd.pids))), int(rng.integers(1, MOST_MARKS)))
        restart_at_once(server)
    for pid in list(crowd.pids):
        crowd.watch(pid, MOST_MARKS)  # everybody goes on
    crowd.end()
    return len(crowd.acknowledged), crowd.problems + what_is_wrong(storage, crowd.acknowledged)


def fill_many(storage, times, rng):
    """A file that may not grow, again and again; what fails has changed nothing."""
    new_study(storage)
    study, acknowledged, wrong = load_study("s", storage), [], []
    for _ in range(times):
        with study.storage.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages + int(rng.integers(3))}")
        try:
            while True:
                trial = (study.pending() or [study.ask()])[0]
                study.tell(trial, reward(trial))
                acknowledged.append((trial.id, reward(trial)))
        except StorageError as error:
            if "Nothing was changed" not in str(error):
                wrong.append(f"a full disk, and the study says: {error}")
        study.storage.close()  # the limit belongs to the connection
    study.close()
    return len(acknowledged), wrong + what_is_wrong(storage, acknowledged)


@contextmanager
def small_snapshots():
    """Snapshots are taken often, so that kills hit them as well."""
    before = replay_module.REPLAY_EVENTS, replay_module.REPLAY_SECONDS
    replay_module.REPLAY_EVENTS, replay_module.REPLAY_SECONDS = 40, np.inf
    try:
        yield
    finally:
        replay_module.REPLAY_EVENTS, replay_module.REPLAY_SECONDS = before


def counted(parts, rng, acknowledged):
    """Figures of (what, how often, function of times and rng that returns acknowledged writes and problems)."""
    figures, wrong = {"tried": 0}, []
    for what, times, many in parts:
        n, problems = many(times, rng)
        figures["tried"] += times
        figures |= {what: times, f"{acknowledged} acknowledged, {what}": n}
        wrong += [f"{what}: {problem}" for problem in problems]
    return figures | {"violations": len(wrong)} | ({"first": wrong[0]} if wrong else {})


def soak(scale=1.0, seed=0, server=None):
    """Kill, stop and fill; `violations` must be 0."""
    kills, restarts, full_disks = (max(1, round(n * scale)) for n in (KILLS, RESTARTS, FULL_DISKS))
    with ExitStack() as stack:
        stack.enter_context(small_snapshots())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alexp-kills-")))
        running = stack.enter_context(postgres_server()) if server is None else server
        on_server = [new_database(running, f"kills{seed}_{k}") for k in range(2)]
        parts = [
            ("kills on sqlite", kills, partial(kill_many, f"sqlite:///{folder / 'kills'}.db")),
            ("kills on postgresql", kills, partial(kill_many, on_server[0])),
            ("server restarts", restarts, partial(restart_many, running, on_server[1])),
            ("full disks", full_disks, partial(fill_many, f"sqlite:///{folder / 'full'}.db")),
        ]
        return counted(parts, np.random.default_rng(seed), "tells")
