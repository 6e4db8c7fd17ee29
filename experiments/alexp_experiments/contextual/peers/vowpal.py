"""Vowpal Wabbit: one line of shared features, one line per action; costs are minus the rewards."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from alexp.common.arrays import FloatArray
from alexp_experiments.comparison.peers import library
from alexp_experiments.contextual.playing import Pick
from alexp_experiments.contextual.streams import ContextRound, ContextStream


class VowpalChooser:
    """A workspace of Vowpal Wabbit with some arguments, on all columns of the context.

    Where candidates are new in every round their features are those of the actions, and there is nothing to cross them
    with.
    """

    def __init__(self, arguments: str, stream: ContextStream, seed: int) -> None:
        vowpal = library("vowpalwabbit", "vowpalwabbit", "contextual-peers")
        self._workspace = vowpal.Workspace(f"{arguments} --quiet --random_seed {1 + seed % 2**20}")
        self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(124,)))
        self._adf, self._n_arms, self._n_raw = "_adf" in arguments, len(stream.arms), stream.n_raw

    def decide(self, presented: ContextRound) -> Pick:
        """Draw an action with the probabilities that the workspace predicts."""
        lines = self._lines(presented)
        found = self._workspace.predict(lines if self._adf else lines[0])
        chances = np.asarray(found, dtype=np.float64).ravel()
        chances /= chances.sum()
        action = int(self._rng.choice(chances.size, p=chances))
        return Pick(action, float(chances[action]), lines)

    def learn(self, presented: ContextRound, pick: Pick, reward: float) -> None:
        """The same lines, the one that was chosen with its label."""
        assert isinstance(pick.note, list)
        lines: list[str] = list(pick.note)
        if self._adf:
            place = pick.action + (presented.candidates is None)
            lines[place] = f"0:{-reward:.6g}:{pick.probability:.6g} {lines[place]}"
            self._workspace.learn(lines)
        else:
            self._workspace.learn(f"{pick.action + 1}:{-reward:.6g}:{pick.probability:.6g} {lines[0]}")

    def weights(self) -> FloatArray:
        """None."""
        return np.empty(0)

    def _lines(self, presented: ContextRound) -> list[str]:
        if presented.candidates is not None:
            return [f"|a {_features(row)}" for row in presented.candidates.tolist()]
        shared = f"|x {_features(presented.context[: self._n_raw].tolist())}"
        if not self._adf:
            return [shared]
        return [f"shared {shared}", *(f"|a arm{k}" for k in range(self._n_arms))]


def _features(values: list[float]) -> str:
    return " ".join(f"{k}:{value:.6g}" for k, value in enumerate(values) if value)


def make(stream: ContextStream, seed: int, *, arguments: str) -> VowpalChooser:
    """A workspace; `{K}` in the arguments stands for the number of arms."""
    return VowpalChooser(arguments.format(K=len(stream.arms)), stream, seed)


def installed() -> str:
    """The version that results are kept under."""
    library("vowpalwabbit", "vowpalwabbit", "contextual-peers")
    return f"vowpalwabbit {version('vowpalwabbit')}"
