"""Many processes on one study: none lost, none doubled, nobody turned away, and all agree.

ALEXP_FULL=1 runs 16 processes x 250 pairs on PostgreSQL, which takes more than a minute.
"""

import json
import multiprocessing
import os
import threading

import numpy as np
import pytest
import sqlalchemy

from alexp.study import create_study, load_study, storage as storage_module

from .conftest import DOMAIN, MODELS, in_memory, new_study, play, reward

FULL = os.environ.get("ALEXP_FULL") == "1"
SIZES = {"sqlite": (8, 100), "postgres": (16, 250) if FULL else (8, 40)}


def work(storage, pairs, answers):
    try:
        study = load_study("s", storage)
        told = []
        for _ in range(pairs):
            trial = study.ask()
            study.tell(trial, reward(trial))
            told.append(trial.id)
        answers.put((told, None))
    except BaseException as error:
        answers.put(([], repr(error)))


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_many_processes(backend, request):
    storage, (workers, pairs) = request.getfixturevalue(backend), SIZES[backend]
    holder = new_study(storage)
    play(holder, 1)
    holder.close()
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    processes = [fork.Process(target=work, args=(storage, pairs, answers)) for _ in range(workers)]
    for process in processes:
        process.start()
    results = [answers.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    assert [error for _, error in results if error] == []
    told = sorted(trial for trials, _ in results for trial in trials)
    assert told == list(range(1, workers * pairs + 1))
    frame = holder.trials_dataframe()
    assert frame["reward"].notna().all()
    assert len(frame) == workers * pairs + 1
    assert frame["reward"].tolist() == [reward(trial) for trial in map(holder.trial, frame["id"])]
    with holder.storage.writing() as connection:
        connection.exec_driver_sql("DELETE FROM alexp_snapshots")
    alone = load_study("s", storage)
    assert np.array_equal(alone.probabilities, holder.probabilities)
    assert json.dumps(alone.algorithm.to_dict()) == json.dumps(holder.algorithm.to_dict())
    replayed = replay_by_hand(holder)
    assert np.array_equal(replayed.probabilities, holder.probabilities)
    print(f"{workers} processes x {pairs} pairs on {backend}: {len(frame)} trials")


def replay_by_hand(study):
    """The log applied to a plain algorithm, without any of the code of studies that does this."""
    algorithm = in_memory()
    rewards = study.trials_dataframe()["reward"]
    for event in study.events_dataframe().itertuples():
        if event.kind == "ask":
            assert algorithm.ask().id == event.trial
        else:
            algorithm.tell(event.trial, float(rewards[event.trial]))
    return algorithm


def test_threads_share_a_study(storage):
    study = new_study(storage)
    threads = [threading.Thread(target=play, args=(study, 5)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert study.counts == {"trials": 20, "told": 20, "pending": 0, "abandoned": 0}
    assert np.array_equal(load_study("s", storage).probabilities, study.probabilities)


def create(storage, answers):
    try:
        study = create_study(MODELS, DOMAIN, name="s", storage=storage, load_if_exists=True, random_state=5)
        answers.put((study.ask().id, None))
    except BaseException as error:
        answers.put((None, repr(error)))


def test_everybody_may_be_the_first(storage):
    """Tables and study are created by several processes at once; one of them does it, all open the same study."""
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    processes = [fork.Process(target=create, args=(storage, answers)) for _ in range(5)]
    for process in processes:
        process.start()
    results = [answers.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert sorted(results, key=str) == [(i, None) for i in range(5)], results


def test_tables_may_appear_while_one_looks_for_them(storage, monkeypatch):
    """Between the two questions whether there are tables and which version they have, another process creates them."""
    monkeypatch.setattr(storage_module, "sa", looked := CreatedMeanwhile(storage))
    create_study(MODELS, DOMAIN, name="s", storage=storage, random_state=5).ask()
    assert looked.created


class CreatedMeanwhile:
    """SQLAlchemy, but after the first answer of an inspector somebody else prepares the database."""

    def __init__(self, storage):
        self.storage, self.questions, self.created = storage, [], False

    def __getattr__(self, name):
        return getattr(sqlalchemy, name)

    def inspect(self, connection):
        inspector, has_table = sqlalchemy.inspect(connection), sqlalchemy.inspect(connection).has_table

        def slow_has_table(name):
            answer = has_table(name)
            self.questions.append(name)
            if len(self.questions) == 1:
                create_study(MODELS, DOMAIN, name="other", storage=self.storage)
                self.created = True
            return answer

        inspector.has_table = slow_has_table
        return inspector


def test_a_fork_does_not_share_connections(storage):
    study = new_study(storage)
    play(study, 2)
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=play, args=(study, 3))
    child.start()
    child.join()
    assert child.exitcode == 0
    play(study, 2)
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(in_memory(7).to_dict())
