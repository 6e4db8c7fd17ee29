"""Record the database that stands for a version of the tables: python tests/study/data/make_database.py v1

Run once, when the version is released. The files are not written again: later versions must open and continue them.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import alexp
from alexp.study import create_study


def reward(trial):
    return float(np.cos(trial.index / 3.0) + 0.1 * np.sin(37.0 * trial.id))


def play(study, rounds, **presented):
    for _ in range(rounds):
        trial = study.ask(**presented)
        study.tell(trial, reward(trial))


def intervals(path):
    """Every kind of event of a fixed domain, a snapshot, and events after it."""
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
    arguments = {"algorithm": "alexp", "noise_std": 0.1, "random_state": 5}
    study = create_study(models, domain, name="intervals", storage=path, **arguments)
    play(study, 12)
    study.abandon(study.ask(3)[1])
    study.add_observations(pd.DataFrame({"index": [3, 17], "reward": [0.25, -0.5]}))
    study.amend(2, 0.75)
    study.retract(4)
    study.close()  # writes a snapshot
    play(study, 4)
    return study


def tables(path):
    """A table with two matrices of features, a plate under a lease, and a key."""
    rng = np.random.default_rng(0)
    matrices = {"fp": rng.standard_normal((15, 4)), "desc": rng.standard_normal((15, 2))}
    table = pd.DataFrame({"name": [f"mol{i}" for i in range(15)], "mass": rng.uniform(50.0, 300.0, 15)})
    study = create_study(
        alexp.ModelClass.from_matrices(matrices, intercept=False),
        alexp.FiniteSet(table),
        name="tables",
        storage=path,
        repeats=False,
        goal="best",
        direction="minimize",
        expired="abandon",
        random_state=7,
    )
    play(study, 6)
    study.tell(study.ask(3, key="plate", lease=3600.0)[0], 0.5)
    study.close()
    return study


def arms(path):
    """Contextual rounds, and an arm that was added."""
    models, domain = alexp.ModelClass.per_arm({"age": [0], "genes": [1, 2]}, arms=2), alexp.Arms(["low", "high"])
    study = create_study(models, domain, name="arms", storage=path, noise_std=0.3, norm_bound=2.0, random_state=3)
    for k in range(6):
        play(study, 1, context=np.array([k / 6.0, 1.0, -0.5]))
        if k == 3:
            study.add_arm("middle")
    return study


def linucb(path):
    """A study without a snapshot, and without probabilities of models."""
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
    study = create_study(models, domain, name="linucb", storage=path, algorithm="linucb", model=3, random_state=1)
    play(study, 5)
    return study


def main(version):
    path = Path(__file__).parent / f"{version}.db"
    path.unlink(missing_ok=True)
    facts = {}
    for make in (intervals, tables, arms, linucb):
        study = make(path)
        frame = study.trials_dataframe()
        with study.storage.reading() as connection:
            query = f"SELECT chain FROM alexp_studies WHERE name = '{study.name}'"
            newest = connection.exec_driver_sql(query).scalar()
        facts[study.name] = {
            "counts": study.counts,
            "index": frame["index"].tolist(),
            "states": frame["state"].tolist(),
            "rewards": frame["reward"].dropna().tolist(),
            "q": study.probabilities.tolist() if study.name != "linucb" else None,
            "chain": newest.hex(),
        }
        study.storage.close()
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
