"""Entrants on real tables, with which models and settings; their runs, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypedDict

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import count, one_of
from alexp.problem.kernel_models import is_counts
from alexp_experiments.comparison.peers import Peer, PeerTask
from alexp_experiments.comparison.tables.data import RealScenario, RealTable, load_table
from alexp_experiments.core.scenarios import Json, Settings
from alexp_experiments.core.tasks import Record, Task, algorithm_class

if TYPE_CHECKING:
    import pandas as pd


GOALS = ("sum", "best")
RANDOM, BOTORCH = "random", "BoTorch SingleTaskGP"
_PEERS, _RIVALS = "alexp_experiments.comparison.peers", "alexp_experiments.comparison.rivals"


def _any(table: RealTable) -> bool:
    return True


def _continuous(table: RealTable) -> bool:
    return table.inputs is not None


def _composed(table: RealTable) -> bool:
    return table.components is not None


def _has_maps(table: RealTable) -> bool:
    return table.inputs is None


def _has_counts(table: RealTable) -> bool:
    return any(is_counts(features) for features in table.matrices.values())


def _any_map(features: FloatArray) -> bool:
    return True


@dataclass(frozen=True)
class TableEntrant:
    """One row of the comparison.

    Attributes
    ----------
    goals : what it tries to do; one without a choice plays the same for both.
    models : which models it gets, see `RealTable.models`.
    each : whether it plays with one model at a time; the best of them in hindsight is reported.
    plays : the tables that make sense for it.
    takes : the maps that make sense for it, where it plays with one at a time.
    slow : whether a run takes minutes; it plays fewer seeds.
    by_goal : settings that say what the goal is.
    """

    algorithm: str
    models: str = "linear"
    settings: Settings = field(default_factory=dict)
    goals: tuple[str, ...] = GOALS
    each: bool = False
    plays: Callable[[RealTable], bool] = _any
    takes: Callable[[FloatArray], bool] = _any_map
    slow: bool = False
    by_goal: Callable[[str], Settings] = lambda goal: {}

    @property
    def is_peer(self) -> bool:
        """Whether another library does the work."""
        return self.algorithm.startswith((_PEERS, _RIVALS))

    @property
    def library(self) -> str:
        """The library that does the work and its version, for peers; "" for ours."""
        if not self.is_peer:
            return ""
        kind = algorithm_class(self.algorithm)
        assert issubclass(kind, Peer)
        return f"{kind.package} {kind.installed()}"

    @property
    def has_one_model(self) -> bool:
        """Whether it is ours and plays with one model at a time, as if it were known which one to take."""
        return self.each and not self.is_peer

    def scenarios(self, base: RealScenario) -> Iterator[RealScenario]:
        """The scenarios it plays on a table: one, or one per model."""
        scenario = base.with_(models=self.models)
        if not self.each:
            yield scenario
            return
        maps = base.table.matrices
        for number, name in enumerate(scenario.names):
            if name not in maps or self.takes(maps[name]):
                yield scenario.with_(only=number)

    def task(self, scenario: RealScenario, goal: str, seed: int) -> Task:
        """The run under one seed."""
        settings: dict[str, Json] = {"noise_std": None, **self.settings, **self.by_goal(goal)}
        settings["repeats"] = scenario.repeats
        if not self.is_peer:
            return Task(scenario, self.algorithm, settings, seed)
        kind = algorithm_class(self.algorithm)
        assert issubclass(kind, Peer)
        return PeerTask(scenario, self.algorithm, settings | {"library_version": kind.installed()}, seed)


def _goal(goal: str) -> Settings:
    return {"goal": goal}


def _rule(goal: str) -> Settings:
    return {"rule": "ucb" if goal == "sum" else "ei"}


def _peer(name: str, models: str = "matrices", module: str = _PEERS, **changes: object) -> TableEntrant:
    settings: dict[str, object] = {"each": True, "by_goal": _rule} | changes
    return TableEntrant(f"{module}:{name}", models, **settings)  # type: ignore[arg-type]


def _rival(name: str, models: str = "matrices", **changes: object) -> TableEntrant:
    return _peer(name, models, _RIVALS, slow=True, **changes)


OURS: dict[str, TableEntrant] = {
    "mixture, linear maps": TableEntrant("evidence-mixture", "linear", by_goal=_goal),
    "mixture, linear maps and waves": TableEntrant(
        "evidence-mixture", "linear and waves", plays=_continuous, by_goal=_goal
    ),
    "mixture, kernels": TableEntrant("evidence-mixture", "kernels", by_goal=_goal),
    "mixture, kernels on whole rows": TableEntrant(
        "evidence-mixture", "maps with kernels", plays=_composed, by_goal=_goal
    ),
    "LinUCB on one map": TableEntrant("linucb", "linear", {"model": 0}, ("sum",), each=True),
    "Gaussian process, one kernel": TableEntrant("evidence-mixture", "maps with kernels", each=True, by_goal=_goal),
    RANDOM: TableEntrant("uniform"),
}
UCB = "mixture, kernels, ucb"  # of the board's coverage: for many good rows rather than the best one
_UCB = TableEntrant("evidence-mixture", "kernels", {"rule": "ucb", "power": 1.0}, ("best",), by_goal=_goal)
_SAMPLERS = (("TPE", "TPE", _PEERS, False), ("GP", "OptunaGP", _RIVALS, True))
PEERS: dict[str, TableEntrant] = {
    BOTORCH: _peer("BotorchGP", slow=True),
    "SAASBO": _rival("SAASBO"),
    **{f"BayBE, {preset}": _rival("BayBE", settings={"preset": preset}) for preset in ("EDBO", "CHEN", "HVARFNER")},
    "Tanimoto GP (GAUCHE)": _rival("TanimotoGP", plays=_has_counts, takes=is_counts),
    "MolDAIS": _rival("MolDAIS", "side by side", each=False, plays=_has_maps),
    "FABO": _rival("FABO", "side by side", each=False, plays=_has_maps),
    "scikit-learn Gaussian process": _peer("SklearnGP"),
    "random forest": _peer("Forest"),
    **{
        f"Optuna {sampler}, inputs": _peer(
            kind, module=module, slow=slow, each=False, plays=_continuous, by_goal=lambda goal: {}
        )
        for sampler, kind, module, slow in _SAMPLERS
    },
    **{
        f"Optuna {sampler}, components": _peer(
            kind, "levels", module, slow=slow, settings={"categories": True}, each=False, plays=_composed,
            by_goal=lambda goal: {},
        )
        for sampler, kind, module, slow in _SAMPLERS
    },
}  # fmt: skip
TABLE_ENTRANTS: dict[str, TableEntrant] = OURS | {UCB: _UCB} | PEERS


SLOW = tuple(name for name, entrant in TABLE_ENTRANTS.items() if entrant.slow)


def playing_peers(say: Callable[[str], None]) -> list[str]:
    """Peers whose library is installed; of the others it is said what is missing."""
    out = []
    for name, entrant in PEERS.items():
        kind = algorithm_class(entrant.algorithm)
        assert issubclass(kind, Peer)
        try:
            kind.installed()
        except ImportError as error:
            say(f"{name} does not play: {error}")
        else:
            out.append(name)
    return out


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
    return {
        "regret": float(record.regret[-1]),
        "gap": float(scores.max() - scores[found].max()),
        "top": found_share(table, record, table.top),
        "best": float(table.rewards[found].max()),
        "seconds": record.seconds / record.chosen.size,
    }


def found_share(table: RealTable, record: Record, best: int) -> float:
    """Share of the `best` rows of a table that a run found; of rows that are equal to the last of them any will do."""
    scores, found = table.scores, np.unique(record.chosen)
    return min(1.0, float(np.sum(scores[found] >= np.sort(scores)[-best])) / best)


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
        first: int = 5,
        start: str = "random",
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
            base = RealScenario.of(source, steps=rounds, plate=plate, repeats=repeats, first=first, start=start)
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
