"""All runs behind the measured columns, one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from alexp.common.validation import count
from alexp.experiments.core.plain import Settings
from alexp.experiments.core.tasks import Record, Task
from alexp.experiments.sparse.tables.entrants import (
    CONTEXTS_AT,
    ENTRANTS,
    GRID,
    VECTORS_AT,
    Entrant,
    entrant,
)
from alexp.experiments.sparse.tables.tasks import SparseTask

if TYPE_CHECKING:
    import pandas as pd

FIRST_SEED = 98_000  # no setting was chosen on these seeds
KEY = ("entrant", "part", "p", "n")
QUICK_GRID, QUICK_WIDTHS, QUICK_SEEDS = (50, 100, 200), 2, 4


@dataclass(frozen=True)
class Cell:
    """One entrant with p columns and one number of rounds; its regret is kept at `moments`."""

    name: str
    part: str
    columns: int
    steps: int
    moments: tuple[int, ...]
    settings: Settings
    seeds: tuple[int, ...]

    @property
    def tasks(self) -> list[Task]:
        """One run per seed."""
        who = ENTRANTS[self.name]
        return [SparseTask(who.scenario(self.columns, self.steps), who.algorithm, self.settings, s) for s in self.seeds]

    def rows(self, records: Sequence[Record]) -> Iterator[dict[str, object]]:
        """One line per seed and moment."""
        for seed, record in zip(self.seeds, records, strict=True):
            for n in self.moments:
                yield {
                    "entrant": self.name,
                    "part": self.part,
                    "p": self.columns,
                    "n": n,
                    "seed": seed,
                    "regret": float(record.regret[n - 1]),
                    "ms": 1e3 * record.seconds / self.steps,
                }


@dataclass(frozen=True)
class SparseContest:
    """What to run."""

    cells: tuple[Cell, ...]

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None = None,
        seeds: int | None = None,
        first_seed: int = FIRST_SEED,
        quick: bool = False,
    ) -> Self:
        """Check the names; errors list the valid ones. Rows without an algorithm are left out unless named."""
        if seeds is not None:
            count("seeds", seeds, 2)
        chosen = {name: entrant(name) for name in names or ENTRANTS}
        for name, one in chosen.items():
            if names is not None and not one.plays:
                raise ValueError(f"row {name!r} needs the algorithm {one.algorithm!r}, which is not there")
        playing = [(name, one) for name, one in chosen.items() if one.plays]
        return cls(tuple(cell for name, one in playing for cell in _cells(name, one, seeds, first_seed, quick)))

    @property
    def tasks(self) -> list[Task]:
        """All runs."""
        return [task for cell in self.cells for task in cell.tasks]

    def run(self, sweep: Callable[[list[Task]], list[Record]]) -> pd.DataFrame:
        """One line per run and moment."""
        import pandas as pd

        records = iter(sweep(self.tasks))
        rows: list[dict[str, object]] = []
        for cell in self.cells:
            rows += cell.rows([next(records) for _ in cell.seeds])
        return pd.DataFrame(rows)


def _cells(name: str, one: Entrant, seeds: int | None, first: int, quick: bool) -> Iterator[Cell]:
    def numbers(default: int) -> tuple[int, ...]:
        return tuple(range(first, first + (seeds or (QUICK_SEEDS if quick else default))))

    at, grid = CONTEXTS_AT if one.family == "contexts" else VECTORS_AT, QUICK_GRID if quick else GRID
    if one.told_horizon:
        for n in grid if quick else (*grid, *one.further):
            yield Cell(name, "n", at, n, (n,), one.settings, numbers(one.seeds))
    else:
        yield Cell(name, "n", at, grid[-1], tuple(grid), one.settings, numbers(one.seeds))
    rounds = grid[-1] if quick else one.width_rounds
    settings = {**one.settings, **one.width_settings}
    for p in one.widths[:QUICK_WIDTHS] if quick else one.widths:
        yield Cell(name, "p", p, rounds, (rounds,), settings, numbers(one.width_seeds))
