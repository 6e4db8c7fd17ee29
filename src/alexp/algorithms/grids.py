"""Values that compete in `EvidenceMixture`: checks of what was given, and what is usual where nothing was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import LARGEST, SMALLEST, fraction, positive

UNKNOWN_NOISE = (0.01, 0.03, 0.1, 0.3, 1.0)  # in units of the reward bound


def check_forget(forget: float | Sequence[float] | None) -> float | tuple[float, ...] | None:
    """One weight between 0 and 1, or several up to 1, or raise."""
    if forget is None or not isinstance(forget, Sequence | np.ndarray) or isinstance(forget, str):
        return None if forget is None else fraction("forget", forget)
    weights = grid("forget", forget)
    if len(weights) < 2 or max(weights) > 1.0:
        raise ValueError(f"forget must be one number below 1, or several that are at most 1, got {forget!r}")
    return weights


def grid(name: str, values: Sequence[float] | FloatArray) -> tuple[float, ...]:
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
