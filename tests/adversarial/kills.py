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
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import sqlalchemy as sa

import alexp
from alexp.study import Storage, StorageError, check, create_study, load_study, replay as replay_module
from tests.adversarial.servers import new_database, postgres_server, restart_at_once

KILLS, RESTARTS, FULL_DISKS = 200, 20, 20  # at scale 1
WORKERS = 3
MOST_MARKS = 60  # that a worker makes before it is killed
MARK = struct.Struct("<qd")  # trial and reward of an acknowledged tell, or a step towards it
STEP, ADDED = -1, -2  # marks below: candidate -2 - mark was added

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


def work_for_ever(storage, pipe):
    """What a worker does: ask and tell; before and after every statement and commit it says so, for its killer."""

    def step(*_):
        os.write(pipe, MARK.pack(STEP, 0.0))

    study = load_study("s", Storage(storage, timeout=30.0))
    for moment in ("begin", "before_cursor_execute", "after_cursor_execute", "commit", "rollback"):
        sa.event.listen(study.storage.engine, moment, step)
    number = 0
    while True:
        number += 1
        trial = insist(study.ask, f"{os.getpid()} {number} ask")
        value = reward(trial)
        insist(lambda key, trial=trial, value=value: study.tell(trial, value, key=key), f"{os.getpid()} {number} tell")
        os.write(pipe, MARK.pack(trial.id, value))


INPUTS = np.random.default_rng(8).uniform(-1.0, 1.0, (400, 2))


def outcome(trial):
    """What an experiment of the laboratory gives: a failure, or one to three measurements."""
    if trial.index % 7 == 0:
        return "failed"
    value = float(50.0 + 20.0 * INPUTS[trial.index % len(INPUTS), 0] + np.sin(37.0 * trial.id))
    return value if trial.id % 3 else [value, value + 0.5, value - 0.25][: 2 + trial.id % 2]


TWO = {"yield": "maximize", "waste": "minimize"}


def results_of(log, trial):
    """The same as the study takes it: with several objectives, by name."""
    wanted = outcome(trial)
    if wanted == "failed" or not log.objectives:
        return wanted
    named = [{"yield": value, "waste": 0.5 * value + trial.index % 3} for value in np.atleast_1d(wanted).tolist()]
    return named[0] if len(named) == 1 else named


def laboratory_for_ever(storage, pipe):
    """What a laboratory does: plates, failures, replicates, results by name, notes, corrections and new compounds."""

    def step(*_):
        os.write(pipe, MARK.pack(STEP, 0.0))

    study = load_study("s", Storage(storage, timeout=30.0))
    for moment in ("begin", "before_cursor_execute", "after_cursor_execute", "commit", "rollback"):
        sa.event.listen(study.storage.engine, moment, step)
    number, log = 0, study.algorithm.log
    while True:
        number += 1
        first, second = insist(lambda key: study.ask(2, key=key), f"{os.getpid()} {number} ask")
        if first.id % 5 == 0:  # entered wrong, and corrected below
            wrong = {"yield": 1.0, "waste": 2.0} if log.objectives else 1.0
            insist(
                lambda key, trial=first, wrong=wrong: study.tell(trial, wrong, key=key), f"{os.getpid()} {number} wrong"
            )
        results = [(first, results_of(log, first), None, "corrected"), (second.x["id"], results_of(log, second))]
        told = "amend" if first.id % 5 == 0 else "raise"
        insist(
            lambda key, results=results, told=told: study.tell_many(results, told, key), f"{os.getpid()} {number} tell"
        )
        if number % 3 == 0:
            more = compounds([f"{os.getpid()}-{number}"], number)
            added = insist(lambda key, more=more: study.add_candidates(more, key), f"{os.getpid()} {number} add")
            os.write(pipe, MARK.pack(ADDED - added[0], 0.0))
        for trial in (first, second):
            os.write(pipe, MARK.pack(trial.id, float(np.sum(outcome(trial)) if outcome(trial) != "failed" else -1.0)))


def compounds(names, first=0):
    rows = INPUTS[np.arange(first, first + len(names)) % len(INPUTS)]
    table = alexp.Table.from_frame(pd.DataFrame({"id": names, "x": rows[:, 0], "y": rows[:, 1]}))
    return table.describe("both", ["x", "y"]).describe("first", ["x"])


def new_laboratory(storage, objectives=None):
    table = compounds([f"c{k}" for k in range(len(INPUTS))])
    models, domain = table.models("linear"), table.domain
    more = {} if objectives is None else {"objectives": objectives}
    study = create_study(models, domain, name="s", storage=storage, random_state=5, repeats=True, **more)
    plain = alexp.EvidenceMixture(models, domain, random_state=5, goal="best", **more)  # compiles before the first fork
    for trial in plain.ask(8):
        plain.fail(trial) if outcome(trial) == "failed" else plain.tell(trial, results_of(plain.log, trial))
    plain.add_candidates(compounds(["one more"], 7))
    plain.ask()
    study.close()


def what_is_wrong_in_the_laboratory(storage, acknowledged):
    """Results or compounds lost, changed or doubled, failures proposed again, replays that differ in any bit."""
    study, wrong = load_study("s", storage), []
    algorithm, events = study.algorithm, study.events()
    log, failed = algorithm.log, {}
    added = [ADDED - mark for mark, _ in acknowledged if mark <= ADDED]
    acknowledged = [pair for pair in acknowledged if pair[0] > ADDED]
    stored = [event["candidate"] for event in events if event["kind"] == "add"]
    names = algorithm.domain.candidates["id"]
    if stored != list(range(len(INPUTS), len(names))) or not set(added) <= set(stored) or len(set(names)) < len(names):
        wrong.append(f"compounds are lost or came twice: {len(added)} acknowledged, {len(stored)} stored")
    done = [(event["kind"], event["trial"]) for event in events if event["kind"] != "add"]
    if len(set(done)) != len(done) or len({trial for trial, _ in acknowledged}) != len(acknowledged):
        wrong.append("something happened twice")
    for trial, _ in acknowledged:
        wanted = results_of(log, algorithm.trial(trial))
        found = "failed" if trial in log.failed else log.measurements(trial)
        if found != (wanted if wanted == "failed" else algorithm.check_rewards(wanted)):
            wrong.append(f"the acknowledged result of trial {trial} is lost: {found}, not {wanted}")
    for event in events:
        if event["kind"] == "ask" and event["candidate"] in failed.values():
            wrong.append(f"trial {event['trial']} is of a candidate that had failed")
        if event["kind"] == "fail":
            failed[event["trial"]] = log.index[event["trial"]]
    if json.dumps(study.replayed().algorithm.to_dict()) != json.dumps(algorithm.to_dict()):
        wrong.append("the log, replayed, gives something else")
    return wrong + check("s", storage).problems


def kill_laboratories(storage, kills, rng, objectives=None):
    """Kill one of several laboratories again and again; returns (acknowledged results, what is wrong)."""
    new_laboratory(storage, objectives)
    crowd = Crowd(storage, work=laboratory_for_ever)
    for _ in range(kills):
        victim = int(rng.choice(list(crowd.pids)))
        crowd.watch(victim, int(rng.integers(1, MOST_MARKS)))
        crowd.kill(victim)
        crowd.hire()
    crowd.end()
    return len(crowd.acknowledged), crowd.problems + what_is_wrong_in_the_laboratory(storage, crowd.acknowledged)


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
            for key, _ in self._selector.select(60.0):
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


def kill_many(storage, kills, rng):
    """Kill one of several workers again and again; returns (acknowledged tells, what is wrong)."""
    new_study(storage)
    crowd = Crowd(storage)
    for _ in range(kills):
        victim = int(rng.choice(list(crowd.pids)))
        crowd.watch(victim, int(rng.integers(1, MOST_MARKS)))
        crowd.kill(victim)
        crowd.hire()
    crowd.end()
    return len(crowd.acknowledged), crowd.problems + what_is_wrong(storage, crowd.acknowledged)


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


def soak(scale=1.0, seed=0, server=None):
    """Kill, stop and fill; `violations` must be 0."""
    rng, wrong, figures = np.random.default_rng(seed), [], {"tried": 0}
    sizes = {name: max(1, round(n * scale)) for name, n in (("k", KILLS), ("r", RESTARTS), ("f", FULL_DISKS))}
    before = replay_module.REPLAY_EVENTS, replay_module.REPLAY_SECONDS
    replay_module.REPLAY_EVENTS, replay_module.REPLAY_SECONDS = 40, np.inf  # snapshots are hit as well
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alexp-kills-")))
            running = stack.enter_context(postgres_server()) if server is None else server
            on_server = [new_database(running, f"kills{seed}_{k}") for k in range(3)]
            on_sqlite = {name: f"sqlite:///{folder / name}.db" for name in ("kills", "lab", "two", "full")}
            for what, size, many in (
                ("kills on sqlite", "k", partial(kill_many, on_sqlite["kills"])),
                ("kills on postgresql", "k", partial(kill_many, on_server[0])),
                ("laboratories on sqlite", "k", partial(kill_laboratories, on_sqlite["lab"])),
                (
                    "laboratories with two objectives on sqlite",
                    "k",
                    partial(kill_laboratories, on_sqlite["two"], objectives=TWO),
                ),
                ("laboratories on postgresql", "k", partial(kill_laboratories, on_server[2])),
                ("server restarts", "r", partial(restart_many, running, on_server[1])),
                ("full disks", "f", partial(fill_many, on_sqlite["full"])),
            ):
                n = sizes[size]
                acknowledged, problems = many(n, rng)
                figures["tried"] += n
                figures |= {what: n, f"tells acknowledged, {what}": acknowledged}
                wrong += [f"{what}: {problem}" for problem in problems]
    finally:
        replay_module.REPLAY_EVENTS, replay_module.REPLAY_SECONDS = before
    return figures | {"violations": len(wrong)} | ({"first": wrong[0]} if wrong else {})
