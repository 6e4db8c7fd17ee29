"""The routes of the dashboard: thin views, one poller for all who look, and files that let nothing foreign in."""

import json
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import httpx
import numpy as np
import pytest

from alexp.problem import Interval, ModelClass
from alexp.service import Limits, events
from alexp.service.dashboard import file_names, views
from alexp.service.dashboard.views import Excerpt, ViewCache, decimated, kept
from alexp.study import create_study, load_study
from tests.service.serving import INTERVAL, READER, TOKENS, client, create, serving


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three hundred rewards on an interval; trial 123 was mistyped, 299 and 300 are pending."""
    made = create_study(
        ModelClass.legendre(degree=3, size=2),
        Interval(resolution=60),
        name="long",
        storage=f"sqlite:///{tmp_path_factory.mktemp('view') / 's.db'}",
        noise_std=0.1,
        reward_bound=2.0,
        random_state=0,
    )
    trials, rng = made.ask(301), np.random.default_rng(0)
    rewards = {t.id: 1.0 - t.x**2 + 0.1 * rng.standard_normal() for t in trials[:299]} | {123: 1.95}
    made.tell_many(rewards)
    return made


@pytest.fixture(scope="module")
def view(study):
    return study.view()


@pytest.fixture
def served(tmp_path):
    with serving(f"sqlite:///{tmp_path / 's.db'}") as (address, app), client(address) as http:
        yield http, app, f"sqlite:///{tmp_path / 's.db'}"


# -- thin views --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 1000, 100_003])
def test_kept_points_are_few_and_hold_ends_and_extremes(n):
    values = np.random.default_rng(n).standard_normal(n)
    shown = kept(values, 10)
    assert shown.size <= max(min(n, 10), 0)
    assert np.all(np.diff(shown) > 0)
    if n:
        assert {0, n - 1, int(values.argmax()), int(values.argmin())} <= set(shown.tolist())


def test_unknown_values_are_not_extremes():
    values = np.full(1000, np.nan)
    values[[400, 700]] = [1.0, -1.0]
    assert {0, 400, 700, 999} <= set(kept(values, 20).tolist())


def test_a_thin_view_has_few_points_and_the_slip_of_the_pen(view):
    thin = decimated(view, Excerpt(points=40, rows=5))
    lengths = [len(thin["rewards"]["id"]), len(thin["rewards"]["so_far"]["id"]), len(thin["curve"]["points"])]
    lengths += [len(thin["curve"]["played"]["x"]), len(thin["standing"]["history"]["told"])]
    lengths += [len(thin["explanation"]["trial"]), len(thin["explanation"]["odds"])]
    assert max(lengths) <= 40
    assert 123 in thin["rewards"]["id"]
    assert 123 in thin["explanation"]["trial"]  # the largest surprise
    assert thin["rewards"]["n"] == 299
    assert thin["rewards"]["so_far"]["reward"][-1] == np.nanmax(view.trials.reward)
    assert thin["trials"]["id"] == [296, 297, 298, 299, 300]
    assert thin["trials"]["state"][-2:] == ["pending", "pending"]
    assert [one["id"] for one in thin["pending"]] == [299, 300]
    json.dumps(thin, allow_nan=False)


def test_a_view_of_everything_says_what_the_study_says(view):
    thin, whole = decimated(view, Excerpt(points=5000, rows=500)), view.to_dict()
    changed = {"trials", "curve", "explanation", "rewards"}
    assert {key: thin[key] for key in whole if key not in changed} == {
        k: v for k, v in whole.items() if k not in changed
    }
    assert thin["trials"] == whole["trials"]
    assert thin["curve"]["estimate"] == whole["curve"]["estimate"]
    assert thin["explanation"]["odds"] == whole["explanation"]["odds"]
    assert thin["explanation"]["after"] == [
        k + 1 for k, e in enumerate(whole["explanation"]["expected"]) if e is not None
    ]


def test_pages_of_trials_meet(view):
    pages_, before = [], None
    while before != 0:
        ids = decimated(view, Excerpt(rows=70, before=before))["trials"]["id"]
        pages_, before = [*ids, *pages_], ids[0]
    assert pages_ == list(range(301))
    assert decimated(view, Excerpt(before=0))["trials"]["id"] == []


def test_the_smallest_reward_is_the_best_where_less_is_better(view):
    thin = decimated(replace(view, direction="minimize"), Excerpt())
    assert thin["rewards"]["so_far"]["reward"][-1] == np.nanmin(view.trials.reward)


def test_infinite_odds_are_numbers(view):
    sure = replace(view, explanation=replace(view.explanation, odds=np.array([0.0, np.inf, np.nan])))
    assert decimated(sure, Excerpt())["explanation"]["odds"] == [0.0, np.finfo(float).max, None]


def test_likeliest_models_shrink_to_those_of_the_stop_report(study, view):
    likeliest, q = view.standing.history.likeliest, np.sort(study.probabilities)[::-1]
    assert likeliest[0] == 6  # all are alike: 95 % need all six
    assert likeliest[-1] == np.searchsorted(np.cumsum(q), 0.95) + 1 < 6


# -- when views are made ------------------------------------------------------------------------------------------


class Watched:
    """A study that counts how often it is looked at, on a clock on which looking takes time."""

    def __init__(self, study, look=0.0, look_back=0.0):
        self.study, self.look, self.look_back, self.now = study, look, look_back, 0.0
        self.views, self.explanations, self.certified = 0, 0, []
        self.last = None

    def __getattr__(self, name):
        return getattr(self.study, name)

    def view(self, **wanted):
        seen = self.study.view(**wanted)
        if seen is not self.last:
            self.views, self.now, self.last = self.views + 1, self.now + self.look, seen
            self.certified.append(wanted["certificates"])
        return seen

    def explanation(self, standing):
        self.explanations, self.now = self.explanations + 1, self.now + self.look_back
        return self.study.explanation(standing)


def going_on(tmp_path, told=0):
    made = create_study(
        ModelClass.legendre(degree=2, size=1),
        Interval(resolution=20),
        name="s",
        storage=tmp_path / "s.db",
        random_state=0,
    )
    for trial in made.ask(told) if told else ():
        made.tell(trial, 1.0 - trial.x**2)
    return made


def step(made):
    trial = made.ask()
    made.tell(trial, 1.0 - trial.x**2)


def test_views_are_made_once_for_all_and_again_after_every_event(tmp_path):
    watched = Watched(going_on(tmp_path, 3))
    made = ViewCache(lambda: watched.now)
    first = made.encoded(watched, Excerpt())
    assert made.encoded(watched, Excerpt()) is first
    other = made.encoded(watched, Excerpt(points=10))
    assert (watched.views, watched.explanations) == (1, 1)
    assert json.loads(other)["counts"] == json.loads(first)["counts"]
    step(watched.study)
    assert json.loads(made.encoded(watched, Excerpt()))["counts"]["told"] == 4
    assert (watched.views, watched.explanations) == (2, 2)


def test_a_view_before_the_first_reward_is_made_again_after_an_ask(tmp_path):
    study, made = going_on(tmp_path), ViewCache()
    assert json.loads(made.encoded(study, Excerpt()))["counts"]["pending"] == 0
    study.ask()
    assert json.loads(made.encoded(study, Excerpt()))["counts"]["pending"] == 1


def test_what_takes_long_is_made_again_after_a_while(tmp_path):
    watched = Watched(going_on(tmp_path, 3), look=1.0)
    made = ViewCache(lambda: watched.now)
    made.encoded(watched, Excerpt())
    step(watched.study)
    old = json.loads(made.encoded(watched, Excerpt()))
    assert (old["counts"]["told"], old["fresh_in"]) == (3, pytest.approx(5.0))
    watched.now += 5.1
    new = json.loads(made.encoded(watched, Excerpt()))
    assert (new["counts"]["told"], new["fresh_in"]) == (4, None)


def test_looking_back_on_many_rewards_waits_until_it_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setattr(views, "_ENOUGH", 3)
    watched = Watched(going_on(tmp_path, 4), look_back=2.0)  # half a second for each reward
    made = ViewCache(lambda: watched.now)
    made.encoded(watched, Excerpt())
    step(watched.study)
    late = json.loads(made.encoded(watched, Excerpt()))
    assert late["takes"] == pytest.approx(2.5)
    assert late["explanation"]["told"] == 4  # the last one that was made
    deep = json.loads(made.encoded(watched, Excerpt(), deep=True))
    assert (deep["takes"], deep["explanation"]["told"], deep["too_long"]) == (None, 5, False)
    monkeypatch.setattr(views, "_LONGEST", 2.0)
    step(watched.study)
    for wanted in (False, True):
        never = json.loads(made.encoded(watched, Excerpt(), wanted))
        assert (never["takes"], never["too_long"], never["explanation"]["told"]) == (None, True, 5)


def test_certificates_of_a_long_log_wait_until_they_are_wanted(tmp_path, monkeypatch):
    watched = Watched(going_on(tmp_path, 4))
    made = ViewCache(lambda: watched.now)
    monkeypatch.setattr(views, "_PATIENCE", 1e-3)  # seconds: less than four rewards may take
    assert json.loads(made.encoded(watched, Excerpt()))["stopping"] is None
    assert json.loads(made.encoded(watched, Excerpt(), deep=True))["stopping"] is not None
    step(watched.study)
    monkeypatch.setattr(views, "_PATIENCE", 6e-4)  # enough for the one that is new
    made.encoded(watched, Excerpt())
    assert watched.certified == [False, True, True]


# -- over HTTP ------------------------------------------------------------------------------------------------------


def test_a_view_over_http_is_checked_and_complete(served):
    http, _, _ = served
    study = create(http, problem=INTERVAL, settings={"noise_std": 0.01, "reward_bound": 1.0})
    empty = study.get("view")
    assert (empty["counts"]["told"], empty["check"], empty["best"]) == (0, None, None)
    for k in range(12):
        trial = study.post("ask")["trials"][0]
        study.post("tell", results=[{"trial": trial["id"], "reward": float((-1) ** k)}])  # no such model
    seen = study.get("view", points=20, rows=3)
    assert seen["check"]["contradicted"] is True
    assert len(seen["trials"]["id"]) == 3
    assert study.get("view", 422, points=1)["field"] == "query.points"
    assert study.get("view", 422, before=-1)["field"] == "query.before"
    create(http, "other")
    assert http.get("/v1/studies/nobody/view").status_code == 404
    assert http.get("/v1/studies/nobody/events").status_code == 404


def test_a_reader_may_look(tmp_path):
    with serving(f"sqlite:///{tmp_path / 's.db'}", tokens=TOKENS) as (address, _), client(address) as nobody:
        for path in ("/", "/static/main.js", "/static/plotly.min.js", "/v1/studies/s/view", "/v1/studies/s/events"):
            assert nobody.get(path).status_code == 401, path
        assert nobody.get("/", auth=("anybody", READER)).status_code == 200


def test_files_allow_nothing_from_elsewhere(served):
    http, _, _ = served
    for name in file_names():
        got = http.get(f"/static/{name}")
        assert got.status_code == 200
        assert "script-src 'self';" in got.headers["content-security-policy"]
        assert "unsafe-eval" not in got.headers["content-security-policy"]
        assert http.get(f"/static/{name}", headers={"If-None-Match": got.headers["etag"]}).status_code == 304
        if name != "plotly.min.js":
            assert "http" not in got.text.replace("http://www.w3.org/2000/svg", ""), (
                name
            )  # nor do they ask for anything
            assert "innerHTML" not in got.text
            assert "insertAdjacentHTML" not in got.text
    assert len(file_names()) > 10
    page = http.get("/")
    assert "<script src=" in page.text
    assert "<script>" not in page.text
    assert http.get("/static/../web.py").status_code == 404
    assert http.get("/static/nothing.js").status_code == 404


# -- the stream -----------------------------------------------------------------------------------------------------


class Heard:
    """A stream of server-sent events, read in a thread."""

    def __init__(self, http, path, **headers):
        self.messages, self.comments, self.ended = [], 0, threading.Event()
        self._response = http.send(http.build_request("GET", path, headers=headers), stream=True)
        assert self._response.status_code == 200
        assert self._response.headers["content-type"].startswith("text/event-stream")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        message = {}
        with suppress(httpx.HTTPError, httpx.StreamError):  # somebody has hung up
            for line in self._response.iter_lines():
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    key, _, value = line.partition(": ")
                    message[key] = value
                else:
                    if "data" in message:
                        self.messages.append(message)
                    message = {}
        self.ended.set()

    def close(self):
        self._response.close()


@contextmanager
def listening(http, path, **headers):
    heard = Heard(http, path, **headers)
    try:
        yield heard
    finally:
        heard.close()


def until(holds, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_events_of_others_are_heard_once_each_and_resumed(served):
    http, _, storage = served
    create(http)
    with listening(http, "/v1/studies/s/events") as first, listening(http, "/v1/studies/s/events?since=0") as second:
        with load_study("s", storage) as elsewhere:
            trial = elsewhere.ask()
            elsewhere.tell(trial, 1.0)
        until(lambda: len(first.messages) == len(second.messages) == 2)
        assert [message["id"] for message in first.messages] == ["1", "2"]
        told = json.loads(first.messages[1]["data"])
        assert (told["kind"], told["trial"], told["reward"]) == ("tell", 0, 1.0)
        with listening(http, "/v1/studies/s/events?since=0", **{"Last-Event-ID": "1"}) as third:
            until(lambda: len(third.messages) == 1)
            assert third.messages[0]["id"] == "2"
        with listening(http, "/v1/studies/s/events?since=99") as ahead:  # of an older copy that was put back
            elsewhere.ask()
            until(lambda: len(ahead.messages) == 1)
        http.delete("/v1/studies/s").raise_for_status()
        until(first.ended.is_set)
        assert first.messages[-1]["event"] == "gone"


@pytest.fixture
def impatient(tmp_path, monkeypatch):
    """A server that looks every 0.05 s, beats after 0.2 s, and has room for five streams."""
    monkeypatch.setattr(events.EventStreams.__init__, "__defaults__", (0.05, 0.2))
    limits = Limits(rate=0.0, streams=20)  # a quarter for each
    with serving(f"sqlite:///{tmp_path / 's.db'}", limits=limits) as (address, app), client(address) as http:
        create(http)
        yield http, app


def test_one_poller_looks_for_all_pages(impatient, monkeypatch):
    http, app = impatient
    reads = []
    act = app.state.studies.use
    monkeypatch.setattr(
        app.state.studies, "use", lambda name, work, **more: reads.append(name) or act(name, work, **more)
    )
    with ExitStack() as stack:
        several = [stack.enter_context(listening(http, "/v1/studies/s/events")) for _ in range(5)]
        until(lambda: all(one.comments > 2 for one in several))  # they are silent, and say that they live
        reads.clear()
        time.sleep(1.0)
        assert 3 <= len(reads) <= 25  # about every 0.05 s, however many look
        assert http.get("/v1/studies/s/events").status_code == 503  # five are enough for this one
    until(lambda: time.sleep(0.3) or not reads or reads.clear())  # nobody looks any more


def test_a_stream_ends_with_the_server(tmp_path):
    with ExitStack() as open_until_the_end:
        with serving(f"sqlite:///{tmp_path / 's.db'}", grace=60) as (address, _):
            http = open_until_the_end.enter_context(client(address))  # it is not the client that hangs up
            create(http)
            heard = Heard(http, "/v1/studies/s/events")
            until(lambda: heard.comments)
            began = time.monotonic()
        assert heard.ended.wait(5.0)
        assert time.monotonic() - began < 15.0  # of the minute that it would wait for requests
