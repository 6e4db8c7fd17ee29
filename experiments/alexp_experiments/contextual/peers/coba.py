"""Learners of coba. Arms are vectors of zeros and a one, which is how coba turns classes into actions."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import one_of
from alexp_experiments.comparison.peers import library
from alexp_experiments.contextual.playing import Pick
from alexp_experiments.contextual.streams import ContextRound, ContextStream

Numbers = tuple[float, ...]
EXTRA = "contextual-peers"


class CobaLearner(Protocol):
    """What coba's learners can do; what `predict` returns beyond action and probability goes back to `learn`."""

    def predict(self, context: Numbers | None, actions: list[Numbers]) -> tuple[Numbers, float, dict[str, object]]:
        """Choose one of the actions."""

    def learn(
        self, context: Numbers | None, action: Numbers, reward: float, probability: float, **kwargs: object
    ) -> None:
        """Take in a reward."""


LEARNERS = {
    "epsilon": "BanditEpsilonLearner",
    "ucb": "BanditUCBLearner",
    "linucb": "LinUCBLearner",
    "lints": "LinTSLearner",
    "vw epsilon": "VowpalEpsilonLearner",
    "vw squarecb": "VowpalSquarecbLearner",
    "vw cover": "VowpalCoverLearner",
}


class CobaChooser:
    """A learner of coba with its default settings, on all columns of the context.

    `squeezed` moves rewards into [0, 1], which Corral insists on.
    """

    def __init__(self, learner: CobaLearner, stream: ContextStream, squeezed: bool) -> None:
        self._learner = learner
        self._low, high = stream.reward_range if squeezed else (0.0, 1.0)
        self._width = high - self._low
        n = len(stream.arms)
        self._n_raw = stream.n_raw
        self._arms: list[Numbers] = [tuple(float(i == k) for i in range(n)) for k in range(n)]

    def decide(self, presented: ContextRound) -> Pick:
        """Predict."""
        context, actions = self._translated(presented)
        action, probability, kwargs = self._learner.predict(context, actions)
        return Pick(actions.index(action), float(probability), kwargs)

    def learn(self, presented: ContextRound, pick: Pick, reward: float) -> None:
        """Hand the reward on, with what `predict` said."""
        context, actions = self._translated(presented)
        assert isinstance(pick.note, dict)
        reward = (reward - self._low) / self._width
        self._learner.learn(context, actions[pick.action], reward, pick.probability, **pick.note)

    def weights(self) -> FloatArray:
        """None."""
        return np.empty(0)

    def _translated(self, presented: ContextRound) -> tuple[Numbers | None, list[Numbers]]:
        if presented.candidates is None:
            return tuple(presented.context[: self._n_raw].tolist()), self._arms
        return None, [tuple(row) for row in presented.candidates.tolist()]


def make(stream: ContextStream, seed: int, *, learner: str) -> CobaChooser:
    """A learner by its name in `LEARNERS`, or "corral" for Corral over epsilon, UCB and LinUCB."""
    one_of("learner", learner, (*LEARNERS, "corral"))
    learners, safety = (library(module, "coba", EXTRA) for module in ("coba.learners", "coba.safety"))
    number = 1 + seed % 2**20
    build: Callable[[str], CobaLearner] = lambda name: getattr(learners, LEARNERS[name])(seed=number)  # noqa: E731
    if learner == "corral":
        inner = learners.CorralLearner([build(name) for name in ("epsilon", "ucb", "linucb")], seed=number)
    else:
        inner = build(learner)
    return CobaChooser(safety.SafeLearner(inner), stream, squeezed=learner == "corral")


def installed() -> str:
    """The versions that results are kept under."""
    library("coba", "coba", EXTRA)
    return f"coba {version('coba')}"
