"""Do the tests notice? Break the code on purpose, one small change at a time, and run the tests that should fail.

`tools/mutants.json` lists the changes: `id`, `title`, `file`, `old` and `new` text, and optionally `tests` (files that
are likely to notice), `occurrence` (which of several equal texts, from 1) and `reason` (why a change is known to go
unnoticed: "equivalent because ..."). Sources are never touched: an import hook in every process of the test run
compiles the changed text in place of the file. Machine code is kept in `.numba-cache`, and read from nowhere else: code
of functions that cannot depend on the changed module is shared by all mutants, all other code is made anew.

    python tools/mutants.py --survey --jobs 2    first: run all tests once and record which test executes what
    python tools/mutants.py                      all mutants, `make mutants`
    python tools/mutants.py --only T17 T19       some, by id
    python tools/mutants.py --files '*/theory/*' some, by file
    python tools/mutants.py --list               which there are, which no longer apply, and where their text may be now
    python tools/mutants.py --relocate           enter the new file where a text has moved unchanged
    python tools/mutants.py --out verdicts.jsonl --minutes 9    in pieces: repeat until nothing is open

For a mutant the tests run that execute the changed statement, up to `--seconds` of them: first the test that killed it
last time (tools/mutants-killers.json, written by `--keep-killers`), then those of the room and of the files that the
entry names, then others. Compiled functions, constants and class bodies are not seen in the survey: there it is the
tests of the room and of those files. The survey (`.numba-cache/survey.json.gz`) knows statements by function and text,
so that it stays of use while code changes.

Mutants run in a random order with a fixed seed, `--part 2/5` takes every fifth of that order: a run that was broken
off is a fair sample, but for the at most `--jobs` mutants that were under way. `--out` appends a line of JSON for every
verdict and continues where the file ends.

Verdicts: killed (a test failed that passes on the unchanged tree, or time ran out), survived, stale (the old text is
not there any more: adapt the entry), invalid (the new text does not compile), open (`--minutes` were over). Tests that
fail on the unchanged tree as well are left out. The exit status is 0 when every mutant was killed or survives for a
stated reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from math import inf
from pathlib import Path
from typing import Any

HOOK = Path(__file__).with_name("mutants_hook")
sys.path.append(str(HOOK))
from mutants_plugin import KEPT, picked  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "experiments")
LIST = Path(__file__).with_suffix(".json")
KILLERS = Path(__file__).with_name("mutants-killers.json")
_UNSEEN = ("tests/test_mutants.py", "tests/test_docs.py", "tests/test_notebooks.py")  # run everything, or this tool
_LONGEST = 400.0  # seconds for a file of tests in the survey
VERDICTS = ("killed", "survived", "stale", "invalid", "error", "open")
DECORATORS = ("ieee", "checked", "compact")  # of alexp.common.compiling

Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


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

    def start(self) -> int | None:
        """Where the old text begins in its file, or None if the entry is stale."""
        path = ROOT / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        places = [found.start() for found in re.finditer(re.escape(self.old), text)]
        which = (self.occurrence or 1) - 1
        if (self.occurrence is None and len(places) != 1) or which >= len(places) or self.old == self.new:
            return None
        return places[which]

    def text(self) -> str | None:
        """The changed file, or None if the entry is stale."""
        start = self.start()
        if start is None:
            return None
        text = (ROOT / self.file).read_text(encoding="utf-8")
        return text[:start] + self.new + text[start + len(self.old) :]

    def lines(self) -> set[int]:
        """Numbers of the old lines that are not in the new text, or of all if it has all of them."""
        before = (ROOT / self.file).read_text(encoding="utf-8")[: self.start()].count("\n")
        old = list(enumerate(self.old.rstrip("\n").split("\n"), before + 1))
        new = self.new.split("\n")
        return {number for number, line in old if line not in new} or {number for number, _ in old}

    @property
    def module(self) -> str:
        """Dotted name of the file."""
        parts = Path(self.file).with_suffix("").parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """The folder of tests that mirrors the file's."""
        parts = Path(self.file).parts
        name = parts[2] if parts[0] == "src" else parts[0]
        return f"tests/{name}/" if (ROOT / "tests" / name).is_dir() else "tests/"

    @cached_property
    def digest(self) -> str:
        """Names the change: a verdict holds for it alone."""
        return hashlib.sha256(repr((self.file, self.text())).encode()).hexdigest()[:16]


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


def load() -> list[Mutant]:
    """All entries of the list."""
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    mutants = [Mutant(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in entries]
    ids = [mutant.id for mutant in mutants]
    if len(set(ids)) != len(ids):
        raise SystemExit(f"ids must be distinct: {sorted({i for i in ids if ids.count(i) > 1})}")
    for test in {test for mutant in mutants for test in mutant.tests}:
        if not (ROOT / test).exists():
            raise SystemExit(f"there are no tests at {test}; correct tools/mutants.json")
    return mutants


# -- what the sources say -------------------------------------------------------------------------------------------


def sources() -> list[Path]:
    """All modules of the library and of its experiments."""
    return sorted(file for place in SOURCES for file in (ROOT / place).rglob("*.py"))


@cache
def _names(node: ast.AST) -> set[str]:
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def _compiled(node: ast.AST | None) -> bool:
    marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(
        isinstance(m, ast.Attribute) and isinstance(m.value, ast.Name) and m.value.id in DECORATORS for m in marks
    )


class Module:
    """A parsed file: its functions and statements, what it imports, and what its compiled functions are made of."""

    def __init__(self, path: Path) -> None:
        self.file = path.relative_to(ROOT).as_posix()
        self.name = Mutant("", "", self.file, "", "").module
        text = path.read_text(encoding="utf-8")
        self.tree, self._lines = ast.parse(text), text.splitlines()
        self.imported: dict[str, set[str]] = defaultdict(set)  # modules by the name that stands for them here
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.imported[alias.asname or alias.name.partition(".")[0]].add(alias.name)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imported[alias.asname or alias.name] |= {node.module, f"{node.module}.{alias.name}"}
        self.defs: dict[str, Def] = {}
        self.statements: list[tuple[range, str, str]] = []  # lines, function ("" outside of any), text
        self._read(self.tree, "", "")

    def _read(self, node: ast.AST, name: str, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Def):
                own = f"{name}.{child.name}".lstrip(".")
                self.defs[own] = child
                self._read(child, own, function if isinstance(child, ast.ClassDef) else own)
                continue
            if isinstance(child, ast.stmt):
                inner = [n.lineno for n in ast.walk(child) if isinstance(n, ast.stmt) and n is not child]
                end = max(min(inner) - 1, child.lineno) if inner else child.end_lineno or child.lineno
                text = " ".join(" ".join(self._lines[child.lineno - 1 : end]).split())
                self.statements.append((range(child.lineno, end + 1), function, text))
            self._read(child, name, function)

    @cached_property
    def uses(self) -> set[str]:
        """Modules that compiled functions may be made of; for a module without any, all that it imports."""
        compiled = [node for node in ast.walk(self.tree) if _compiled(node)]
        if not compiled:
            return set().union(*self.imported.values())
        names = set[str]()
        more = set().union(
            *(_names(n) for n in (*compiled, *self.tree.body) if not isinstance(n, Def) or n in compiled)
        )
        while more:
            names |= more
            more = set().union(*(_names(self.defs[n]) for n in more if n in self.defs)) - names
        return set().union(*(self.imported[name] for name in names if name in self.imported))


@cache
def modules() -> dict[str, Module]:
    """All modules by name."""
    return {module.name: module for module in map(Module, sources())}


@cache
def dependents(changed: str) -> set[str]:
    """The module, and all modules whose compiled functions may be made of what is in it."""
    uses, found = {name: module.uses for name, module in modules().items()}, {changed}
    while more := {name for name, used in uses.items() if used & found} - found:
        found |= more
    return found


# -- which tests could notice ---------------------------------------------------------------------------------------


def _file(test: str) -> str:
    return test.partition("::")[0]


def _key(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


class Survey:
    """Which tests execute a statement, with their seconds.

    Places are kept under the hash of file, function and text, and once more without the file, for code that has moved.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise SystemExit(f"there is no {path}: python tools/mutants.py --survey makes it (all tests run once)")
        kept = json.loads(gzip.decompress(path.read_bytes()))
        self._tests: list[str] = list(kept["seconds"])
        self.seconds: dict[str, float] = kept["seconds"]
        self._sets, self._places = kept["sets"], kept["places"]

    @staticmethod
    def make(folder: Path, path: Path) -> None:
        """Gather what the processes of a run have left in a folder."""
        seconds: dict[str, float] = {}
        places: dict[str, set[str]] = defaultdict(set)
        by_file = {module.file: module for module in modules().values()}
        for part in sorted(folder.glob("*.json")):
            found = json.loads(part.read_text(encoding="utf-8"))
            seconds |= found["seconds"]
            names = list(found["seconds"])
            for file, lines in found["lines"].items():
                for where, function, text in by_file[file].statements if file in by_file else ():
                    tests = {names[index] for line in where for index in lines.get(str(line), ())}
                    for key in (_key(file, function, text), _key(function, text)):
                        if function and tests:
                            places[key] |= tests
                            if len(places[key]) > 4 * KEPT:  # memory
                                places[key] = set(picked(places[key], seconds))
        number = {test: index for index, test in enumerate(seconds)}
        sets: dict[tuple[int, ...], int] = {}
        kept = {
            key: sets.setdefault(tuple(number[t] for t in picked(tests, seconds)), len(sets))
            for key, tests in places.items()
        }
        data = {"seconds": seconds, "sets": list(sets), "places": kept}
        path.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode()))

    def _at(self, *parts: str) -> set[str]:
        index = self._places.get(_key(*parts))
        return set() if index is None else {self._tests[number] for number in self._sets[index]}

    def executing(self, mutant: Mutant) -> set[str]:
        """Tests that execute the changed statements."""
        module, lines = modules()[mutant.module], mutant.lines()
        found = set[str]()
        for where, function, text in module.statements:
            if function and lines.intersection(where):
                found |= self._at(module.file, function, text) or self._at(function, text)
        return found

    def choose(self, mutant: Mutant, seconds: float, killer: str | None) -> list[list[str]]:
        """What to run, in three processes, because files of tests take their time to load."""
        chosen = picked(self.executing(mutant), self.seconds)
        likely = (*mutant.tests, mutant.room)
        blind = mutant.tests if chosen else likely  # also tests that are not known to execute the change
        chosen += picked([test for test in self.seconds if test.startswith(blind)], self.seconds) if blind else []
        runs: list[list[str]] = [[killer] if killer else [], [], []]
        for test in sorted(dict.fromkeys(chosen), key=lambda test: not test.startswith(likely)):
            if seconds > 0.0 and test != killer and (ROOT / _file(test)).is_file():
                seconds -= self.seconds[test]
                runs[1 if test.startswith(likely) else 2].append(test)
        for run in runs:
            total = Counter[str]()
            for test in run:
                total[_file(test)] += self.seconds.get(test, 0.0)
            run.sort(key=lambda test: (total[_file(test)], _file(test)))
        runs.append([file for file in mutant.tests if not any(test.startswith(file) for test in self.seconds)])
        return [run for run in runs if run]


# -- runs -----------------------------------------------------------------------------------------------------------


def share(source: Path, target: Path, changed: str) -> None:
    """Link machine code that does not depend on the changed module from one folder to another.

    Its files are named "module.function-hash.nbc". Code of a function that is defined inside another may be made of
    anything, and is never shared.
    """
    for file in source.glob("alexp-code-*/*.nbc"):
        module = file.name.rpartition("-")[0].rpartition(".")[0]
        if module in modules() and module not in dependents(changed):
            (new := target / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.link(file, new)


class OutOfTime(Exception):
    """The minutes that were granted are over."""


class Log:
    """Verdicts as lines of JSON; a line that was cut off counts as missing."""

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

    def of(self, mutant: Mutant, tests: str) -> Outcome | None:
        """The verdict, if there was one: a kill is final, anything else holds for these tests as they are."""
        for line in self._lines:
            same = line["id"] == mutant.id and line["change"] == mutant.digest
            if same and (line["verdict"] == "killed" or line["tests"] == tests):
                return Outcome(mutant, line["verdict"], line["detail"], line["seconds"])
        return None

    def write(self, outcome: Outcome, tests: str) -> None:
        """Append a verdict."""
        facts = {"verdict": outcome.verdict, "detail": outcome.detail, "seconds": round(outcome.seconds, 1)}
        line = {"id": outcome.mutant.id, "change": outcome.mutant.digest, **facts, "tests": tests}
        if self._path is not None:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


class Runner:
    """Runs the tests against mutants; remembers which tests pass on the unchanged tree."""

    def __init__(self, scratch: Path, chosen: argparse.Namespace, survey: Survey) -> None:
        self.scratch, self.survey, self.seconds, self.timeout = scratch, survey, chosen.seconds, chosen.timeout
        self.end = time.monotonic() + 60.0 * chosen.minutes
        self.code, self.log = scratch.parent, Log(chosen.out)
        self.killers: dict[str, str] = json.loads(KILLERS.read_text(encoding="utf-8")) if KILLERS.exists() else {}
        self.sound: dict[str, bool] = {}

    def __call__(self, mutant: Mutant) -> Outcome:
        """Try one mutant."""
        began, text = time.monotonic(), mutant.text()
        if text is None:
            return Outcome(mutant, "stale", "the old text is not there exactly once")
        try:
            compile(text, mutant.file, "exec")
        except SyntaxError as error:
            return Outcome(mutant, "invalid", f"line {error.lineno}: {error.msg}")
        runs = self.survey.choose(mutant, self.seconds, self.killers.get(mutant.id))
        files = sorted({_file(test) for run in runs for test in run})
        tests = _key(
            repr(runs), *((ROOT / file).read_text(encoding="utf-8") for file in files if (ROOT / file).is_file())
        )
        if (known := self.log.of(mutant, tests)) is not None:
            return known
        try:
            verdict, detail = self._try(mutant, text, runs)
        except OutOfTime:
            return Outcome(mutant, "open")
        outcome = Outcome(mutant, verdict, detail, time.monotonic() - began)
        if verdict != "error":
            self.log.write(outcome, tests)
        return outcome

    def _try(self, mutant: Mutant, text: str, runs: Sequence[Sequence[str]]) -> tuple[str, str]:
        with self._place() as place:
            (place / "text.py").write_text(text, encoding="utf-8")
            extra = {"MUTANT_MODULE": mutant.module, "MUTANT_TEXT": str(place / "text.py")}
            verdict = "error", "no test of the survey is there any more: make it anew"
            for run in runs:
                share(self.code, place, mutant.module)
                found = self._noticed(run, place, extra)
                share(place, self.code, mutant.module)
                if found is not None and found[0] != "survived":
                    return found
                verdict = found or verdict
        return verdict

    @contextlib.contextmanager
    def _place(self) -> Iterator[Path]:
        place = Path(tempfile.mkdtemp(prefix="mutant-", dir=self.scratch))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _noticed(self, tests: Sequence[str], place: Path, extra: dict[str, str]) -> tuple[str, str] | None:
        """The verdict of tests that pass on the unchanged tree, or None if there are none."""
        while True:
            broken = tuple(test.partition("[")[0] for test, sound in list(self.sound.items()) if not sound)
            chosen = [test for test in tests if not test.startswith(broken)] if broken else tests
            without = [f"--deselect={test}" for test in broken if _file(test) in chosen]
            code, failed, output = self._pytest(chosen, place, *without, **extra) if chosen else (5, "", "")
            if code == 5:  # none of the tests exists
                return None
            if code == 0:
                return "survived", f"{len(chosen)} tests, the last in {_file(chosen[-1])}"
            if code is None:
                return "killed", "no end"
            if code < 0:
                return "killed", f"{signal.Signals(-code).name} in {_file(chosen[0])} to {_file(chosen[-1])}"
            if not failed:
                return "error", f"pytest ended with {code}: {output.strip()[-200:]!r}"
            if self._passes_unchanged(failed):
                return "killed", failed

    def _passes_unchanged(self, test: str) -> bool:
        if test not in self.sound:
            with self._place() as place:
                more = () if "::" in test else ("--collect-only",)  # a file that could not be loaded
                status, _, _ = self._pytest([test], place, *more, NUMBA_CACHE_DIR=str(self.code))
                self.sound[test] = status == 0
        return self.sound[test]

    def _pytest(self, tests: Sequence[str], place: Path, *more: str, **extra: str) -> tuple[int | None, str, str]:
        """Exit status (None: it took too long), the test that failed, and what was printed."""
        (place / "tests").write_text("\n".join(tests), encoding="utf-8")
        (failed := place / "failed").unlink(missing_ok=True)
        names = {"NUMBA_CACHE_DIR": str(place), "MUTANT_TESTS": str(place / "tests"), "MUTANT_FAILED": str(failed)}
        limit = self.timeout + 5.0 * sum(self.survey.seconds.get(test, 60.0) for test in tests)
        left = self.end - time.monotonic()
        code, output = pytest(["-x", *more, *dict.fromkeys(map(_file, tests))], names | extra, min(limit, left))
        if code is None and left < limit:
            raise OutOfTime
        return code, failed.read_text(encoding="utf-8") if failed.exists() else "", output


def pytest(arguments: Sequence[str], extra: dict[str, str], seconds: float) -> tuple[int | None, str]:
    """Exit status and output; the status is None if time ran out."""
    if seconds <= 0.0:
        return None, ""
    paths = [str(HOOK), *(str(ROOT / place) for place in SOURCES), str(ROOT), os.environ.get("PYTHONPATH", "")]
    own = {"PYTHONPATH": os.pathsep.join(paths).rstrip(os.pathsep), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutants_plugin", *arguments],
        cwd=ROOT,
        env={"OPENBLAS_NUM_THREADS": "1"} | os.environ | own | extra,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=min(seconds, threading.TIMEOUT_MAX))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with everything the tests have started
        process.communicate()
        return None, ""
    return process.returncode, output


def make_survey(places: Sequence[str], code: Path, jobs: int, minutes: float) -> None:
    """Run each file of tests, and keep which tests execute what; those of this state of the sources are kept."""
    end, state = time.monotonic() + 60.0 * minutes, _key(*(path.read_text(encoding="utf-8") for path in sources()))
    (folder := code / f"survey-{state}").mkdir(exist_ok=True)

    def look(file: Path) -> str:
        part = folder / f"{_key(str(file), file.read_text(encoding='utf-8'))}.json"
        more = {"MUTANT_SURVEY": str(part), "NUMBA_CACHE_DIR": str(code)}
        if not part.exists():
            pytest([str(file)], more, min(_LONGEST, end - time.monotonic()))
        return "" if part.exists() else f"not looked at: {file.relative_to(ROOT)}"

    files = {
        file for place in places for file in ((ROOT / place).rglob("test_*.py"), [ROOT / place])[place.endswith(".py")]
    }
    largest = sorted(files - {ROOT / file for file in _UNSEEN}, key=lambda file: -file.stat().st_size)
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        print(*sorted(filter(None, pool.map(look, largest))), sep="\n")
    Survey.make(folder, code / "survey.json.gz")


def elsewhere(mutant: Mutant) -> list[str]:
    """Files that hold the old text of a stale mutant exactly once."""
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in sources()}
    return [file for file, text in texts.items() if file != mutant.file and text.count(mutant.old) == 1]


def relocate() -> None:
    """Enter the new file of every mutant whose text has moved to exactly one other place."""
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    for entry, mutant in zip(entries, load(), strict=True):
        if mutant.text() is None and len(moved := elsewhere(mutant)) == 1:
            print(f"{mutant.id}: {mutant.file} -> {moved[0]}")
            entry["file"] = moved[0]
    LIST.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def report(outcomes: Sequence[Outcome]) -> str:
    """How many have which verdict, then everything that was not killed."""
    totals = Counter(outcome.verdict for outcome in outcomes)
    decided = totals["killed"] + totals["survived"]
    lines = [", ".join(f"{totals[verdict]} {verdict}" for verdict in VERDICTS if totals[verdict])]
    lines.append(f"{totals['survived']} of {decided} decided survive, {totals['survived'] / max(decided, 1):.1%}")
    for outcome in sorted(outcomes, key=lambda outcome: VERDICTS.index(outcome.verdict)):
        if outcome.verdict not in ("killed", "open"):
            reason = outcome.mutant.reason if outcome.verdict == "survived" else outcome.detail
            lines.append(f"{outcome.verdict}: {_label(outcome.mutant)}: {reason or 'NO REASON IS KNOWN'}")
    return "\n".join(lines)


def _label(mutant: Mutant) -> str:
    return f"{mutant.id} {mutant.title} ({mutant.file})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="ID", help="these mutants")
    parser.add_argument("--files", metavar="GLOB", help="mutants of files whose path matches")
    parser.add_argument("--jobs", type=int, default=2, help="test runs at the same time")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for a mutant, by the survey")
    parser.add_argument(
        "--timeout", type=float, default=200.0, help="seconds beyond five times that until it is killed"
    )
    parser.add_argument("--part", metavar="K/N", help="every N-th mutant, beginning with the K-th")
    parser.add_argument("--out", type=Path, metavar="FILE", help="file for verdicts; what is in it is not run again")
    parser.add_argument("--minutes", type=float, default=inf, help="stop then; the next call continues")
    parser.add_argument("--survey", nargs="*", metavar="TESTS", help="run them, or all, and record what they execute")
    parser.add_argument("--keep-killers", action="store_true", help=f"write {KILLERS.name}")
    parser.add_argument("--list", action="store_true", help="run nothing, say which mutants there are")
    parser.add_argument("--relocate", action="store_true", help="correct the files of mutants whose text has moved")
    chosen = parser.parse_args(arguments)
    (code := ROOT / ".numba-cache").mkdir(exist_ok=True)
    if chosen.survey is not None:
        make_survey(chosen.survey or ["tests"], code, chosen.jobs, chosen.minutes)
        return 0
    if chosen.relocate:
        relocate()
    mutants = load()
    if unknown := set(chosen.only or ()) - {mutant.id for mutant in mutants}:
        raise SystemExit(f"no such mutants: {' '.join(sorted(unknown))}")
    mutants = [m for m in mutants if not chosen.only or m.id in chosen.only]
    mutants = [m for m in mutants if not chosen.files or fnmatch(m.file, chosen.files)]
    if chosen.list or chosen.relocate:
        stale = [mutant for mutant in mutants if mutant.text() is None]
        for mutant in mutants:
            moved = f": moved to {' or '.join(elsewhere(mutant)) or 'nowhere'}" if mutant in stale else ""
            print(f"{'stale' if mutant in stale else 'ready'}  {_label(mutant)}{moved}")
        print(f"{len(mutants)} mutants, {len(stale)} stale")
        return 1 if stale else 0
    order = [mutant.id for mutant in mutants]
    random.Random(0).shuffle(mutants)
    if chosen.part:
        k, n = map(int, chosen.part.split("/"))
        mutants = mutants[k - 1 :: n]
    outcomes: list[Outcome] = []
    survey = Survey(code / "survey.json.gz")
    modules()  # Python 3.11 cannot parse in several threads at once
    with (
        tempfile.TemporaryDirectory(prefix="run-", dir=code) as scratch,
        ThreadPoolExecutor(max(chosen.jobs, 1)) as pool,
    ):
        runner = Runner(Path(scratch), chosen, survey)
        for done in as_completed([pool.submit(runner, mutant) for mutant in mutants]):
            outcomes.append(outcome := done.result())
            if outcome.verdict != "open":
                line = f"{outcome.verdict:<9}{outcome.seconds:6.0f} s  {_label(outcome.mutant)}: {outcome.detail}"
                print(line, flush=True)
    outcomes.sort(key=lambda outcome: order.index(outcome.mutant.id))
    print()
    print(report(outcomes))
    if chosen.keep_killers:
        killers = runner.killers | {
            o.mutant.id: o.detail for o in outcomes if o.verdict == "killed" and "::" in o.detail
        }
        KILLERS.write_text(json.dumps(dict(sorted(killers.items())), indent=1) + "\n", encoding="utf-8")
    for test in sorted(test for test, sound in runner.sound.items() if not sound):
        print(f"left out: {test} fails on the unchanged tree")
    return 0 if all(outcome.fine for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
