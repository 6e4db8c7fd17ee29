"""A service over its life: stops that lose nothing, several processes, studies that come and go, storages that fail."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from alexp.service import Limits, create_app
from alexp.service.monitoring import Metrics
from alexp.service.studies import StudyCache
from alexp.study import Storage, Study, UnknownOutcomeError, delete_study, load_study, logbook
from tests.service.serving import INTERVAL, TABLE, client, create, process, serving
from tests.study.conftest import postgres, server  # noqa: F401


@pytest.fixture
def where(tmp_path):
    return f"sqlite:///{tmp_path / 's.db'}"


# -- stopping --------------------------------------------------------------------------------------------------


def test_what_is_in_flight_is_finished_before_the_service_stops(where, monkeypatch):
    begun, apps, closed = threading.Event(), [], []
    tell, close = Study.tell_many, Study.close

    def slowly(self, *args, **more):
        begun.set()
        assert apps[0].state.studies.stopping.wait(10), "nobody was told that the service stops"
        time.sleep(0.1)
        return tell(self, *args, **more)

    monkeypatch.setattr(Study, "tell_many", slowly)
    monkeypatch.setattr(Study, "close", lambda self: (closed.append(self.name), close(self))[1])
    with ThreadPoolExecutor(1) as pool, ExitStack() as later:
        with serving(where) as (address, app):
            apps.append(app)
            study = create(later.enter_context(client(address)))
            study.post("ask")
            answer = pool.submit(study.post, "tell", results=[{"trial": 0, "reward": 0.5}])
            assert begun.wait(10)
        assert answer.result()["told"] == 1  # the server has stopped by now
    assert closed == ["s"]
    assert load_study("s", where).counts["told"] == 1


def test_a_service_that_stops_says_so(where):
    with serving(where) as (address, app), client(address) as http:
        app.state.studies.stop()
        got = http.get("/healthz")
        assert (got.status_code, got.json()) == (503, {"status": "stopping"})


def test_nothing_that_was_acknowledged_is_lost_by_sigterm(where, tmp_path):
    with process("--storage", where, log=tmp_path / "log") as (running, address):
        with client(address) as http:
            create(http, problem=INTERVAL).post("ask")
        asked, told = set(), set()

        def work(number):
            with client(address) as http:
                while True:
                    try:
                        got = http.post("/v1/studies/s/ask", json={"worker": f"w{number}"})
                        assert got.status_code == 200, got.text
                        trial = got.json()["trials"][0]["id"]
                        asked.add(trial)
                        body = {"results": [{"trial": trial, "reward": 0.5}]}
                        assert http.post("/v1/studies/s/tell", json=body).status_code == 200
                        told.add(trial)
                    except httpx.TransportError:
                        return

        with ThreadPoolExecutor(6) as pool:
            workers = [pool.submit(work, k) for k in range(6)]
            while len(told) < 20:
                time.sleep(0.01)
            running.send_signal(signal.SIGTERM)
            for worker in workers:
                worker.result(30)
        assert running.wait(20) == 0
    rows = load_study("s", where).trials()
    assert asked <= {row["id"] for row in rows}
    assert told <= {row["id"] for row in rows if row["state"] == "told"}
    assert len(rows) <= len(asked) + 1 + 6  # and at most one ask of each worker was in flight
    storage = Storage(where)
    with storage.reading() as connection:
        assert logbook.head(connection, 1, lock=False).snapshot_at > 0  # the next process opens it at once
    assert "error" not in (tmp_path / "log").read_text()


# -- several processes -----------------------------------------------------------------------------------------


def test_several_services_share_a_study(postgres):  # noqa: F811
    with serving(postgres) as (first, _), serving(postgres) as (second, _):
        with client(first) as here, client(second) as there:
            create(here, problem=INTERVAL, settings={"noise_std": 0.1})
            assert there.get("/v1/studies/s").json()["counts"]["trials"] == 0

        def work(address):
            with client(address) as http:
                for _ in range(8):
                    trial = http.post("/v1/studies/s/ask", json={}).json()["trials"][0]
                    body = {"results": [{"trial": trial["id"], "reward": 0.5}]}
                    assert http.post("/v1/studies/s/tell", json=body).status_code == 200

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, [first, second] * 3))
        with client(first) as here, client(second) as there:
            views = [http.get("/v1/studies/s/trials").json() for http in (here, there)]
            assert views[0] == views[1]
            assert (views[0]["total"], {row["state"] for row in views[0]["trials"]}) == (48, {"told"})
            key = {"key": "once", "n": 2}
            assert here.post("/v1/studies/s/ask", json=key).json() == there.post("/v1/studies/s/ask", json=key).json()
            there.delete("/v1/studies/s")
            assert here.post("/v1/studies/s/ask", json={}).status_code == 404
            create(there, problem=TABLE)
            assert here.get("/v1/studies/s").json()["domain"] == "FiniteSet"  # the new one, not the old one
    study = load_study("s", postgres)
    assert study.replayed().n_events == 0


def test_a_study_that_was_deleted_and_created_anew_is_the_new_one(where):
    with serving(where) as (address, _), client(address) as http:
        study = create(http)
        study.post("ask", n=2)
        delete_study("s", where)
        assert study.post("ask", 404)["type"] == "urn:alexp:study-not-found"
        with serving(where) as (other, _), client(other) as elsewhere:
            create(elsewhere, problem=INTERVAL)
            assert study.post("ask")["trials"][0]["id"] == 0
            delete_study("s", where)
            create(elsewhere)
        assert study.post("ask")["trials"][0]["x"].keys() == {"solvent", "celsius"}


# -- open studies ----------------------------------------------------------------------------------------------


def test_only_so_many_studies_are_held_open(where):
    with serving(where, limits=Limits(rate=0.0, open_studies=2)) as (address, app), client(address) as http:
        cache = app.state.studies
        for name in "abcd":
            create(http, name).post("ask")
            assert len(cache._open) <= 2
        assert list(cache._open) == ["c", "d"]
        http.get("/v1/studies/c")
        http.get("/v1/studies/a")
        assert list(cache._open) == ["c", "a"]
        assert http.get("/v1/studies/b").json()["counts"]["pending"] == 1
        assert "alexp_open_studies 2.0" in http.get("/metrics").text


def test_a_study_in_use_is_not_closed(where):
    with serving(where) as (address, _), client(address) as http:
        create(http, "a")
        create(http, "b")
    cache = StudyCache(Storage(where), Limits(open_studies=1), Metrics())

    def during(_opened):
        cache.use("b", lambda opened: opened.study.counts)
        return list(cache._open)

    assert cache.use("a", during).value == ["a"]
    cache.close()


def test_a_study_is_opened_once_however_many_ask_for_it(where, monkeypatch):
    with serving(where) as (address, _), client(address) as http:
        create(http)
    loaded = []

    def load(name, storage):
        loaded.append(name)
        time.sleep(0.1)
        return load_study(name, storage)

    monkeypatch.setattr("alexp.service.studies.load_study", load)
    cache = StudyCache(Storage(where), Limits(open_studies=4), Metrics())
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.use("s", lambda opened: id(opened.study)).value, range(8)))
    assert (loaded, len(set(found))) == (["s"], 1)
    cache.close()


def test_changes_of_one_study_are_made_in_the_order_in_which_they_came(where):
    with serving(where) as (address, _), client(address) as http:
        create(http)
    cache, made = StudyCache(Storage(where), Limits(), Metrics()), []
    begun, held = threading.Event(), threading.Event()
    with ThreadPoolExecutor(9) as pool:
        pool.submit(cache.change, "s", lambda _: (begun.set(), held.wait(10)), None)
        assert begun.wait(10)
        for k in range(8):
            pool.submit(cache.change, "s", lambda _, k=k: made.append(k), None)
            deadline = time.monotonic() + 10
            while len(cache._open["s"].turns._waiting) < k + 1 and time.monotonic() < deadline:
                time.sleep(0.001)
        assert cache.use("s", lambda opened: opened.study.counts).value["told"] == 0  # looking waits for nobody
        held.set()
    assert made == list(range(8))
    cache.close()


def test_warnings_and_names_stay_with_their_request(where):
    """Many at once: each caller hears of its own reward alone, and every ask has its own worker."""
    with serving(where) as (address, _), client(address) as http:
        settings = {"noise_std": 0.01, "reward_bound": 1.0}
        for k in range(4):
            create(http, f"s{k}", INTERVAL, settings=settings)

        def work(k):
            with client(address) as http:
                asked = http.post(f"/v1/studies/s{k}/ask", json={"worker": f"w{k}"}).json()["trials"][0]
                reward = 50.0 if k % 2 else 0.5
                body = {"results": [{"trial": asked["id"], "reward": reward}], "sure": True}
                said = http.post(f"/v1/studies/s{k}/tell", json=body).json()["warnings"]
                http.post(f"/v1/studies/s{k}/ask", json={"worker": f"w{k}"})
                held = http.get(f"/v1/studies/s{k}/pending").json()["pending"]
                return bool(said), held[0]["worker"]

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(4))) == [(False, "w0"), (True, "w1"), (False, "w2"), (True, "w3")]


# -- storages that fail ----------------------------------------------------------------------------------------


def test_a_lost_answer_names_the_key_to_repeat_with(where, monkeypatch):
    def lost(*_args, **_more):
        error = UnknownOutcomeError("unknown whether the ask of trial 0 was stored")
        error.key = "abc"
        raise error

    with serving(where) as (address, _), client(address) as http:
        study = create(http)
        monkeypatch.setattr(Study, "ask", lost)
        got = http.post("/v1/studies/s/ask", json={})
        assert (got.status_code, got.json()["key"], got.headers["retry-after"]) == (503, "abc", "5")
        assert got.json()["type"] == "urn:alexp:unknown-outcome"
        monkeypatch.undo()
        study.post("ask", key="abc")


def test_a_storage_that_is_gone_for_a_while_is_a_503(postgres):  # noqa: F811
    import sqlalchemy as sa

    with serving(postgres) as (address, _), client(address) as http:
        study = create(http, problem=INTERVAL)
        study.post("ask")
        name = sa.make_url(postgres).database
        url = sa.make_url(postgres).set(drivername="postgresql+psycopg", database="postgres")
        admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            _leave(connection, name)
            connection.exec_driver_sql(f"ALTER DATABASE {name} RENAME TO away")
            got = http.post("/v1/studies/s/ask", json={})
            assert (got.status_code, got.json()["type"]) == (503, "urn:alexp:storage-unavailable")
            assert http.get("/healthz").status_code == 200  # restarting the service would not help
            assert (http.get("/readyz").status_code, http.get("/readyz").json()) == (503, {"status": "storage"})
            connection.exec_driver_sql(f"ALTER DATABASE away RENAME TO {name}")
        admin.dispose()
        assert http.get("/readyz").json() == {"status": "ok"}
        assert study.post("ask")["trials"][0]["id"] == 1


def _leave(connection, name):
    """Close all other connections to a database, so that it can be renamed."""
    connection.exec_driver_sql(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
    )


def test_metrics_count_what_happens(where):
    with serving(where) as (address, _), client(address) as http:
        study = create(http)
        study.post("ask", n=3)
        study.post("tell", results=[{"trial": 0, "reward": 1.0}, {"trial": 1, "reward": 2.0}])
        study.post("tell", 409, results=[{"trial": 0, "reward": 1.0}])
        study.post("observe", observations=[{"index": 8, "reward": 1.5}])
        http.get("/made/up/by/the/caller")
        got = http.get("/metrics")
        assert got.headers["content-type"].startswith("text/plain")
        lines = got.text.splitlines()
        http.delete("/v1/studies/s").raise_for_status()
        create(http, "other").post("ask")
        later = http.get("/metrics").text
    assert 'alexp_trials_asked_total{study="s"} 3.0' in lines
    assert 'alexp_rewards_told_total{study="s"} 3.0' in lines
    assert 'alexp_requests_total{method="POST",route="/v1/studies/{name}/tell",status="409"} 1.0' in lines
    assert 'alexp_problems_total{kind="already-told"} 1.0' in lines
    assert "alexp_requests_in_flight 1.0" in lines
    assert not any("made" in line for line in lines)
    assert 'study="s"' not in later
    assert 'alexp_trials_asked_total{study="other"} 1.0' in later


def test_two_applications_have_meters_of_their_own(where):
    first, second = create_app(where), create_app(where)
    first.state.studies.metrics.count("s", asked=5)
    assert b"asked_total{" not in second.state.studies.metrics.text()
