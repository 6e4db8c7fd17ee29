"""The walk-throughs of docs/studies.md, executed as they stand there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from alexp.commands.study import app

DOCUMENT = Path(__file__).parents[2] / "docs" / "studies.md"


def blocks(heading):
    """(language, code) of every block in a section, in order."""
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"```(\w+)\n(.*?)```", section, flags=re.DOTALL)
    assert found, f"docs/studies.md has no code under {heading!r}"
    return found


def shell(line):
    """A line of a shell block: `alexp study` in this process, anything else by the shell."""
    if line.startswith("alexp study "):
        result = CliRunner().invoke(app, shlex.split(line)[2:])
        assert result.exit_code == 0, result.output
    else:
        subprocess.run(["bash", "-c", line], check=True, timeout=300)


def follow(heading):
    namespace = {}
    for language, code in blocks(heading):
        if language == "sh":
            for line in code.strip().splitlines():
                shell(line)
        elif script := re.match(r"# (\w+\.py)\n", code):
            Path(script[1]).write_text(code, encoding="utf-8")
        else:
            exec(compile(code, str(DOCUMENT), "exec"), namespace)


@pytest.fixture(autouse=True)
def fresh_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("ALEXP_STORAGE", raising=False)


def test_laboratory_with_csv_files(tmp_path):
    follow("Walk-through 1")
    assert (tmp_path / "report.html").exists()
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 25


def test_two_hosts_on_postgres(postgres, monkeypatch):
    monkeypatch.setenv("ALEXP_STORAGE", postgres)
    follow("Walk-through 2")


def test_watching_a_study(capsys):
    follow("Watching a study")
    assert "21 tell 10 0.9" in capsys.readouterr().out


def test_the_first_example(tmp_path):
    text = DOCUMENT.read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)[1]
    exec(compile(code, str(DOCUMENT), "exec"), {})
    assert (tmp_path / "alexp.db").exists()


def test_workers_that_may_die(monkeypatch):
    monkeypatch.setenv("ALEXP_WORKER", "")  # restored afterwards: the section sets it
    follow("Workers that may die")


def test_other_processes():
    from alexp.study import load_study

    from .conftest import new_study

    new_study("sqlite:///alexp.db")
    namespace = {}
    for _, code in blocks("Threads, forks and other processes"):
        exec(compile(code, str(DOCUMENT), "exec"), namespace)
    namespace["work"]("s")
    assert load_study("s").counts["told"] == 1


def test_contextual_studies():
    follow("Contextual studies")
