"""Write the golden files: `python -m tests.golden.record FOLDER`, run with the version that is to be remembered.

`python -m tests.golden.record --verbs FOLDER` writes the calls of `tests.golden.verbs` alone.

`python -m tests.golden.record --compare FOLDER` holds the version at hand against them, bit for bit.
`python -m tests.golden.record --again FOLDER PATTERN` writes runs again whose names match, such as "*/batches", and how
saved states go on; the states themselves stay those of the version that saved them.
"""

from __future__ import annotations

import gzip
import json
import sys
from fnmatch import fnmatch
from pathlib import Path

from alexp.algorithms import load
from tests.golden import cases, studies, verbs

SAVED_ON = ("shared", "maps-intercept")


def runs():
    """All golden runs by name."""
    return {"/".join(case): cases.record(*case) for case in cases.cases()}


def states():
    """Saved states by name."""
    return {f"{variant}/{name}": cases.saved(variant, name) for variant in cases.VARIANTS for name in SAVED_ON}


def write(folder: Path) -> None:
    """Write runs, states, a database of studies, and how each of these goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    keep(folder, "runs", runs())
    keep(folder, "states", states())
    studies.database(folder / "studies.db")
    keep(folder, "studies", {name: studies.continued(folder / "studies.db", name) for name in studies.GO_ON})
    keep(folder, "verbs", verbs.everything())


def keep(folder: Path, name: str, content) -> None:
    """Write one file."""
    text = json.dumps(content, separators=(",", ":")).encode()
    (folder / f"{name}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def gone_on(before):
    """The saved states, and how runs go on from them now."""
    return {key: old | {"after": cases.play(load(old["state"]), "batches", 4, 4)} for key, old in before.items()}


def again(folder: Path, pattern: str) -> None:
    """Write again what is meant to differ: runs whose names match, and how saved states go on if theirs do."""
    before = read(folder, "runs")
    mine = [case for case in cases.cases() if fnmatch("/".join(case), pattern)]
    keep(folder, "runs", before | {"/".join(case): cases.record(*case) for case in mine})
    saved = read(folder, "states")
    keep(folder, "states", saved | gone_on({k: v for k, v in saved.items() if fnmatch(f"{k}/batches", pattern)}))


def read(folder: Path, name: str):
    """The content of one file."""
    return json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))


def compare(folder: Path) -> int:
    """Print what differs in any bit; returns how many runs differ."""
    differing = 0
    for name, current in (("runs", lambda _: runs()), ("states", gone_on)):
        before = read(folder, name)
        now = current(before)
        for key in sorted(before.keys() | now.keys()):
            old, new = before.get(key), now.get(key)
            parts = [part for part in (old or new) if (old or {}).get(part) != (new or {}).get(part)]
            if parts:
                differing += 1
                print(f"{name} {key}: {', '.join(parts)} differ")
    before = read(folder, "studies")
    for name in studies.GO_ON:
        if studies.continued(folder / "studies.db", name) != before[name]:
            differing += 1
            print(f"studies {name}: decisions differ")
    before = read(folder, "verbs")
    now = json.loads(json.dumps(verbs.everything()))
    for key in sorted(before.keys() | now.keys()):
        if found := differences(before.get(key), now.get(key), ""):
            differing += 1
            print(f"verbs {key}: {len(found)} differences, first at {found[0]}")
    return differing


def differences(old, new, where: str) -> list[str]:
    """Places where two recordings differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [one for key in keys for one in differences(old.get(key), new.get(key), f"{where}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [one for k, pair in enumerate(zip(old, new, strict=True)) for one in differences(*pair, f"{where}[{k}]")]
    return [] if old == new else [f"{where}: {str(old)[:200]} -> {str(new)[:200]}"]


if __name__ == "__main__":
    if sys.argv[1] == "--verbs":
        keep(Path(sys.argv[2]), "verbs", verbs.everything())
        sys.exit()
    if sys.argv[1] == "--compare":
        n = compare(Path(sys.argv[2]))
        print(f"{n} runs differ")
        sys.exit(n > 0)
    if sys.argv[1] == "--again":
        again(Path(sys.argv[2]), sys.argv[3])
        sys.exit()
    write(Path(sys.argv[1]))
