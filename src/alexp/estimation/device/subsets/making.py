"""Mixtures of all subsets of a class, from what is known of rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.device.subsets.engine import engine_for
from alexp.estimation.device.subsets.law import KnownNoise, Law, UnknownNoise
from alexp.estimation.device.subsets.mixture import SubsetMixture

if TYPE_CHECKING:
    from alexp.problem.candidates import CandidateTable
    from alexp.problem.models import ModelClass

_LEAST = 1e-5  # ratio of noise to what coefficients contribute; widths are right to five digits at it, to three below


def ratio_subsets(
    models: ModelClass,
    candidates: CandidateTable | None,
    ratios: Sequence[float],
    noise_std: float | None,
    power: float,
    forget: float | None,
) -> SubsetMixture:
    """`mixture.making.ratio_mixture` of subsets that are enumerated."""
    table = _table(candidates, forget)
    units = _mean_squares(table, models.intercept)
    _check_digits(min(ratios) ** 0.5)
    pairs = tuple((1.0, ratio**-0.5) for ratio in ratios)
    law = UnknownNoise(tuple(ratios), units, power)
    return _mixture(models, law if noise_std is None else KnownNoise(noise_std, noise_std, pairs, units, power))


def level_subsets(
    models: ModelClass,
    candidates: CandidateTable | None,
    noise_std: float,
    norm_bound: float,
    noise_grid: Sequence[float],
    scale_grid: Sequence[float],
    effects: Sequence[float],
    power: float,
    forget: float | None,
) -> SubsetMixture:
    """`mixture.making.level_mixture` of subsets that are enumerated."""
    table = _table(candidates, forget)
    if effects:
        raise ValueError("misfit_grid is for models that are listed: leave it out, or leave out device")
    pairs = tuple((float(a), float(b)) for a in noise_grid for b in scale_grid)
    largest = float(_mean_squares(table, models.intercept).max()) ** 0.5 or 1.0
    _check_digits(min(a * noise_std / (b * norm_bound) for a, b in pairs) / largest)
    return _mixture(models, KnownNoise(noise_std, norm_bound, pairs, np.ones(models.n_columns), power))


def _mixture(models: ModelClass, law: Law) -> SubsetMixture:
    assert models.enumerated_on is not None
    engine = engine_for(models.enumerated_on, models.n_columns, models.dimension)
    return SubsetMixture(engine, law, models.n_columns, models.intercept)


def _check_digits(least: float) -> None:
    if least < _LEAST:
        raise ValueError(
            f"subsets that are enumerated take noise of at least {_LEAST:g} times what coefficients of the prior's "
            f"size contribute, got {least:.2g}; sums of squares have too few digits for less: state a larger "
            "noise_std, or list the models by leaving out device"
        )


def _table(candidates: CandidateTable | None, forget: float | None) -> FloatArray:
    if forget is not None:
        raise ValueError("forget is for models that are listed: leave it out, or leave out device")
    if candidates is None:
        raise ValueError("subsets that are enumerated need a table of candidates: contextual rounds have none")
    return candidates.table


def _mean_squares(table: FloatArray, centred: bool) -> FloatArray:
    """Mean squares of the columns (P, N) over the candidates, about their means if centred; zero for constants."""
    whole = np.einsum("pn,pn->p", table, table) / table.shape[1]
    if not centred:
        return np.asarray(whole)
    rest = table - table.mean(axis=1, keepdims=True)
    varying = np.einsum("pn,pn->p", rest, rest) / table.shape[1]
    return np.where(varying > 1e-28 * whole, varying, 0.0)
