"""Write the database that stands for a released version: python tests/study/data/make_database.py v0_1

Run once at a release with the released version; the files are never written again.
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


def play(study, rounds):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, reward(trial))


def main(version):
    path = Path(__file__).parent / f"{version}.db"
    path.unlink(missing_ok=True)
    legendre, interval = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
    whole = create_study(legendre, interval, name="intervals", storage=path, noise_std=0.1, random_state=5)
    play(whole, 12)
    whole.abandon(whole.ask(3)[1])
    whole.add_observations(pd.DataFrame({"index": [3, 17], "reward": [0.25, -0.5]}))
    whole.close()  # writes a snapshot
    play(whole, 4)
    rng = np.random.default_rng(0)
    matrices = {"fp": rng.standard_normal((15, 4)), "desc": rng.standard_normal((15, 2))}
    table = pd.DataFrame({"name": [f"mol{i}" for i in range(15)], "mass": rng.uniform(50.0, 300.0, 15)})
    models, domain = alexp.ModelClass.from_matrices(matrices, intercept=False), alexp.FiniteSet(table)
    table_study = create_study(
        models, domain, name="tables", storage=path, direction="minimize", reward_bound=2.0, random_state=7
    )
    play(table_study, 6)
    alone = create_study(legendre, interval, name="linucb", storage=path, algorithm="linucb", model=3, random_state=1)
    play(alone, 5)
    facts = {}
    for study in (whole, table_study, alone):
        frame = study.trials_dataframe()
        facts[study.name] = {
            "counts": study.counts,
            "index": frame["index"].tolist(),
            "rewards": frame["reward"].dropna().tolist(),
            "best": study.best().index,
            "q": study.probabilities.tolist() if study.name != "linucb" else None,
        }
        if study is not alone:  # one study is left without a snapshot
            study.close()
    alone.storage.close()
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
