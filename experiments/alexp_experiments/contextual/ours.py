"""Algorithms of this library on a stream."""

from __future__ import annotations

import numpy as np

from alexp.algorithms import Algorithm
from alexp.algorithms.assumptions import quietly
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.components import component_from_dict
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.problem import Arms, Candidates, ModelClass
from alexp_experiments.contextual.playing import Pick
from alexp_experiments.contextual.streams import ContextRound, ContextStream
from alexp_experiments.core.plain import Json
from alexp_experiments.core.tasks import algorithm_class


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
