"""Write the golden files: `python -m tests.golden.record FOLDER`, run with the version that is to be remembered.

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

import alexp
from alexp.algorithms import load
from tests.golden import cases

SAVED_ON = ("shared", "maps-intercept")


def runs():
    """All golden runs by name."""
    return {"/".join(case): cases.record(*case) for case in cases.cases()}


def states():
    """Saved states by name."""
    return {f"{variant}/{name}": cases.saved(variant, name) for variant in cases.VARIANTS for name in SAVED_ON}


def write(folder: Path) -> None:
    """Write both files and a database with a few studies."""
    folder.mkdir(parents=True, exist_ok=True)
    keep(folder, "runs", runs())
    keep(folder, "states", states())
    database(folder / "studies.db")


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


STUDIES = ("alexp", "exp4-ix", "corral-own", "evidence-mixture", "etc", "d3rb", "fs-scb")


def database(path: Path) -> None:
    """Studies with pending and abandoned trials, observations and restricted rounds."""
    import pandas as pd

    path.unlink(missing_ok=True)
    for variant in STUDIES:
        kind, own = cases.VARIANTS[variant]
        models, domain = cases.problem("shared" if variant != "fs-scb" else "maps")
        settings = {"noise_std": 0.1, "random_state": 5} | own
        study = alexp.create_study(models, domain, name=variant, storage=path, algorithm=kind.name, **settings)
        with study:
            play_study(study, 0, 12)
            study.abandon(study.ask())
            study.add_observations(pd.DataFrame({"index": [3, 9], "reward": [0.25, -0.5]}))
            study.ask(2, distinct=True)
        with alexp.load_study(variant, path) as study:
            play_study(study, 12, 4)
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("VACUUM")
    connection.close()


def play_study(study, start, rounds):
    """Rounds of a study, every third of them restricted."""
    out = []
    for step in range(start, start + rounds):
        available = [i for i in range(cases.N_CANDIDATES) if (i + step) % 4] if step % 3 == 1 else None
        trial = study.ask(available=available)
        study.tell(trial, cases.reward(trial.index, trial.id))
        out.append([trial.index, trial.model, int(trial.explored), float(trial.propensity).hex()])
    return out


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
    return differing


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        n = compare(Path(sys.argv[2]))
        print(f"{n} runs differ")
        sys.exit(n > 0)
    if sys.argv[1] == "--again":
        again(Path(sys.argv[2]), sys.argv[3])
        sys.exit()
    write(Path(sys.argv[1]))
