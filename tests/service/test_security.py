"""Who may do what, from where, how much and how often; and that no secret is ever seen."""

import base64
import json
import logging
import socket
import time
from contextlib import contextmanager

import httpx
import pytest
from starlette.routing import Mount
from starlette.testclient import TestClient
from typer.testing import CliRunner

from alexp.cli import app as command
from alexp.problem.groups import AllSubsets
from alexp.service import Limits, Tokens, create_app
from alexp.service.monitoring import JsonLines
from alexp.service.security import READ_ONLY_POSTS, RateLimiter, is_loopback, is_same_site
from alexp.service.server import check_host
from tests.service.serving import FREE, READER, TABLE, TOKENS, WRITER, client, create, process, serving


def app_at(tmp_path, **more):
    return create_app(tmp_path / "s.db", **({"tokens": TOKENS, "limits": FREE} | more))


@pytest.fixture
def app(tmp_path):
    return app_at(tmp_path)


@contextmanager
def calling(app, token=None, base="http://localhost"):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with TestClient(app, base_url=base, headers=headers, raise_server_exceptions=False) as http:
        yield http


def endpoints(app):
    """(method, path) of every route there is, those of files included."""
    found = []

    def walk(routes, prefix):
        for route in routes:
            if isinstance(route, Mount):
                found.append(("GET", f"{prefix}{route.path}/some/file"))
            elif hasattr(route, "path"):
                found.extend((method, prefix + route.path) for method in sorted(route.methods or {"GET"}))
            else:
                walk(included(route), prefix)

    walk(app.routes, "")
    return sorted({(method, path.replace("{name}", "s")) for method, path in found if method != "HEAD"})


def included(route):
    """Routes of a router that was included, in versions of FastAPI that keep it as it is."""
    inner = getattr(route, "original_router", None)
    assert inner is not None, f"{route!r} cannot be looked into"
    return inner.routes


# -- tokens ----------------------------------------------------------------------------------------------------


def test_the_routes_are_all_there(app):
    """What the tests below walk over is what OpenAPI describes, and more."""
    described = {
        (method.upper(), path.replace("{name}", "s"))
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }
    assert len(described) > 25
    assert described <= set(endpoints(app))


def test_nothing_but_health_without_a_token(app):
    wrong = [
        {},
        {"Authorization": "Bearer wrong-0123456789abcdef"},
        {"Authorization": f"Bearer {WRITER}x"},
        {"Authorization": f"Bearer {WRITER[:-1]}"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Digest {WRITER}"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + base64.b64encode(f"{WRITER}:".encode()).decode()},
    ]
    with calling(app) as http:
        paths = [*endpoints(app), ("GET", "/nowhere"), ("GET", "/"), ("POST", "/healthz"), ("PUT", "/v1/studies/s")]
        for method, path in paths:
            for headers in wrong if path == "/v1/studies" else wrong[:2]:
                got = http.request(method, path, headers=headers)
                if (method, path) in {("GET", "/healthz"), ("GET", "/readyz")}:
                    assert (got.status_code, got.json()) == (200, {"status": "ok"})
                    continue
                assert got.status_code == 401, (method, path)
                assert got.headers["content-type"] == "application/problem+json"
                challenges = got.headers.get_list("www-authenticate")
                assert [one.partition(" ")[0] for one in challenges] == ["Bearer", "Basic"]


def test_a_token_may_come_twice_over_no_header(app):
    with calling(app) as http:
        got = http.get("/v1/studies", headers=[("Authorization", f"Bearer {WRITER}"), ("Authorization", "Bearer x")])
        assert got.status_code == 401


@pytest.mark.parametrize("user", ["", "anybody", "ümläut"])
def test_a_token_serves_as_a_password(app, user):
    credentials = base64.b64encode(f"{user}:{WRITER}".encode()).decode()
    with calling(app) as http:
        got = http.get("/v1/studies", headers={"Authorization": f"Basic {credentials}"})
        assert got.status_code == 200


def test_read_only_tokens_change_nothing(app):
    with calling(app, WRITER) as http:
        create(http)
    with calling(app, READER) as http:
        refused = []
        for method, path in endpoints(app):
            if method == "GET" and path.endswith("/events"):  # never ends
                continue
            got = http.request(method, path, **({"json": {}} if method == "POST" else {}))
            if got.status_code == 403:
                assert got.json()["type"] == "urn:alexp:read-only"
                refused.append((method, path))
        writing = [(m, p) for m, p in endpoints(app) if m != "GET" and p.rpartition("/")[2] not in READ_ONLY_POSTS]
        assert refused == writing
        assert len(writing) >= 11
        assert http.get("/v1/studies/s").status_code == 200
        assert http.post("/v1/studies/s/policy", json={}).status_code == 200
        assert http.put("/v1/studies/s/policy", json={}).status_code == 403


def test_tokens_are_compared_as_a_whole_and_in_constant_time(monkeypatch):
    seen = []
    import hmac

    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append((a, b)) or compare(a, b))
    tokens = Tokens(TOKENS)
    assert tokens.allow(WRITER).right == "write"
    assert len(seen) == len(TOKENS)  # not one less because the first was right
    assert tokens.allow("nothing") is None
    assert len(seen) == 2 * len(TOKENS)
    assert {len(part) for pair in seen for part in pair} == {32}
    assert WRITER not in repr(vars(tokens))


def test_a_file_of_tokens(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"# who\n\n{WRITER}\n  {READER}   read\n")
    tokens = Tokens.from_file(file)
    assert (tokens.allow(WRITER).right, tokens.allow(READER).right) == ("write", "read")
    assert repr(tokens) == "Tokens(2 of them)"


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "short\n", f"{WRITER} write more\n", f"{WRITER} admin\n", f"{WRITER}\n{WRITER} read\n",
             "x" * 600, "schlüssel-0123456789abcdef\n"],
)  # fmt: skip
def test_files_of_tokens_that_are_wrong_are_refused_without_repeating_them(tmp_path, text):
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(ValueError, match="tokens") as caught:
        Tokens.from_file(file)
    assert not any(word in str(caught.value) for word in text.split() if word not in ("#", "nothing", "read", "more"))


@pytest.mark.parametrize("tokens", [{}, {"short": "write"}, {WRITER: "admin"}])
def test_tokens_that_are_wrong_are_refused(tmp_path, tokens):
    with pytest.raises(ValueError, match="token"):
        create_app(tmp_path / "s.db", tokens=tokens)


# -- where from ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "lab.example.org", ""])
def test_nobody_listens_elsewhere_without_a_token(host):
    with pytest.raises(ValueError, match="token-file"):
        check_host(host, has_tokens=False)
    check_host(host, has_tokens=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "LOCALHOST."])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    check_host(host, has_tokens=False)


def test_the_command_refuses_to_listen_elsewhere_without_a_token(tmp_path):
    ended = CliRunner().invoke(command, ["serve", "--host", "0.0.0.0", "--storage", str(tmp_path / "s.db")])
    assert ended.exit_code == 1
    assert "--token-file" in ended.output
    assert not (tmp_path / "s.db").exists()


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:8000", 200), ("evil.example.org", 403), ("", 403),
     ("localhost.evil.org", 403), ("192.168.0.7:8000", 403)],
)  # fmt: skip
def test_without_tokens_only_names_of_this_host_are_answered(tmp_path, host, status):
    with calling(app_at(tmp_path, tokens=None)) as http:
        assert http.get("/v1/studies", headers={"Host": host}).status_code == status
        assert http.get("/healthz", headers={"Host": host}).status_code == 200
    with calling(app_at(tmp_path), WRITER) as http:
        assert http.get("/v1/studies", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 422),
        ({"Origin": "http://localhost"}, 422),
        ({"Origin": "https://localhost"}, 422),  # the proxy speaks TLS
        ({"Sec-Fetch-Site": "same-origin"}, 422),
        ({"Sec-Fetch-Site": "none"}, 422),
        ({"Origin": "http://evil.example.org"}, 403),
        ({"Origin": "http://localhost:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://lab.example.org"}, 422),  # named
    ],
)
def test_pages_of_other_sites_do_not_write(tmp_path, headers, status):
    with calling(app_at(tmp_path, origins=["https://lab.example.org"]), WRITER) as http:
        assert http.post("/v1/studies", json={}, headers=headers).status_code == status
        assert http.delete("/v1/studies/x", headers=headers).status_code == (404 if status == 422 else 403)
        assert http.get("/v1/studies", headers=headers).status_code == 200


def test_the_same_site_is_the_same_host_and_port():
    assert is_same_site("lab:8000", "http://lab:8000", "", ())
    assert not is_same_site("lab:8000", "http://lab:8001", "same-origin", ())


def test_no_other_origin_may_read_unless_it_was_named(tmp_path):
    origin = {"Origin": "https://lab.example.org"}
    with calling(app_at(tmp_path), WRITER) as http:
        assert not [name for name in http.get("/v1/studies", headers=origin).headers if "access-control" in name]
        assert http.options("/v1/studies", headers=origin).status_code == 405
    with calling(app_at(tmp_path, origins=["https://lab.example.org"])) as http:
        asked = origin | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        got = http.options("/v1/studies", headers=asked)
        assert (got.status_code, got.headers["access-control-allow-origin"]) == (200, "https://lab.example.org")
        assert "access-control-allow-credentials" not in got.headers
        other = http.options("/v1/studies", headers=asked | {"Origin": "https://evil.example.org"})
        assert other.status_code == 400
        assert "access-control-allow-origin" not in other.headers
        assert http.get("/v1/studies", headers=origin).status_code == 401


@pytest.mark.parametrize("media", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; b=c"])
def test_only_json_is_taken(app, media):
    with calling(app, WRITER) as http:
        got = http.post("/v1/studies", content=b"{}", headers={} if media is None else {"Content-Type": media})
        assert (got.status_code, got.json()["type"]) == (415, "urn:alexp:not-json")
        fine = http.post("/v1/studies", content=b"{}", headers={"Content-Type": "application/json; charset=utf-8"})
        assert fine.status_code == 422


# -- how much --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not JSON"),
        (b"", "Field required"),
        (b"\xff\xfe", "not JSON"),
        (b'{"name": "a", "problem": NaN}', "NaN is not a number"),
        (b'{"random_state": -Infinity}', "Infinity is not a number"),
        (b'{"random_state": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"random_state": 1e999}', "body"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "body"),
        (b"null", "body"),
        (b'"text"', "body"),
        (b'{"name": "\\ud800"}', "body"),
    ],
)
def test_what_is_no_request_is_refused(app, content, reason):
    with calling(app, WRITER) as http:
        got = http.post("/v1/studies", content=content, headers={"Content-Type": "application/json"})
        assert got.status_code == 422, got.text
        assert reason in got.json()["detail"]
        assert got.json()["field"].startswith("body")


def test_small_requests_for_large_runs_are_refused_before_anything_is_made(tmp_path, monkeypatch):
    def listed(self):
        raise AssertionError("the models were listed")

    large = {"kind": "interval", "models": {"family": "legendre", "degree": 100, "size": 99}}
    with serving(tmp_path / "s.db") as (address, _), client(address) as http:
        with monkeypatch.context() as patch:
            patch.setattr(AllSubsets, "listed", listed)
            got = http.post("/v1/studies", json={"name": "large", "problem": large})
        assert (got.status_code, got.json()["type"]) == (422, "urn:alexp:invalid"), got.text
        assert got.json()["field"] == "body.problem"
        assert (
            "problem would need about 2.3 s a step and 8.9 GB; this service allows 5 s and 4 GB" in got.json()["detail"]
        )
        assert create(http, problem=large | {"models": {"family": "legendre", "degree": 4, "size": 2}})


def test_large_requests_are_refused(tmp_path):
    body = {"name": "large", "problem": TABLE | {"csv": "x\n" + "1\n" * 2000}}
    with serving(tmp_path / "s.db", limits=Limits(body=1000, rate=0.0)) as (address, _), client(address) as http:
        got = http.post("/v1/studies", json=body)
        assert (got.status_code, got.json()["type"]) == (413, "urn:alexp:too-large")

        def parts():
            yield b'{"name": "'
            for _ in range(50):
                yield b"x" * 100

        got = http.post("/v1/studies", content=parts(), headers={"Content-Type": "application/json"})
        assert got.status_code == 413
        assert create(http, status=201)


def test_slow_requests_are_given_up(tmp_path):
    limits = Limits(rate=0.0, patience=0.2)
    with serving(tmp_path / "s.db", limits=limits) as (address, _):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as line:
            line.sendall(
                b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            assert line.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_too_many_requests_are_refused_for_a_while(tmp_path):
    with calling(app_at(tmp_path, limits=Limits(rate=1.0, burst=5))) as http:
        as_writer, as_reader = ({"Authorization": f"Bearer {token}"} for token in (WRITER, READER))
        got = [http.get("/v1/studies", headers=as_writer) for _ in range(6)]
        assert [one.status_code for one in got] == [200] * 5 + [429]
        assert got[-1].json()["type"] == "urn:alexp:too-many-requests"
        assert int(got[-1].headers["retry-after"]) == 1
        assert http.get("/v1/studies", headers=as_reader).status_code == 200  # others are not concerned
        assert http.get("/healthz").status_code == 200
        assert [http.get("/v1/studies").status_code for _ in range(6)] == [401] * 5 + [429]
        time.sleep(1.0)
        assert http.get("/v1/studies", headers=as_writer).status_code == 200


def test_callers_are_not_remembered_for_ever(monkeypatch):
    monkeypatch.setattr(RateLimiter, "_MOST", 10)
    limiter = RateLimiter(rate=1.0, burst=2)
    for k in range(100):
        assert limiter.wait(f"caller {k}", now=0.0) == 0
    assert len(limiter._left) <= 10


@pytest.mark.parametrize("wrong", [{"body": 0}, {"rate": -1.0}, {"burst": 0}, {"patience": 0.0}, {"open_studies": 0}])
def test_limits_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="must"):
        Limits(**wrong)


def test_browsers_run_nothing_but_what_was_sent(app):
    with calling(app, WRITER) as http:
        for path in ("/v1/studies", "/healthz", "/nowhere"):
            headers = http.get(path).headers
            assert "default-src 'self'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["cache-control"] == "no-store"


# -- secrets ---------------------------------------------------------------------------------------------------


@pytest.fixture
def lines():
    """What the service logs, as it would be written."""
    heard = []

    class Hearing(logging.Handler):
        def emit(self, record):
            heard.append(JsonLines().format(record))

    handler, log = Hearing(), logging.getLogger("alexp.service")
    log.addHandler(handler)
    before = log.level
    log.setLevel(logging.INFO)
    yield heard
    log.removeHandler(handler)
    log.setLevel(before)


def test_logs_are_lines_of_json_without_secrets(app, lines):
    with calling(app, WRITER) as http:
        study = create(http)
        study.post("ask")
        study.post("tell", results=[{"trial": 0, "reward": 0.123456789}])
        http.get(f"/v1/studies?token={WRITER}")
        http.get("/v1/studies/postgresql%3A%2F%2Fme%3Ahunter2%40host%2Fdb")
        http.get("/v1/studies", headers={"Authorization": "Bearer wrong-0123456789abcdef"})
    text = "\n".join(lines)
    for secret in (WRITER, READER, "wrong-0123456789abcdef", "0.123456789", "hunter2"):
        assert secret not in text
    read = [json.loads(line) for line in lines if '"request"' in line]
    assert [one["status"] for one in read] == [201, 200, 200, 200, 404, 401]
    assert read[1].items() >= {"method": "POST", "route": "/v1/studies/{name}/ask", "holder": "token 1"}.items()
    assert read[5]["problem"] == "wrong-token"
    assert all(one["ms"] >= 0.0 and one["at"].endswith("Z") for one in read)


def test_problems_do_not_repeat_passwords(app):
    with calling(app, WRITER) as http:
        got = http.post("/v1/studies", json={"name": "s", "problem": TABLE, "postgresql://me:hunter2@host/db": 1})
        assert got.status_code == 422
        assert "me:***@host" in got.json()["field"]
        assert "hunter2" not in got.text


def test_mistakes_of_the_service_are_logged_and_not_shown(app, lines, monkeypatch):
    from alexp.study import Study

    def broken(*_args, **_more):
        raise KeyError("postgresql://me:hunter2@host/db is what broke")

    with calling(app, WRITER) as http:
        study = create(http)
        monkeypatch.setattr(Study, "pending", broken)
        got = study.get("pending", 500)
    assert got["type"] == "urn:alexp:internal-error"
    assert "broke" not in json.dumps(got)
    noted = next(json.loads(line) for line in lines if "unforeseen" in line)
    assert (noted["error"], noted["request"]) == ("KeyError", got["instance"].removeprefix("urn:uuid:"))
    assert "what broke" in noted["detail"]
    assert "hunter2" not in "".join(lines)


def test_the_password_of_the_storage_is_never_seen(lines):
    where = "postgresql://me:hunter2@127.0.0.1:1/db?connect_timeout=2"
    with calling(create_app(where, limits=FREE)) as http:
        for got in (http.get("/v1/studies"), http.get("/v1/studies/x"), http.post("/v1/studies", json={
            "name": "x", "problem": TABLE})):  # fmt: skip
            assert (got.status_code, got.json()["type"]) == (503, "urn:alexp:storage-unavailable")
            assert int(got.headers["retry-after"]) > 0
            assert "hunter2" not in got.text
        assert http.get("/healthz").status_code == 200
    assert "hunter2" not in "".join(lines)


def test_the_command_keeps_its_secrets(tmp_path):
    (tmp_path / "tokens").write_text(f"{WRITER}\n{READER} read\n")
    (tmp_path / "tokens").chmod(0o644)
    arguments = ["--storage", str(tmp_path / "s.db"), "--token-file", str(tmp_path / "tokens"), "--host", "0.0.0.0"]
    with process(*arguments, log=tmp_path / "log") as (_, address):
        address = address.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{address}/v1/studies").status_code == 401
        assert httpx.get(f"{address}/v1/studies", auth=("any", READER)).json() == {"studies": []}
    text = (tmp_path / "log").read_text()
    assert WRITER not in text
    assert READER not in text
    warned, *events = [json.loads(line)["event"] for line in text.splitlines()]
    assert "can be read by other users" in warned
    assert events == ["listening", "request", "request", "stopping"]


def test_a_wrong_storage_is_said_at_once(tmp_path):
    for storage in ("mysql://me:hunter2@host/db", str(tmp_path / "nowhere" / "s.db")):
        ended = CliRunner().invoke(command, ["serve", "--port", "0", "--storage", storage])
        assert ended.exit_code == 1
        assert ended.output.startswith("error: ")
        assert "hunter2" not in ended.output
