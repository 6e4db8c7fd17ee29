"""docs/service.md is one session in one shell: all of its blocks run, against the server that it starts itself."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_page_can_be_pasted_into_a_shell(tmp_path, port):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "alexp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m alexp "$@"\n')
    (tmp_path / "bin" / "alexp").chmod(0o755)
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    script = []
    for language, code in BLOCKS:
        if language == "bash":
            script.append(code)
        elif language == "js" and shutil.which("node") is not None:
            (tmp_path / "loop.mjs").write_text(code)
            script.append("STUDIES=$STUDIES TOKEN=$TOKEN node loop.mjs > node.txt\n")
    text = "\n".join(script).replace("8000", str(port))
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        ["bash", "-emuo", "pipefail", "-c", text],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert done.stdout.count('{"status": "ok"}') == 1
    assert sum(line.startswith('{"type": "urn:alexp:') for line in lines) == 3
    assert '"event": "stopping"' in lines[-1]
    assert (tmp_path / "trials.csv").read_text().startswith("trial,candidate,solvent,celsius")
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0
    if shutil.which("node") is not None:
        assert re.fullmatch(r"\w+, \d+ 4\n", (tmp_path / "node.txt").read_text())


def test_the_page_names_every_kind_of_problem():
    from alexp.service.problems import TABLE

    text = PAGE.read_text(encoding="utf-8")
    known = {kind.name for _, kind in TABLE} - {"log-contradicts-itself", "not-installed"}
    assert [name for name in known if f"`{name}`" not in text] == []
