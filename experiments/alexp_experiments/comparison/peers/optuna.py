"""Optuna's tree-structured Parzen estimator; the candidate closest to what it suggests is played."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from alexp.common.arrays import FloatArray
from alexp_experiments.comparison.peers.base import Peer, library


class TPE(Peer):
    """One parameter per column: a range, or categories where `categories=True`.

    Rows of a fingerprint are no parameters, and a category per row says nothing about the others: it plays tables of
    inputs and of components only.
    """

    package: ClassVar[str] = "optuna"
    settings: ClassVar[tuple[str, ...]] = (*Peer.settings, "categories")

    def __init__(self, *arguments: Any, categories: bool = False, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.categories = bool(categories)

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Minus the distance to the suggestion: squared for ranges, the number of different values for categories."""
        optuna = library("optuna", "optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        kinds, names = optuna.distributions, [f"x{k}" for k in range(rows.shape[1])]
        ranges = {
            name: kinds.CategoricalDistribution(np.unique(self._scaled[:, k]).tolist())
            if self.categories
            else kinds.FloatDistribution(0.0, 1.0)
            for k, name in enumerate(names)
        }
        sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)), n_startup_trials=1)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for row, reward in zip(rows.tolist(), rewards.tolist(), strict=True):
            told = {"params": dict(zip(names, row, strict=True)), "distributions": ranges, "value": reward}
            study.add_trial(optuna.trial.create_trial(**told))
        asked = study.ask(ranges).params
        suggested = np.array([asked[name] for name in names])
        far = candidates != suggested if self.categories else (candidates - suggested) ** 2
        return np.asarray(-np.sum(far, axis=1, dtype=np.float64))
