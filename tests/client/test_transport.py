"""What a client does when a service is slow, gone, or loses its answers: no server can be made to do that on demand."""

import inspect
import json
import os
import subprocess
import sys
import warnings

import httpx
import numpy as np
import pandas as pd
import pytest
import sqlalchemy.exc

import alexp
from alexp.client import transport as transport_module
from alexp.client.transport import HttpTransport, encoded, failure
from alexp.study import Study, StudyExistsError, StudyNotFoundError
from alexp.study.errors import StorageError, UnknownOutcomeError

TRIAL = {"id": 0, "x": 0.5, "index": 3, "model": None, "explored": False, "propensity": None}
LOST = httpx.ReadError("connection reset")
GONE = httpx.ConnectError("connection refused")


class Script:
    """A service that answers with what it is given, in that order, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, body, headers = (*answer, {})[:3]
        return httpx.Response(status, json=body, headers=headers)

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.asked]


@pytest.fixture
def pauses(monkeypatch):
    """Seconds that were waited, without waiting."""
    waited = []
    monkeypatch.setattr(transport_module.time, "sleep", waited.append)
    return waited


def client_of(script, urls="http://service", answered=True, **options):
    client = alexp.Client(urls, **options)
    client._transport._httpx_transport = lambda: httpx.MockTransport(script)
    client._transport._was_answered = answered
    return client


def study_of(script, **options):
    from alexp.client import RemoteStudy

    return RemoteStudy(client_of(script, **options)._transport, "s", {"domain": "Interval"})


def told(**facts):
    return (200, {"trials": [TRIAL | facts]})


def test_a_lost_answer_is_asked_for_again_under_the_same_key(pauses):
    script = Script(LOST, (503, {}, {"Retry-After": "0"}), httpx.ReadTimeout(""), told())
    trial = study_of(script).ask()
    assert (trial.id, trial.x, np.isnan(trial.propensity)) == (0, 0.5, True)
    keys = {body["key"] for body in script.bodies}
    assert len(script.asked) == 4
    assert len(keys) == 1
    assert all(body == script.bodies[0] for body in script.bodies)


def test_two_calls_have_two_keys_and_the_callers_key_is_kept(pauses):
    script = Script(told(), told(), told())
    study = study_of(script)
    study.ask()
    study.ask()
    study.ask(key="monday")
    first, second, third = (body["key"] for body in script.bodies)
    assert first != second
    assert third == "monday"


def test_pauses_grow_and_are_spread(pauses):
    script = Script(*[GONE] * 12)
    with pytest.raises(StorageError, match="cannot be reached .*Nothing was changed"):
        study_of(script, retries=11).ask()
    assert len(pauses) == 11
    ceilings = [min(0.05 * 2.0**k, 5.0) for k in range(11)]
    assert all(0.5 * most <= pause <= most for pause, most in zip(pauses, ceilings, strict=True))
    assert len({pause / most for pause, most in zip(pauses, ceilings, strict=True)}) == 11


@pytest.mark.parametrize("status", [429, 503])
def test_the_service_says_when_to_come_back(pauses, status):
    script = Script((status, {"detail": "later"}, {"Retry-After": "7"}), told())
    study_of(script).ask()
    assert 7.0 <= pauses[0] <= 7.1


def test_a_service_that_never_answered_is_given_up_soon(pauses):
    script = Script(*[GONE] * 20)
    with pytest.raises(StorageError, match="is `alexp serve` running there"):
        client_of(script, answered=False).studies()
    assert 2.0 < sum(pauses) < 7.0


def test_one_can_wait_until_it_has_started(pauses):
    script = Script(*[GONE] * 20, (503, {}), (200, {"status": "ok"}))
    client = client_of(script, answered=False)
    assert client.wait() is client
    assert script.answers == []
    with pytest.raises(StorageError):
        client_of(Script(*[GONE] * 20), answered=False).wait(seconds=1e-9)


def test_nobody_can_say_what_became_of_a_write_that_was_sent(pauses):
    script = Script(LOST, GONE, GONE)
    with pytest.raises(UnknownOutcomeError, match="it is unknown") as raised:
        study_of(script, retries=2).tell(0, 0.5)
    assert raised.value.key == script.bodies[0]["key"]
    assert raised.value.key in str(raised.value)


def test_a_read_that_was_lost_has_changed_nothing(pauses):
    with pytest.raises(StorageError, match="Nothing was changed") as raised:
        study_of(Script(LOST, LOST), retries=1).pending()
    assert not isinstance(raised.value, UnknownOutcomeError)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 500])
def test_errors_that_would_come_again_are_not_repeated(pauses, status):
    script = Script((status, {"title": "no", "detail": "for a reason"}))
    with pytest.raises(Exception, match="for a reason"):
        study_of(script).ask()
    assert len(script.asked) == 1


def test_every_problem_of_the_service_is_the_error_it_was():
    from alexp.service import problems

    plain = {MemoryError: ValueError, ArithmeticError: ValueError, RecursionError: ValueError, TypeError: ValueError}
    plain |= {ImportError: ValueError, sqlalchemy.exc.TimeoutError: StorageError}
    for kind, _ in problems.TABLE:
        answer = problems.problem_of(kind("for a reason")).response("urn:uuid:0")
        told = httpx.Response(answer.status_code, content=answer.body, headers=dict(answer.headers))
        error = failure(told, "a key")
        assert isinstance(error, plain.get(kind, kind)), kind
        assert str(error)
        assert not isinstance(error, UnknownOutcomeError) or error.key == "a key"


def test_without_a_token_the_error_says_how_to_send_one(pauses):
    with pytest.raises(PermissionError, match="token="):
        study_of(Script((401, {"detail": "a token is needed"}))).ask()
    with pytest.raises(PermissionError, match="read"):
        study_of(Script((403, {"detail": "this token may only read"}))).ask()


def test_something_in_between_answers(pauses):
    with pytest.raises(StorageError, match="status 500, not as a service would: '<html> oops </html>'"):
        study_of(lambda _request: httpx.Response(500, text="<html>\noops </html>")).ask()
    with pytest.raises(UnknownOutcomeError):
        study_of(Script((502, {"detail": "bad gateway"})), retries=0).ask()


def test_the_next_address_is_asked(pauses):
    script = Script(GONE, told(), told())
    study = study_of(script, urls=["http://one:8000", "http://two:8000/"])
    study.ask()
    study.ask()
    assert [request.url.host for request in script.asked] == ["one", "two", "two"]
    assert {body["key"] for body in script.bodies[:2]} == {script.bodies[0]["key"]}


def test_a_creation_that_was_heard_after_all(pauses):
    exists, summary = (409, {"detail": "exists already"}), (200, {"domain": "Interval"})
    script = Script(LOST, exists, summary)
    problem = {"kind": "interval"}
    assert client_of(script).create(name="s", problem=problem).name == "s"
    assert [body["load_if_exists"] for body in script.bodies] == [False, False, True]
    with pytest.raises(StudyExistsError):
        client_of(Script((409, {"detail": "exists already", "type": "urn:alexp:study-exists"}))).create(
            name="s", problem=problem
        )
    other = (409, {"detail": "with other settings", "type": "urn:alexp:study-exists"})
    with pytest.raises(StudyExistsError, match="other settings"):
        client_of(Script(LOST, exists, other)).create(name="s", problem=problem)


def test_a_deletion_that_was_heard_after_all(pauses):
    missing = (404, {"detail": "no such study", "type": "urn:alexp:study-not-found"})
    client_of(Script(LOST, missing)).delete("s")
    with pytest.raises(StudyNotFoundError):
        client_of(Script(missing)).delete("s")
    with pytest.raises(StudyNotFoundError):
        client_of(Script((503, {}), missing)).delete("s")  # the first attempt was turned away


def test_probabilities_that_are_not_listed_share_the_rest(pauses):
    told = {"n_models": 4, "models": [1, 3], "names": ["b", "d"], "probabilities": [0.5, 0.25], "warnings": []}
    assert study_of(Script((200, told))).probabilities.tolist() == [0.125, 0.5, 0.125, 0.25]
    told |= {"n_models": 2, "models": [0, 1]}
    assert study_of(Script((200, told))).probabilities.tolist() == [0.5, 0.25]


def test_names_are_encoded(pauses):
    script = Script((200, {"domain": "Box"}))
    client_of(script).study("a/b %?#")
    assert script.asked[0].url.raw_path == b"/v1/studies/a%2Fb%20%25%3F%23"


def test_warnings_point_at_the_caller(pauses):
    answer = (200, {"told": 1, "skipped": 0, "amended": 0, "warnings": ["trial 0: 7240 is far outside"]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study_of(Script(answer)).tell(0, 7240.0)
    assert [(one.category, str(one.message)) for one in caught] == [
        (alexp.AssumptionWarning, "trial 0: 7240 is far outside")
    ]
    assert caught[0].filename == __file__


def test_tokens_are_sent_and_never_shown(pauses, monkeypatch):
    script = Script((200, {"studies": []}), (200, {"studies": []}))
    client = client_of(script, token="s3cret")
    client.studies()
    monkeypatch.setenv("ALEXP_TOKEN", "from-outside")
    client_of(script).studies()
    assert [one.headers["Authorization"] for one in script.asked] == ["Bearer s3cret", "Bearer from-outside"]
    assert "s3cret" not in repr(client) + repr(vars(client._transport).keys())
    with pytest.raises(ValueError, match="token must be one word") as raised:
        alexp.Client("http://service", token="two words")
    assert "two words" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["", "service:8000", "ftp://service", "http://", "http://me:secret@service", "http://service/?a=1", 7, []]
)
def test_addresses_that_are_none(url):
    with pytest.raises((ValueError, TypeError)) as raised:
        alexp.Client(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": -1.0}, {"retries": -1}, {"retries": 1.5}])
def test_options_that_are_none(options):
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        alexp.Client("http://service", **options)


def test_wrong_arguments_are_not_sent(pauses):
    study = study_of(Script())
    for wrong in (float("nan"), float("inf"), "high", None, 1e200):
        with pytest.raises((ValueError, TypeError), match="reward"):
            study.tell(0, wrong)
    for wrong in (1.5, None, True):
        with pytest.raises(TypeError, match="a Trial or its id"):
            study.tell(wrong, 0.5)
    with pytest.raises(ValueError, match="n must be"):
        study.ask(0)
    with pytest.raises(ValueError, match="either a table .* or a problem"):
        client_of(Script()).create(name="s")
    with pytest.raises(ValueError, match="models must be features by name"):
        client_of(Script()).create(pd.DataFrame({"a": [1.0]}), ["a"], name="s")


def test_bodies():
    row = pd.Series({"a": np.int64(1), "b": "x"})
    body = {"x": np.eye(2), "y": np.float64(0.1), "z": (1, True), "row": row, "all": range(2)}
    assert json.loads(encoded(body)) == {
        "x": [[1.0, 0.0], [0.0, 1.0]],
        "y": 0.1,
        "z": [1, True],
        "row": {"a": 1, "b": "x"},
        "all": [0, 1],
    }
    with pytest.raises(ValueError, match="NaN and infinite numbers"):
        encoded({"features": np.array([np.nan])})
    with pytest.raises(TypeError, match="got object"):
        encoded({"context": object()})


def test_a_child_opens_its_own_connections():
    transport = HttpTransport(["http://127.0.0.1:1"], None, 1.0, 0)
    inherited = transport.http
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(
            writing, b"own" if transport.http is not inherited and transport.http is transport.http else b"inherited"
        )
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 10) == b"own"
    assert transport.http is inherited
    transport.close()
    assert transport.http is not inherited


SHARED = [
    *(
        "ask",
        "tell",
        "tell_many",
        "amend",
        "retract",
        "abandon",
        "observe",
        "add_observations",
        "heartbeat",
        "take_over",
        "pending",
        "policy",
        "best",
        "trial",
    ),
    *("stop_report", "plausible_models", "check_models", "trials_dataframe", "events", "report", "add_arm"),
    *("counts", "probabilities"),
]


def test_the_methods_are_those_of_a_study():
    from alexp.client import RemoteStudy

    def arguments(method):
        return [(one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values()]

    for name in SHARED:
        mine, theirs = getattr(RemoteStudy, name), getattr(Study, name)
        if isinstance(theirs, property):
            assert isinstance(mine, property), name
        else:
            assert arguments(mine) == [one for one in arguments(theirs) if one[0] not in ("sure", "progress")], name


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
import importlib.util
real = importlib.util.find_spec
def find_spec(name, package=None):
    return None if name.split(".")[0] in {blocked!r} else real(name, package)
importlib.util.find_spec = find_spec
import alexp
"""


def run(blocked, code):
    script = BLOCKED.format(blocked=blocked) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_a_client_needs_no_database():
    code = """
client = alexp.Client("http://127.0.0.1:9", retries=0)
try:
    client.studies()
except alexp.study.StorageError as error:
    print(type(error).__name__)
print(alexp.study.HeldTrial.__name__, "sqlalchemy" in sys.modules)
"""
    done = run(["sqlalchemy", "alembic", "fastapi", "uvicorn"], "import alexp.study\n" + code)
    assert done.stdout.split("\n") == ["StorageError", "HeldTrial False", ""], done.stderr


def test_without_httpx_the_extra_is_named():
    done = run(["httpx"], "alexp.Client('http://127.0.0.1:9')")
    assert "pip install 'alexp[client]'" in done.stderr


def test_importing_the_library_does_not_import_httpx():
    done = run([], "print('httpx' in sys.modules, 'alexp.client' in sys.modules)")
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("what", [lambda: alexp.Client("http://service"), lambda: study_of(Script())])
def test_not_pickled(what):
    import pickle

    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(what())
