"""Studies whose database is kept: between them they have every kind of event, and most kinds of problem."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import alexp
from tests.golden import cases

PLAIN = ("alexp", "exp4-ix", "corral-own", "evidence-mixture", "etc", "d3rb", "fs-scb")
SOLVENTS = ("water", "DMF", "toluene")


def reactions(first, n):
    """A table of n candidates with a number, a word and a price each."""
    rows = range(first, first + n)
    return pd.DataFrame(
        {
            "id": [f"r{i}" for i in rows],
            "celsius": [60.0 + 5.0 * (i * 7 % 11) for i in rows],
            "solvent": [SOLVENTS[i % 3] for i in rows],
            "price": [1.0 + i % 4 for i in rows],
        }
    )


def chosen(trials):
    """What was decided, for comparison: candidate, model and exact propensity of every trial."""
    return [[t.index, t.model, int(t.explored), float(t.propensity).hex()] for t in trials]


def played(study, start, rounds):
    """Rounds of a study on a fixed domain, every third of them restricted."""
    out = []
    for step in range(start, start + rounds):
        available = [i for i in range(cases.N_CANDIDATES) if (i + step) % 4] if step % 3 == 1 else None
        trial = study.ask(available=available)
        study.tell(trial, cases.reward(trial.index, trial.id))
        out += chosen([trial])
    return out


def plain(variant, path):
    """An algorithm on a fixed domain, with pending and abandoned trials, observations and restricted rounds."""
    kind, own = cases.VARIANTS[variant]
    models, domain = cases.problem("shared" if variant != "fs-scb" else "maps")
    settings = {"noise_std": 0.1, "random_state": 5} | own
    with alexp.create_study(models, domain, name=variant, storage=path, algorithm=kind.name, **settings) as study:
        played(study, 0, 12)
        study.abandon(study.ask())
        study.add_observations(pd.DataFrame({"index": [3, 9], "reward": [0.25, -0.5]}))
        study.ask(2, distinct=True)
    with alexp.load_study(variant, path) as study:
        played(study, 12, 4)


def laboratory(path):
    """A table of reactions: plates under conditions, replicates, failures, corrections, new candidates, a memory."""
    table = alexp.Table.from_frame(reactions(0, 30))
    study = alexp.create_study(table, name="laboratory", storage=path, random_state=1, reward_range=(0.0, 100.0))
    with study:
        plates(study, 2)
        study.fail(study.ask(), reason="spilled")
        first = study.ask()
        study.tell(first, [50.0, 51.5], note="two vials")
        study.amend(first, 49.0)
        second = study.ask()
        study.tell(second, 12.0)
        study.retract(second)
        study.observe(29, 33.0)
        study.add_candidates(alexp.Table.from_frame(reactions(30, 4)))
        past = reactions(0, 12).assign(reward=lambda one: 10.0 + one["celsius"] / 2.0 + one["price"] % 3.0)
        study.learn_from({"last year": past})
        study.abandon(study.ask())
        study.ask(2)


def plates(study, n):
    """Plates under conditions, each told as a whole."""
    out = []
    for _ in range(n):
        plate = study.ask(3, where="celsius <= 105 and solvent != 'DMF'", at_most={"solvent": 2})
        study.tell_many({trial.id: 20.0 + trial.index * 13 % 60 for trial in plate})
        out += chosen(plate)
    return out


def compromises(path):
    """Two objectives, one of them a column, under a budget."""
    table = alexp.Table.from_frame(reactions(0, 24))
    wanted = {"yield": "maximize", "price": "minimize"}
    own = {"objectives": wanted, "cost": "price", "budget": 40.0}
    with alexp.create_study(table, name="compromises", storage=path, random_state=2, **own) as study:
        weighed(study, 6)
        study.ask()


def weighed(study, n):
    """Rounds of a study with two objectives."""
    out = []
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, {"yield": 30.0 + trial.index * 11 % 50})
        out += chosen([trial])
    return out


def clicks(path):
    """Arms, contexts and clicks, with an arm that comes later."""
    arms = alexp.Arms(["small", "large"])
    models = alexp.ModelClass.per_arm({"length": [0], "topic": [1, 2]}, arms)
    with alexp.create_study(models, arms, name="clicks", storage=path, random_state=3, likelihood="bernoulli") as study:
        clicked(study, 0, 8)
        study.add_arm("huge")
        clicked(study, 8, 4)
        study.ask(context=context(99))


def context(step):
    """Three numbers."""
    return np.array([step % 5 / 5.0, step % 3 - 1.0, step % 2])


def clicked(study, start, n):
    """Rounds with contexts."""
    out = []
    for step in range(start, start + n):
        trial = study.ask(context=context(step))
        study.tell(trial, float((step + trial.index) % 3 == 0))
        out += chosen([trial])
    return out


def drifting(path):
    """Candidates by their features, and rewards that change: two half-lives."""
    models = alexp.ModelClass.from_blocks({"a": 2, "b": 3})
    domain = alexp.Candidates()
    with alexp.create_study(models, domain, name="drifting", storage=path, random_state=4, forget=(0.9, 0.97)) as study:
        drifted(study, 0, 6)


def drifted(study, start, n):
    """Rounds with candidates of their own."""
    out = []
    for step in range(start, start + n):
        features = np.array([[(i * 3 + j + step) % 7 / 7.0 for j in range(5)] for i in range(4)])
        trial = study.ask(features=features, ids=[f"{step}.{i}" for i in range(4)])
        study.tell(trial, float(features[trial.index] @ np.array([1.0, 0.0, 0.5, 0.0, -1.0])))
        out += chosen([trial])
    return out


def lengthscales(path):
    """A kernel with a lengthscale per input."""
    inputs = np.array([[(i * 5 + j * 3) % 13 / 13.0 for j in range(3)] for i in range(cases.N_CANDIDATES)])
    models = alexp.ModelClass.from_matrices({"x": inputs}, kernels={"x": alexp.kernels.ARD()})
    _, domain = cases.problem("maps")
    with alexp.create_study(models, domain, name="lengthscales", storage=path, random_state=6, goal="best") as study:
        played(study, 0, 5)


GO_ON = {variant: lambda study: played(study, 16, 6) for variant in PLAIN} | {
    "laboratory": lambda study: plates(study, 2),
    "compromises": lambda study: weighed(study, 4),
    "clicks": lambda study: clicked(study, 12, 6),
    "drifting": lambda study: drifted(study, 6, 6),
    "lengthscales": lambda study: played(study, 5, 3),
}


def database(path: Path) -> None:
    """Write all studies into a new database of one file."""
    path.unlink(missing_ok=True)
    for variant in PLAIN:
        plain(variant, path)
    for begin in (laboratory, compromises, clicks, drifting, lengthscales):
        begin(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("VACUUM")
    connection.close()


def continued(path: Path, name: str):
    """How a study of a database goes on; the database is not touched."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "studies.db"
        shutil.copy(path, copy)
        with alexp.load_study(name, copy) as study:
            return GO_ON[name](study)
