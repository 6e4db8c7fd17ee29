"""Problems the benchmarks run on: the paper's Legendre classes, played or observed."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from alexp.algorithms import ALExp
from alexp.problem.domains import Interval
from alexp.problem.models import ModelClass
from alexp.simulation import SyntheticEnvironment

NOISE = 0.01
SEED = 7


@dataclass(frozen=True)
class LegendreProblem:
    """All `size`-subsets of the Legendre polynomials up to `degree`, on `resolution` candidates."""

    degree: int
    size: int
    resolution: int = 2000

    @property
    def n_models(self) -> int:
        """M = C(degree + 1, size)."""
        return comb(self.degree + 1, self.size)

    @property
    def label(self) -> str:
        """The problem in words."""
        return f"Legendre s={self.size}, p={self.degree}, M={self.n_models:,}, N={self.resolution}"


class Player:
    """ALExp and an environment of one problem, one round at a time."""

    def __init__(self, models: ModelClass, domain: Interval) -> None:
        self.environment = SyntheticEnvironment(models, domain, noise_std=NOISE, random_state=SEED)
        self.algorithm = ALExp(models, domain, noise_std=NOISE, random_state=SEED)
        self._rng = np.random.default_rng(SEED)

    @classmethod
    def of(cls, problem: LegendreProblem) -> Player:
        """A fresh run of a Legendre problem."""
        domain = Interval(-1.0, 1.0, resolution=problem.resolution)
        return cls(ModelClass.legendre(problem.degree, problem.size), domain)

    def step(self) -> None:
        """One ask and one tell."""
        trial = self.algorithm.ask()
        self.algorithm.tell(trial, self.environment.observe_index(trial.index))

    def observe(self, rounds: int) -> None:
        """Take in rewards of candidates drawn evenly, without asking: a cheap way to a later round."""
        for index in self._rng.integers(self.algorithm.domain.n_candidates, size=rounds).tolist():
            self.algorithm.observe(index, self.environment.observe_index(index))
