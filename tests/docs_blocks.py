"""Code blocks of the documentation: found, and run as a reader would run them.

The blocks of a page run in order, in one empty folder; those in Python share a namespace. A block of Python that begins
with a comment `# name.py` is a file, which is written and not run; later blocks run it. A block `text` with a title is
what the block before it prints, and a comment after a call of print is what that call prints; decimal numbers may
differ by rounding, and "..." stands for anything. Remarks before a block say what else there is to know:

    <!-- not run: why it cannot be -->
    <!-- slow: why it takes long -->        run by `make docs`, not by `make test`
    ```python title="needs baybe"           run where that library is installed
    <!-- postgres -->                       to the end of the section, ALEXP_STORAGE is an empty PostgreSQL database

Quickly, a line `alexp ...` of a shell block is run in this process; in full, every block is a script of Bash.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = {"sh", "bash", "console"}
PLAIN = {"", "text", "json", "toml", "csv", "yaml", "ini"}  # nothing to run
FOREIGN = {"js"}  # run by a test of their own; a remark says which

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>[^\n`]*)$")
_COMMENT = re.compile(r"^<!-- (not run|slow): (.+) -->$")


@dataclass(frozen=True)
class Block:
    """One block: where it is, what it says, and how it is to be run."""

    page: str
    line: int  # of its first line of code
    language: str
    code: str
    skipped: str = ""
    slow: str = ""
    postgres: bool = False
    prints: str | None = None
    needs: str = ""  # a library that is not among ours; where it is missing, the block is only read

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def runs(self):
        return self.language not in PLAIN and not self.skipped and (not self.needs or bool(find_spec(self.needs)))

    @property
    def file(self):
        found = re.match(r"# (\w+\.py)\n", self.code)
        return found[1] if self.language == "python" and found else None

    @property
    def beside_prints(self):
        """Comments after calls of print, by the first and last line of the call on the page."""
        if self.language != "python":
            return {}
        tokens = tokenize.generate_tokens(io.StringIO(self.code).readline)
        comments = {token.start[0]: token.string[1:].strip() for token in tokens if token.type == tokenize.COMMENT}
        calls = [
            node
            for node in ast.walk(ast.parse(self.code))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print" and node.end_lineno in comments
        ]
        above = self.line - 1
        return {(above + call.lineno, above + call.end_lineno): comments[call.end_lineno] for call in calls}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks_of(path):
    """All fenced blocks of a page; one that cannot be read as such is an error."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found, level, postgres, at, remarks = [], 1, 0, 0, {}  # levels of headings; 0 for none
    while at < len(lines):
        line = lines[at]
        if heading := re.match(r"(#+) ", line):
            level = len(heading[1])
            postgres = postgres if level > postgres else 0
        elif line.strip() == "<!-- postgres -->":
            postgres = level
        elif comment := _COMMENT.match(line.strip()):
            remarks[comment[1]] = comment[2]
        elif line.lstrip().startswith("```"):
            opened = _FENCE.match(line)
            assert opened, f"{name_of(path)}:{at + 1} is not a fence"
            assert not opened["indent"], f"{name_of(path)}:{at + 1}: an indented block is not run; do not indent it"
            start = at + 1
            at = next((i for i in range(start, len(lines)) if lines[i] == "```"), len(lines))
            assert at < len(lines), f"{name_of(path)}:{start} is never closed"
            code = "".join(f"{line}\n" for line in lines[start:at])
            if opened["language"] == "text" and "title=" in opened["rest"] and found:
                found[-1] = Block(**{**vars(found[-1]), "prints": code})
            else:
                reasons = (remarks.get("not run", ""), remarks.get("slow", ""))
                needs = "".join(re.findall(r'title="needs (\w+)"', opened["rest"]))
                where = (name_of(path), start + 1, opened["language"])
                found.append(Block(*where, code, *reasons, postgres > 0, needs=needs))
            remarks = {}
        elif line.strip():
            assert not remarks, f"{name_of(path)}:{at + 1}: the remark above belongs to no block"
        at += 1
    return found


@dataclass
class Reader:
    """Somebody who copies the blocks of a page one after the other.

    Attributes
    ----------
    full : whether to run slow blocks, too, and shell blocks by Bash only.
    postgres : called for the URL of an empty database, where a page needs one.
    namespace : what the blocks in Python have defined so far.
    printed : what the blocks have printed so far.
    promised : comments after calls of print in the blocks so far, by first and last line of the call.
    kept : lines of the calls that have printed what their comments say.
    """

    full: bool
    postgres: object
    namespace: dict = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""
    storage: str | None = None
    promised: dict = field(default_factory=dict)
    kept: set = field(default_factory=set)

    def read(self, blocks):
        """Run what is to be run; what a block promises to print, it must print."""
        self.namespace["print"] = self.show
        try:
            for block in blocks:
                if not block.runs:
                    self.look_at(block)
                elif self.full or not block.slow:
                    self.follow(block)
        finally:
            for process in self.namespace.values():  # servers that a page has started, and did not come to stop
                if isinstance(process, subprocess.Popen) and process.poll() is None:
                    process.kill()
        missing = {lines: text for lines, text in self.promised.items() if lines not in self.kept}
        assert not missing, f"never printed: {missing}"
        return self

    def show(self, *values, **options):
        """`print` of the blocks: what it prints is what the comment beside it says."""
        line, out = sys._getframe(1).f_lineno, io.StringIO()
        print(*values, **{"file": out} | options)
        for (first, last), text in self.promised.items():
            if first <= line <= last:
                assert alike(text, out.getvalue()), f"line {line} prints\n{out.getvalue()}\nand not\n{text}"
                self.kept.add((first, last))
        sys.stdout.write(out.getvalue())

    def look_at(self, block):
        """What is not run can be read at least."""
        if block.language == "toml":
            tomllib.loads(block.code)
        elif block.language == "json":
            json.loads(block.code)

    def follow(self, block):
        with self.stored(block):
            if block.file:
                assert not block.beside_prints, f"{block.place}: what a file prints is shown by the block that runs it"
                Path(block.file).write_text(block.code, encoding="utf-8")
                return
            printed = self.python(block) if block.language == "python" else self.shell(block)
        self.printed += printed
        if block.prints is not None:
            assert alike(block.prints, printed), f"{block.place} prints\n{printed}\nand not\n{block.prints}"

    @contextlib.contextmanager
    def stored(self, block):
        """ALEXP_STORAGE while a block runs."""
        if not block.postgres:
            yield
            return
        self.storage = self.storage or self.postgres()
        os.environ["ALEXP_STORAGE"] = self.storage
        try:
            yield
        finally:
            del os.environ["ALEXP_STORAGE"]

    def python(self, block):
        assert block.language == "python", f"{block.place}: nobody knows how to run {block.language!r}"
        self.promised |= block.beside_prints
        code = compile("\n" * (block.line - 1) + block.code, str(ROOT / block.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.namespace)
        return out.getvalue()

    def shell(self, block):
        assert block.language in SHELL, f"{block.place}: nobody knows how to run {block.language!r}"
        if self.full:
            return bash(block.code, block.place)
        commands = block.code.replace("\\\n", " ").splitlines()
        return "".join(self.command(line, block.place) for line in commands if line.strip())

    def command(self, line, place):
        """A line of its own: `alexp` in this process, which has everything compiled; anything else by Bash."""
        words = shlex.split(line, comments=True)
        if not words or words[0] != "alexp" or re.search(r"[|&;<>$]", line):
            return bash(line, place)
        from typer.testing import CliRunner

        from alexp.cli import app

        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{place}: {line}\n{result.output}"
        return result.output


def alike(promised, printed):
    """Whether a text is what was promised."""
    parts = re.split(r"(\.\.\.|-?\d+\.\d+)", promised.rstrip())
    kinds = {"...": ".*"}
    pattern = "".join(kinds.get(part, r"(-?\d+\.\d+)") if i % 2 else re.escape(part) for i, part in enumerate(parts))
    found = re.fullmatch(pattern, printed.rstrip(), flags=re.S)
    numbers = [float(part) for part in parts[1::2] if part != "..."]
    return found is not None and all(
        math.isclose(number, float(other), rel_tol=0.05, abs_tol=0.01)
        for number, other in zip(numbers, found.groups(), strict=True)
    )


def bash(script, place, seconds=300):
    """What a script prints; processes it has left behind are ended."""
    with tempfile.TemporaryFile("w+") as out:  # a pipe would stay open as long as they do
        command = ["bash", "-euo", "pipefail", "-c", script]
        running = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            running.wait(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
        out.seek(0)
        printed = out.read()
    assert running.returncode == 0, f"{place}: {printed}"
    return printed
