"""The files in deploy/, with the programs they are for, which `make deploy-tools` installs; else they are skipped."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.service.serving import TABLE, WRITER, client, create, process

DEPLOY = Path(__file__).parents[2] / "deploy"


def needs(*programs):
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed: make deploy-tools")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def behind(tmp_path):
    """A service that trusts a proxy on this host, with a low rate, and its port."""
    tokens, log = tmp_path / "tokens", tmp_path / "log"
    tokens.write_text(f"{WRITER}\n")
    tokens.chmod(0o600)
    arguments = ("--storage", f"sqlite:///{tmp_path / 's.db'}", "--token-file", str(tokens), "--proxy", "127.0.0.1")
    with process(*arguments, log=log) as (_, address):
        yield int(address.rpartition(":")[2]), log


@contextmanager
def running(*command, port, **more):
    with subprocess.Popen([str(word) for word in command], **more) as program:
        try:
            deadline = time.monotonic() + 30.0
            while True:
                with socket.socket() as one:
                    if one.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert program.poll() is None, "it stopped"
                assert time.monotonic() < deadline, "it does not listen"
                time.sleep(0.05)
            yield
        finally:
            program.terminate()


def check_through(address, log, verify=True):
    """A study, its events as they happen, and the caller's own address, through a proxy."""
    transport = httpx.HTTPTransport(local_address="127.0.0.2", verify=verify)
    with client(address, WRITER, transport=transport) as http:
        http.headers["Host"] = "lab.example.org"
        study = create(http, "a study", problem=TABLE)
        with http.stream("GET", "/v1/studies/a study/events?since=0") as events:
            lines = events.iter_lines()
            assert next(lines) == "retry: 2000"
            study.post("ask")
            asked = next(line for line in lines if line.startswith("data:"))
            assert json.loads(asked.removeprefix("data:"))["kind"] == "ask"
        too_large = http.post("/v1/studies", content=b"x" * 33 * 2**20, headers={"Content-Type": "application/json"})
        assert too_large.status_code in {413, 502}  # Caddy says 502 when it is refused before it has sent all
    clients = {json.loads(line).get("client") for line in log.read_text().splitlines()} - {None}
    assert clients == {"127.0.0.2"}


@needs("nginx")
def test_nginx(tmp_path, behind):
    port, log = behind
    public, key = _certificate(tmp_path)
    listen = free_port()
    site = (DEPLOY / "nginx.conf").read_text().replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{listen} ssl")
    site = site.replace("/etc/ssl/lab.example.org.pem", str(public)).replace("/etc/ssl/lab.example.org.key", str(key))
    folders = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}\n"
        f"http {{ access_log off; {folders}\n{site}\n}}\n"
    )
    command = ("nginx", "-p", tmp_path, "-e", tmp_path / "error.log", "-c", tmp_path / "nginx.conf")
    with running(*command, port=listen):
        check_through(f"https://127.0.0.1:{listen}", log, verify=_trusting(public))


@needs("caddy")
def test_caddy(tmp_path, behind):
    port, log = behind
    listen = free_port()
    site = (DEPLOY / "Caddyfile").read_text().replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    site = site.replace("lab.example.org {", f"http://lab.example.org:{listen} {{")  # no certificate authority here
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + site)
    environment = os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    command = ("caddy", "run", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile")
    with running(*command, port=listen, env=environment, stderr=subprocess.DEVNULL):
        check_through(f"http://127.0.0.1:{listen}", log)


def _certificate(folder):
    public, key = folder / "site.pem", folder / "site.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=lab.example.org"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", public]
    subprocess.run(command, check=True, capture_output=True)
    return public, key


def _trusting(public):
    return ssl.create_default_context(cafile=str(public))


@needs("systemd-analyze")
def test_systemd(tmp_path):
    program = tmp_path / "alexp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "alexp.service"
    unit.write_text((DEPLOY / "alexp.service").read_text().replace("/opt/alexp/bin/alexp", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    about_us = [line for line in done.stderr.splitlines() if "alexp" in line]
    assert (done.returncode, about_us) == (0, [])
    arguments = next(line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")).split()[2:]
    shown = subprocess.run([sys.executable, "-m", "alexp", "serve", "--help"], capture_output=True, text=True).stdout
    assert all(word in shown for word in arguments if word.startswith("--"))


def test_the_compose_file():
    """Names of the parts agree with each other and with the Containerfile."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    ours, database = services["services"]["alexp"], services["services"]["database"]
    lines = (DEPLOY / "Containerfile").read_text()
    assert ours["build"]["dockerfile"] == "deploy/Containerfile"
    assert f"/run/secrets/{ours['secrets'][0]}" in lines
    assert f"EXPOSE {ours['ports'][0].rpartition(':')[2]}" in lines
    url = ours["environment"]["ALEXP_STORAGE"].replace("${POSTGRES_PASSWORD:?write it into deploy/.env}", "secret")
    user = database["environment"]["POSTGRES_USER"]
    assert url == f"postgresql://{user}:secret@{next(iter(ours['depends_on']))}/{user}"


@needs("buildah", "mmdebstrap")
def test_the_container(tmp_path):
    """The image is built as the Containerfile says, on a base of Debian's packages, and serves."""
    if os.getuid() != 0:
        pytest.skip("building an image needs a user who may mount")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", DEPLOY.parent], check=True)
    base = tmp_path / "base.tar"
    subprocess.run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            "--include=python3,python3-venv,ca-certificates",
            "bookworm",
            base,
        ],
        check=True,
    )
    store = ["--root", str(tmp_path / "store"), "--runroot", str(tmp_path / "run"), "--storage-driver", "vfs"]
    (tmp_path / "Base").write_text(f"FROM scratch\nADD {base.name} /\n")
    build = ["buildah", *store, "bud", "--quiet", "--isolation", "chroot", "--network", "host"]
    subprocess.run([*build, "--tag", "base", "--file", tmp_path / "Base", tmp_path], check=True)
    base.unlink()
    image = ["--build-arg", "BASE=localhost/base", "--tag", "alexp", "--file", DEPLOY / "Containerfile", tmp_path]
    subprocess.run([*build, *_pip_settings(), *image], check=True)
    name = subprocess.run(
        ["buildah", *store, "from", "localhost/alexp"], check=True, capture_output=True, text=True
    ).stdout.strip()
    tokens, port = tmp_path / "tokens", free_port()
    tokens.write_text(f"{WRITER}\n")
    tokens.chmod(0o644)
    run = ["buildah", *store, "run", "--isolation", "chroot", "--network", "host"]
    run += ["--volume", f"{tokens}:/run/secrets/alexp-tokens:ro", name]
    entry = next(line for line in (DEPLOY / "Containerfile").read_text().splitlines() if line.startswith("ENTRYPOINT"))
    with (tmp_path / "log").open("wb") as log:
        command = [*run, *json.loads(entry.removeprefix("ENTRYPOINT")), "--port", str(port)]
        with running(*command, port=port, stderr=log, stdout=log), client(f"http://127.0.0.1:{port}", WRITER) as http:
            create(http).post("ask")
            assert http.get("/readyz").json() == {"status": "ok"}
            assert httpx.get(f"http://127.0.0.1:{port}/v1/studies").status_code == 401
            who = subprocess.run([*run, "id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
            assert who == "alexp"


def _pip_settings():
    """Settings of pip on this host, for the build: a mirror or a certificate."""
    given = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name == "SSL_CERT_FILE"}
    return [word for name, value in given.items() for word in ("--env", f"{name}={value}")]
