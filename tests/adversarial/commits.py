"""Answers to COMMIT that are lost: a study finds out what happened, and nothing is lost or done twice.

On PostgreSQL a proxy swallows the answer of a real server; on SQLite the call fails around the commit.
"""

import json
import sqlite3
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import sqlalchemy as sa

import alexp
from alexp.study import Storage, StorageError, Study, UnknownOutcomeError, create_study, load_study, logbook
from tests.adversarial.servers import Line, new_database, postgres_server

LOSSES = 20  # of each kind, at scale 1
MODELS, DOMAIN = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
SETTINGS = {"noise_std": 0.1, "random_state": 5}
KINDS = ("answer", "question", "both")  # the answer, the commit itself, or the answer and then the whole storage


class Breaker:
    """The commits of a SQLite storage, which can be made to fail as a `Line` does."""

    def __init__(self, study):
        self.lose, self.lost, self.is_down, self.then_down = None, 0, False, False
        dialect = study.storage.engine.dialect
        self._commit, self._begin = dialect.do_commit, dialect.do_begin
        dialect.do_commit, dialect.do_begin = self.commit, self.begin

    def begin(self, connection):
        if self.is_down:
            raise sqlite3.OperationalError("disk I/O error")
        self._begin(connection)

    def commit(self, connection):
        if self.lose is None:
            self._commit(connection)
            return
        how, self.lose = self.lose, None
        self.lost, self.is_down = self.lost + 1, self.then_down
        if how == "answer":
            self._commit(connection)
        raise sqlite3.OperationalError("disk I/O error")


def plan(algorithm, rng):
    """Something that will be written, of any kind: (what, trial or candidate or number of trials, reward)."""
    pending, known = [trial.id for trial in algorithm.pending()], np.array(algorithm.log.reward, dtype=float)
    told = np.flatnonzero(~np.isnan(known)).tolist()
    kind = rng.choice(["ask", "ask", "plate", "tell", "tell", "tell", "abandon", "observe", "amend", "retract"])
    if kind == "tell" and pending:
        trial = algorithm.trial(int(rng.choice(pending)))
        return "tell", trial.id, float(np.cos(trial.index / 3.0) + 0.1 * np.sin(37.0 * trial.id))
    if kind == "abandon" and len(pending) > 2:
        return "abandon", int(rng.choice(pending)), None
    if kind in ("amend", "retract") and len(told) > 2:
        return str(kind), int(rng.choice(told)), float(rng.uniform(-1.0, 1.0)) if kind == "amend" else None
    if kind == "observe":
        return "observe", int(rng.integers(21)), 0.25
    return "ask", 3 if kind == "plate" else None, None


def carry_out(subject, planned, **key):
    """Do it, in a study or, without a key, in memory."""
    what, which, reward = planned
    if what == "observe" and isinstance(subject, Study):
        return subject.add_observations(pd.DataFrame({"index": [which], "reward": [reward]}), **key)[0].id
    if what == "observe":
        return subject.observe(which, reward).id
    return getattr(subject, what)(which, *([] if reward is None else [reward]), **key)


def watch(study, line):
    """Only commits of transactions that write an event are lost: then `line.next` becomes `line.lose`."""

    def arm(_connection, _cursor, statement, *_):
        if line.next is not None and "INSERT INTO alexp_events" in statement:
            line.lose, line.next = line.next, None

    line.next = None
    sa.event.listen(study.storage.engine, "before_cursor_execute", arm)


def lose(study, line, plain, how, rng):
    """One deed whose commit goes wrong; returns what is wrong with what came of it, or None."""
    planned, before = plan(plain, rng), len(study.events())
    line.next, line.then_down, lost = "answer" if how == "both" else how, how == "both", line.lost
    try:
        answer, error = carry_out(study, planned), None
    except StorageError as failure:
        answer, error = None, failure
    line.next, line.is_down = None, False
    if line.lost == lost:
        return "nothing was lost"
    if how == "answer" and error is not None:
        return f"the answer was lost and not found: {error}"
    if how == "question":
        if error is None or isinstance(error, UnknownOutcomeError) or "Nothing was changed" not in str(error):
            return f"the commit was lost, and the study says {error!r}"
        if len(study.events()) != before:
            return f"something was changed: {error}"
        answer = carry_out(study, planned)
    if how == "both":
        if not isinstance(error, UnknownOutcomeError) or "unknown whether" not in str(error):
            return f"the storage is away, and the study says {error!r}"
        answer = carry_out(study, planned, key=error.key)
    expected = carry_out(plain, planned)
    if answer != expected:
        return f"{answer} was answered in place of {expected}"
    again = plan(plain, rng)
    answers = [carry_out(study, again, key=f"key {lost}") for _ in range(2)]  # whoever repeats a call gets the same
    answers.append(carry_out(plain, again))
    return None if answers[0] == answers[1] == answers[2] else f"not all the same: {answers}"


def same(study, plain):
    return json.dumps(study.algorithm.to_dict()) == json.dumps(plain.to_dict())


@contextmanager
def patience(seconds):
    before, logbook.RECONNECT = logbook.RECONNECT, seconds
    try:
        yield
    finally:
        logbook.RECONNECT = before


def lose_many(study, line, losses, seed):
    """So many losses of each kind; returns (losses, events lost or doubled, what was wrong first)."""
    plain, wrong = alexp.ALExp(MODELS, DOMAIN, **SETTINGS), []
    watch(study, line)
    rng = np.random.default_rng(seed)
    for number in range(losses * len(KINDS)):
        problem = lose(study, line, plain, KINDS[number % len(KINDS)], rng)
        if problem is not None:
            wrong.append(problem)
            break
    where = study.storage.url
    if not wrong and not (same(study, plain) and same(load_study("s", Storage(where)), plain)):
        wrong.append("the study is not what it would be had nothing been lost")
    return line.lost, wrong


def soak(scale=1.0, seed=0, server=None):
    """Lose commits on both storages; `violations` must be 0."""
    losses = max(1, round(LOSSES * scale))
    with patience(0.3), tempfile.TemporaryDirectory(prefix="alexp-commits-") as folder:
        study = create_study(MODELS, DOMAIN, name="s", storage=Path(folder) / "s.db", algorithm="alexp", **SETTINGS)
        on_file, wrong = lose_many(study, Breaker(study), losses, seed)
        study.storage.close()
        with postgres_server() if server is None else nothing(server) as running:
            line = Line(new_database(running, f"commits{seed}"))
            where = Storage(line.url, timeout=5.0)
            study = create_study(MODELS, DOMAIN, name="s", storage=where, algorithm="alexp", **SETTINGS)
            on_server, more = lose_many(study, line, losses, seed)
            study.storage.close()
            line.close()
    wrong = [f"sqlite: {text}" for text in wrong] + [f"postgresql: {text}" for text in more]
    figures = {"lost on sqlite": on_file, "lost on postgresql": on_server}
    return {"tried": on_file + on_server, "violations": len(wrong)} | figures | ({"first": wrong[0]} if wrong else {})


@contextmanager
def nothing(value):
    yield value
