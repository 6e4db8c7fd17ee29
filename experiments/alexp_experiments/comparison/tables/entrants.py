"""Who plays real tables, with which models and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from alexp_experiments.comparison.peers.base import Peer, PeerTask
from alexp_experiments.comparison.tables.data import RealTable
from alexp_experiments.comparison.tables.scenario import RealScenario
from alexp_experiments.core.plain import Json, Settings
from alexp_experiments.core.tasks import Task, algorithm_class

GOALS = ("sum", "best")
YARDSTICK, BOTORCH = "mixture of 0.1.0", "BoTorch SingleTaskGP"
_PEERS = "alexp_experiments.comparison.peers"


def _any(table: RealTable) -> bool:
    return True


def _continuous(table: RealTable) -> bool:
    return table.inputs is not None


def _composed(table: RealTable) -> bool:
    return table.components is not None


@dataclass(frozen=True)
class TableEntrant:
    """One row of the comparison.

    Attributes
    ----------
    goals : what it tries to do; one that cannot be told plays the same for both.
    models : which models it gets, see `RealTable.models`.
    each : whether it plays with one model at a time; the best of them in hindsight is reported.
    plays : the tables that make sense for it.
    by_goal : settings that say what the goal is.
    """

    algorithm: str
    models: str = "linear"
    settings: Settings = field(default_factory=dict)
    goals: tuple[str, ...] = GOALS
    each: bool = False
    plays: Callable[[RealTable], bool] = _any
    by_goal: Callable[[str], Settings] = lambda goal: {}
    told_repeats: bool = True

    @property
    def is_peer(self) -> bool:
        """Whether another library does the work."""
        return self.algorithm.startswith(_PEERS)

    @property
    def library(self) -> str:
        """The library that does the work and its version, for peers; "" for ours."""
        if not self.is_peer:
            return ""
        kind = algorithm_class(self.algorithm)
        assert issubclass(kind, Peer)
        return f"{kind.package} {kind.installed()}"

    @property
    def is_told(self) -> bool:
        """Whether it is ours and plays with one model at a time, as if it were told which one to take."""
        return self.each and not self.is_peer

    def scenarios(self, base: RealScenario) -> Iterator[RealScenario]:
        """The scenarios it plays on a table: one, or one per model."""
        scenario = base.with_(models=self.models)
        numbers = range(scenario.n_models) if self.each else [None]
        yield from (scenario.with_(only=number) for number in numbers)

    def task(self, scenario: RealScenario, goal: str, seed: int) -> Task:
        """The run under one seed."""
        settings: dict[str, Json] = {"noise_std": None, **self.settings, **self.by_goal(goal)}
        if self.told_repeats:
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


def _peer(path: str, models: str = "matrices", **changes: object) -> TableEntrant:
    settings: dict[str, object] = {"each": True, "by_goal": _rule} | changes
    return TableEntrant(f"{_PEERS}.{path}", models, **settings)  # type: ignore[arg-type]


# What 0.1.0 did on a table of unknown noise: bound and width were its defaults, measured rows were not offered again.
_OLD: Settings = {"reward_bound": 1.0, "rule": "ids", "power": 1.0}

OURS: dict[str, TableEntrant] = {
    YARDSTICK: TableEntrant("evidence-mixture", "linear", _OLD, told_repeats=False),
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
    "random": TableEntrant("uniform"),
}
PEERS: dict[str, TableEntrant] = {
    BOTORCH: _peer("botorch:BotorchGP"),
    "scikit-learn Gaussian process": _peer("sklearn:SklearnGP"),
    "random forest": _peer("sklearn:Forest"),
    "Optuna TPE, inputs": _peer("optuna:TPE", each=False, plays=_continuous, by_goal=lambda goal: {}),
    "Optuna TPE, components": _peer(
        "optuna:TPE", "levels", settings={"categories": True}, each=False, plays=_composed, by_goal=lambda goal: {}
    ),
}
TABLE_ENTRANTS: dict[str, TableEntrant] = OURS | PEERS


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
