"""Keys: a call that is repeated with its key returns what happened the first time, and nothing happens twice."""

import json
import threading

import pandas as pd
import pytest

from alexp.study import (
    Storage,
    StorageError,
    UnknownOutcomeError,
    create_study,
    delete_study,
    list_studies,
    load_study,
    logbook,
)
from tests.adversarial.commits import Breaker, watch

from .conftest import DOMAIN, MODELS, in_memory, new_study, play, reward


def kinds(study):
    return [event["kind"] for event in study.events()]


def test_repeated_calls_happen_once(storage):
    study, other = new_study(storage), load_study("s", storage)
    plate = study.ask(3, key="monday")
    assert other.ask(3, key="monday") == study.ask(3, key="monday") == plate
    assert study.ask(key="one") == other.ask(key="one")
    for who in (study, other, load_study("s", storage)):
        who.tell(plate[0], 0.5, key="told")
        who.abandon(plate[1], key="broken")
        assert who.tell_many({2: 0.25, 0: 0.5}, if_told="same", key="both") == (1, 1, 0)
        who.amend(0, 0.75, key="amended")
        who.retract(2, key="retracted")
        (seen,) = who.add_observations(pd.DataFrame({"index": [4], "reward": [0.1]}), key="seen")
        assert seen.id == 4
    assert kinds(study) == ["ask"] * 4 + ["tell", "abandon", "tell", "amend", "retract", "observe"]
    assert study.counts == {"trials": 5, "told": 2, "pending": 1, "abandoned": 2}


def test_a_key_stands_for_one_call(storage):
    study = new_study(storage)
    plate = study.ask(2, key="k")
    study.tell(plate[0], 0.5, key="t")
    for wrong in (
        lambda: study.ask(3, key="k"),
        lambda: study.ask(key="k"),
        lambda: study.abandon(plate[1], key="k"),
        lambda: study.tell(plate[1], 0.5, key="k"),
        lambda: study.tell(plate[0], 0.25, key="t"),
        lambda: study.tell(plate[1], 0.5, key="t"),
        lambda: study.retract(plate[0], key="t"),
    ):
        with pytest.raises(ValueError, match="was used before, for the .* of trial 0"):
            wrong()
    assert kinds(study) == ["ask", "ask", "tell"]
    new_study(storage, "another").ask(key="k")  # keys belong to a study


def test_keys_that_look_alike(storage):
    study = new_study(storage)
    trials = [study.ask(2, key="a"), study.ask(1, key="a:0"), study.ask(1, key="a:1"), study.ask(2, key="a:0:0")]
    assert [trial.id for call in trials for trial in call] == list(range(6))
    for call, key in zip(trials, ("a", "a:0", "a:1", "a:0:0"), strict=True):
        assert study.ask(len(call), key=key) == call


@pytest.mark.parametrize("key", ["", 5, "x" * 101, "a\nb", "a\x00", "\ud800", b"bytes"])
def test_unsuitable_keys(sqlite, key):
    study = new_study(sqlite)
    with pytest.raises(ValueError, match="key must be a text of 1 to 100 printable characters"):
        study.ask(key=key)
    assert study.events() == []


def test_a_call_that_failed_leaves_its_key_free(storage):
    study = new_study(storage)
    with pytest.raises(ValueError, match="n must"):
        study.ask(0, key="k")
    trial = study.ask(key="k")
    assert trial.id == 0


def test_long_calls_are_found_whole(storage, monkeypatch):
    study = new_study(storage)
    plate = study.ask(7, key="long")
    study.ask()
    monkeypatch.setattr(logbook, "BATCH", 3)
    assert study.ask(7, key="long") == plate


def test_threads_with_one_key(storage):
    study, other, answers = new_study(storage), load_study("s", storage), []
    threads = [
        threading.Thread(target=lambda who=who: answers.append(who.ask(2, key="k"))) for who in (study, other) * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6
    assert all(answer == answers[0] for answer in answers)
    assert kinds(study) == ["ask", "ask"]


def test_asking_with_a_key_changes_no_decision(storage):
    study = new_study(storage)
    for k in range(4):
        trial = study.ask(key=f"ask {k}")
        study.tell(trial, reward(trial), key=f"tell {k}")
    assert json.dumps(study.algorithm.to_dict()) == json.dumps(in_memory(4).to_dict())


# -- answers that are lost: see also tests/adversarial/commits.py ------------------------------------------------


def test_words_about_what_happened(tmp_path, monkeypatch):
    """ "Nothing was changed" only where that is true."""
    monkeypatch.setattr(logbook, "RECONNECT", 0.2)
    study = new_study(tmp_path / "study.db")
    play(study, 1)
    study.close()
    watch(study, line := Breaker(study))
    line.next = "question"
    with pytest.raises(StorageError, match=r"the ask of trial 1 was not stored: .*Nothing was changed; try again"):
        study.ask()
    line.next, line.then_down = "answer", True
    with pytest.raises(UnknownOutcomeError, match="unknown whether the ask of trial 1 was stored") as raised:
        study.ask()
    text = str(raised.value)
    assert "othing was changed" not in text
    assert f"repeat the call with key={raised.value.key!r}" in text
    line.is_down = False
    assert study.ask(key=raised.value.key).id == 1
    assert kinds(study) == ["ask", "tell", "ask"]
    line.is_down = True
    with pytest.raises(StorageError) as looked:
        study.counts  # noqa: B018
    assert "changed" not in str(looked.value)  # of what was only looked at


@pytest.mark.parametrize("how", ["answer", "question"])
def test_creating_and_deleting(tmp_path, how):
    where = Storage(tmp_path / "study.db")
    where.prepare()
    line = Breaker(new_study(where, "first"))
    for action, there in (
        (lambda: create_study(MODELS, DOMAIN, name="s", storage=where, algorithm="alexp"), True),
        (lambda: delete_study("s", where), False),
    ):
        line.lose = None
        reading = Storage.writing

        def armed(self, reading=reading):
            line.lose = how if not line.done else None
            line.done = True
            return reading(self)

        line.done = False
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Storage, "writing", armed)
            if how == "answer":
                action()
            else:
                with pytest.raises(StorageError, match="was not (created|deleted).*Nothing was changed"):
                    action()
        line.lose = None
        if how == "question":
            action()
        assert ("s" in [summary.name for summary in list_studies(where)]) == there
