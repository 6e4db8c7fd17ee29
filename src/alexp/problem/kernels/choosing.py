"""Which kernels a feature matrix gets, and what prior weight each of them has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.kernels.base import Kernel, Scaled, Sum
from alexp.problem.kernels.plain import Linear, Tanimoto
from alexp.problem.kernels.rows import Rows, dense, dense_blocks, spread
from alexp.problem.kernels.stationary import Matern, fitted_together

AUTO, LINEAR = "auto", "linear"
_MOST = 300  # candidates that variances are estimated from
LENGTHSCALES = (0.5, 1.0, 2.0, 4.0)  # of "auto", in units of the median distance
Choice = str | Kernel | Sequence[str | Kernel]  # for one map
KernelChoice = Choice | Mapping[str, Choice]  # for all of them


@dataclass(frozen=True)
class KernelModels:
    """What a class of kernel models is made of: M of each, in order.

    Attributes
    ----------
    groups : columns of the dictionary.
    names : "map: kernel".
    kernels : fitted to the candidates.
    log_prior : (M,) equal mass for every map, divided equally among its kernels.
    families : (M,) the map; the sum over all maps counts as one more.
    """

    groups: list[IntArray]
    names: list[str]
    kernels: list[Kernel]
    log_prior: FloatArray
    families: IntArray


def is_counts(rows: Rows) -> bool:
    """Whether a matrix holds bits, one-hot rows or counts: 0 and 1 only, or whole numbers of which half are zero.

    Whole numbers that are rarely zero are measured in some unit (temperatures, prices) and are descriptors.

    >>> is_counts(np.eye(3)), is_counts(np.array([[0.0, 3.0], [2.0, 0.0]])), is_counts(np.array([[90.0], [105.0]]))
    (True, True, False)
    """
    zeros, largest = 0, 0.0
    for values in dense_blocks(rows):
        if values.min(initial=0.0) < 0.0 or np.any(values != np.floor(values)):
            return False
        zeros += values.size - int(np.count_nonzero(values))
        largest = max(largest, float(values.max(initial=0.0)))
    return bool(largest <= 1.0 or 2 * zeros >= rows.shape[0] * rows.shape[1])


def automatic(rows: Rows) -> tuple[Kernel, ...]:
    """Kernels for a matrix: linear and Tanimoto for counts, linear and Matern 5/2 at four lengthscales otherwise.

    Descriptors come in units that have nothing to do with each other, so their columns are divided by their standard
    deviations over the candidates and constant ones left out; this is part of the kernels, and stored with them.
    """
    if is_counts(rows):
        return Linear(), Tanimoto()
    return Linear(standardize=True), *(Matern(2.5, lengthscale=scale) for scale in LENGTHSCALES)


def kernel_models(blocks_of: Mapping[str, Rows], choice: KernelChoice) -> KernelModels:
    """One model per map and kernel, for matrices that stand side by side in the dictionary.

    With "auto" for several maps there is one more model: the sum of all kernels, each divided by the variance over the
    candidates that it gives to functions and by the number of kernels of its map, so that every map contributes as
    much. All its terms are computed for the other models anyway.
    """
    chosen = {name: _kernels(name, _of(name, choice), rows) for name, rows in _checked(blocks_of, choice).items()}
    edges = np.cumsum([0, *(rows.shape[1] for rows in blocks_of.values())])
    own = [np.arange(low, high) for low, high in pairwise(edges)]
    groups, names, kernels, masses, families = [], [], [], [], []
    parts: list[Kernel] = []
    with_sum = choice == AUTO and len(chosen) > 1
    for family, (name, fitted) in enumerate(chosen.items()):
        for kernel in fitted:
            groups.append(own[family])
            names.append(f"{name}: {kernel.name}")
            kernels.append(kernel)
            masses.append(1.0 / len(fitted))
            families.append(family)
            variance = _variance(kernel, blocks_of[name]) if with_sum else 0.0
            if variance > 0.0:
                parts.append(Scaled.of(kernel, 1.0 / (len(fitted) * variance)).on(own[family], name))
    if parts:
        groups.append(np.arange(edges[-1]))
        names.append("all maps: sum of kernels")
        kernels.append(Sum(tuple(parts)))
        masses.append(1.0)
        families.append(len(chosen))
    prior = np.log(np.array(masses) / sum(masses))
    return KernelModels(groups, names, kernels, prior, np.array(families, dtype=np.int64))


def _checked(blocks_of: Mapping[str, Rows], choice: KernelChoice) -> Mapping[str, Rows]:
    if isinstance(choice, Mapping):
        unknown = [name for name in choice if name not in blocks_of]
        missing = [name for name in blocks_of if name not in choice]
        if unknown or missing:
            what = f"{unknown[0]!r} is not one of the matrices" if unknown else f"{missing[0]!r} has none"
            raise ValueError(f"kernels must name every matrix ({', '.join(map(repr, blocks_of))}): {what}")
    return blocks_of


def _of(name: str, choice: KernelChoice) -> Choice:
    return choice[name] if isinstance(choice, Mapping) else choice


def _kernels(name: str, choice: Choice, rows: Rows) -> list[Kernel]:
    """The fitted kernels of one map; raises where one comes twice."""
    listed = [choice] if isinstance(choice, str | Kernel) or not isinstance(choice, Iterable) else list(choice)
    out: list[Kernel] = []
    for item in listed:
        if item == AUTO:
            out += automatic(rows)
        elif item == LINEAR:
            out.append(Linear())
        elif isinstance(item, Kernel):
            out.append(item)
        else:
            raise TypeError(
                f"kernels of {name!r} must be 'linear', 'auto', a kernel such as alexp.kernels.Matern(), or a list of "
                f"those, got {item!r}; alexp.kernels.Function(k) wraps a function k(X, Z)"
            )
    if not out:
        raise ValueError(f"{name!r} needs at least one kernel, got an empty list")
    for k, kernel in enumerate(out):
        if kernel in out[:k]:
            raise ValueError(f"{name!r} has the kernel {kernel.name!r} twice; it would count twice")
    return fitted_together(out, rows)


def _variance(kernel: Kernel, rows: Rows) -> float:
    """What the variance over candidates of a function drawn from the prior is: mean k(x, x) - mean k(x, z)."""
    some = dense(rows[spread(rows.shape[0], _MOST)])
    return varying_part(kernel, some, float(np.mean(kernel.diagonal(some))))


def varying_part(kernel: Kernel, some: FloatArray, whole: float) -> float:
    """mean k(x, x) - mean k(x, z) over some candidates; zero where it is rounding beside a mean k(x, x) of `whole`."""
    varying = float(np.mean(kernel.diagonal(some)) - np.mean(kernel(some, some)))
    return varying if varying > 1e-12 * whole else 0.0
