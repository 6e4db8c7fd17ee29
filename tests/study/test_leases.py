"""Leases: expired trials are measured by somebody else, once; nothing of it enters what a study decides."""

import json
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

import alexp
from alexp.study import LeaseError, StudyExistsError, UnknownOutcomeError, create_study, leases, load_study
from tests.adversarial.commits import Breaker

from .conftest import DOMAIN, MODELS, in_memory, new_study, play, reward

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def clock(monkeypatch):
    """The time, which passes only when a test says so."""

    class Clock:
        now = 1e9

    monkeypatch.setattr(leases, "now", lambda _connection: Clock.now)
    return Clock


@pytest.fixture
def called(monkeypatch):
    """Become another worker."""
    return lambda name: monkeypatch.setenv("ALEXP_WORKER", name)


def ids(trials):
    return [trial.id for trial in trials]


def holders(study):
    return {trial.id: (trial.worker, trial.lease) for trial in study.pending()}


def test_expired_trials_are_offered_first(storage, clock, called):
    study = new_study(storage)
    called("a")
    first = study.ask(3, lease=10.0)
    assert holders(study) == dict.fromkeys(range(3), ("a", 10.0))
    called("b")
    clock.now += 9.0
    assert ids(study.ask(1, lease=10.0)) == [3]
    assert not any(trial.expired for trial in study.pending())
    clock.now += 1.0  # not a moment before, and then at once
    assert [trial.expired for trial in study.pending()] == [True, True, True, False]
    taken = study.ask(5, lease=10.0)
    assert ids(taken) == [0, 1, 2, 4, 5]
    assert taken[:3] == first
    assert {worker for worker, _ in holders(study).values()} == {"b"}
    assert ids(study.ask(1, lease=10.0)) == [6]
    for trial in study.pending():
        study.tell(trial, reward(trial))
    assert study.counts == {"trials": 7, "told": 7, "pending": 0, "abandoned": 0}


def test_a_worker_without_a_lease_keeps_what_it_is_offered(storage, clock, called):
    study = new_study(storage)
    study.ask(lease=1.0)
    clock.now += 2.0
    called("b")
    assert study.ask().id == 0
    clock.now += 1e8
    assert holders(study) == {0: ("b", None)}
    assert study.ask().id == 1


def test_expired_trials_are_abandoned(storage, clock):
    study = new_study(storage, expired="abandon")
    lost = study.ask(2, lease=5.0)
    clock.now += 6.0
    assert study.counts["abandoned"] == 0  # looking changes nothing
    kept = study.ask(2, lease=5.0)
    assert ids(kept) == [2, 3]
    assert study.counts["abandoned"] == 2
    with pytest.raises(
        alexp.study.AbandonedTrialError, match=r"abandoned; amend\(0, reward\) gives it a reward after all"
    ):
        study.tell(lost[0], 0.5)
    assert [event["kind"] for event in study.events()] == ["ask", "ask", "abandon", "abandon", "ask", "ask"]
    again = load_study("s", storage)
    assert again.when_expired == "abandon"
    assert json.dumps(again.algorithm.to_dict()) == json.dumps(study.algorithm.to_dict())
    plain = in_memory()
    for trial in plain.ask(2):
        plain.abandon(trial)
    assert plain.ask(2) == kept


def test_the_choice_belongs_to_the_study(storage):
    new_study(storage, expired="abandon")
    same = {"name": "s", "storage": storage, "algorithm": "alexp", "noise_std": 0.1, "load_if_exists": True}
    assert create_study(MODELS, DOMAIN, **same).when_expired == "abandon"
    with pytest.raises(StudyExistsError, match="expired='abandon', not 'offer'"):
        create_study(MODELS, DOMAIN, expired="offer", **same)
    with pytest.raises(ValueError, match="expired must be 'offer' or 'abandon', got 'forget'"):
        new_study(storage, "t", expired="forget")
    assert new_study(storage, "u").when_expired == "offer"


def test_heartbeats(storage, clock, called):
    study = new_study(storage)
    called("a")
    trials = study.ask(2, lease=10.0)
    clock.now += 8.0
    study.heartbeat(trials)
    assert holders(study) == dict.fromkeys(range(2), ("a", 10.0))
    study.heartbeat("1", lease=60.0)
    clock.now += 11.0
    assert [trial.expired for trial in study.pending()] == [True, False]
    study.heartbeat(0)  # nobody has noticed
    clock.now += 11.0
    called("b")
    assert ids(study.take_over(lease=5.0)) == [0]
    called("a")
    with pytest.raises(LeaseError, match="trial 0 is held by worker 'b', and this is 'a'"):
        study.heartbeat([1, 0])
    assert holders(study)[1][1] == pytest.approx(60.0 - 22.0)  # all or none
    study.tell(1, 0.5)
    with pytest.raises(alexp.AlreadyToldError):
        study.heartbeat(1)
    free = study.ask()
    with pytest.raises(LeaseError, match="has no lease"):
        study.heartbeat(free)
    for wrong in (0, -1.0, np.inf, np.nan, 1e12):
        with pytest.raises(ValueError, match="lease"):
            study.ask(lease=wrong)
    assert study.counts["trials"] == 3


def test_taking_over_by_name(storage, clock, called):
    study = new_study(storage)
    called("a")
    held, free = study.ask(lease=10.0), study.ask()
    called("b")
    with pytest.raises(LeaseError, match="trial 0 is held by worker 'a' for another 10 s"):
        study.take_over([free, held])
    assert holders(study)[1] == ("a", None)
    assert study.take_over(free, lease=3.0) == [free]
    assert study.take_over() == []
    clock.now += 20.0
    assert ids(study.take_over(n=1)) == [0]
    assert holders(study) == {0: ("b", None), 1: ("b", -17.0)}
    called("c")
    with pytest.raises(LeaseError, match="held by worker 'b' without end"):
        study.take_over(0)


def test_who_tells_first_wins(storage, clock, called):
    study = new_study(storage)
    called("a")
    trial = study.ask(lease=1.0)
    clock.now += 2.0
    called("b")
    assert study.ask(lease=1.0) == trial
    called("a")
    study.tell(trial, 0.25)
    called("b")
    with pytest.raises(alexp.AlreadyToldError, match="already has the reward 0.25"):
        study.tell(trial, 0.75)


def test_only_what_is_available_and_distinct_is_offered(storage, clock):
    study = new_study(storage, noise_std=0.1)
    first = study.ask(available=[4], lease=1.0)
    again = study.ask(available=[4], lease=1.0)
    other = study.ask(available=[7], lease=1.0)
    assert [first.index, again.index, other.index] == [4, 4, 7]
    clock.now += 2.0
    assert ids(study.ask(1, available=[9, 10], lease=9.0)) == [3]
    listed = study.ask(3, available=[4, 7, 11], distinct=True, lease=9.0)
    assert ids(listed) == [0, 2, 4]
    assert [trial.index for trial in listed] == [4, 7, 11]


def test_nothing_of_it_enters_the_decisions(storage, clock):
    """With leases that expire and trials that change hands, a study proposes what one in memory does."""
    study, plain = new_study(storage), in_memory()
    for k in range(6):
        asked = study.ask(2, lease=1.0)
        clock.now += 0.4 * k
        mine = plain.ask(sum(trial.id >= len(plain.trials_dataframe()) for trial in asked) or None)
        for trial in asked[: 1 + k % 2]:
            study.tell(trial, reward(trial))
            plain.tell(trial.id, reward(trial))
        assert mine is not None
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(plain.to_dict())
    again = load_study("s", storage)
    assert json.dumps(again.algorithm.to_dict()) == json.dumps(plain.to_dict())


def test_views_show_leases_although_nothing_has_happened(storage, clock, called, tmp_path):
    study = new_study(storage)
    called("a")
    trial = study.ask(lease=10.0)
    assert [(p.worker, p.until) for p in study.view().pending] == [("a", clock.now + 10.0)]
    clock.now += 30.0
    called("b")
    study.take_over(lease=10.0)
    view = study.view()
    assert [(p.worker, p.until) for p in view.pending] == [("b", clock.now + 10.0)]
    assert study.view() is view
    assert json.loads(json.dumps(view.to_dict()))["pending"][0]["until"] == clock.now + 10.0
    assert "<td>b</td><td>expired 2001-09-09 01:47 UTC</td>" in study.report(tmp_path / "report.html").read_text()
    study.tell(trial, 0.1)
    assert ids(study.ask(2)) == [1, 2]
    study.ask()
    with study.storage.reading() as connection:
        assert leases.read(connection, study._id) == {}  # what was left of the trial that was told is cleared away


def test_without_leases_nothing_is_written(storage):
    study = new_study(storage)
    play(study, 3)
    study.ask(3)
    play(study, 1)
    with study.storage.reading() as connection:
        assert leases.read(connection, study._id) == {}
    assert [trial.lease for trial in study.pending()] == [None] * 3
    assert all(0.0 <= trial.age < 60.0 and str(os.getpid()) in trial.worker for trial in study.pending())
    assert study.pending() == [study.trial(trial.id) for trial in study.pending()]


# -- answers that are lost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["answer", "question"])
def test_lost_answers_about_leases(sqlite, clock, called, how):
    """Whether the commit or only its answer was lost: doing it again gives the same trials."""
    study = new_study(sqlite)
    called("a")
    study.ask(4, lease=10.0)
    clock.now += 11.0
    called("b")
    breaker = Breaker(study)
    breaker.lose = how
    assert ids(study.ask(2, lease=10.0)) == [0, 1]  # offered only: no event has its key
    clock.now += 1.0
    breaker.lose = how
    assert ids(study.take_over(lease=10.0)) == [2, 3]
    clock.now += 1.0
    breaker.lose = how
    study.heartbeat([0, 1, 2, 3])
    assert breaker.lost == 3
    assert holders(study) == dict.fromkeys(range(4), ("b", 10.0))
    breaker.lose, breaker.then_down = how, True
    with pytest.raises(UnknownOutcomeError, match="unknown whether leases were changed"):
        study.heartbeat([0, 1, 2, 3])


def test_a_key_stands_for_new_trials(storage, clock):
    study = new_study(storage)
    study.ask(2, lease=1.0)
    clock.now += 2.0
    asked = study.ask(2, key="plate", lease=5.0)
    assert ids(asked) == [2, 3]
    assert study.ask(2, key="plate", lease=5.0) == asked
    assert ids(study.ask(2)) == [0, 1]


def test_a_key_where_expired_trials_are_abandoned(storage, clock):
    study = new_study(storage, expired="abandon")
    study.ask(2, lease=1.0)
    clock.now += 2.0
    asked = study.ask(2, key="plate", lease=5.0)
    assert ids(asked) == [2, 3]
    assert study.ask(2, key="plate") == asked
    with pytest.raises(ValueError, match="used before"):
        study.ask(3, key="plate")


# -- many processes --------------------------------------------------------------------------------------------


def grab(storage, name, start, answers):
    os.environ["ALEXP_WORKER"] = name
    study = load_study("s", storage)
    study.counts  # noqa: B018  (open everything before the start)
    start.wait(60)
    taken = []
    while got := study.take_over(lease=600.0, n=1):
        taken += ids(got)
    answers.put((name, taken))


def test_two_workers_never_take_over_the_same_trial(storage):
    study = new_study(storage)
    study.ask(40, lease=0.01)
    study.close()
    time.sleep(0.02)
    start, answers = FORK.Event(), FORK.Queue()
    workers = [FORK.Process(target=grab, args=(storage, f"w{k}", start, answers)) for k in range(6)]
    for worker in workers:
        worker.start()
    time.sleep(0.5)
    start.set()
    found = dict(answers.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    assert sorted(trial for taken in found.values() for trial in taken) == list(range(40))
    assert {trial.id: trial.worker for trial in study.pending()} == {
        trial: name for name, taken in found.items() for trial in taken
    }


LEASE = 1.0


def ask_five_and_hang(storage, asked):
    load_study("s", storage).ask(5, lease=LEASE)
    asked.set()
    time.sleep(600)


def test_the_trials_of_a_killed_worker_are_measured_within_two_leases(storage):
    study = new_study(storage)
    play(study, 2)
    study.close()
    asked = FORK.Event()
    worker = FORK.Process(target=ask_five_and_hang, args=(storage, asked))
    worker.start()
    assert asked.wait(60)
    begin = time.monotonic()
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    while study.counts["pending"] and time.monotonic() < begin + 2.0 * LEASE:
        for trial in study.take_over(lease=LEASE):
            study.tell(trial, reward(trial))
        time.sleep(0.02)
    assert study.counts == {"trials": 7, "told": 7, "pending": 0, "abandoned": 0}
    assert time.monotonic() < begin + 2.0 * LEASE
