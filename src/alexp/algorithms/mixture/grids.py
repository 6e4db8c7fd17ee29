"""Grids of the components of a mixture: what they are by default, and which are refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.common.validation import LARGEST, SMALLEST, positive

UNKNOWN_NOISE = (0.01, 0.03, 0.1, 0.3, 1.0)  # in units of the reward bound
RATIOS = (1e-4, 1e-3, 1e-2, 0.1, 0.5)  # of noise to prior variance
LARGE_SIGNALS = (1e-6, 1e-5)  # further ratios where the noise is stated and rewards of any size must fit it


def grid(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Distinct positive numbers, or raise."""
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str) or not len(values):
        raise ValueError(f"{name} must hold at least one positive number, got {values!r}")
    levels = tuple(positive(name, value) for value in values)
    if len(set(levels)) != len(levels):
        raise ValueError(f"{name} must hold distinct numbers, got {values!r}")
    return levels


def check_multiples(name: str, multiples: Sequence[float], unit: float) -> None:
    """Raise unless squares of these sizes are numbers; multiples by default, up to 1000, always are."""
    for multiple in multiples:
        if not 1e-3 * SMALLEST <= multiple * unit <= 1e3 * LARGEST:
            raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {multiple * unit:g}")


def ratios_of(
    ratio_grid: Sequence[float] | None, noise_known: bool, others_given: bool, misfits: bool
) -> tuple[float, ...]:
    """Ratios of noise to prior variance, where no bound on rewards is stated."""
    if others_given:
        raise ValueError(
            "noise_grid and scale_grid are multiples of noise_std and reward_bound; state reward_bound as well, or "
            "give ratio_grid in their place"
        )
    if misfits:
        raise ValueError(
            "misfit_grid are multiples of reward_bound, weighed against the noise; state reward_bound and noise_std"
        )
    usual = (*LARGE_SIGNALS, *RATIOS) if noise_known else RATIOS
    return grid("ratio_grid", usual if ratio_grid is None else ratio_grid)


def levels_and_scales(
    noise_grid: Sequence[float] | None,
    scale_grid: Sequence[float] | None,
    light: bool,
    noise_known: bool,
    ratios_given: bool,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Multiples of the noise and of the bound, where one is stated."""
    if ratios_given:
        raise ValueError(
            "ratio_grid is for rewards of unknown size; state no bound on them, or give noise_grid and scale_grid "
            "in its place"
        )
    levels = UNKNOWN_NOISE if not noise_known else (1.0,) if light else (1.0 / 3.0, 1.0, 3.0)
    scales = (1.0,) if light else (1.0, 4.0)
    return (
        grid("noise_grid", levels if noise_grid is None else noise_grid),
        grid("scale_grid", scales if scale_grid is None else scale_grid),
    )
