"""Databases with flipped bits, cut files, deleted tails, edited rows, dropped columns.

Whatever was done to it, a database is refused with a `StorageError`, or it holds exactly what it held before. What is
salvaged from it is the beginning of what was there.
"""

import json
import sqlite3
import tempfile
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np

import alexp
from alexp.study import Storage, StorageError, load_study, salvage

DATABASES, TAILS = 1000, 50  # at scale 1
MODELS, DOMAIN = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
TABLES = ("alexp_studies", "alexp_events", "alexp_snapshots", "alexp_arrays")
SALVAGED = 5  # of so many refused databases one is salvaged


def make_studies(path):
    """Two studies: one opened from its log, one from a snapshot with some events behind it and some after it."""
    rng = np.random.default_rng(0)
    table = alexp.ModelClass.from_matrices({"a": rng.standard_normal((12, 3)), "b": rng.standard_normal((12, 2))})
    for name, models, domain, rounds in (
        ("young", MODELS, DOMAIN, 9),
        ("old", table, alexp.FiniteSet([f"item {k}" for k in range(12)]), 5),
    ):
        settings = {"algorithm": "alexp", "noise_std": 0.1, "random_state": 5, "repeats": True}
        study = alexp.create_study(models, domain, name=name, storage=path, **settings)
        for k in range(rounds):
            study.tell(study.ask(available=[2, 3, 5, 7] if k == 1 else None), float(rng.uniform(-1.0, 1.0)))
        if name == "old":
            study.close()  # writes a snapshot
            study.abandon(study.ask(2)[0])
            study.tell(study.ask(), 0.25)
        study.storage.close()
    assert not path.with_name(path.name + "-wal").exists()


def content(path, timeout=1.0):
    """All that a study is and holds, and the first trial that it would propose."""
    found = {}
    for name in ("young", "old"):
        study = load_study(name, Storage(path, timeout=timeout))
        try:
            events, state = study.events(), json.dumps(study.algorithm.to_dict())
            facts = study.created_at, study.library, study.counts, [trial.id for trial in study.pending()]
            found[name] = [facts, events, len(study.beliefs()), state, study.ask().to_dict()]
        finally:
            study.storage.close()
    return found


# -- damage ----------------------------------------------------------------------------------------------------


def flip_bits(path, rng):
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.choice([1, 1, 1, 4]))):
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)
    return "flipped bits"


def cut_off(path, rng):
    data = path.read_bytes()
    size = int(rng.integers(len(data))) if rng.random() < 0.5 else len(data) - 4096 * int(rng.integers(1, 8))
    path.write_bytes(data[:size])
    return f"cut to {size} bytes"


def lose_a_page(path, rng):
    data = bytearray(path.read_bytes())
    page, other = (4096 * int(rng.integers(len(data) // 4096)) for _ in range(2))
    data[page : page + 4096] = bytes(4096) if rng.random() < 0.5 else data[other : other + 4096]
    path.write_bytes(data)
    return f"page {page // 4096} lost"


def _statement(path, text, values=()):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(text, values)


def edit_a_row(path, rng):
    table = str(rng.choice(TABLES))
    with closing(sqlite3.connect(path)) as connection:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        row = connection.execute(f"SELECT rowid FROM {table} ORDER BY random() LIMIT 1").fetchone()[0]
        column = str(rng.choice(columns))
        old = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()[0]
    choices = [3, -1, 2.5, "x", b"\x00\xff", "9" * 30, float("inf")]
    new = next(value for value in rng.permutation(np.array(choices, dtype=object)) if value != old)
    try:
        _statement(path, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
    except sqlite3.IntegrityError:  # another row has that key
        _statement(path, f"DELETE FROM {table} WHERE rowid = ?", (row,))
    return f"{table}.{column} of row {row} changed from {old!r:.30} to {new!r:.30}"


def drop_a_column(path, rng):
    table = str(rng.choice(TABLES))
    with closing(sqlite3.connect(path)) as connection:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5] == 0]
    column = str(rng.choice([name for name in columns if name not in ("name", "key")]))  # these have an index
    _statement(path, f"ALTER TABLE {table} DROP COLUMN {column}")
    if rng.random() < 0.5:
        _statement(path, f"ALTER TABLE {table} ADD COLUMN {column}")
    return f"{table}.{column} dropped"


def delete_a_tail(path, rng):
    """The end of a log, and in half of the cases the count of its events too, so that nothing seems to be missing."""
    study, last = int(rng.integers(1, 3)), int(rng.integers(1, 8))
    with closing(sqlite3.connect(path)) as connection:
        (n_events,) = connection.execute("SELECT n_events FROM alexp_studies WHERE id = ?", (study,)).fetchone()
    _statement(path, "DELETE FROM alexp_events WHERE study_id = ? AND seq >= ?", (study, n_events - last))
    if rng.random() < 0.5:
        _statement(path, "UPDATE alexp_studies SET n_events = ? WHERE id = ?", (n_events - last, study))
    return f"{last} events of study {study} deleted"


DAMAGE = (flip_bits, flip_bits, flip_bits, flip_bits, flip_bits, cut_off, lose_a_page, edit_a_row, drop_a_column)


# -- what became of them ---------------------------------------------------------------------------------------


def judge(path, expected):
    """ "same", "refused", or what was wrong about the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", alexp.study.StorageWarning)
        try:
            found = content(path)
        except StorageError:
            return "refused"
        except Exception as error:
            return f"raw {type(error).__name__}: {error}"
    return "same" if found == expected else "accepted with other content"


def judge_salvage(path, target, expected):
    """What is wrong about what was salvaged; None if nothing is."""
    try:
        reports = salvage(path, target)
    except StorageError:
        return None
    except Exception as error:
        return f"raw {type(error).__name__} in salvage: {error}"
    for report in reports:
        if not report.saved or any("without which the study cannot be opened" in lost for lost in report.lost):
            continue
        study = load_study(report.name, target)
        if study.events() != expected[report.name][1][: report.saved]:
            return f"salvaged other events of {report.name}"
        study.ask()
        study.storage.close()
    return None


def attempt(folder, whole, expected, rng, how):
    """Damage a copy and look at it; returns what was done, what became of it, and what is wrong with the salvage."""
    path = folder / "damaged.db"
    for old in folder.glob("damaged.db*"):
        old.unlink()
    path.write_bytes(whole)
    what = how(path, rng)
    damaged = path.read_bytes()
    verdict, wrong = judge(path, expected), None
    if verdict == "refused" and rng.integers(SALVAGED) == 0:
        for old in (*folder.glob("damaged.db*"), *folder.glob("saved.db*")):
            old.unlink()
        path.write_bytes(damaged)
        wrong = judge_salvage(path, folder / "saved.db", expected)
    return what, verdict, wrong


def soak(scale=1.0, seed=0):
    """Damage so many databases; `violations` must be 0."""
    rng = np.random.default_rng(seed)
    counts = {"tried": 0, "refused": 0, "unchanged": 0, "tails": 0, "tails noticed": 0, "violations": 0}
    first = ""
    with tempfile.TemporaryDirectory(prefix="alexp-bitflips-") as name:
        folder = Path(name)
        make_studies(folder / "whole.db")
        whole = (folder / "whole.db").read_bytes()
        expected = content(folder / "whole.db")
        tails = max(1, round(TAILS * scale))
        for k in range(max(1, round(DATABASES * scale)) + tails):
            how = delete_a_tail if k < tails else DAMAGE[rng.integers(len(DAMAGE))]
            what, verdict, wrong = attempt(folder, whole, expected, rng, how)
            counts["tried"] += 1
            counts["refused"] += verdict == "refused"
            counts["unchanged"] += verdict == "same"
            if how is delete_a_tail:
                counts["tails"] += 1
                counts["tails noticed"] += verdict == "refused"
            if verdict not in ("refused", "same") or wrong:
                counts["violations"] += 1
                first = first or f"{what}: {wrong or verdict}"
    return counts | ({"first": first} if first else {})
