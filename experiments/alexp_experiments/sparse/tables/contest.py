"""All runs behind the measured columns, one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from alexp.common.validation import count
from alexp_experiments.core.plain import Settings
from alexp_experiments.core.tasks import Record, Task
from alexp_experiments.sparse.tables.cells import SparseCell
from alexp_experiments.sparse.tables.entrants import (
    AT,
    ENTRANTS,
    GRID,
    RowPlayer,
    entrant,
)
from alexp_experiments.sparse.tables.known import master_cells, released_cells

if TYPE_CHECKING:
    import pandas as pd

FIRST_SEED = 98_000  # no setting was chosen on these seeds
KEY = ("entrant", "part", "p", "n")
QUICK_GRID, QUICK_WIDTHS, QUICK_SEEDS = (50, 100, 200), 2, 4


@dataclass(frozen=True)
class SparseContest:
    """What to run."""

    cells: tuple[SparseCell, ...]

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
        others = {"released": released_cells, "masters": master_cells}
        chosen = {name: entrant(name) for name in names or ENTRANTS if name not in others}
        for name, one in chosen.items():
            if names is not None and not one.plays:
                raise ValueError(f"row {name!r} needs the algorithm {one.algorithm!r}, which is not there")
        playing = [(name, one) for name, one in chosen.items() if one.plays]
        cells = [cell for name, one in playing for cell in _cells(name, one, seeds, first_seed, quick)]
        for name, made in others.items():
            if not quick and (names is None or name in names):
                cells += made(first_seed, seeds)
        return cls(tuple(cells))

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


def _cells(name: str, one: RowPlayer, seeds: int | None, first: int, quick: bool) -> Iterator[SparseCell]:
    def numbers(default: int) -> tuple[int, ...]:
        return tuple(range(first, first + (seeds or (QUICK_SEEDS if quick else default))))

    def cell(part: str, p: int, n: int, moments: tuple[int, ...], settings: Settings, default: int) -> SparseCell:
        return SparseCell(name, part, one.scenario(p, n), moments, one.algorithm, settings, numbers(default))

    at, grid = AT[one.family], QUICK_GRID if quick else GRID
    if one.told_horizon:
        for n in grid if quick else (*grid, *one.further):
            yield cell("n", at, n, (n,), one.settings, one.seeds)
    else:
        yield cell("n", at, grid[-1], tuple(grid), one.settings, one.seeds)
    rounds = grid[-1] if quick else one.width_rounds
    for p in one.widths[:QUICK_WIDTHS] if quick else one.widths:
        yield cell("p", p, rounds, (rounds,), {**one.settings, **one.width_settings}, one.width_seeds)
