"""A real server in a thread or in a process of its own, and bodies that tests send to it."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

from alexp.service import Limits, create_app
from alexp.service.server import make_server

WRITER, READER = "writer-0123456789abcdef", "reader-0123456789abcdef"
TOKENS = {WRITER: "write", READER: "read"}
FREE = Limits(rate=0.0)

TABLE = {
    "kind": "table",
    "csv": "solvent,celsius\n" + "".join(f"{s},{t}\n" for s in ("water", "ethanol", "dmf") for t in (20, 40, 60)),
    "models": {"solvent": ["solvent"], "both": ["solvent", "celsius"]},
    "kernels": "linear",
}
INTERVAL = {
    "kind": "interval",
    "resolution": 21,
    "models": {"family": "legendre", "degree": 3, "size": 2},
}
ARMS = {"kind": "arms", "arms": ["low", "mid", "high"], "features": {"short": [0], "long": [0, 1]}}
BLOCKS = {"kind": "candidates", "blocks": {"user": 2, "item": 1}}
CROSSED = {"kind": "candidates", "crossed": {"context": ["age"], "action": ["dose"]}}


@contextmanager
def serving(storage, host="127.0.0.1", grace=10, **more):
    """The address of a server in a thread of this process, and its application; it is stopped gracefully."""
    app = create_app(storage, **({"limits": FREE} | more))
    server = make_server(app, host, 0, grace)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20.0
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.005)
    try:
        yield f"http://{host}:{server.servers[0].sockets[0].getsockname()[1]}", app
    finally:
        server.should_exit = True
        thread.join(20.0)
        assert not thread.is_alive(), "the server did not stop"


@contextmanager
def process(*arguments, log):
    """`alexp serve` with these arguments in a process of its own, and its address once it listens."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "alexp", "serve", "--port", "0", *arguments]
    with Path(log).open("wb") as output:
        running = subprocess.Popen(command, stderr=output, stdout=output, env=environment)
    try:
        yield running, listening(running, Path(log))
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGTERM)
        try:
            running.wait(20.0)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def listening(running, log):
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if '"listening"' in line:
                return line.partition('"url": "')[2].partition('"')[0]
        assert running.poll() is None, log.read_text()
        time.sleep(0.02)
    raise AssertionError("the server did not listen")


class Caller:
    """Calls of one study."""

    def __init__(self, http, name):
        self.http, self.base = http, f"/v1/studies/{name}"

    def post(self, what, status=200, /, headers=None, **body):
        return self._checked(self.http.post(f"{self.base}/{what}", json=body, headers=headers), status)

    def get(self, what="", status=200, /, **query):
        return self._checked(self.http.get(f"{self.base}/{what}".rstrip("/"), params=query), status)

    def _checked(self, got, status):
        assert got.status_code == status, got.text
        if status >= 400:
            assert got.headers["content-type"] == "application/problem+json"
        return got.json()


def create(http, name="s", problem=None, status=201, **more):
    body = {"name": name, "problem": problem or TABLE, "random_state": 0} | more
    got = http.post("/v1/studies", json=body)
    assert got.status_code == status, got.text
    return Caller(http, name) if status < 300 else got.json()


def client(address, token=None, **more):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=address, headers=headers, timeout=60.0, **more)
