"""Every algorithm on every scenario: runs, one table, and what it is stored as.

The table has one row per scenario and entrant: seeds, mean regret and its standard error, median, worst seed, stuck
seeds (more than 0.1 regret per round over the last quarter), seeds that lose as much because most of those rounds went
to agents that had never played before, and milliseconds per step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypedDict

import numpy as np

from alexp.common.files import write_text
from alexp.common.validation import count
from alexp_experiments.comparison.entries import INFORMED, LONG, QUICK, SCENARIOS, TWELVE, plays, seeds_for
from alexp_experiments.comparison.tuning import everybody
from alexp_experiments.core.cache import merged
from alexp_experiments.core.statistics import estimate, is_stuck
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd

FIRST_SEED = 90_000  # no setting of any algorithm was chosen on these seeds
SEEDS = 40
_SMALLEST = 1e-3  # regret below this counts as this in geometric means


Summary = TypedDict(
    "Summary",
    {
        "steps": int,
        "seeds": int,
        "mean": float,
        "s.e.": float,
        "median": float,
        "worst": float,
        "stuck": int,
        "starting": int,
        "ms per step": float,
    },
)


@dataclass(frozen=True)
class Cell:
    """One entrant on one scenario with its seeds."""

    scenario: str
    entrant: str
    seeds: tuple[int, ...]

    @property
    def tasks(self) -> list[Task]:
        """One run per seed."""
        return [everybody()[self.entrant].task(SCENARIOS[self.scenario], seed) for seed in self.seeds]


@dataclass(frozen=True)
class Contest:
    """What to run."""

    cells: tuple[Cell, ...]

    @classmethod
    def of(
        cls,
        scenarios: Sequence[str] | None = None,
        entrants: Sequence[str] | None = None,
        seeds: int = SEEDS,
        first_seed: int = FIRST_SEED,
        quick: bool = False,
    ) -> Self:
        """Check the names; errors list the valid ones. `quick` means a few scenarios and short ones only."""
        names = list(scenarios or (QUICK if quick else SCENARIOS))
        _known("scenario", names, list(SCENARIOS))
        known = everybody()
        wanted = list(entrants or known)
        _known("algorithm", wanted, list(known))
        count("seeds", seeds, 2)
        cells = []
        for name in names:
            for who, entrant in known.items():
                if who in wanted and plays(name, entrant):
                    numbers = tuple(range(first_seed, first_seed + seeds_for(name, entrant, seeds)))
                    cells.append(Cell(name, who, numbers))
        return cls(tuple(cells))

    @property
    def tasks(self) -> list[Task]:
        """All runs."""
        return [task for cell in self.cells for task in cell.tasks]

    def table(self, records: Sequence[Record]) -> pd.DataFrame:
        """One row per cell, from the records of `tasks`."""
        import pandas as pd

        rows, start = [], 0
        for cell in self.cells:
            group = records[start : start + len(cell.seeds)]
            start += len(cell.seeds)
            rows.append({"scenario": cell.scenario, "algorithm": cell.entrant} | summary(group))
        return pd.DataFrame(rows)


def summary(records: Sequence[Record]) -> Summary:
    """Regret over the seeds of one cell, and the time of a step."""
    curves = np.array([record.regret for record in records])
    final, regret = curves[:, -1], estimate(curves[:, -1])
    slow, starting = is_stuck(curves), np.array([_starting(record) for record in records])
    return {
        "steps": curves.shape[1],
        "seeds": len(records),
        "mean": regret.mean,
        "s.e.": regret.error,
        "median": float(np.median(final)),
        "worst": float(final.max()),
        "stuck": int(np.sum(slow & ~starting)),
        "starting": int(np.sum(slow & starting)),
        "ms per step": 1e3 * float(np.median([record.seconds for record in records])) / curves.shape[1],
    }


def _starting(record: Record) -> bool:
    """Whether most rounds of the last quarter were the first of some agent."""
    n = len(record.visited)
    quarter = min(max(n // 4, 1), n - 1)
    return bool(record.visited[-1] - record.visited[-1 - quarter] > quarter / 2)


def _known(kind: str, names: Sequence[str], valid: Sequence[str]) -> None:
    for name in names:
        if name not in valid:
            raise ValueError(f"there is no {kind} {name!r}; known are {', '.join(valid)}")


def run(contest: Contest, sweep: Callable[[list[Task]], list[Record]]) -> pd.DataFrame:
    """Run a contest through a sweep and return its table."""
    return contest.table(sweep(contest.tasks))


# -- reading the table -----------------------------------------------------------------------------------------


def pivot(table: pd.DataFrame, value: str, scenarios: Sequence[str]) -> pd.DataFrame:
    """Algorithms x scenarios; only the scenarios that are in the table."""
    wide = table.pivot_table(index="algorithm", columns="scenario", values=value, sort=False)
    return wide[[name for name in scenarios if name in wide.columns]]


def best_informed(table: pd.DataFrame, agents: Sequence[str] = INFORMED) -> pd.Series:
    """Per scenario: the least mean regret of the agents that are told the true model."""
    return table[table["algorithm"].isin(agents)].groupby("scenario", sort=False)["mean"].min()


def geometric_means(table: pd.DataFrame, scenarios: Sequence[str] = tuple(TWELVE)) -> pd.DataFrame:
    """Per algorithm: geometric means over scenarios of mean, median and worst regret, and ratios of the first.

    The ratios are to the oracle, to ALExp, and to the best informed agent of every scenario ("x informed"). Sorted from
    best to worst. Algorithms that miss one of the scenarios are left out.
    """
    import pandas as pd

    wide = {name: pivot(table, name, scenarios).dropna() for name in ("mean", "median", "worst")}
    out = pd.DataFrame({name: np.exp(np.log(of.clip(lower=_SMALLEST)).mean(axis=1)) for name, of in wide.items()})
    for name, column in (("stuck", "stuck"), ("starting", "starting"), ("runs", "seeds")):
        out[name] = pivot(table, column, scenarios).dropna().sum(axis=1)
    yardstick = best_informed(table).reindex(wide["mean"].columns)
    if not yardstick.isna().any():
        out["x informed"] = out["mean"] / float(np.exp(np.log(yardstick.clip(lower=_SMALLEST)).mean()))
    for reference in ("oracle", "alexp"):
        if reference in out.index:
            out[f"x {reference}"] = out["mean"] / float(out["mean"][reference])
    out["ms per step"] = pivot(table, "ms per step", scenarios).median(axis=1)
    return out.sort_values("mean")


def linear_regret(table: pd.DataFrame) -> dict[str, int]:
    """Stuck seeds on the long scenarios, per algorithm."""
    rows = table[table["scenario"].isin(list(LONG))]
    return {str(name): int(group["stuck"].sum()) for name, group in rows.groupby("algorithm", sort=False)}


def store(table: pd.DataFrame, path: Path, add: bool = False) -> pd.DataFrame:
    """Write the table as CSV; with `add` beside what is there of other cells. Returns what was written, in order."""
    if add and path.exists():
        table = merged(stored(path), table, ["scenario", "algorithm"])
    places = {cell: k for k, cell in enumerate(product(SCENARIOS, everybody()))}
    cells = enumerate(zip(table["scenario"], table["algorithm"], strict=True))
    kept = sorted((places[cell], row) for row, cell in cells if cell in places)  # entrants that are no more go
    table = table.iloc[[row for _, row in kept]].reset_index(drop=True)
    write_text(path, table.to_csv(index=False, float_format="%.6g"))
    return table


def stored(path: Path) -> pd.DataFrame:
    """Read a table that `store` wrote."""
    import pandas as pd

    if not path.exists():
        raise FileNotFoundError(f"there is no table {path}; run `alexp compare` first")
    return pd.read_csv(path)
