"""What studies offer to those who pass requests on: several at once, doubts as errors, plain data, own names."""

import threading
import warnings

import numpy as np
import pytest

import alexp
from alexp.common.warning import caution, quietly
from alexp.service.studies import gathered
from alexp.study import AbandonedTrialError, NotOfferedError, SuspiciousRewardError
from alexp.study.events import acting_as, worker_name
from tests.study.conftest import new_study, play


def test_several_trials_are_given_up_at_once(sqlite):
    study = new_study(sqlite)
    study.ask(4)
    with pytest.raises(alexp.UnknownTrialError):
        study.abandon([0, 9])
    assert study.counts["abandoned"] == 0
    study.abandon([0, "#2", 2], key="broken")
    study.abandon([2, 0], key="broken")
    assert [row["state"] for row in study.trials()] == ["abandoned", "pending", "abandoned", "pending"]
    with pytest.raises(ValueError, match="key 'broken' was used before"):
        study.abandon([1, 3], key="broken")
    with pytest.raises(AbandonedTrialError):
        study.abandon([1, 0])
    study.abandon(study.trial(1))
    assert study.counts == {"trials": 4, "told": 0, "pending": 1, "abandoned": 3}


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
def test_who_is_not_sure_gets_an_error_in_place_of_a_warning(sqlite):
    study = new_study(sqlite)
    play(study, 12)
    trial = study.ask()
    before = study.events()
    with pytest.raises(SuspiciousRewardError, match="trial 12: .*far outside"):
        study.tell_many([(trial, 7e6)], sure=False)
    with pytest.raises(SuspiciousRewardError, match="trial 3"):
        study.amend(3, 7e6, sure=False)
    with pytest.raises(SuspiciousRewardError, match="observation 0"):
        study.observe(4, 7e6, sure=False)
    assert study.events() == before
    study.tell_many([(trial, 0.5)], sure=False)
    study.amend(3, 0.25, sure=False)
    study.tell_many([(trial, 7e6)], "amend", key="sure")
    assert study.tell_many([(trial, 7e6)], "amend", key="sure", sure=False).amended == 1  # it happened
    assert study.counts["told"] == 13


def test_trials_as_plain_data(sqlite):
    study = new_study(sqlite)
    play(study, 3)
    study.ask()
    frame = study.trials_dataframe()
    rows = study.trials()
    assert [row["id"] for row in rows] == frame["id"].tolist()
    assert [row["state"] for row in rows] == frame["state"].tolist()
    assert [np.nan if row["reward"] is None else row["reward"] for row in rows[:3]] == frame["reward"].tolist()[:3]
    assert rows[3]["reward"] is None
    assert study.trials(1, 2) == rows[1:3]
    assert study.trials(4) == []
    with pytest.raises(ValueError, match="since"):
        study.trials(-1)


def test_what_an_algorithm_does_not_have_is_an_error_of_its_own(sqlite):
    study = new_study(sqlite, algorithm="uniform")
    with pytest.raises(NotOfferedError, match="no probabilities"):
        _ = study.probabilities
    with pytest.raises(NotOfferedError, match="no certificates"):
        study.check_models()


def test_a_thread_acts_under_a_name_of_its_own(sqlite, monkeypatch):
    monkeypatch.setenv("ALEXP_WORKER", "this process")
    study, seen = new_study(sqlite), []

    def work(name):
        with acting_as(name):
            study.ask(lease=60)
            seen.append(worker_name())

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b", "  ")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with acting_as(None):
        study.ask()
    assert sorted(seen) == ["a", "b", "this process"]
    assert sorted(trial.worker for trial in study.pending()) == ["a", "b", "this process", "this process"]


def test_warnings_are_gathered_where_they_arise():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with gathered() as heard:
            caution("one", UserWarning)
            caution("one", UserWarning)
            with quietly():
                assert not caution("two", UserWarning)
            other = threading.Thread(target=caution, args=("three", UserWarning))
            other.start()
            other.join()
        caution("four", UserWarning)
    assert heard == ["one"]
    assert [str(one.message) for one in shown] == ["three", "four"]
