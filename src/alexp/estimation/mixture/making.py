"""Mixtures of the models of a class on a set of candidates, from what is known of rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.backends import backend
from alexp.common.codec import State
from alexp.common.schema import anything, record
from alexp.common.validation import VANISHING
from alexp.common.warning import caution
from alexp.estimation.checking import Rewards
from alexp.estimation.factory import check_forgetting, takes_one_pass
from alexp.estimation.mixture.bernoulli import BernoulliMixture
from alexp.estimation.mixture.calibrating import (
    Measure,
    Scaling,
    prior_divisors,
    prior_scales,
    row_divisors,
    set_units,
    trace_divisors,
)
from alexp.estimation.mixture.mixture import Mixture, StudentMixture
from alexp.estimation.onepass.grid import OnePassGrid, keeps_values
from alexp.estimation.ridge.bank import RidgeGrid

if TYPE_CHECKING:
    from alexp.problem.candidates import CandidateTable
    from alexp.problem.matrices import ModelOnTable
    from alexp.problem.models import ModelClass


class _Levels(TypedDict):
    noise_std: float
    norm_bound: float
    noise_grid: Sequence[float]
    scale_grid: Sequence[float]


class _Measured(TypedDict):
    units: FloatArray | None
    calibrate: Measure | None


class _Common(TypedDict):
    power: float
    log_prior: FloatArray | None
    tables: list[ModelOnTable] | None
    arm_blocks: tuple[int, int] | None
    forget: float | None


def ratio_mixture(
    models: ModelClass,
    candidates: CandidateTable | None,
    ratios: Sequence[float],
    noise_std: float | None,
    power: float,
    reference: FloatArray | None = None,
    forget: float | None = None,
) -> Mixture:
    """Components (model, ratio of noise to prior variance), for rewards of unknown size; None for unknown noise.

    Without candidates, where these are new in every round, prior scales come from `reference` rows (n, P); without
    these from the first rows told, see `calibrating`.
    """
    if models.enumerated_on is not None:  # a mixture in all but its weights, which only itself looks into
        return cast(Mixture, backend("ratio_subsets")(models, candidates, ratios, noise_std, power, forget))
    common = _common(models, candidates, power, forget)
    scaling, calibrate = _scaling(models, candidates, common["tables"], reference)
    groups = (models.n_columns, models.columns_flat, models.offsets, scaling.divisors, models.intercept)
    measured: _Measured = {"units": scaling.units, "calibrate": calibrate}
    if noise_std is None:
        return StudentMixture(*groups, ratio_grid=ratios, **measured, **common)
    levels: _Levels = {
        "noise_std": noise_std, "norm_bound": noise_std, "noise_grid": (1.0,), "scale_grid": prior_scales(ratios),
    }  # fmt: skip
    return Mixture(*groups, **levels, **measured, **common)


def bernoulli_mixture(
    models: ModelClass, candidates: CandidateTable | None, scales: Sequence[float], power: float
) -> Mixture:
    """Components (model, prior scale of the logit), for rewards that are 0 or 1."""
    models.require_linear('likelihood="bernoulli"', "logits are linear in a model's features")
    scaling, calibrate = _scaling(models, candidates, None, None)
    groups = (models.n_columns, models.columns_flat, models.offsets, scaling.divisors, models.intercept)
    return BernoulliMixture(
        *groups,
        scale_grid=scales,
        free=models.free_columns,
        power=power,
        log_prior=_log_prior(models),
        arm_blocks=models.arm_blocks,
        units=scaling.units,
        calibrate=calibrate,
    )


def _scaling(
    models: ModelClass,
    candidates: CandidateTable | None,
    tables: list[ModelOnTable] | None,
    reference: FloatArray | None,
) -> tuple[Scaling, Measure | None]:
    """What features are divided by, and how to measure it where only rows told can say."""
    measure, reference = _measure(models), models.example_rows if reference is None else reference
    if candidates is not None and tables is not None:
        return Scaling(prior_divisors(tables, models.intercept, candidates.n_first)), None
    if candidates is not None:
        table = candidates.table[:, : candidates.n_first]
        return Scaling(trace_divisors(table, models.columns_flat, models.offsets, models.intercept)), None
    if reference is not None:
        return measure(reference), None
    return Scaling(np.ones(models.n_models), None if models.joined_sets is None else np.ones(models.n_columns)), measure


def take_up(mixture: Mixture, state: State, told: Callable[[], Rewards]) -> None:
    """Continue an empty mixture from the state of a run; from its rewards, where that state is of another form.

    Values at all candidates are kept on a device wherever models are there, and on the CPU where that is faster: a run
    that begins on one and continues on the other finds the state of the other form.
    """
    stored = record("state", state, {"mixture": anything})["mixture"]
    own = stored.get("grid", stored) if isinstance(stored, dict) else stored
    grid = getattr(mixture, "grid", None)  # subsets that are enumerated have none
    packed, on_candidates = isinstance(grid, RidgeGrid), isinstance(grid, OnePassGrid)
    if not (packed and keeps_values(own)) and not (on_candidates and isinstance(own, list)):
        mixture.restore(stored)
        return
    known = told()
    for row, y, index in zip(known.rows, known.rewards.tolist(), known.indices.tolist(), strict=True):
        mixture.update(row, y, index if index >= 0 else None)


def prefer(mixture: Mixture, sign: float) -> None:
    """Say that old results and new rewards, as the mixture gets them, rise together (1), or against each other (-1).

    Zero, as long as nothing is said, for neither. It matters to models of memories alone.
    """
    if isinstance(grid := getattr(mixture, "grid", None), OnePassGrid):
        grid.prefer(sign)


def _measure(models: ModelClass) -> Measure:
    """Units and divisors for rows told; `arm_blocks` says that rows have columns of their own for every arm."""
    settings = (models.columns_flat, models.offsets, models.intercept, models.arm_blocks, models.free_columns)

    def measure(rows: FloatArray) -> Scaling:
        if rows.size and 0.0 < float(np.abs(rows).max()) <= VANISHING:
            caution(
                f"no feature so far is larger than {VANISHING:g} in size, which counts as zero: every model predicts "
                "the same reward for all candidates; use other units",
                UserWarning,
            )
        if models.joined_sets is None:
            return Scaling(row_divisors(rows, *settings))
        units = set_units(rows, models.joined_sets, models.intercept, models.arm_blocks)
        return Scaling(row_divisors(rows / units, *settings), units)

    return measure


def level_mixture(
    models: ModelClass,
    candidates: CandidateTable | None,
    noise_std: float,
    norm_bound: float,
    noise_grid: Sequence[float],
    scale_grid: Sequence[float],
    power: float,
    forget: float | None = None,
) -> Mixture:
    """Components (model, noise level, prior scale), in multiples of the two."""
    if models.enumerated_on is not None:
        grids = (noise_grid, scale_grid)
        known = backend("level_subsets")(models, candidates, noise_std, norm_bound, *grids, power, forget)
        return cast(Mixture, known)
    groups = (models.n_columns, models.columns_flat, models.offsets, models.scales * models.roots, models.intercept)
    levels: _Levels = {
        "noise_std": noise_std, "norm_bound": norm_bound, "noise_grid": noise_grid, "scale_grid": scale_grid,
    }  # fmt: skip
    return Mixture(*groups, **levels, **_common(models, candidates, power, forget))


def _common(models: ModelClass, candidates: CandidateTable | None, power: float, forget: float | None) -> _Common:
    tables = None
    if forget is not None:
        check_forgetting(models)
    elif candidates is not None and takes_one_pass(models, candidates.n_candidates):
        tables = candidates.models(models)
    return {
        "power": power, "log_prior": _log_prior(models), "tables": tables, "arm_blocks": models.arm_blocks,
        "forget": forget,
    }  # fmt: skip


def _log_prior(models: ModelClass) -> FloatArray | None:
    return models.log_prior if np.ptp(models.log_prior) > 0.0 else None
