"""Which implementation keeps the posteriors, chosen by what a reward and a prediction cost on each route.

Seconds come from constants that `alexp bench routes` measures. Packed factors of M models of d features at C ridges, P
columns in all, on N candidates: moments one component at a time, N C M (e0 + e1 d + e2 d^2), or through the
coefficients, N P^2 / 2 + C M (2 d^2 + d^3 / 2) multiply-adds. One pass: M (a + N C (b0 + b1 d)).

Agents have one ridge and want values now: packed factors as above, or, from the D points told,
M (a' + N (c0 + c1 d + c2 d D + c3 D^2)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.backends import backend
from alexp.estimation.arms import ArmBanks, ArmColumns, ArmGrid
from alexp.estimation.onepass.grid import OnePassGrid
from alexp.estimation.onepass.processes import Processes
from alexp.estimation.posteriors import LinearPosteriors, PosteriorGrid, Posteriors
from alexp.estimation.ridge.bank import RidgeBank, RidgeGrid
from alexp.problem.matrices import SMALL, Matrices, ModelOnTable
from alexp.problem.models import ModelClass


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


def packed(extent: Extent) -> float:
    """A step on packed factors, by the faster way to moments."""
    m, d, p, cells, n = extent
    constant, linear, square = MEASURED.component
    directly = n * cells * m * (constant + linear * d + square * d * d)
    through = MEASURED.multiply_add * (n * p * p / 2.0 + cells * m * (2.0 * d * d + d**3 / 2.0))
    return min(directly, through)


def one_pass(extent: Extent) -> float:
    """A step that keeps values at all candidates."""
    constant, linear = MEASURED.value
    return extent.models * (MEASURED.model + extent.candidates * extent.cells * (constant + linear * extent.size))


def prefers_one_pass(extent: Extent) -> bool:
    """Whether one pass is the faster route, for linear models."""
    return extent.size >= _FEWEST and one_pass(extent) < packed(extent)


def agents_packed(sizes: FloatArray, candidates: int) -> float:
    """A step of agents on packed factors of models with these numbers of features, (M,)."""
    constant, linear, square = MEASURED.component
    return float(candidates * (constant + linear * sizes + square * sizes**2).sum())


def agents_from_points(sizes: FloatArray, candidates: int, points: int) -> float:
    """The same from the distinct points told so far."""
    constant, linear, both, square = MEASURED.prediction
    values = constant + linear * sizes + both * sizes * points + square * points**2
    return float((MEASURED.process + candidates * values).sum())


def prefers_points(sizes: FloatArray) -> bool:
    """Whether agents on linear models of these sizes do better from points told, over a run of some hundred."""
    return agents_from_points(sizes, _TYPICAL, _POINTS) < agents_packed(sizes, _TYPICAL)


WIDEST = 200  # features of models that can forget: every reward takes the cube of it


def posteriors(
    models: ModelClass, ridge: float | FloatArray, members: IntArray | None = None, forget: float | None = None
) -> Posteriors:
    """Fits of all models of a class, or of some; `ridge` is as in `UCB(ridge=)`.

    Dividing features by scale_j is a ridge of ridge x scale_j on the undivided columns. `forget` is the weight of a
    reward for each one that came after it.
    """
    if forget is not None:
        check_forgetting(models)
    chosen = np.arange(models.n_models) if members is None else members
    if models.kernels is None and (forget is not None or not _are_wide(models, chosen)):
        return linear_posteriors(models, ridge, members, forget)
    groups, kernels = [models.groups[int(j)] for j in chosen], [models.kernel(int(j)) for j in chosen]
    largest = np.array([largest_variance(models, int(j)) for j in chosen])
    return Processes(groups, kernels, (ridge * models.scales)[chosen], models.intercept, models.origin, largest)


def largest_variance(models: ModelClass, j: int) -> float:
    """The largest k_j(x, x) of the candidates where these are a table of the models' own; zero where they are not."""
    dictionary, kernel = models.dictionary, models.similarity(j)
    if kernel.is_stationary:
        return 1.0
    if not isinstance(dictionary, Matrices):
        return 0.0
    step, out = max(1, SMALL // models.n_columns), 0.0
    for low in range(0, dictionary.n_rows, step):
        rows = dictionary(np.arange(low, min(low + step, dictionary.n_rows)))
        out = max(out, float(kernel.diagonal(rows[:, models.groups[j]]).max()))
    return out


def agents_posteriors(
    models: ModelClass, ridge: float | FloatArray, members: IntArray | None = None, forget: float | None = None
) -> Posteriors:
    """`posteriors` for agents, which sweep: enumerated subsets are not listed for them."""
    if models.enumerated_on is None:
        return posteriors(models, ridge, members, forget)
    if forget is not None:
        raise ValueError("forget is for models that are listed: leave it out, or leave out device")
    return cast(Posteriors, backend("subset_posteriors")(models, float(ridge)))  # all that agents that sweep need


def _are_wide(models: ModelClass, members: IntArray) -> bool:
    """Whether linear models have so many features that factors of them are slower than the points told.

    Only where candidates come again: contextual rounds have new points all the time.
    """
    return not models.is_contextual and prefers_points(np.diff(models.offsets)[members].astype(np.float64))


def check_forgetting(models: ModelClass) -> None:
    """Raise unless posteriors of these models can forget: that is done in triangular factors of their features."""
    models.require_linear("forget", "old rewards fade in factors of features, and kernels have none")
    widest = int(np.diff(models.offsets).max()) // (1 if models.arm_blocks is None else models.arm_blocks[0])
    if widest > WIDEST:
        raise ValueError(
            f"forget is for models of at most {WIDEST} features, because every reward costs the cube of it; got one "
            f"with {widest}. Leave forget out, or reduce the features"
        )


def linear_posteriors(
    models: ModelClass, ridge: float | FloatArray, members: IntArray | None = None, forget: float | None = None
) -> LinearPosteriors:
    """The same for models that are linear in their columns, coefficients and all."""
    whole = members is None or members.size == models.n_models
    groups = (models.columns_flat, models.offsets) if members is None or whole else _groups(models, members)
    ridges = ridge * models.scales if members is None or whole else ridge * models.scales[members]
    if models.arm_blocks is not None:
        return ArmBanks(ArmColumns(models.arm_blocks, *groups, models.intercept), ridges, forget)
    return RidgeBank(*groups, ridges, models.intercept, forget=forget)


def _groups(models: ModelClass, members: IntArray) -> tuple[IntArray, IntArray]:
    """The columns of some models, one after the other, and where each begins."""
    columns = np.concatenate([models.groups[int(j)] for j in members])
    return columns, np.concatenate([[0], np.cumsum(np.diff(models.offsets)[members])]).astype(np.int64)


def posterior_grid(
    n_columns: int,
    columns: IntArray,
    offsets: IntArray,
    ridges: Sequence[FloatArray],
    intercept: bool,
    precise: bool = False,
    tables: Sequence[ModelOnTable] | None = None,
    arm_blocks: tuple[int, int] | None = None,
    forget: float | None = None,
) -> PosteriorGrid:
    """Fits of the same groups of columns at several ridges, (M,) for each cell.

    `precise` says that variances span so many digits that moments must not be taken through the coefficients.
    `tables` has the models on all candidates where `takes_one_pass` says so, and kernels only there. `arm_blocks` =
    (K, p) says that every arm has columns of its own. `forget` is as in `posteriors`.
    """
    if arm_blocks is not None:
        return ArmGrid(arm_blocks, columns, offsets, ridges, intercept, forget)
    if tables is not None:
        return OnePassGrid(tables, ridges, intercept)
    return RidgeGrid(n_columns, columns, offsets, ridges, intercept, precise, forget)


def takes_one_pass(models: ModelClass, n_candidates: int, cells: int = 5) -> bool:
    """Whether values at all candidates are kept: for kernels, on a device, and where that is faster, see `costs`."""
    sizes, counts = models.sizes()
    size = float(counts @ sizes) / models.n_models
    extent = Extent(models.n_models, size, models.n_columns, cells, n_candidates)
    return models.kernels is not None or models.device is not None or prefers_one_pass(extent)
