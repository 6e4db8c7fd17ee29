"""What a reward and a prediction cost on the two routes, in seconds, from constants that `alexp bench routes` measures.

Packed factors of M models of d features at C ridges, P columns in all, on N candidates: moments one component at a
time, N C M (e0 + e1 d + e2 d^2), or through the coefficients, N P^2 / 2 + C M (2 d^2 + d^3 / 2) multiply-adds.
One pass: M (a + N C (b0 + b1 d)).

Agents have one ridge and want values now: packed factors as above, or, from the D points told,
M (a' + N (c0 + c1 d + c2 d D + c3 D^2)).
"""

from __future__ import annotations

from typing import NamedTuple

from alexp.common.arrays import FloatArray


class Extent(NamedTuple):
    """M models of mean size d on P columns, at C ridges, and N candidates."""

    models: int
    size: float
    columns: int
    cells: int
    candidates: int


class Seconds(NamedTuple):
    """Measured on one core of an AMD EPYC with `alexp bench routes`; only their ratios matter."""

    component: tuple[float, float, float] = (1.0e-9, 0.3e-9, 0.05e-9)  # e0, e1, e2
    multiply_add: float = 0.25e-9
    model: float = 100e-6  # a
    value: tuple[float, float] = (6.0e-9, 0.3e-9)  # b0, b1
    process: float = 400e-6  # a'
    prediction: tuple[float, float, float, float] = (130e-9, 1.8e-9, 0.03e-9, 0.3e-9)  # c0, c1, c2, c3


MEASURED = Seconds()
_FEWEST = 16  # features below which packed factors are never slower
_TYPICAL, _POINTS = 1000, 100  # candidates and points of a run for which agents' fits are chosen


def packed(extent: Extent, seconds: Seconds = MEASURED) -> float:
    """A step on packed factors, by the faster way to moments."""
    m, d, p, cells, n = extent
    constant, linear, square = seconds.component
    directly = n * cells * m * (constant + linear * d + square * d * d)
    through = seconds.multiply_add * (n * p * p / 2.0 + cells * m * (2.0 * d * d + d**3 / 2.0))
    return min(directly, through)


def one_pass(extent: Extent, seconds: Seconds = MEASURED) -> float:
    """A step that keeps values at all candidates."""
    constant, linear = seconds.value
    return extent.models * (seconds.model + extent.candidates * extent.cells * (constant + linear * extent.size))


def prefers_one_pass(extent: Extent) -> bool:
    """Whether one pass is the faster route, for linear models."""
    return extent.size >= _FEWEST and one_pass(extent) < packed(extent)


def agents_packed(sizes: FloatArray, candidates: int, seconds: Seconds = MEASURED) -> float:
    """A step of agents on packed factors of models with these numbers of features, (M,)."""
    constant, linear, square = seconds.component
    return float(candidates * (constant + linear * sizes + square * sizes**2).sum())


def agents_from_points(sizes: FloatArray, candidates: int, points: int, seconds: Seconds = MEASURED) -> float:
    """The same from the distinct points told so far."""
    constant, linear, both, square = seconds.prediction
    values = constant + linear * sizes + both * sizes * points + square * points**2
    return float((seconds.process + candidates * values).sum())


def prefers_points(sizes: FloatArray) -> bool:
    """Whether agents on linear models of these sizes do better from points told, over a run of some hundred."""
    return agents_from_points(sizes, _TYPICAL, _POINTS) < agents_packed(sizes, _TYPICAL)
