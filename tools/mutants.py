"""Do the tests notice? Break the code on purpose, one small change at a time, and run the tests that should fail.

`tools/mutants.json` lists the changes: `id`, `title`, `file`, `old` and `new` text, and optionally `tests` (files to
run first, most likely first), `occurrence` (which of several equal texts, from 1) and `reason` (why a change is known
to go unnoticed: "equivalent because ..."). Sources are never touched: an import hook in every process of the test run
compiles the changed text in place of the file. Machine code is kept in `.numba-cache`, and read from nowhere else: code
of functions that cannot depend on the changed module is shared by all mutants, all other code is made anew.

    python tools/mutants.py                      all of them, `make mutants`
    python tools/mutants.py --only T17 T19       some, by id
    python tools/mutants.py --files '*/theory/*' some, by file
    python tools/mutants.py --list               which there are, which no longer apply, and where their text may be now
    python tools/mutants.py --relocate           enter the new file where a text has moved unchanged
    python tools/mutants.py --out verdicts.jsonl --minutes 9    in pieces: repeat until nothing is open

`--out` appends a line of JSON for every verdict and for every step on the way, and continues where the file ends.
`--part 2/5` takes every fifth mutant, beginning with the second, for several machines.

Verdicts: killed (a test failed that passes on the unchanged tree, or time ran out), survived, stale (the old text is
not there any more: adapt the entry), invalid (the new text does not compile), open (`--minutes` were over). Tests that
fail on the unchanged tree as well are left out. The exit status is 0 when every mutant was killed or survives for a
stated reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "experiments")
LIST = Path(__file__).with_suffix(".json")

# Which tests could notice a change in a folder, most likely first; the longest prefix decides.
TESTS: dict[str, tuple[str, ...]] = {
    "src/alexp/problem": ("tests/problem", "tests/algorithms", "tests/study"),
    "src/alexp/estimation": ("tests/estimation", "tests/golden", "tests/algorithms", "tests/decision"),
    "src/alexp/decision": ("tests/decision", "tests/algorithms", "tests/theory", "tests/golden"),
    "src/alexp/gpu": ("tests/gpu", "tests/decision", "tests/study/test_devices.py", "tests/study/test_enumerated.py"),
    "src/alexp/algorithms": ("tests/algorithms", "tests/golden", "tests/study/test_study.py"),
    "src/alexp/theory": ("tests/theory", "tests/decision"),
    "src/alexp/study": ("tests/study",),
    "experiments": ("tests/experiments", "tests/bench"),
    "src/alexp/ope": ("tests/ope", "tests/experiments/test_evaluation_coverage.py"),
    "src/alexp/integrations": ("tests/integrations",),
    "src/alexp": ("tests",),
}

_AT_ONCE = 4  # files of tests in one run, once those that are likely to notice have passed
_SHARP = ("test_by_hand", "test_notice")  # files of exact values, the first to notice anything

_HOOK = '''
"""Compile the text named by the environment in place of one module."""
import importlib.machinery
import os
import sys


class _Changed(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        with open(os.environ["MUTANT_TEXT"], encoding="utf-8") as text:
            return compile(text.read(), self.path, "exec", dont_inherit=True)


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != os.environ.get("MUTANT_MODULE"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        spec.loader = _Changed(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)
'''


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    id: str
    title: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    occurrence: int | None = None
    reason: str = ""

    def text(self) -> str | None:
        """The changed file, or None if the entry is stale."""
        path = ROOT / self.file
        if not path.is_file():
            return None
        text = path.read_text(encoding="utf-8")
        places = [found.start() for found in re.finditer(re.escape(self.old), text)]
        if self.occurrence is None and len(places) != 1:
            return None
        which = (self.occurrence or 1) - 1
        if which >= len(places) or self.old == self.new:
            return None
        start = places[which]
        return text[:start] + self.new + text[start + len(self.old) :]

    @property
    def module(self) -> str:
        """Dotted name of the file."""
        parts = Path(self.file).with_suffix("").parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def digest(self) -> str:
        """Names the change: a verdict holds for it alone."""
        return hashlib.sha256(repr((self.file, self.text())).encode()).hexdigest()[:16]

    def stages(self) -> list[list[str]]:
        """Files of tests in the order in which they are worth running: the named ones, the exact ones, the rest."""
        prefixes = sorted((p for p in TESTS if self.file.startswith(p + "/")), key=len, reverse=True)
        files = list(dict.fromkeys(_files(TESTS[prefixes[0]] if prefixes else ("tests",))))
        named = list(dict.fromkeys(_files(self.tests)))
        home = str(Path(files[0]).parent)  # the folder most likely to notice
        exact = [file for file in files if Path(file).stem.startswith(_SHARP)]
        near, far = [f for f in exact if f.startswith(home)], [f for f in exact if not f.startswith(home)]
        stages, seen = [], set[str]()
        for stage in (named, near, far, *(files[i : i + _AT_ONCE] for i in range(0, len(files), _AT_ONCE))):
            stages.append([file for file in stage if file not in seen])
            seen.update(stage)
        return [stage for stage in stages if stage]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant, and by which test."""

    mutant: Mutant
    verdict: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def fine(self) -> bool:
        """Whether nobody has to look at it."""
        return self.verdict == "killed" or (self.verdict == "survived" and bool(self.mutant.reason))


def _files(places: Iterable[str]) -> Iterable[str]:
    for place in places:
        path = ROOT / place
        if path.is_dir():
            yield from (str(file.relative_to(ROOT)) for file in sorted(path.rglob("test_*.py")))
        elif path.is_file():
            yield place
        else:
            raise SystemExit(f"there are no tests at {place}; correct tools/mutants.json or TESTS in tools/mutants.py")


def _as_it_is(test: str) -> str:
    """A file of tests, and what is in it now."""
    return f"{test} {hashlib.sha256((ROOT / test).read_bytes()).hexdigest()[:12]}"


def load() -> list[Mutant]:
    """All entries of the list."""
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    mutants = [Mutant(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in entries]
    ids = [mutant.id for mutant in mutants]
    if len(set(ids)) != len(ids):
        raise SystemExit(f"ids must be distinct: {sorted({i for i in ids if ids.count(i) > 1})}")
    for mutant in mutants:
        list(_files(mutant.tests))  # a name that is wrong is found before anything runs
    return mutants


def sources() -> list[Path]:
    """All modules of the library and of its experiments."""
    return sorted(file for place in SOURCES for file in (ROOT / place).rglob("*.py"))


@cache
def _imports() -> dict[str, set[str]]:
    """Modules that each module of the library imports; `from a import b` may mean the module a.b."""
    files = {Mutant("", "", str(file.relative_to(ROOT)), "", "").module: file for file in sources()}
    found: dict[str, set[str]] = {}
    for module, file in files.items():
        names = set[str]()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
        found[module] = names & files.keys()
    return found


def dependents(module: str) -> set[str]:
    """The module, and all modules that import it directly or through others."""
    found, imports = {module}, _imports()
    while more := {name for name, used in imports.items() if used & found} - found:
        found |= more
    return found


class Code:
    """Machine code of the unchanged tree, kept from run to run.

    Its files are named "module.function-hash.nbc". A function of a module may be made of all that this module imports.
    One that is defined inside another function may be made of anything, and is never shared.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lend(self, changed: str, place: Path) -> None:
        """Link to a new folder what does not depend on the changed module."""
        self._link(self.folder, place, dependents(changed))

    def take_back(self, changed: str, place: Path) -> None:
        """Keep what was made beside that and does not depend on the changed module either."""
        self._link(place, self.folder, dependents(changed))

    @staticmethod
    def _link(source: Path, target: Path, without: set[str]) -> None:
        for file in source.glob("alexp-code-*/*.nbc"):
            module = file.name.rpartition("-")[0].rpartition(".")[0]
            if module in without or module not in _imports():
                continue
            new = target / file.relative_to(source)
            new.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.link(file, new)


class OutOfTime(Exception):
    """The minutes that were granted are over."""


class Log:
    """Verdicts and steps on the way as lines of JSON; a line that was cut off counts as missing."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._lines: list[dict[str, Any]] = []
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8")
            for line in text.splitlines():
                with contextlib.suppress(ValueError):
                    self._lines.append(json.loads(line))
            if not text.endswith("\n"):
                path.write_text(text + "\n", encoding="utf-8")

    def of(self, mutant: Mutant) -> tuple[Outcome | None, set[str]]:
        """The kill of a mutant, if there was one, and the tests, as they were, that have not noticed it."""
        lines = [line for line in self._lines if (line["id"], line["change"]) == (mutant.id, mutant.digest)]
        passed = {file for line in lines for file in line.get("passed", ())}
        for line in lines:
            if line.get("verdict") == "killed":
                return Outcome(mutant, "killed", line["detail"], line["seconds"]), passed
        return None, passed

    def write(self, mutant: Mutant, **facts: object) -> None:
        """Append what has become known."""
        if self._path is not None:
            line = json.dumps({"id": mutant.id, "change": mutant.digest, **facts})
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


class Runner:
    """Runs the tests against mutants; remembers which tests pass on the unchanged tree."""

    def __init__(self, scratch: Path, timeout: float, minutes: float = inf, log: Log | None = None) -> None:
        self.scratch, self.timeout, self.end = scratch, timeout, time.monotonic() + 60.0 * minutes
        (scratch / "hook").mkdir()
        (scratch / "hook" / "sitecustomize.py").write_text(_HOOK, encoding="utf-8")
        self.code, self.log = Code(scratch.parent), log or Log(None)
        self.sound: dict[str, bool] = {}
        self._lock = threading.Lock()

    def __call__(self, mutant: Mutant) -> Outcome:
        """Try one mutant."""
        began = time.monotonic()
        known, passed = self.log.of(mutant)
        if known is not None:
            return known
        try:
            verdict, detail = self._try(mutant, passed)
        except OutOfTime:
            return Outcome(mutant, "open")
        outcome = Outcome(mutant, verdict, detail, time.monotonic() - began)
        self.log.write(mutant, verdict=verdict, detail=detail, seconds=round(outcome.seconds, 1))
        return outcome

    def _try(self, mutant: Mutant, passed: set[str]) -> tuple[str, str]:
        text = mutant.text()
        if text is None:
            return "stale", "the old text is not there exactly once"
        try:
            compile(text, mutant.file, "exec")
        except SyntaxError as error:
            return "invalid", f"line {error.lineno}: {error.msg}"
        place = Path(tempfile.mkdtemp(prefix="mutant-", dir=self.scratch))
        (place / "text.py").write_text(text, encoding="utf-8")
        extra = {"MUTANT_MODULE": mutant.module, "MUTANT_TEXT": str(place / "text.py"), "NUMBA_CACHE_DIR": str(place)}
        try:
            for stage in mutant.stages():
                if stage := [file for file in stage if _as_it_is(file) not in passed]:
                    self.code.lend(mutant.module, place)
                    found = self._noticed(stage, extra)
                    self.code.take_back(mutant.module, place)
                    if found is not None:
                        return found
                    self.log.write(mutant, passed=[_as_it_is(file) for file in stage])
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return "survived", mutant.reason

    def _noticed(self, tests: Sequence[str], extra: dict[str, str]) -> tuple[str, str] | None:
        """The verdict, or None if all tests pass that pass on the unchanged tree."""
        while True:
            broken = [test for test, sound in self.sound.items() if not sound]
            chosen = [test for test in tests if test not in broken]
            if not chosen:
                return None
            code, output = self._pytest([*chosen, *(f"--deselect={test}" for test in broken if "::" in test)], extra)
            if code == 0 or (code == 5 and broken):  # 5: no test is left
                return None
            if code is None:
                return "killed", f"no end after {self.timeout:g} s"
            if code < 0:
                return "killed", f"{signal.Signals(-code).name} in {' '.join(chosen)}"
            found = re.search(r"^(?:FAILED|ERROR) ([^\s[]+)", output, re.MULTILINE)
            if code not in (1, 2) or found is None:
                return "error", f"pytest ended with {code}: {output.strip()[-200:]!r}"
            if self._passes_unchanged(found.group(1)):
                return "killed", found.group(1)

    def _passes_unchanged(self, test: str) -> bool:
        with self._lock:
            if test not in self.sound:
                self.sound[test] = self._pytest([test], {"NUMBA_CACHE_DIR": str(self.code.folder)})[0] == 0
            return self.sound[test]

    def _pytest(self, tests: Sequence[str], extra: dict[str, str]) -> tuple[int | None, str]:
        environment = {"OPENBLAS_NUM_THREADS": "1"} | os.environ | extra
        paths = [str(self.scratch / "hook"), *(str(ROOT / place) for place in SOURCES), str(ROOT)]
        environment["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rfE"]
        left = self.end - time.monotonic()
        if left <= 0.0:
            raise OutOfTime
        process = subprocess.Popen(
            [*command, *tests],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=min(self.timeout, left))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with everything the tests have started
            process.communicate()
            if left < self.timeout:
                raise OutOfTime from None
            return None, ""
        return process.returncode, output


def elsewhere(mutant: Mutant) -> list[str]:
    """Files that hold the old text of a stale mutant exactly once."""
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in sources()}
    return [file for file, text in texts.items() if file != mutant.file and text.count(mutant.old) == 1]


def hint(mutant: Mutant) -> str:
    """Where the text of a stale mutant may be now."""
    if moved := elsewhere(mutant):
        return f"moved to {' or '.join(moved)}"
    wanted = max(mutant.old.splitlines(), key=len).strip()
    room = ROOT.joinpath(*Path(mutant.file).parts[:3])
    best = (0.6, "nothing like it in the room")
    for file in sorted(room.rglob("*.py")) if room.is_dir() else [room]:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            blocks = difflib.SequenceMatcher(None, wanted, line.strip(), autojunk=False).get_matching_blocks()
            alike = sum(block.size for block in blocks if block.size > 3) / len(wanted)
            best = max(best, (alike, f"perhaps {file.relative_to(ROOT)}:{number}: {line.strip()}"))
    return best[1]


def relocate() -> None:
    """Enter the new file of every mutant whose text has moved to exactly one other place."""
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    for entry, mutant in zip(entries, load(), strict=True):
        if mutant.text() is None and len(moved := elsewhere(mutant)) == 1:
            print(f"{mutant.id}: {mutant.file} -> {moved[0]}")
            entry["file"] = moved[0]
    LIST.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def report(outcomes: Sequence[Outcome]) -> str:
    """Verdicts by folder, then everything that was not killed."""
    verdicts = ("killed", "survived", "stale", "invalid", "error", "open")
    folders: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        folder = "/".join(Path(outcome.mutant.file).parts[2:3])
        counts = folders.setdefault(folder, dict.fromkeys(verdicts, 0))
        counts[outcome.verdict] += 1
    lines = [f"{'folder':<14}" + "".join(f"{v:>10}" for v in verdicts)]
    for folder, counts in sorted(folders.items()):
        lines.append(f"{folder:<14}" + "".join(f"{counts[v]:>10}" for v in verdicts))
    totals = {v: sum(counts[v] for counts in folders.values()) for v in verdicts}
    lines.append(f"{'all':<14}" + "".join(f"{totals[v]:>10}" for v in verdicts))
    for verdict in verdicts[1:]:
        for outcome in outcomes if verdict != "open" else ():
            if outcome.verdict == verdict:
                reason = outcome.mutant.reason if verdict == "survived" else outcome.detail
                lines.append(f"{verdict}: {_label(outcome.mutant)}: {reason or 'NO REASON IS KNOWN'}")
    return "\n".join(lines)


def _label(mutant: Mutant) -> str:
    return f"{mutant.id} {mutant.title} ({mutant.file})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="ID", help="these mutants")
    parser.add_argument("--files", metavar="GLOB", help="mutants of files whose path matches")
    parser.add_argument("--jobs", type=int, default=2, help="test runs at the same time")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds until a mutant counts as killed")
    parser.add_argument("--part", metavar="K/N", help="every N-th mutant, beginning with the K-th")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file for verdicts; those in it are not looked for again"
    )
    parser.add_argument("--minutes", type=float, default=inf, help="stop then; --out lets the next call continue")
    parser.add_argument("--list", action="store_true", help="run nothing, say which mutants there are")
    parser.add_argument("--relocate", action="store_true", help="correct the files of mutants whose text has moved")
    chosen = parser.parse_args(arguments)
    if chosen.relocate:
        relocate()
    mutants = load()
    if unknown := set(chosen.only or ()) - {mutant.id for mutant in mutants}:
        raise SystemExit(f"no such mutants: {' '.join(sorted(unknown))}")
    mutants = [m for m in mutants if not chosen.only or m.id in chosen.only]
    mutants = [m for m in mutants if not chosen.files or fnmatch(m.file, chosen.files)]
    if chosen.part:
        k, n = map(int, chosen.part.split("/"))
        mutants = mutants[k - 1 :: n]
    if chosen.list or chosen.relocate:
        stale = [mutant for mutant in mutants if mutant.text() is None]
        for mutant in mutants:
            print(f"stale  {_label(mutant)}: {hint(mutant)}" if mutant in stale else f"ready  {_label(mutant)}")
        print(f"{len(mutants)} mutants, {len(stale)} stale")
        return 1 if stale else 0
    outcomes: list[Outcome] = []
    code = ROOT / ".numba-cache"
    code.mkdir(exist_ok=True)
    _imports()  # Python 3.11 cannot parse in several threads at once
    with (
        tempfile.TemporaryDirectory(prefix="run-", dir=code) as scratch,
        ThreadPoolExecutor(max(chosen.jobs, 1)) as pool,
    ):
        runner = Runner(Path(scratch), chosen.timeout, chosen.minutes, Log(chosen.out))
        for done in as_completed([pool.submit(runner, mutant) for mutant in mutants]):
            outcome = done.result()
            outcomes.append(outcome)
            if outcome.verdict == "open":
                continue
            line = f"{outcome.verdict:<9}{outcome.seconds:6.0f} s  {_label(outcome.mutant)}: {outcome.detail}"
            print(line, flush=True)
    outcomes.sort(key=lambda outcome: mutants.index(outcome.mutant))
    print()
    print(report(outcomes))
    for test in sorted(test for test, sound in runner.sound.items() if not sound):
        print(f"left out: {test} fails on the unchanged tree")
    return 0 if all(outcome.fine for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
