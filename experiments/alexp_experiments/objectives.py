"""Several objectives on real tables: the hypervolume that experiments in plates of five reach.

    python -m alexp_experiments.objectives play "$ALEXP_BOARD" --seeds 20 --out docs/objectives.csv
    python -m alexp_experiments.objectives show docs/objectives.csv

A run measures 50 rows in 10 plates and is told all objectives of each. Its score is the hypervolume of what it measured
as a share of that of the whole table, from the worst value of every objective in the table. BoTorch's qLogNEHVI has one
Gaussian process per objective on one-hot columns, that same reference point, and begins with a random plate; the
mixture has the same columns as words of a table, and nothing else. Runs of BoTorch that the file has are kept, because
they take minutes; the others are played anew.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.hypervolume import hypervolume, non_dominated

PLATE, PLATES = 5, 10
FIRST_SEED = 97_000
MIXTURE, BOTORCH = "EvidenceMixture", "BoTorch qLogNEHVI"
OBJECTIVES: dict[str, dict[str, bool]] = {  # of a table's columns: whether larger is better
    "arylation_cost": {"y": True, "cost": False},
    "lnp3": {"y": True, "y2": True, "y3": True},
    "dye_lasers": {"y": True, "y2": True, "y3": True},
}


@dataclass(frozen=True)
class ObjectivesTable:
    """N rows with values of K objectives (N, K), to be maximised, and the words (N, C) that rows are made of."""

    name: str
    names: tuple[str, ...]
    larger: tuple[bool, ...]
    values: FloatArray
    words: IntArray

    @classmethod
    def read(cls, path: Path) -> ObjectivesTable:
        """A table of the folder, by its objectives."""
        with np.load(path, allow_pickle=False) as data:
            own = OBJECTIVES[path.stem]
            signed = [np.asarray(data[name], dtype=np.float64) * (1.0 if up else -1.0) for name, up in own.items()]
            return cls(path.stem, tuple(own), tuple(own.values()), np.stack(signed, axis=1), np.asarray(data["cats"]))

    @cached_property
    def one_hot(self) -> FloatArray:
        """The words as columns of 0 and 1."""
        return np.hstack([column[:, None] == np.unique(column) for column in self.words.T]).astype(np.float64)

    @property
    def reference(self) -> FloatArray:
        """The worst value of every objective."""
        return np.asarray(self.values.min(axis=0))

    @cached_property
    def whole(self) -> float:
        """Hypervolume of the table."""
        return hypervolume(self.values[non_dominated(self.values)], self.reference)

    def share(self, rows: IntArray) -> float:
        """Hypervolume of some rows as a share of that of the table."""
        return hypervolume(self.values[rows], self.reference) / self.whole


def random_rows(problem: ObjectivesTable, seed: int) -> IntArray:
    """Rows in a random order."""
    return np.random.default_rng(seed).permutation(len(problem.values))[: PLATE * PLATES]


def mixture(problem: ObjectivesTable, seed: int) -> IntArray:
    """EvidenceMixture on a table of words."""
    import pandas as pd

    from alexp.algorithms.evidence_mixture import EvidenceMixture
    from alexp.table.table import Table

    words = {f"component {k}": [f"w{level}" for level in column] for k, column in enumerate(problem.words.T)}
    table = Table.from_frame(pd.DataFrame(words))
    directions: Any = {
        f"objective {name}": "maximize" if up else "minimize"
        for name, up in zip(problem.names, problem.larger, strict=True)
    }
    signs = np.array([1.0 if up else -1.0 for up in problem.larger])
    run, rows = EvidenceMixture(table, objectives=directions, random_state=seed), list[int]()
    for _ in range(PLATES):
        for trial in run.ask(PLATE):
            rows.append(trial.index)
            run.tell(trial, dict(zip(directions, (signs * problem.values[trial.index]).tolist(), strict=True)))
    return np.array(rows)


def botorch(problem: ObjectivesTable, seed: int) -> IntArray:
    """qLogNEHVI of BoTorch on one-hot columns, after a random plate."""
    import torch
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.optim import optimize_acqf_discrete
    from botorch.sampling.normal import SobolQMCNormalSampler
    from gpytorch.mlls import SumMarginalLogLikelihood

    torch.manual_seed(seed)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.tensor(problem.one_hot, dtype=torch.float64)
    mean, std = problem.values.mean(axis=0), problem.values.std(axis=0)
    y = torch.tensor((problem.values - mean) / std, dtype=torch.float64)
    reference = torch.tensor((problem.reference - mean) / std, dtype=torch.float64)
    rows = random_rows(problem, seed)[:PLATE].tolist()
    while len(rows) < PLATE * PLATES:
        left = np.setdiff1d(np.arange(len(x)), rows)
        model = ModelListGP(*(SingleTaskGP(x[rows], y[rows][:, [k]]) for k in range(y.shape[1])))
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model=model,
            ref_point=reference,
            X_baseline=x[rows],
            prune_baseline=True,
            sampler=SobolQMCNormalSampler(torch.Size([128]), seed=seed),
        )
        chosen, _ = optimize_acqf_discrete(acquisition, q=PLATE, choices=x[left], unique=True, max_batch_size=256)
        for row in chosen:
            rows.append(int(left[int(torch.argmin(((x[left] - row) ** 2).sum(dim=1)))]))
    return np.array(rows)


ENTRIES: dict[str, Callable[[ObjectivesTable, int], IntArray]] = {
    MIXTURE: mixture,
    BOTORCH: botorch,
    "random": random_rows,
}


def play(problem: ObjectivesTable, entry: str, seed: int) -> dict[str, object]:
    """One run: shares of the hypervolume after every plate."""
    start = perf_counter()
    rows = ENTRIES[entry](problem, seed)
    assert len(set(rows.tolist())) == PLATE * PLATES
    shares = [round(problem.share(rows[:n]), 6) for n in range(PLATE, PLATE * PLATES + 1, PLATE)]
    seconds = round(perf_counter() - start, 1)
    return {"table": problem.name, "entry": entry, "seed": seed, "seconds": seconds, "shares": json.dumps(shares)}


def read(path: Path) -> Iterator[Mapping[str, str]]:
    """Runs of a file."""
    if path.exists():
        with path.open(newline="") as file:
            yield from csv.DictReader(file)


def interval(values: FloatArray) -> str:
    """Mean and its 95% interval by the bootstrap."""
    rng = np.random.default_rng(0)
    means = np.array([rng.choice(values, values.size).mean() for _ in range(10_000)])
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def summary(path: Path) -> list[str]:
    """Lines of a table in Markdown: hypervolume after 25 and 50 experiments by table and entry."""
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for run in read(path):
        found.setdefault((run["table"], run["entry"]), {})[int(run["seed"])] = json.loads(run["shares"])
    lines = ["| table | method | seeds | after 25 | after 50 |", "|---|---|---|---|---|"]
    for (table, entry), runs in sorted(found.items()):
        shares = np.array(list(runs.values()))
        cells = [interval(shares[:, n // PLATE - 1]) for n in (25, 50)]
        lines.append(f"| {table} | {entry} | {len(runs)} | {cells[0]} | {cells[1]} |")
    for table in sorted({table for table, _ in found}):
        own, other = (found.get((table, entry), {}) for entry in (MIXTURE, BOTORCH))
        if both := sorted(own.keys() & other.keys()):
            gaps = np.array([own[seed][-1] - other[seed][-1] for seed in both])
            lines += ["", f"{table}: mixture less BoTorch after 50, on {len(both)} seeds: {interval(gaps)}."]
    return lines


def main() -> None:
    """Play, or show what a file has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("play", "show"))
    parser.add_argument("path", type=Path, help="The folder of tables, or the file of runs.")
    parser.add_argument("--out", type=Path, default=Path("objectives.csv"))
    parser.add_argument("--table", default="arylation_cost", choices=sorted(OBJECTIVES))
    parser.add_argument("--entry", action="append", choices=sorted(ENTRIES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    given = parser.parse_args()
    if given.action == "show":
        print("\n".join(summary(given.path)))
        return
    problem = ObjectivesTable.read(given.path / f"{given.table}.npz")
    seeds = range(given.first, given.first + given.seeds)
    wanted = [(problem.name, entry, seed) for seed in seeds for entry in given.entry or ENTRIES]
    kept = {(run["table"], run["entry"], int(run["seed"])): run for run in read(given.out)}
    kept = {key: run for key, run in kept.items() if key[1] == BOTORCH or key not in wanted}
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["table", "entry", "seed", "seconds", "shares"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept.values())
        for key in wanted:
            if key not in kept:
                writer.writerow(play(problem, *key[1:]))
                file.flush()


if __name__ == "__main__":
    main()
