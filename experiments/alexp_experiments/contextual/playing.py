"""Runs on streams of contexts: the streams by name, who chooses, and one run as a task."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from alexp.algorithms import Algorithm
from alexp.algorithms.assumptions import quietly
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.components import component_from_dict
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.validation import count
from alexp.problem import Arms, Candidates, ModelClass
from alexp.simulation import ModelEnvironment
from alexp_experiments.contextual import streams
from alexp_experiments.contextual.routing import routing_stream
from alexp_experiments.contextual.streams import ContextRound, ContextStream, linear_stream
from alexp_experiments.core.scenarios import Json, Scenario
from alexp_experiments.core.tasks import RECORD_FORMAT, Record, Task, algorithm_class, code_fingerprint, read_module

FAMILIES = (*streams.TABLES, "routing", "linear")


@dataclass(frozen=True)
class ContextScenario(Scenario):
    """Rounds with contexts or with candidates that change.

    Attributes
    ----------
    family : "digits", "wine" or "breast cancer", see `classification`; "routing"; "linear", whose candidates are new
        in every round.
    passes : over the rows of a table.
    steps : rounds; a table's are at most its rows times `passes`.
    n_maps : language models to route to, or blocks of features.
    only : the feature set that is kept, if not all of them are.
    """

    family: str = "digits"
    steps: int = 10**9
    passes: int = 1
    n_maps: int = 2
    noise_std: float = 0.3
    only: str | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {self.family!r}")
        count("steps", self.steps)
        count("passes", self.passes)

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of all feature sets."""
        return tuple(self.with_(steps=2, only=None).stream(0).sets)

    @property
    def n_models(self) -> int:
        """M."""
        return len(self.sets) if self.only is None else 1

    def stream(self, seed: int) -> ContextStream:
        """The rounds of a seed."""
        if self.family == "routing":
            whole = routing_stream(self.steps, seed, self.n_maps)
        elif self.family == "linear":
            whole = linear_stream(self.steps, seed, n_sets=self.n_maps, noise_std=self.noise_std)
        else:
            whole = streams.classification_stream(self.family, self.passes, seed, self.steps)
        return whole if self.only is None else whole.with_set(self.only)

    def environment(self, seed: int) -> ModelEnvironment:
        """There is none with a fixed set of candidates."""
        raise TypeError("a stream of contexts has no fixed candidates; use stream(seed)")


CONTEXT_SCENARIOS: dict[str, ContextScenario] = {
    "digits": ContextScenario(),
    "wine": ContextScenario(family="wine"),
    "wine, five passes": ContextScenario(family="wine", passes=5),
    "breast cancer": ContextScenario(family="breast cancer"),
    "routing, two models": ContextScenario(family="routing", steps=3000),
    "routing, three models": ContextScenario(family="routing", steps=3000, n_maps=3),
    "new candidates": ContextScenario(family="linear", steps=500, n_maps=8),
}


class Pick(NamedTuple):
    """What was chosen, by its place in the round, with which probability; `note` comes back with the reward."""

    action: int
    probability: float
    note: object = None


class Chooser(Protocol):
    """Somebody who decides and learns; ours, or an adapter of another library's learner."""

    def decide(self, presented: ContextRound) -> Pick:
        """Choose one of what is offered."""

    def learn(self, presented: ContextRound, pick: Pick, reward: float) -> None:
        """Take in the reward of what was chosen."""

    def weights(self) -> FloatArray:
        """Probabilities of the feature sets at the moment, (M,); empty if there are none."""


@dataclass(frozen=True)
class ContextRun:
    """What happened in T rounds.

    Attributes
    ----------
    regret : (T,) cumulative regret in expectation.
    actions : (T,) what was chosen.
    propensities : (T,) with which probability.
    rewards : (T,) what it gave.
    weights : (M,) probabilities of the feature sets at the end; empty if there are none.
    seconds : (T,) time of each decision and what was learnt from it.
    """

    regret: FloatArray
    actions: NDArray[np.int32]
    propensities: FloatArray
    rewards: FloatArray
    weights: FloatArray
    seconds: FloatArray


def play(chooser: Chooser, stream: ContextStream) -> ContextRun:
    """All rounds of a stream, in order."""
    n = len(stream)
    actions, propensities, rewards, seconds = np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n)
    for t, presented in enumerate(stream):
        begin = perf_counter()
        pick = chooser.decide(presented)
        middle = perf_counter()
        actions[t], propensities[t], rewards[t] = pick.action, pick.probability, stream.rewards[t, pick.action]
        after = perf_counter()
        chooser.learn(presented, pick, float(rewards[t]))
        seconds[t] = perf_counter() - after + middle - begin
    regret = np.cumsum(stream.regrets[np.arange(n), actions])
    return ContextRun(regret, actions, propensities, rewards, chooser.weights(), seconds)


def models_of(stream: ContextStream) -> ModelClass:
    """A class with one model per feature set: disjoint in the arms, or the blocks of new candidates."""
    if stream.candidates is None:
        return ModelClass.per_arm(dict(stream.sets), arms=len(stream.arms), intercept=True)
    return ModelClass.from_blocks({name: len(columns) for name, columns in stream.sets.items()})


class OwnChooser:
    """An algorithm that is asked and told."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm

    def decide(self, presented: ContextRound) -> Pick:
        """Ask."""
        if presented.candidates is None:
            trial = self.algorithm.ask(context=presented.context)
        else:
            trial = self.algorithm.ask(features=presented.candidates)
        return Pick(trial.index, trial.propensity, trial.id)

    def learn(self, presented: ContextRound, pick: Pick, reward: float) -> None:
        """Tell."""
        assert isinstance(pick.note, int)
        self.algorithm.tell(pick.note, reward)

    def weights(self) -> FloatArray:
        """Probabilities of the models, where there are any."""
        if not offers(self.algorithm, WeighsModels):
            return np.empty(0)
        return np.asarray(self.algorithm.probabilities)


def make(stream: ContextStream, seed: int, *, algorithm: str, **settings: Json) -> OwnChooser:
    """An algorithm of the registry; settings as in a task."""
    filled: State = {name: component_from_dict(value, name, whole=False) for name, value in settings.items()}
    domain = Arms(stream.arms) if stream.candidates is None else Candidates()
    with quietly():
        return OwnChooser(algorithm_class(algorithm)(models_of(stream), domain, random_state=seed, **filled))


OURS = "alexp_experiments.contextual.playing:make"
_STREAMS = ("alexp_experiments.contextual.streams", "alexp_experiments.contextual.routing", __name__)


class ContextTask(Task):
    """A stream, who chooses on it, and a seed.

    `algorithm` is "package.module:function": a function of the stream, a seed and the settings that returns a
    `Chooser`. For ours the settings name the algorithm of the registry.

    Records have in `snapshot` the probabilities of the feature sets at the end, in `final_gap` the regret per round
    over the last quarter.
    """

    @property
    def kind(self) -> str:
        """What has to be compiled."""
        return f"{self.algorithm} {self.settings.get('algorithm', '')}"

    @cached_property
    def configuration(self) -> str:
        """Content hash of stream, settings, and the code or the version of the library that decides."""
        module = self.algorithm.partition(":")[0]
        if self.algorithm == OURS:
            own = algorithm_class(str(self.settings["algorithm"])).__module__
            made_by = code_fingerprint(module, own)
        else:
            sources = [read_module(name)[0].decode() for name in (module, *_STREAMS)]
            made_by = "\n".join([import_module(module).installed(), *sources])  # our algorithms have no say in it
        content = [RECORD_FORMAT, self.scenario.to_dict(), self.algorithm, dict(self.settings), made_by]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    def chooser(self, stream: ContextStream) -> Chooser:
        """Who plays, before the first round."""
        module, _, name = self.algorithm.partition(":")
        made: Chooser = getattr(import_module(module), name)(stream, self.seeds[1], **self.settings)
        return made

    def run(self) -> Record:
        """Play it."""
        scenario = self.scenario
        assert isinstance(scenario, ContextScenario)
        stream = scenario.stream(self.seeds[0])
        with quietly():
            run = play(self.chooser(stream), stream)
        quarter = max(len(stream) // 4, 1)
        weights = run.weights.astype(np.float32)
        true = -1 if stream.true_set is None else stream.true_set
        return Record(
            regret=run.regret,
            visited=np.zeros(len(stream), np.int32),
            q_true=weights[true : true + 1] if true >= 0 else np.empty(0, np.float32),
            snapshot=weights,
            true_model=true,
            recommended=int(weights.argmax()) if weights.size else -1,
            final_gap=float(run.regret[-1] - run.regret[-1 - quarter if len(stream) > quarter else 0]) / quarter,
            seconds=float(run.seconds.sum()),
            chosen=run.actions,
        )
