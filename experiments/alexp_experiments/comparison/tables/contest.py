"""Everybody on every table: runs, and one row per run of what it reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypedDict

import numpy as np

from alexp.common.validation import count, one_of
from alexp_experiments.comparison.tables.data import RealTable, load_table
from alexp_experiments.comparison.tables.entrants import GOALS, OURS, TABLE_ENTRANTS
from alexp_experiments.comparison.tables.scenario import RealScenario
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd

FIRST_SEED = 95_000  # nothing was tuned on these seeds


class PlayedAs(TypedDict):
    """What runs have in common that may be compared."""

    rounds: int
    plate: int
    repeats: bool


class Reached(TypedDict):
    """What a run of n rounds reached; rewards as z-scores.

    `regret` is R(n), `gap` how far the best row found is below the best of the table, `top` the share of the best
    hundredth of the rows that was found, `best` the best reward found in the table's unit, `seconds` per round.
    """

    regret: float
    gap: float
    top: float
    best: float
    seconds: float


KEY = ("rounds", "plate", "repeats", "goal", "table", "entrant")


@dataclass(frozen=True)
class TableCell:
    """One entrant with one goal on one table, with one of its models or all of them, and its seeds."""

    scenario: RealScenario
    entrant: str
    goal: str
    model: str
    seeds: tuple[int, ...]

    @property
    def tasks(self) -> list[Task]:
        """One run per seed."""
        return [TABLE_ENTRANTS[self.entrant].task(self.scenario, self.goal, seed) for seed in self.seeds]

    def rows(self, records: Sequence[Record]) -> list[dict[str, object]]:
        """One row per seed."""
        protocol: PlayedAs = {
            "rounds": self.scenario.steps, "plate": self.scenario.plate, "repeats": self.scenario.repeats
        }  # fmt: skip
        what = {"goal": self.goal, "table": self.scenario.family, "entrant": self.entrant, "model": self.model}
        table, library = self.scenario.table, TABLE_ENTRANTS[self.entrant].library
        return [
            {**protocol, **what, "seed": seed, **outcome(table, record), "library": library}
            for seed, record in zip(self.seeds, records, strict=True)
        ]


def outcome(table: RealTable, record: Record) -> Reached:
    """What a run on all rows of a table reached."""
    scores, found = table.scores, np.unique(record.chosen)
    limit = np.sort(scores)[-table.top]
    return {
        "regret": float(record.regret[-1]),
        "gap": float(scores.max() - scores[found].max()),
        "top": min(1.0, float(np.sum(scores[found] >= limit)) / table.top),
        "best": float(table.rewards[found].max()),
        "seconds": record.seconds / record.chosen.size,
    }


@dataclass(frozen=True)
class TableContest:
    """What to run."""

    cells: tuple[TableCell, ...]

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        entrants: Sequence[str] | None = None,
        goals: Sequence[str] = GOALS,
        seeds: int = 20,
        first_seed: int = FIRST_SEED,
        rounds: int = 100,
        plate: int = 1,
        repeats: bool = False,
    ) -> Self:
        """Check the names; errors list the valid ones. Who plays with one model at a time has a cell for each."""
        for goal in goals:
            one_of("goal", goal, GOALS)
        wanted = list(OURS if entrants is None else entrants)
        for name in wanted:
            if name not in TABLE_ENTRANTS:
                raise ValueError(f"there is no entrant {name!r}; known are {'; '.join(TABLE_ENTRANTS)}")
        numbers = tuple(range(first_seed, first_seed + count("seeds", seeds, 2)))
        cells = []
        for source in sources:
            table = load_table(source)
            if not repeats and rounds > table.n_rows:
                raise ValueError(f"{table.name} has {table.n_rows} rows, too few for {rounds} rounds without repeats")
            base = RealScenario.of(source, steps=rounds, plate=plate, repeats=repeats)
            for name in wanted:
                entrant = TABLE_ENTRANTS[name]
                if not entrant.plays(table) or (entrant.is_peer and plate > 1):
                    continue
                for scenario in entrant.scenarios(base):
                    model = "" if scenario.only is None else scenario.names[scenario.only]
                    cells += [
                        TableCell(scenario, name, goal, model, numbers) for goal in entrant.goals if goal in goals
                    ]
        return cls(tuple(cells))

    @property
    def tasks(self) -> list[Task]:
        """All runs."""
        return [task for cell in self.cells for task in cell.tasks]

    def run(self, sweep: Callable[[list[Task]], list[Record]]) -> pd.DataFrame:
        """One row per run."""
        import pandas as pd

        records, rows = iter(sweep(self.tasks)), []
        for cell in self.cells:
            rows += cell.rows([next(records) for _ in cell.seeds])
        return pd.DataFrame(rows)


def overview(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, one row per entrant, model, goal and table."""
    keys = ["table", "goal", "entrant", "model"]
    return runs.groupby(keys, sort=False)[["regret", "gap", "top", "best", "seconds"]].mean()
