"""Everybody on every stream: runs, and one row per run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from alexp.common.validation import count
from alexp_experiments.contextual.entrants import CONTEXT_ENTRANTS, MIXTURE, OWN
from alexp_experiments.contextual.scenario import CONTEXT_SCENARIOS, ContextScenario
from alexp_experiments.core.statistics import MeanEstimate, estimate, ratio
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd

FIRST_SEED = 97_000  # no setting was chosen on these seeds
POINTS = 60  # of a regret curve that are kept
KEY = ("scenario", "entrant")


@dataclass(frozen=True)
class ContextCell:
    """One entrant on one stream, with all feature sets or with one of them, and its seeds."""

    title: str
    scenario: ContextScenario
    entrant: str
    seeds: tuple[int, ...]

    @property
    def tasks(self) -> list[Task]:
        """One run per seed."""
        return [CONTEXT_ENTRANTS[self.entrant].task(self.scenario, seed) for seed in self.seeds]

    def rows(self, records: Sequence[Record]) -> list[dict[str, object]]:
        """One row per seed; `curve` has the regret at `POINTS` moments, as text."""
        return [
            {
                "scenario": self.title,
                "entrant": self.entrant,
                "set": self.scenario.only or "",
                "seed": seed,
                "rounds": record.regret.size,
                "regret": float(record.regret[-1]),
                "late": record.final_gap,
                "favourite": record.recommended,
                "right": -1 if record.true_model < 0 else int(record.recommended == record.true_model),
                "ms": 1e3 * record.seconds / record.regret.size,
                "library": CONTEXT_ENTRANTS[self.entrant].library,
                "curve": " ".join(f"{value:.5g}" for value in record.regret[moments(record.regret.size) - 1]),
            }
            for seed, record in zip(self.seeds, records, strict=True)
        ]


def moments(rounds: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rounds whose regret is kept, counted from one; the last is the last."""
    return np.unique(np.linspace(1, rounds, min(POINTS, rounds)).astype(np.int64))


@dataclass(frozen=True)
class ContextContest:
    """What to run."""

    cells: tuple[ContextCell, ...]

    @classmethod
    def of(
        cls,
        scenarios: Sequence[str] | None = None,
        entrants: Sequence[str] | None = None,
        seeds: int = 10,
        first_seed: int = FIRST_SEED,
        steps: int | None = None,
    ) -> Self:
        """Check the names; errors list the valid ones."""
        cells, numbers = [], tuple(range(first_seed, first_seed + count("seeds", seeds, 2)))
        for title in scenarios or CONTEXT_SCENARIOS:
            if title not in CONTEXT_SCENARIOS:
                raise ValueError(f"there is no stream {title!r}; known are {'; '.join(CONTEXT_SCENARIOS)}")
            scenario = CONTEXT_SCENARIOS[title]
            scenario = scenario if steps is None else scenario.with_(steps=min(steps, scenario.steps))
            for name in entrants or OWN:
                if name not in CONTEXT_ENTRANTS:
                    raise ValueError(f"there is no entrant {name!r}; known are {'; '.join(CONTEXT_ENTRANTS)}")
                if CONTEXT_ENTRANTS[name].plays(scenario):
                    cells += [
                        ContextCell(title, one, name, numbers) for one in CONTEXT_ENTRANTS[name].scenarios(scenario)
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


# -- reading the runs --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContextSummary:
    """An entrant on a stream; with one set at a time, the set with the smallest mean regret of `n_sets`."""

    chosen: str
    n_sets: int
    regret: MeanEstimate
    late: float
    ms: float
    by_seed: dict[int, float]
    curves: np.ndarray[tuple[int, int], np.dtype[np.float64]]


def summaries(runs: pd.DataFrame) -> dict[tuple[str, str], ContextSummary]:
    """By scenario and entrant."""
    out: dict[tuple[str, str], ContextSummary] = {}
    for (scenario, entrant, chosen), rows in runs.groupby(["scenario", "entrant", "set"], sort=False):
        one = ContextSummary(
            str(chosen),
            1,
            estimate(rows["regret"]),
            float(rows["late"].mean()),
            float(rows["ms"].median()),
            dict(zip(rows["seed"].tolist(), rows["regret"].tolist(), strict=True)),
            np.array([[float(value) for value in str(curve).split()] for curve in rows["curve"]]),
        )
        key = str(scenario), str(entrant)
        best = out.get(key, one)
        tried = best.n_sets + (best is not one)
        out[key] = replace(one if one.regret.mean < best.regret.mean else best, n_sets=tried)
    return out


def against(
    found: dict[tuple[str, str], ContextSummary], scenario: str, entrant: str, other: str = MIXTURE
) -> MeanEstimate | None:
    """Regret of an entrant over that of another, on the seeds that both have played; None if there are none."""
    above, below = found.get((scenario, entrant)), found.get((scenario, other))
    if above is None or below is None or not (shared := sorted(set(above.by_seed) & set(below.by_seed))):
        return None
    return ratio([above.by_seed[k] for k in shared], [below.by_seed[k] for k in shared])
