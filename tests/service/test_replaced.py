"""The SQLite file of a running service is replaced, renamed or overwritten: what is acknowledged is in it."""

import os

import pytest

import alexp
from alexp.study import HistoryReplacedError, check, load_study

from ..study.test_replaced import (
    WAYS,
    closing_writes_the_log,
    copy_in,
    copy_in_without_log,
    empty,
    move_over,
    remove,
    rename,
)
from .serving import INTERVAL, client, create, process


def pair(study, reward=0.5):
    (trial,) = study.post("ask", n=1)["trials"]
    study.post("tell", results=[{"trial": trial["id"], "reward": reward}])


def back_up(path, old):
    for suffix in ("", "-wal"):
        old.with_name(f"{old.name}{suffix}").write_bytes(path.with_name(f"{path.name}{suffix}").read_bytes())


def health(http):
    got = http.get("/healthz")
    return got.status_code, got.json()["status"]


def copy_database(path, old):
    """The log has all pages, so that nothing is lost and there is no alarm."""
    path.write_bytes(old.read_bytes())


@pytest.mark.parametrize("way", [*WAYS, copy_database], ids=lambda way: way.__name__)
def test_what_is_told_afterwards_is_in_the_file(way, tmp_path):
    """Trials asked before and after: what was acknowledged is stored, or no call is answered."""
    path, old = tmp_path / "served.db", tmp_path / "old.db"
    with process("--storage", str(path), log=tmp_path / "log") as (running, address), client(address) as http:
        study = create(http, problem=INTERVAL)
        (early,) = study.post("ask", n=1)["trials"]
        back_up(path, old)
        if way in (move_over, copy_in_without_log, copy_database):
            closing_writes_the_log(old)
        pair(study)
        (late,) = study.post("ask", n=1)["trials"]
        way(path, old)
        told, answers = {}, []
        for number, trial in enumerate([late["id"], early["id"], None, None]):
            if trial is None:
                got = http.post(f"{study.base}/ask", json={"n": 1})
                answers.append(got.status_code)
                if got.status_code != 200:
                    continue
                trial = got.json()["trials"][0]["id"]
            body = {"results": [{"trial": trial, "reward": 0.1 * number}]}
            answers.append(http.post(f"{study.base}/tell", json=body).status_code)
            if answers[-1] == 200:
                told[trial] = 0.1 * number
        expected = {move_over: [409, 200, 200, 200, 200, 200], copy_database: [200] * 6}.get(way, [503] * 4)
        assert answers == expected
        assert health(http) == ((200, "ok") if told else (503, "storage"))
        running.kill()
    if way is rename:
        os.rename(f"{path}.away", path)
    if told:
        assert check("s", path).ok
        with load_study("s", path) as again:
            stored = {event["trial"]: event["reward"] for event in again.events() if event["kind"] == "tell"}
        assert stored.items() >= told.items()
    elif way not in (remove, empty):
        assert path.stat().st_size > 0


def test_moved_over_and_renamed(tmp_path):
    """A service goes on from the file that is put in place, after it has said once that events are missing."""
    path, old = tmp_path / "served.db", tmp_path / "old.db"
    with process("--storage", str(path), log=tmp_path / "log") as (_, address), client(address) as http:
        study = create(http)
        for _ in range(2):
            pair(study)
        back_up(path, old)
        closing_writes_the_log(old)
        for _ in range(3):
            pair(study)
        move_over(path, old)
        assert health(http) == (503, "storage")
        assert health(http) == (200, "ok")  # the new file is opened by the next call
        told = study.post("ask", 409, n=1)
        assert told["type"] == "urn:alexp:history-replaced"
        assert str(path) in told["detail"]
        assert "it has 4 events and had 10" in told["detail"]
        for _ in range(2):
            pair(study)
        os.rename(path, f"{path}.away")
        for _ in range(2):
            assert str(path) in study.post("ask", 503, n=1)["detail"]
            assert http.get("/v1/studies").status_code == 503
            assert health(http) == (503, "storage")
        os.rename(f"{path}.away", path)
        pair(study)
        assert health(http) == (200, "ok")
    assert load_study("s", path).counts["told"] == 5
    assert check("s", path).ok


def test_overwritten_in_place(tmp_path):
    """The service refuses to go on, leaves the file as it is, and works again after it was started anew."""
    path, old = tmp_path / "served.db", tmp_path / "old.db"
    with process("--storage", str(path), log=tmp_path / "log") as (_, address), client(address) as http:
        study = create(http)
        for _ in range(2):
            pair(study)
        back_up(path, old)
        for _ in range(3):
            pair(study)
        copy_in(path, old)
        for _ in range(3):
            told = study.post("ask", 503, n=1)
            assert told["type"] == "urn:alexp:storage-unavailable"
            assert f"{path} was overwritten" in told["detail"]
            assert health(http) == (503, "storage")
    assert check("s", path).ok
    with process("--storage", str(path), log=tmp_path / "log") as (_, address), client(address) as http:
        study = alexp.Client(address).study("s")
        assert study.counts["told"] == 2
        study.tell(study.ask(), 0.5)
    assert load_study("s", path).counts["told"] == 3


def test_clients_do_not_repeat_what_is_lost(tmp_path):
    """The loss of events is no outage: a client does not try again, and its user hears of it."""
    path, old = tmp_path / "served.db", tmp_path / "old.db"
    with process("--storage", str(path), log=tmp_path / "log") as (_, address), client(address) as http:
        create(http)
        study = alexp.Client(address).study("s")
        study.tell(study.ask(), 0.5)
        back_up(path, old)
        closing_writes_the_log(old)
        study.tell(study.ask(), 0.5)
        move_over(path, old)
        with pytest.raises(HistoryReplacedError, match="it has 2 events and had 4"):
            study.ask()
        study.tell(study.ask(), 0.5)
        assert study.counts["told"] == 2
