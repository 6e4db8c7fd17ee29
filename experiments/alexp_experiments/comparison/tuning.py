"""Everybody's constants, chosen the same way: `alexp compare --tune`.

Each entrant that has constants plays eight settings of them, its defaults among them, on four scenarios and twenty
seeds that no reported run uses. The setting with the least geometric mean over the scenarios of mean regret is its
"tuned" row: one choice for all scenarios, as a user would have to make it. The sweep is kept in data/sweep.csv; the
choice is made from that file whenever it is asked for, so that there is no second file to disagree with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.files import write_text
from alexp_experiments.comparison.entries import ENTRANTS, SCENARIOS, TUNABLE, Constants, Entrant
from alexp_experiments.core.cache import merged
from alexp_experiments.core.statistics import estimate
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd

TUNING_SEEDS = tuple(range(80_000, 80_020))  # reported runs have seeds from 90,000 on
TUNING = ("s=2 σ=.01", "s=3 σ=.1", "s=3 σ=.5", "50 maps σ=.3")
TUNED = ", tuned"  # what the name of a row with chosen constants ends in
_SMALLEST = 1e-3  # regret below this counts as this in geometric means


@dataclass(frozen=True)
class Tried:
    """One setting of an entrant on one scenario."""

    entrant: str
    constants: Constants
    scenario: str

    def tasks(self, seeds: Sequence[int]) -> list[Task]:
        """One run per seed."""
        entrant = ENTRANTS[self.entrant].with_constants(self.constants)
        return [entrant.task(SCENARIOS[self.scenario], seed) for seed in seeds]


def attempts(entrants: Sequence[str] | None = None) -> list[Tried]:
    """All that is tried, for some entrants or for all that have constants."""
    for name in entrants or ():
        if name not in TUNABLE:
            raise ValueError(f"there are no constants to try for {name!r}; there are for {', '.join(TUNABLE)}")
    return [
        Tried(name, constants, scenario)
        for name in entrants or TUNABLE
        for constants in ENTRANTS[name].grid
        for scenario in TUNING
    ]


def tune(
    run: Callable[[list[Task]], list[Record]],
    entrants: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Play all attempts, on the tuning seeds; one row per attempt."""
    import pandas as pd

    tried, seeds = attempts(entrants), seeds or TUNING_SEEDS
    records, rows = run([task for attempt in tried for task in attempt.tasks(seeds)]), []
    for k, attempt in enumerate(tried):
        final = np.array([record.regret[-1] for record in records[k * len(seeds) : (k + 1) * len(seeds)]])
        regret = estimate(final)
        rows.append(
            {
                "algorithm": attempt.entrant,
                "constants": written(attempt.constants),
                "scenario": attempt.scenario,
                "first seed": seeds[0],
                "seeds": len(seeds),
                "mean": regret.mean,
                "s.e.": regret.error,
                "median": float(np.median(final)),
            }
        )
    return pd.DataFrame(rows)


def written(constants: Constants) -> str:
    """Constants as they are stored and shown.

    >>> written({"gain": 100.0, "arms": "all"})
    '{"arms": "all", "gain": 100.0}'
    """
    return json.dumps(constants, sort_keys=True)


def add_sweep(new: pd.DataFrame, path: Path) -> None:
    """Write a sweep, or add it to the one at `path`, where entrants that were swept before are replaced."""
    import pandas as pd

    table = merged(pd.read_csv(path), new, ["algorithm"]) if path.exists() else new
    order = {name: k for k, name in enumerate(TUNABLE)}
    table = table.sort_values("algorithm", key=lambda names: names.map(order), kind="stable")
    write_text(path, table.to_csv(index=False, float_format="%.6g"))


@cache
def stored_sweep() -> pd.DataFrame:
    """The sweep that comes with the library."""
    import pandas as pd

    with files("alexp_experiments.comparison").joinpath("data/sweep.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def scores(sweep: pd.DataFrame, entrant: str) -> dict[str, float]:
    """Geometric mean over the scenarios of mean regret, for every setting of an entrant that was tried."""
    rows = sweep[sweep["algorithm"] == entrant]
    return {
        str(constants): exp(sum(log(max(mean, _SMALLEST)) for mean in group["mean"]) / len(group))
        for constants, group in rows.groupby("constants", sort=False)
    }


def chosen(sweep: pd.DataFrame) -> dict[str, Constants]:
    """The best setting of every entrant of a sweep; the first of several, the defaults being first of all."""
    out: dict[str, Constants] = {}
    for name in dict.fromkeys(sweep["algorithm"]):
        of = scores(sweep, name)
        out[str(name)] = json.loads(min(of, key=lambda constants: of[constants]))
    return out


@cache
def everybody() -> dict[str, Entrant]:
    """All entrants with their defaults, each followed by itself with what the stored sweep has chosen for it."""
    tuned, out = chosen(stored_sweep()), dict[str, Entrant]()
    for name, entrant in ENTRANTS.items():
        out[name] = entrant
        if name in tuned:
            out[f"{name}{TUNED}"] = entrant.with_constants(tuned[name])
    return out
