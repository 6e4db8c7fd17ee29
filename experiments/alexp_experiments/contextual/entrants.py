"""Who plays streams of contexts, with which settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module

from alexp_experiments.contextual.scenario import ContextScenario
from alexp_experiments.contextual.tasks import OURS, ContextTask
from alexp_experiments.core.plain import Json, Settings

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
    """

    maker: str
    settings: Settings = field(default_factory=dict)
    each: bool = False
    only: int | None = None
    arms: bool = False

    @property
    def is_peer(self) -> bool:
        """Whether another library does the work."""
        return self.maker != OURS

    @property
    def library(self) -> str:
        """The version of the library that does the work, for peers; "" for ours."""
        return str(import_module(self.maker.partition(":")[0]).installed()) if self.is_peer else ""

    def plays(self, scenario: ContextScenario) -> bool:
        """Whether it can."""
        return scenario.family != "linear" or not self.arms

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
    return ContextEntrant(OURS, {"algorithm": algorithm, **settings}, each=True)


def _coba(learner: str, arms: bool = True) -> ContextEntrant:
    return ContextEntrant(f"{_PEERS}.coba:make", {"learner": learner}, arms=arms)


def _vowpal(arguments: str, arms: bool = True) -> ContextEntrant:
    return ContextEntrant(f"{_PEERS}.vowpal:make", {"arguments": arguments}, arms=arms)


OWN: dict[str, ContextEntrant] = {
    MIXTURE: _own("evidence-mixture"),
    ALONE: _alone("evidence-mixture"),
    "mixture, ucb": _own("evidence-mixture", rule="ucb"),
    "mixture, ucb, one set": _alone("evidence-mixture", rule="ucb"),
    "mixture-thompson": _own("mixture-thompson"),
    "alexp": _own("alexp", noise_std=0.3),
    "lm-ucb": _own("lm-ucb", noise_std=0.3),
    "linucb, all columns": _own("linucb", noise_std=0.3),
    "linucb, one set": _alone("linucb", noise_std=0.3, model=0),
    "uniform": _own("uniform"),
}
COBA: dict[str, ContextEntrant] = {
    "coba epsilon": _coba("epsilon"),
    "coba UCB": _coba("ucb"),
    "coba LinUCB": _coba("linucb", arms=False),
    "coba LinTS": _coba("lints", arms=False),
    "coba Corral": _coba("corral"),
    "coba VW epsilon": _coba("vw epsilon", arms=False),
    "coba VW squarecb": _coba("vw squarecb", arms=False),
    "coba VW cover": _coba("vw cover", arms=False),
}
VOWPAL: dict[str, ContextEntrant] = {
    "VW cb_explore": _vowpal("--cb_explore {K}"),
    "VW": _vowpal("--cb_explore_adf", arms=False),
    "VW -q xa": _vowpal("--cb_explore_adf -q xa"),
    "VW squarecb -q xa": _vowpal("--cb_explore_adf --squarecb -q xa"),
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
