"""Do the tests notice? Break the code on purpose, one small change at a time, and run the tests that should fail.

`tools/mutants.json` lists the changes: `id`, `title`, `file`, `old` and `new` text, and optionally `tests` (files to
run first, most likely first), `occurrence` (which of several equal texts, from 1) and `reason` (why a change is known
to go unnoticed: "equivalent because ..."). The working tree is never touched: Python is told, by an import hook in
every process of the test run, to compile the changed text in place of the file.

    python tools/mutants.py                      all of them, `make mutants`
    python tools/mutants.py --only T17 T19       some, by id
    python tools/mutants.py --files '*/theory/*' some, by file
    python tools/mutants.py --list               which there are, which no longer apply, and where their text may be now
    python tools/mutants.py --relocate           enter the new file where a text has moved unchanged

Verdicts: killed (a test failed that passes on the unchanged tree, or time ran out), survived, stale (the old text is
not there any more: adapt the entry), invalid (the new text does not compile). The exit status is 0 when every mutant
was killed or survives for a stated reason.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".json")

# Which tests could notice a change in a folder, most likely first; the longest prefix decides.
TESTS: dict[str, tuple[str, ...]] = {
    "src/alexp/problem": ("tests/problem", "tests/algorithms", "tests/study"),
    "src/alexp/estimation": ("tests/estimation", "tests/golden", "tests/algorithms", "tests/decision"),
    "src/alexp/decision": ("tests/decision", "tests/algorithms", "tests/theory", "tests/golden"),
    "src/alexp/algorithms": ("tests/algorithms", "tests/golden", "tests/study/test_study.py"),
    "src/alexp/theory": ("tests/theory", "tests/decision"),
    "src/alexp/study": ("tests/study",),
    "src/alexp/experiments": ("tests/experiments",),
    "src/alexp/evaluation": ("tests/evaluation",),
    "src/alexp/integrations": ("tests/integrations",),
    "src/alexp": ("tests",),
}

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
        parts = Path(self.file).relative_to("src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def in_compiled_file(self) -> bool:
        """Whether kernels compiled from the unchanged file must not be reused."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        return "njit" in text or "from alexp.common.compiling import" in text

    def stages(self) -> list[list[str]]:
        """Files of tests in the order in which they are worth running: the named ones, the exact ones, the rest."""
        prefixes = sorted((p for p in TESTS if self.file.startswith(p + "/")), key=len, reverse=True)
        files = list(dict.fromkeys(_files(TESTS[prefixes[0]] if prefixes else ("tests",))))
        named = list(dict.fromkeys(_files(self.tests)))
        home = str(Path(files[0]).parent)  # the folder most likely to notice
        exact = [file for file in files if Path(file).stem.startswith(_SHARP)]
        near, far = [f for f in exact if f.startswith(home)], [f for f in exact if not f.startswith(home)]
        stages, seen = [], set[str]()
        for stage in (named, near, far, files):
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


def load() -> list[Mutant]:
    """All entries of the list."""
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    mutants = [Mutant(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in entries]
    ids = [mutant.id for mutant in mutants]
    if len(set(ids)) != len(ids):
        raise SystemExit(f"ids must be distinct: {sorted({i for i in ids if ids.count(i) > 1})}")
    return mutants


class Runner:
    """Runs the tests against mutants; remembers which tests pass on the unchanged tree."""

    def __init__(self, scratch: Path, timeout: float) -> None:
        self.scratch, self.timeout = scratch, timeout
        (scratch / "hook").mkdir()
        (scratch / "hook" / "sitecustomize.py").write_text(_HOOK, encoding="utf-8")
        self._sound: dict[str, bool] = {}
        self._lock = threading.Lock()

    def __call__(self, mutant: Mutant) -> Outcome:
        """Try one mutant."""
        began = time.monotonic()
        verdict, detail = self._try(mutant)
        return Outcome(mutant, verdict, detail, time.monotonic() - began)

    def _try(self, mutant: Mutant) -> tuple[str, str]:
        text = mutant.text()
        if text is None:
            return "stale", "the old text is not there exactly once"
        try:
            compile(text, mutant.file, "exec")
        except SyntaxError as error:
            return "invalid", f"line {error.lineno}: {error.msg}"
        place = self.scratch / mutant.id
        place.mkdir()
        (place / "text.py").write_text(text, encoding="utf-8")
        extra = {"MUTANT_MODULE": mutant.module, "MUTANT_TEXT": str(place / "text.py")}
        if mutant.in_compiled_file:
            extra["NUMBA_CACHE_DIR"] = str(place / "numba")
        for stage in mutant.stages():
            code, output = self._pytest(stage, extra)
            if code != 0:
                return self._judge(code, output)
        return "survived", mutant.reason

    def _judge(self, code: int | None, output: str) -> tuple[str, str]:
        if code is None:
            return "killed", f"no end after {self.timeout:g} s"
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        if code not in (1, 2) or found is None:
            return "error", f"pytest ended with {code}: {output.strip()[-200:]!r}"
        if not self._passes_unchanged(found.group(1)):
            return "error", f"{found.group(1)} fails on the unchanged tree too"
        return "killed", found.group(1)

    def _passes_unchanged(self, test: str) -> bool:
        with self._lock:
            if test not in self._sound:
                self._sound[test] = self._pytest([test], {})[0] == 0
            return self._sound[test]

    def _pytest(self, tests: Sequence[str], extra: dict[str, str]) -> tuple[int | None, str]:
        environment = os.environ | extra
        paths = [str(self.scratch / "hook"), str(ROOT / "src"), str(ROOT)]
        environment["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rfE"]
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
            output, _ = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with everything the tests have started
            process.communicate()
            return None, ""
        return process.returncode, output


def elsewhere(mutant: Mutant) -> list[str]:
    """Files that hold the old text of a stale mutant exactly once."""
    files = sorted((ROOT / "src").rglob("*.py"))
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
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
    verdicts = ("killed", "survived", "stale", "invalid", "error")
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
        for outcome in outcomes:
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
    if chosen.list or chosen.relocate:
        stale = [mutant for mutant in mutants if mutant.text() is None]
        for mutant in mutants:
            print(f"stale  {_label(mutant)}: {hint(mutant)}" if mutant in stale else f"ready  {_label(mutant)}")
        print(f"{len(mutants)} mutants, {len(stale)} stale")
        return 1 if stale else 0
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch, ThreadPoolExecutor(max(chosen.jobs, 1)) as pool:
        runner = Runner(Path(scratch), chosen.timeout)
        for done in as_completed([pool.submit(runner, mutant) for mutant in mutants]):
            outcome = done.result()
            outcomes.append(outcome)
            line = f"{outcome.verdict:<9}{outcome.seconds:6.0f} s  {_label(outcome.mutant)}: {outcome.detail}"
            print(line, flush=True)
    outcomes.sort(key=lambda outcome: mutants.index(outcome.mutant))
    print()
    print(report(outcomes))
    return 0 if all(outcome.fine for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
