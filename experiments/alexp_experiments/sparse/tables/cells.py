"""One entrant in one scenario, and the lines that its runs leave in the table of all runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alexp_experiments.core.plain import Settings
from alexp_experiments.core.tasks import Record, Task
from alexp_experiments.sparse.tables.instances import SparseScenario
from alexp_experiments.sparse.tables.tasks import SparseTask


@dataclass(frozen=True)
class SparseCell:
    """One entrant in one scenario; its regret is kept at `moments`."""

    name: str
    part: str
    scenario: SparseScenario
    moments: tuple[int, ...]
    algorithm: str
    settings: Settings
    seeds: tuple[int, ...]

    @property
    def tasks(self) -> list[Task]:
        """One run per seed."""
        return [SparseTask(self.scenario, self.algorithm, self.settings, seed) for seed in self.seeds]

    def rows(self, records: Sequence[Record]) -> Iterator[dict[str, object]]:
        """One line per seed and moment."""
        for seed, record in zip(self.seeds, records, strict=True):
            for n in self.moments:
                yield {
                    "entrant": self.name,
                    "part": self.part,
                    "p": self.scenario.n_columns,
                    "n": n,
                    "seed": seed,
                    "regret": float(record.regret[n - 1]),
                    "ms": 1e3 * record.seconds / self.scenario.steps,
                }
