"""Too many, too large and too slow: others are still served, and memory and log stay bounded."""

import json
import logging
import socket
import time
import zipfile
from base64 import b64encode
from contextlib import ExitStack, suppress
from io import StringIO

import httpx
import pytest
from starlette.responses import StreamingResponse

from alexp.service import Limits, Tokens
from alexp.service.monitoring import LOG, JsonLines, SparingHandler
from alexp.service.security import _ValueCounter
from tests.service.serving import FREE, READER, TOKENS, WRITER, client, create, process, serving

LARGE = {"kind": "table", "csv": "x\n" + "".join(f"{k}\n" for k in range(100, 200))}
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


def connect(address, timeout=10.0):
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=timeout)


def answered(line):
    """Whether a connection still answers a request."""
    try:
        line.sendall(REQUEST + b"\r\n")
        return line.recv(4096).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def is_closed(line):
    try:
        return line.recv(4096) == b""
    except ConnectionError:
        return True


def limits(**more):
    return Limits(**({"rate": 0.0} | more))


# -- connections -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beginning", [b"", b"GE", REQUEST + b"X-Slow: "])
def test_headers_must_arrive_in_time(tmp_path, beginning):
    with serving(tmp_path / "s.db", limits=limits(patience=0.5)) as (address, _), connect(address) as line:
        line.sendall(beginning)
        assert is_closed(line)


def test_the_headers_of_a_second_request_must_arrive_in_time(tmp_path):
    with serving(tmp_path / "s.db", limits=limits(patience=0.5)) as (address, _), connect(address) as line:
        for _ in range(4):
            time.sleep(0.3)
            assert answered(line)
        line.sendall(REQUEST)
        assert is_closed(line)


def test_headers_may_not_be_endless(tmp_path):
    with serving(tmp_path / "s.db") as (address, _), connect(address) as line:
        sent = 0
        with suppress(ConnectionError):
            line.sendall(REQUEST)
            while sent < 50_000_000:
                line.sendall(b"X-More: " + b"x" * 10_000 + b"\r\n")
                sent += 10_000
        assert sent < 5_000_000  # what fits into the buffers of the system


def test_slow_connections_keep_nobody_out(tmp_path):
    with serving(tmp_path / "s.db", limits=limits(connections=20)) as (address, _), ExitStack() as stack:
        mine = stack.enter_context(client(address))
        create(mine)
        slow = []
        for _ in range(100):
            line = stack.enter_context(connect(address))
            line.sendall(REQUEST)
            slow.append(line)
        assert httpx.get(f"{address}/healthz").status_code == 200
        assert all(is_closed(line) for line in slow[:80])
        slow[-1].sendall(b"\r\n")
        assert slow[-1].recv(4096).startswith(b"HTTP/1.1 200 ")
        with suppress(httpx.RemoteProtocolError):  # my connection was idle for longest
            mine.get("/healthz")
        assert mine.get("/v1/studies/s").status_code == 200


def test_requests_sent_ahead_are_few(tmp_path):
    with serving(tmp_path / "s.db") as (address, _):
        for number, expected in ((10, {10}), (2000, set(range(1000)))):
            with connect(address, timeout=2.0) as line:
                line.sendall((REQUEST + b"\r\n") * number)
                got = b""
                with suppress(OSError):
                    while part := line.recv(65536):
                        got += part
                assert got.count(b"HTTP/1.1 200 ") in expected
        assert httpx.get(f"{address}/healthz").status_code == 200


@pytest.mark.parametrize("parts", [1, 200])
@pytest.mark.parametrize("reads", [False, True])
def test_answers_must_be_read_but_not_fast(tmp_path, reads, parts):
    size, got = 20_000_000, 0
    with serving(tmp_path / "s.db", limits=limits(patience=0.5)) as (address, app), connect(address) as line:
        app.add_api_route("/large", lambda: StreamingResponse(b"x" * (size // parts) for _ in range(parts)))
        line.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.0 if reads else 2.0)
        with suppress(OSError):
            while got < size and (part := line.recv(65536)):
                got += len(part)
                time.sleep(0.01 if reads else 0.0)  # some three seconds in all
    assert (got >= size) == reads


# -- bodies ----------------------------------------------------------------------------------------------------


def first_answer(address, head, parts):
    """The answer to a request whose body never ends."""
    with connect(address) as line:
        line.sendall(head + b"Host: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        line.settimeout(0.05)
        for part in parts:
            with suppress(TimeoutError):
                return line.recv(4096)
            try:
                line.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            except ConnectionError:
                return b"closed"
    return b"nothing"


def test_requests_without_a_body_have_none(tmp_path):
    with serving(tmp_path / "s.db", tokens=TOKENS) as (address, _):
        for path in (b"/healthz", b"/readyz"):
            got = first_answer(address, b"GET " + path + b" HTTP/1.1\r\n", [b"x" * 1000] * 50)
            assert got.startswith(b"HTTP/1.1 413 ")
            assert b"connection: close" in got.lower()
        assert httpx.request("GET", f"{address}/healthz", content=b"1").status_code == 413


def test_json_of_many_values_is_refused_while_it_arrives(tmp_path):
    with serving(tmp_path / "s.db", limits=limits(values=10_000)) as (address, _), client(address) as http:
        got = first_answer(address, b"POST /v1/studies HTTP/1.1\r\n", [b"[" + b"1," * 500] * 1000)
        assert got.startswith(b"HTTP/1.1 413 ")
        text = "x\n" + "1,2\n" * 20_000  # one value
        got = http.post("/v1/tables/preview", json={"csv": text})
        assert "values" not in got.text
        got = http.post("/v1/tables/preview", json={"columns": {"x": [1] * 10_000}})
        assert (got.status_code, got.json()["type"]) == (413, "urn:alexp:too-large")
        assert "at most 10000 values; send a table as a file" in got.json()["detail"]


def parquet_of_zeros(path):
    from pyarrow import array, parquet, table

    rows = table({"x": array([0.0] * 1_000_000)})
    with parquet.ParquetWriter(path, rows.schema) as writer:
        for _ in range(11):
            writer.write_table(rows)


def workbook_of_zeros(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 170_000_000)


@pytest.mark.parametrize("written", [parquet_of_zeros, workbook_of_zeros])
def test_files_that_unpack_to_very_many_cells_are_not_unpacked(tmp_path, written):
    written(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    assert len(content) < 1_000_000
    file = {"name": "small", "content": b64encode(content).decode()}
    with serving(tmp_path / "s.db") as (address, _), client(address) as http:
        for route, body in (("/v1/tables/preview", {"kind": "table", "file": file}), ("/v1/studies", None)):
            got = http.post(route, json=body or {"name": "s", "problem": {"kind": "table", "file": file}})
            assert got.status_code == 422
            assert "cells; this service takes at most 10000000" in got.json()["detail"]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("policy", {f"f{k}": 1 for k in range(200_000)}),
        ("ask", {"ids": [None] * 200_000}),
        ("tell", {"results": [{"trial": 0, "rewrad": 1}] * 90_000}),
        ("learn", {"memory": {f"f{k}": 1 for k in range(200_000)}}),
    ],
)
def test_many_wrong_values_are_counted_not_listed(tmp_path, route, body):
    with serving(tmp_path / "s.db") as (address, _), client(address) as http:
        got = http.post(f"/v1/studies/none/{route}", json=body)
    assert (got.status_code, got.json()["type"]) == (422, "urn:alexp:invalid")
    assert "values or names of fields are wrong" in got.json()["detail"]
    assert "errors" not in got.json()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    "text", [r'{"a": [1, {"b": 2}]}', r'["\\", "\"", ",[", "\\\",", {}]', r'["\\\\" , 1]', "[" * 9]
)
def test_values_are_counted_outside_of_strings(text, size):
    expected, is_inside, is_escaped = 0, False, False
    for c in text:  # the obvious way
        if is_inside and not is_escaped and c == "\\":
            is_escaped = True
            continue
        if c == '"' and not is_escaped:
            is_inside = not is_inside
        expected += not is_inside and c in ",[{"
        is_escaped = False
    counter = _ValueCounter()
    assert [counter.after(text[k : k + size].encode()) for k in range(0, len(text), size)][-1] == expected


def test_all_bodies_together_are_bounded(tmp_path):
    with serving(tmp_path / "s.db", limits=limits(bodies=3000)) as (address, _), ExitStack() as stack:
        for _ in range(2):
            line = stack.enter_context(connect(address))
            line.sendall(b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
            line.sendall(b"Content-Length: 2000\r\n\r\n" + b'"' * 1400)
        time.sleep(0.3)
        http = stack.enter_context(client(address))
        got = http.post("/v1/tables/preview", json=LARGE)
        assert (got.status_code, got.json()["type"], got.headers["retry-after"]) == (503, "urn:alexp:busy", "5")
        stack.pop_all().close()
        time.sleep(0.3)
    with serving(tmp_path / "s.db", limits=limits(bodies=3000)) as (address, _), client(address) as http:
        for _ in range(20):  # what was answered is not held any more
            assert http.post("/v1/tables/preview", json=LARGE).status_code == 200


# -- studies and streams ---------------------------------------------------------------------------------------


def test_created_studies_are_not_all_held_open(tmp_path):
    with serving(tmp_path / "s.db", limits=limits(open_studies=2)) as (address, app), client(address) as http:
        for k in range(6):
            create(http, f"s{k}")
        assert len(app.state.studies._open) == 2


def test_open_studies_share_the_memory(tmp_path):
    large = {"kind": "interval", "models": {"family": "legendre", "degree": 20, "size": 3}}  # 1,330 models: 0.8 MB
    with serving(tmp_path / "s.db", limits=limits(memory=2e6)) as (address, app), client(address) as http:
        for k in range(4):
            create(http, f"s{k}", problem=large)
        studies = app.state.studies
        assert 1 <= len(studies._open) <= 2
        with studies.room_for(1.9e6):
            got = create(http, "more", problem=large, status=503)
            assert got["type"] == "urn:alexp:busy"
        create(http, "more", problem=large)
        assert studies._reserved == 0.0


def test_one_reader_does_not_take_all_streams(tmp_path):
    with serving(tmp_path / "s.db", limits=limits(streams=8), tokens=TOKENS) as (address, _), ExitStack() as stack:
        writer, reader = (stack.enter_context(client(address, token)) for token in (WRITER, READER))
        create(writer)
        events = "/v1/studies/s/events"
        kept = [stack.enter_context(reader.stream("GET", events)).iter_lines() for _ in range(2)]
        assert [next(lines) for lines in kept] == ["retry: 2000"] * 2
        with reader.stream("GET", events) as got:
            assert got.status_code == 503
            assert json.loads(got.read())["type"] == "urn:alexp:too-many-streams"
        assert stack.enter_context(writer.stream("GET", events)).status_code == 200


# -- log -------------------------------------------------------------------------------------------------------


def test_strangers_cannot_fill_the_log(tmp_path):
    log = tmp_path / "log"
    (tmp_path / "tokens").write_text(f"{WRITER}\n")
    arguments = ("--storage", f"sqlite:///{tmp_path / 's.db'}", "--token-file", str(tmp_path / "tokens"), "--rate", "0")
    with process(*arguments, log=log) as (_, address):
        with httpx.Client(base_url=address) as stranger:
            for _ in range(300):
                assert stranger.get("/v1/studies").status_code == 401
        for _ in range(100):
            with connect(address) as line:
                line.sendall(b"no request\r\n\r\n")
                line.recv(100)
        with client(address, WRITER) as http:
            for _ in range(50):
                assert http.get("/v1/studies/none").status_code == 404
        time.sleep(1.1)
        assert httpx.get(f"{address}/v1/studies").status_code == 401
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(line.get("holder") == "token 1" for line in lines) == 50  # those with a token are all there
    strangers = [line for line in lines if line.get("status") == 401 or line["event"].startswith("Invalid HTTP")]
    left_out = sum(line["number"] for line in lines if line["event"] == "lines left out")
    assert len(strangers) + left_out == 401
    assert left_out > 0


def test_lines_are_left_out_by_the_second(monkeypatch):
    stream = StringIO()
    handler = SparingHandler(stream)
    handler.setFormatter(JsonLines())
    for second, number in ((100.0, 25), (101.0, 3)):
        for _ in range(number):
            record = LOG.makeRecord(LOG.name, logging.INFO, "", 0, "request", (), None)
            record.created, record.fields = second, {"problem": "no-token"}
            handler.emit(record)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [one["event"] for one in events] == ["request"] * 20 + ["lines left out"] + ["request"] * 3
    assert events[20]["number"] == 5


# -- who calls -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("proxies", "expected"), [([], {200, 429}), (["--proxy", "127.0.0.1"], {200})])
def test_only_a_proxy_says_for_whom_it_calls(tmp_path, proxies, expected):
    arguments = ("--storage", f"sqlite:///{tmp_path / 's.db'}", "--rate", "1", *proxies)
    with process(*arguments, log=tmp_path / "log") as (_, address), client(address) as http:
        got = {http.get("/healthz", headers={"X-Forwarded-For": f"203.0.113.{k}"}).status_code for k in range(20)}
    assert got == expected


def test_tokens_change_without_a_restart(tmp_path, caplog):
    path, new = tmp_path / "tokens", "new-token-0123456789"
    path.write_text(f"{WRITER}\n")
    tokens = Tokens.from_file(path)
    with serving(tmp_path / "s.db", tokens=tokens, limits=FREE) as (address, _), ExitStack() as stack:
        old, other = (stack.enter_context(client(address, token)) for token in (WRITER, new))

        def statuses():
            return old.get("/v1/studies").status_code, other.get("/v1/studies").status_code

        assert statuses() == (200, 401)
        path.write_text(f"{WRITER}\n{new} read\n")
        assert statuses() == (200, 200)
        assert other.delete("/v1/studies/none").status_code == 403
        for wrong in ("short\n", ""):
            path.write_text(wrong)
            assert statuses() == (200, 200)
        path.unlink()
        assert statuses() == (200, 200)
        assert "cannot be read" in caplog.text
        assert "short" not in caplog.text
        path.write_text(f"{new}\n")
        assert statuses() == (401, 200)


def test_the_page_of_routes_has_them_all_and_no_script(tmp_path):
    with serving(tmp_path / "s.db") as (address, app), client(address) as http:
        got = http.get("/docs")
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in got.text
    assert "<script" not in got.text
    assert "Idempotency key of your choice" in got.text
