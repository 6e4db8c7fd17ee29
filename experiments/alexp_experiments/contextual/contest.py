"""Entrants on streams of contexts, with which settings; their runs, one row each, and means of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Self

import numpy as np

from alexp.common.validation import count
from alexp_experiments.contextual.playing import CONTEXT_SCENARIOS, OURS, ContextScenario, ContextTask
from alexp_experiments.core.scenarios import Json, Settings
from alexp_experiments.core.statistics import MeanEstimate, estimate, ratio
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd


_PEERS = "alexp_experiments.contextual.peers"
MIXTURE, ALONE = "mixture", "mixture, one set"


@dataclass(frozen=True)
class ContextEntrant:
    """One row of the comparison.

    Attributes
    ----------
    each : whether it plays with one feature set at a time; the best of them in hindsight is reported.
    only : the one feature set it plays with, by its place: -1 is the last, which has all columns.
    arms : whether it can only play arms that stay.
    left_out : families of streams that it does not play: runs would be slow, or no set is the best one in all of them.
    """

    maker: str
    settings: Settings = field(default_factory=dict)
    each: bool = False
    only: int | None = None
    arms: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def is_peer(self) -> bool:
        """Whether another library does the work."""
        return self.maker != OURS

    @property
    def library(self) -> str:
        """The version of the library that does the work, for peers; "" for ours."""
        return str(import_module(self.maker.partition(":")[0]).installed()) if self.is_peer else ""

    def plays(self, scenario: ContextScenario) -> bool:
        """Whether it can, and does."""
        return (scenario.family != "linear" or not self.arms) and scenario.family not in self.left_out

    def scenarios(self, scenario: ContextScenario) -> Iterator[ContextScenario]:
        """What it plays: the scenario with all of its feature sets, or with one at a time."""
        if self.each:
            yield from (scenario.with_(only=name) for name in scenario.sets)
        else:
            yield scenario if self.only is None else scenario.with_(only=scenario.sets[self.only])

    def task(self, scenario: ContextScenario, seed: int) -> ContextTask:
        """The run under one seed."""
        return ContextTask(scenario, self.maker, self.settings, seed)


def _own(algorithm: str, **settings: Json) -> ContextEntrant:
    return ContextEntrant(OURS, {"algorithm": algorithm, **settings})


def _alone(algorithm: str, **settings: Json) -> ContextEntrant:
    return ContextEntrant(OURS, {"algorithm": algorithm, **settings}, each=True, left_out=("linear",))


def _coba(learner: str, arms: bool = True, left_out: tuple[str, ...] = ()) -> ContextEntrant:
    return ContextEntrant(f"{_PEERS}.coba:make", {"learner": learner}, arms=arms, left_out=left_out)


def _vowpal(arguments: str, arms: bool = True) -> ContextEntrant:
    return ContextEntrant(f"{_PEERS}.vowpal:make", {"arguments": arguments}, arms=arms)


OWN: dict[str, ContextEntrant] = {
    MIXTURE: _own("evidence-mixture"),
    ALONE: _alone("evidence-mixture"),
    "mixture, ucb": _own("evidence-mixture", rule="ucb"),
    "mixture, ucb, one set": _alone("evidence-mixture", rule="ucb"),
    "mixture-thompson": _own("mixture-thompson"),
    "alexp": replace(_own("alexp", noise_std=0.3), left_out=("digits",)),  # its Lasso has thousands of columns
    "lm-ucb": _own("lm-ucb", noise_std=0.3),
    "linucb, all columns": _own("linucb", noise_std=0.3),
    "linucb, one set": _alone("linucb", noise_std=0.3, model=0),
    "uniform": _own("uniform"),
}
COBA: dict[str, ContextEntrant] = {
    "coba epsilon": _coba("epsilon"),
    "coba UCB": _coba("ucb"),
    "coba LinUCB": _coba("linucb", arms=False),
    "coba LinTS": _coba("lints", arms=False, left_out=("digits",)),
    "coba Corral": _coba("corral"),
    "coba VW epsilon": _coba("vw epsilon", arms=False),
    "coba VW squarecb": _coba("vw squarecb", arms=False),
    "coba VW cover": _coba("vw cover", arms=False),
}
VOWPAL_DEFAULTS: dict[str, ContextEntrant] = {
    "VW cb_explore": _vowpal("--cb_explore {K}"),
    "VW": _vowpal("--cb_explore_adf", arms=False),
    "VW -q xa": _vowpal("--cb_explore_adf -q xa"),
}
# Of 81 settings, the best on each of digits, wine and breast cancer on seeds 95000 to 95002, and on all three.
VOWPAL: dict[str, ContextEntrant] = VOWPAL_DEFAULTS | {
    "VW squarecb -q xa": _vowpal("--cb_explore_adf --squarecb -q xa"),
    "VW squarecb, gamma 100 -q xa": _vowpal("--cb_explore_adf --squarecb --gamma_scale 100 -q xa"),
    "VW squarecb, gamma 1000 -q xa": _vowpal("--cb_explore_adf --squarecb --gamma_scale 1000 -q xa"),
    "VW softmax, rate 2 -q xa": _vowpal("--cb_explore_adf --softmax --lambda 10 -l 2 -q xa"),
    "VW epsilon 0.005 -q xa": _vowpal("--cb_explore_adf --epsilon 0.005 -q xa"),
    "VW bag 5, greedify -q xa": _vowpal("--cb_explore_adf --bag 5 --greedify -q xa"),
    "VW cover 5 -q xa": _vowpal("--cb_explore_adf --cover 5 -q xa"),
    "VW automl 4": _vowpal("--cb_explore_adf --automl 4"),
}
CONTEXT_ENTRANTS: dict[str, ContextEntrant] = OWN | COBA | VOWPAL


def playing_libraries(say: Callable[[str], None]) -> list[str]:
    """Entrants whose library is installed; of the other libraries it is said what is missing."""
    out = []
    for group in (COBA, VOWPAL):
        module = next(iter(group.values())).maker.partition(":")[0]
        try:
            import_module(module).installed()
        except ImportError as error:
            say(f"{', '.join(group)} do not play: {error}")
        else:
            out += list(group)
    return out


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
