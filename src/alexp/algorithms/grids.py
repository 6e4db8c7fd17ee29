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
