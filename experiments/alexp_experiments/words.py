"""Tables of words: regret of the models that a `Table` has by default beside linear models.

    python -m alexp_experiments.words "$ALEXP_BOARD" --out docs/words.csv

Rewards are z-scores. A run measures 100 different rows, the first five at random; its regret is the sum of the 100 best
rewards less that of those collected. *Linear* models have one column of 0 and 1 per word and one per amount, *words*
are the default: products, sums and joined distances of kernels on the components. Single models of these are played as
well: the best of them in hindsight says what choosing among them could reach. Variants were tried on Buchwald A and
Suzuki I, which are not reported.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.common.arrays import FloatArray
from alexp.problem.models import ModelClass
from alexp.table.table import Table
from alexp_experiments.core.statistics import MeanEstimate, ratio

ROUNDS, FIRST, FIRST_SEED = 100, 5, 98_000
REPORTED = ("lnp3", "arylation_cost", "buchwald_b", "buchwald_c", "aryl_halide")
LINEAR, WORDS = "linear", "words"
SINGLE = ("sum, 1", "joined, 4", "product, 2", "product, 4")  # products: one lengthscale for all components
Runs = dict[tuple[str, str], list[float]]  # regrets by table and models


def read(path: Path) -> tuple[Table, FloatArray]:
    """The table as its file has it, words and amounts, and its rewards (N,) as z-scores; a substrate is a word."""
    with np.load(path, allow_pickle=False) as data:
        levels, rewards = json.loads(str(data["levels"])), np.asarray(data["y"], dtype=np.float64)
        columns = {
            name: np.array(own)[codes] for (name, own), codes in zip(levels.items(), data["cats"].T, strict=True)
        }
        if "task" in data:
            whole = np.asarray(data["complete"], dtype=bool)
            columns, rewards = {"substrate": data["task_names"][data["task"]], **columns}, rewards[whole]
            columns = {name: cells[whole] for name, cells in columns.items()}
    return Table.from_frame(pd.DataFrame(columns)), (rewards - rewards.mean()) / rewards.std()


def models_of(table: Table, entry: str) -> ModelClass:
    """The models of an entry."""
    if entry == LINEAR:
        return table.models(kernels="linear")
    models = table.models()
    if entry == WORDS:
        return models
    kind, _, scale = entry.partition(", ")
    n_components = len(table.understood)
    return models.only(
        list(models.names).index(f"{kind}, {'/'.join([scale] * (n_components if kind == 'product' else 1))}")
    )


def regret(table: Table, models: ModelClass, rewards: FloatArray, seed: int) -> float:
    """R(100) of one run."""
    run = EvidenceMixture(models, table, goal="sum", repeats=False, random_state=seed)
    rows = np.random.default_rng(seed).choice(rewards.size, FIRST, replace=False).tolist()
    for row in rows:
        run.observe(row, float(rewards[row]))
    while len(rows) < ROUNDS:
        trial = run.ask()
        rows.append(trial.index)
        run.tell(trial, float(rewards[trial.index]))
    return float(np.sort(rewards)[-ROUNDS:].sum() - rewards[rows].sum())


def summary(runs: Runs) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield f"| table | linear, R({ROUNDS}) | words, R({ROUNDS}) | words / linear | best single model / linear |"
    yield "|---|---|---|---|---|"
    ours, single = list[MeanEstimate](), list[float]()
    for table in dict.fromkeys(table for table, _ in runs):
        linear, words = (np.array(runs[table, entry]) for entry in (LINEAR, WORDS))
        alone = {entry: float(np.mean(runs[table, entry])) for entry in SINGLE}
        best = min(alone, key=lambda entry: alone[entry])
        ours.append(ratio(words, linear))
        single.append(alone[best] / float(linear.mean()))
        yield f"| {table} | {linear.mean():.1f} | {words.mean():.1f} | {ours[-1]} | {single[-1]:.2f} ({best}) |"
    yield f"| geometric mean | | | {_geometric([one.mean for one in ours]):.2f} | {_geometric(single):.2f} |"


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def main() -> None:
    """Play, keep the runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="The folder of tables.")
    parser.add_argument("--out", type=Path, default=Path("words.csv"))
    parser.add_argument("--table", action="append", help="One of the folder; by default those that are reported.")
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    runs: Runs = {}
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["table", "models", "seed", "regret"])
        for name in given.table or REPORTED:
            table, rewards = read(given.folder / f"{name}.npz")
            for entry in (LINEAR, WORDS, *SINGLE):
                models = models_of(table, entry)
                for seed in range(FIRST_SEED, FIRST_SEED + given.seeds):
                    value = round(regret(table, models, rewards, seed), 4)
                    runs.setdefault((name, entry), []).append(value)
                    writer.writerow([name, entry, seed, value])
                    file.flush()
    print("\n".join(summary(runs)))


if __name__ == "__main__":
    main()
