"""Corrected and withdrawn rewards in studies: one more event, and everybody stands where the right reward leads."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.algorithms.rerun import Rerun
from alexp.study import AbandonedTrialError, Storage, check, list_studies, load_study, logbook
from alexp.study.errors import StorageError
from alexp.study.events import detail_of, restriction
from alexp.study.replay import Replica
from alexp.study.storage import snapshots
from alexp.testing import on_tables
from alexp.testing.amending import force, release

from .conftest import DOMAIN, MODELS, new_study, play, reward

EXAMPLES = {name: alexp.Algorithm.registry[name].example for name in on_tables()}


def text_of(algorithm, *parts):
    data = algorithm.to_dict(problem=False)
    return json.dumps([data[part] for part in parts])


def live(study):
    """A run with late, wrong, observed, corrected and withdrawn rewards; returns what should have been told."""
    right = {}

    def tell(trial, off=0.0):
        right[trial.id] = reward(trial) + 0.0
        study.tell(trial, right[trial.id] + off)

    first = study.ask(4, distinct=True)
    for trial in first[2:0:-1]:
        tell(trial, 2.0 * (trial.id == 1))
    for step in range(4):
        tell(study.ask(available=[step, 4, 9, 12] if step % 2 else None))
    study.add_observations(pd.DataFrame({"index": [7], "reward": [1.5]}))
    study.amend(1, right[1] + 1.0)
    tell(study.ask(), 3.0)
    study.abandon(0)
    study.amend(first[1], right[1])
    study.retract(4)
    tell(study.ask())
    study.amend(8, 0.5)
    right |= {8: 0.5, 4: float("nan")}
    study.tell(9, right[9], if_told="amend")
    assert study.ask(2)[1].id == 12
    return right


def told_right(study, kind, right):
    """The same events applied to an algorithm in memory, with the same actions and the right rewards at once."""
    settings = {"noise_std": 0.1, "random_state": 5} | kind.example
    again, trials = kind(MODELS, DOMAIN, **settings), study.algorithm
    with study.storage.reading() as connection:
        events = list(logbook.read_all(connection, study._id, study.refresh().n_events, study._follower._beginning))
    force(again, [trials.trial(k) for k in range(trials.n_asked)])
    for event in events:
        if event.kind == "ask":
            again.ask(available=restriction(detail_of(event), DOMAIN.n_candidates))
        elif event.kind == "observe":
            again.observe(event.candidate, right[event.trial])
        elif event.kind == "abandon" or (event.kind == "tell" and np.isnan(right[event.trial])):
            again.abandon(event.trial)
        elif event.kind == "tell":
            again.tell(event.trial, right[event.trial])
    release(again)
    return again


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_mended_study_is_one_that_was_told_right(name, storage):
    study = new_study(storage, algorithm=name, **EXAMPLES[name])
    other = load_study("s", storage)
    assert other.counts["trials"] == 0  # has a copy of its own, that has to catch up with everything that follows
    right = live(study)
    again = told_right(study, alexp.Algorithm.registry[name], right)
    assert text_of(study.algorithm, "state") == text_of(again, "state")
    assert np.array_equal(study.algorithm.log.reward, again.log.reward, equal_nan=True)
    assert text_of(other.algorithm, "state", "log") == text_of(study.algorithm, "state", "log")
    with study.storage.writing() as connection:
        connection.execute(snapshots.delete())
    reread = load_study("s", storage)
    assert text_of(reread.algorithm, "state", "log") == text_of(study.algorithm, "state", "log")
    reread.close()
    opened = load_study("s", storage)  # from the snapshot
    assert opened.ask(3) == again.ask(3)
    assert text_of(opened.algorithm, "state", "log") == text_of(study.algorithm, "state", "log")


def test_the_log_keeps_both(storage):
    study = new_study(storage)
    trial = study.ask()
    study.tell(trial, 7240.0)
    study.amend("#0", 72.4)
    study.retract(0)
    study.amend(trial.id, 72.5)
    events = [(event["kind"], event["trial"], event["reward"]) for event in study.events()]
    assert events == [("ask", 0, None), ("tell", 0, 7240.0), ("amend", 0, 72.4), ("retract", 0, None),
                      ("amend", 0, 72.5)]  # fmt: skip
    assert study.events_dataframe()["kind"].tolist() == ["ask", "tell", "amend", "retract", "amend"]
    assert study.algorithm.log.reward.tolist() == [72.5]
    study.amend(0, 72.5)  # says nothing new
    assert len(study.events()) == 5


def test_states_counts_and_views(storage):
    study = new_study(storage)
    for k in range(4):
        study.tell(study.ask(), float(k))
    study.retract(1)
    study.retract(2)
    study.amend(2, 0.5)
    counts = {"trials": 4, "told": 3, "pending": 0, "abandoned": 1}
    assert study.counts == counts
    assert study.trials_dataframe()["state"].tolist() == ["told", "retracted", "told", "told"]
    view = study.view()
    assert view.trials.state == ["told", "retracted", "told", "told"]
    assert view.counts == counts
    (summary,) = list_studies(storage)
    assert (summary.trials, summary.told, summary.pending, summary.abandoned) == (4, 3, 0, 1)
    with pytest.raises(AbandonedTrialError, match="retracted"):
        study.tell(1, 1.0)
    study.amend(1, 1.0)
    assert list_studies(storage)[0].told == 4
    assert study.view().trials.state == ["told"] * 4


def test_tell_many_counts_what_it_did(storage):
    study = new_study(storage)
    study.ask(5)
    assert study.tell_many([(0, 0.5), ("1", 0.25)]) == (2, 0, 0)
    before = len(study.events())
    with pytest.raises(alexp.AlreadyToldError, match="trial 1 already has the reward 0.25, and now got 0.75"):
        study.tell_many({0: 0.5, 1: 0.75, 2: 1.0}, if_told="same")
    with pytest.raises(alexp.AlreadyToldError):
        study.tell_many({0: 0.5, 2: 1.0})
    assert len(study.events()) == before
    assert study.tell_many({"0": 0.5, "2": 1.0}, if_told="same") == (1, 1, 0)
    assert study.tell_many({0: 0.5, 1: 0.75, 2: -1.0, 3: 0.0}, if_told="amend") == (1, 1, 2)
    assert study.algorithm.log.reward.tolist()[:4] == [0.5, 0.75, -1.0, 0.0]
    assert [event["kind"] for event in study.events()][-3:] == ["tell", "amend", "amend"]
    assert study.tell_many({}) == (0, 0, 0)


def test_the_run_is_repeated_before_the_study_is_locked(sqlite, monkeypatch):
    """Repeating a long run takes long: other writers go on meanwhile, and what they did is taken up."""
    study, other = new_study(sqlite), load_study("s", sqlite)
    for k in range(3):
        study.tell(study.ask(), float(k))
    prepare, late = Replica.prepare_amend, []

    def slow(replica, changes):
        prepare(replica, changes)
        late.append(other.ask())
        other.tell(late[0], 0.5)  # would wait for a minute, were the study locked

    def never(self, changes):
        raise AssertionError("repeated under the lock")

    monkeypatch.setattr(Replica, "prepare_amend", slow)
    monkeypatch.setattr(alexp.ALExp, "amend_all", never)
    study.amend(1, 0.25)
    monkeypatch.undo()
    assert [event["kind"] for event in study.events()][-3:] == ["ask", "tell", "amend"]
    assert text_of(study.algorithm, "state", "log") == text_of(load_study("s", sqlite).algorithm, "state", "log")
    assert study.algorithm.log.reward.tolist() == [0.0, 0.25, 2.0, 0.5]


def test_a_correction_that_cannot_be_stored_changes_nothing(storage, monkeypatch):
    study = new_study(storage)
    for k in range(3):
        study.tell(study.ask(), float(k))
    before = text_of(study.algorithm, "state", "log")
    append = logbook.append

    def failing(connection, *arguments):
        append(connection, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(logbook, "append", failing)
    for action in (lambda: study.amend(1, 9.0), lambda: study.retract(1)):
        with pytest.raises(KeyboardInterrupt):
            action()
    monkeypatch.undo()
    assert len(study.events()) == 6
    assert text_of(study.algorithm, "state", "log") == before


def test_a_strange_reward_warns_where_it_is_told_and_nowhere_else(storage):
    study, other = new_study(storage), load_study("s", storage)
    study.ask(7)
    study.tell_many({k: 40.0 + 10.0 * k for k in range(5)})
    with pytest.warns(alexp.AssumptionWarning, match="trial 5: a reward of 7240 is far outside") as caught:
        study.tell(5, 7240.0)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert other.counts["told"] == 6
        study.amend(5, 72.4)
        study.tell(6, 60.0)
    with pytest.warns(alexp.AssumptionWarning, match="a reward of -7240 is far outside") as caught:
        study.add_observations(pd.DataFrame({"index": [3, 4], "reward": [-7240.0, 50.0]}))
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert other.counts["told"] == 9


def test_what_the_algorithm_says_is_passed_on(sqlite):
    study = new_study(sqlite, reward_bound=2.0)
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, reward(trial))
    algorithm = study.algorithm
    assert study.stop_report(0.2).epsilon == algorithm.stop_report(0.2).epsilon
    assert study.stop_report(0.2, epsilon=3.0).target == 3.0
    assert study.plausible_models(0.2).tolist() == algorithm.plausible_models(0.2).tolist()
    assert study.confidence(0.5, 0.2) == algorithm.confidence(0.5, 0.2)
    plain = new_study(sqlite, name="plain", algorithm="uniform")
    for method in (plain.stop_report, plain.plausible_models, lambda: plain.confidence(0.5)):
        with pytest.raises(AttributeError, match="'uniform' gives no certificates"):
            method()
    with pytest.raises(AttributeError, match="'uniform' gives no certificates"):
        plain.check_models()


def test_a_new_study_has_the_default_algorithm_and_an_old_one_keeps_its_own(sqlite):
    assert alexp.create_study(MODELS, DOMAIN, name="new", storage=sqlite).algorithm.name == "evidence-mixture"
    new_study(sqlite, name="old").ask()
    opened = alexp.create_study(MODELS, DOMAIN, name="old", storage=sqlite, noise_std=0.1, load_if_exists=True)
    assert (opened.algorithm.name, opened.counts["trials"]) == ("alexp", 1)
    with pytest.raises(alexp.study.StudyExistsError, match="algorithm 'alexp', not 'linucb'"):
        alexp.create_study(MODELS, DOMAIN, name="old", storage=sqlite, algorithm="linucb", load_if_exists=True)


def test_several_who_ask_tell_and_correct_at_once_agree(storage):
    new_study(storage, algorithm="exp4-ix")

    def work(number):
        with load_study("s", storage) as study:
            for step in range(6):
                trial = study.ask()
                study.tell(trial, reward(trial) + 1.0)
                study.amend(trial, reward(trial))
                if step == number:
                    study.retract(trial)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    study = load_study("s", storage)
    assert study.counts == {"trials": 18, "told": 15, "pending": 0, "abandoned": 3}
    kinds = study.events_dataframe()["kind"].value_counts().to_dict()
    assert kinds == {"ask": 18, "tell": 18, "amend": 18, "retract": 3}
    with study.storage.writing() as connection:
        connection.execute(snapshots.delete())
    assert text_of(load_study("s", storage).algorithm, "state", "log") == text_of(study.algorithm, "state", "log")
    told = [k for k in range(18) if k not in study.algorithm.log.retracted]
    assert all(study.algorithm.log.reward[k] == reward(study.trial(k)) for k in told)


@pytest.mark.parametrize("batch", [3, 10_000])
def test_many_corrections_repeat_the_run_once(storage, monkeypatch, batch):
    """Whoever opens, follows or checks a study repeats its run for all corrections together, however they came."""
    study = new_study(storage, algorithm="evidence-mixture")
    study.tell(study.ask(), 0.3)
    other = load_study("s", storage)
    assert other.counts["told"] == 1
    for k in range(1, 9):
        study.tell(study.ask(), 0.1 * k)
        study.amend(k - 1, 0.1 * k + 0.05)
    study.fail(study.ask(), "broken")
    study.retract(2)
    study.ask(2)
    study.fail(5, "spilt", "amend")
    study.amend(9, 0.4)
    study.amend(2, 0.7)
    play(study, 2)
    with study.storage.writing() as connection:
        connection.execute(snapshots.delete())
    runs, begin = [], Rerun.__init__
    monkeypatch.setattr(Rerun, "__init__", lambda self, *given: runs.append(given) or begin(self, *given))
    monkeypatch.setattr(logbook, "BATCH", batch)
    known = text_of(study.algorithm, "state", "log")
    for again in (other.refresh(), load_study("s", storage).refresh(), study.replayed()):
        assert text_of(again.algorithm, "state", "log") == known
        assert again.is_whole
    assert len(runs) == 3
    report = check("s", storage)
    assert report.ok
    assert report.between == 10  # asks between the first and the last correction
    assert "10 decisions between corrections, taken from the log and not made again" in str(report)


def test_a_replica_between_corrections_is_not_kept(sqlite, monkeypatch):
    """The database fails after half the corrections were read: the next look begins again."""
    study, other = new_study(sqlite), load_study("s", sqlite)
    assert other.counts["told"] == 0
    play(study, 3)
    study.amend(0, 0.4)
    play(study, 3)
    study.amend(1, 0.5)
    monkeypatch.setattr(logbook, "BATCH", 4)
    reading, times = Storage.reading, []

    def failing(self):
        times.append(self)
        if len(times) == 4:
            raise StorageError("gone")
        return reading(self)

    monkeypatch.setattr(Storage, "reading", failing)
    with pytest.raises(StorageError, match="gone"):
        other.refresh()
    monkeypatch.undo()
    assert other._follower._replica is None
    assert text_of(other._follower.known().algorithm, "state", "log") == text_of(study.algorithm, "state", "log")
