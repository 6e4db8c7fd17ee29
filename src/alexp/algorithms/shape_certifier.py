"""Certificates where only the shape of the noise was stated: noise="gaussian"."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from alexp.algorithms.assumptions import NotCertified
from alexp.algorithms.certifier import Certifier, PlausibleFits, truth
from alexp.algorithms.statements import DELTA, ModelCheck
from alexp.common.arrays import FloatArray
from alexp.estimation.shape import ShapeLedger
from alexp.problem.candidates import CandidateTable
from alexp.problem.models import ModelClass
from alexp.problem.ranges import RewardRange
from alexp.problem.rows import spread

_WIDEST, _MOST_COLUMNS = 200, 2000  # features of a model, and columns of all of them together, that are looked at
_LOOKED_AT = 300  # candidates that show how large the columns are
_SHOWN = 3  # trials that are named


def shape_condition(n_models: int, reward_bound: float | None = None, known: RewardRange | None = None) -> str:
    """What these certificates rest on, as a clause.

    >>> shape_condition(3)
    'if one of the 3 models is true and errors are bell-shaped'
    """
    parts = [truth(n_models), "errors are bell-shaped"]
    parts += [] if reward_bound is None else [f"rewards are within reward_bound = {reward_bound:g}"]
    parts += [] if known is None else [f"rewards lie between {known.low:g} and {known.high:g}"]
    return f"if {', '.join(parts[:-1])} and {parts[-1]}"


class ShapeCertifier(Certifier):
    """From nothing but models that are linear, and noise that is Gaussian with one unknown variance.

    `size` bounds how far the rewards of candidates lie from a constant, or from zero where models have none, if a range
    or a bound was stated.
    """

    def __init__(self, models: ModelClass, candidates: CandidateTable | None, size: float | None) -> None:
        if models.kernels is not None:
            raise NotCertified("kernels can follow any rewards, so that noise of unknown size is not told apart")
        widest = int(np.diff(models.offsets).max())
        if widest > _WIDEST or models.n_columns > _MOST_COLUMNS:
            raise NotCertified(
                f"certificates for noise of unknown size are for models of at most {_WIDEST} features, and "
                f"{_MOST_COLUMNS} columns together; got one with {widest}, and {models.n_columns} columns"
            )
        super().__init__(models, candidates)
        self._size = size if candidates is not None else None

    @cached_property
    def _ledger(self) -> ShapeLedger:
        typical: FloatArray | None = None
        if self._candidates is not None:
            typical = self._candidates.rows(spread(self._candidates.n_candidates, _LOOKED_AT)).T
        elif self._models.example_rows is not None:
            typical = self._models.example_rows.T
        return ShapeLedger(self._models, typical, self._size)

    def _caught_up(self) -> ShapeLedger:
        self._ledger.catch_up(self.told)
        self._ledger.look()
        return self._ledger

    def check(self, delta: float) -> ModelCheck:
        """Whether every model was ruled out."""
        ledger = self._caught_up()
        at = ledger.contradicted_at(delta)
        rejected = np.flatnonzero(ledger.largest > np.log(1.0 / delta))
        e_value = ledger.history[-1][1] if ledger.history else 0.0
        trials = () if at is None else self._missed(int(np.argmin(ledger.largest)), at)
        against = () if at is None else ("models",)
        return ModelCheck(delta, at is not None, at, max(e_value, 0.0), rejected, against, trials=trials)

    def _missed(self, j: int, at: int) -> tuple[int, ...]:
        """Positions of the rewards up to `at` that model j misses most."""
        rest = self._ledger.fits(DELTA).residuals_of(j, self.told.rows[:at], self.told.rewards[:at])
        return tuple(sorted(np.argsort(-np.abs(rest), kind="stable")[:_SHOWN].tolist()))

    def plausible(self, delta: float) -> PlausibleFits:
        """The models that were never ruled out at level delta; NotCertified while nothing is said of one of them."""
        ledger = self._caught_up()
        local = ledger.plausible(delta)
        if local.size == 0:
            raise NotCertified(self.check(delta).text)
        needed = int(ledger.ranks[local].max())
        if ledger.n_counted <= (max(needed, 1) if self._size is None else 1):
            raise NotCertified(
                f"too few rewards: models that are not ruled out have up to {self._coefficients()} coefficients, and "
                f"the first {len(self.told) - ledger.n_counted} of {len(self.told)} rewards only fix units"
            )
        return PlausibleFits(ledger.fits(delta), local, ledger.radii(local, delta))

    def _coefficients(self) -> int:
        return int(np.diff(self._models.offsets).max()) + int(self._models.intercept and not self._models.arm_blocks)
