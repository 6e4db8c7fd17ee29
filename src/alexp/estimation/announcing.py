"""What a run will take of time and memory, estimated and said before anything large is made.

With M models of d features on N candidates, C ridges for each model, r = d + 1 (d + 2 with an intercept) and D
different candidates measured:

========================  ====================================  ========================================================
posteriors                bytes                                 seconds a step
========================  ====================================  ========================================================
packed factors, mixture   8 C M r (r + 1) / 2                   C M (u0 + u1 d^2 + u2 d^3), see `_mixture`
packed factors, agents    8 M r (r + 1) / 2                     `costs.agents_packed`
values of kernels         8 M (N (2 C + D) + (C + 1) D^2)       1.7 x `costs.one_pass`
values of wide models     8 M (2 C N + (C + 1) min(d, D)^2)     `costs.one_pass`
points measured, agents   8 M D^2                               `costs.agents_from_points`
========================  ====================================  ========================================================

Kernel rows are kept in chunks that double: D counts as 16 at first, and as 128 after a hundred different candidates.
Values come with copies of columns that are no neighbours, 8 N bytes each. Packed factors are copied for pending trials.
Lists of columns take 16 M d bytes. Seconds are those of one core; both estimates are within a factor of about three of
what was measured. A kernel with learned lengthscales (`kernels.ARD`) counts as one model per particle.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.memory import physical_memory
from alexp.common.warning import caution
from alexp.estimation.factory import (
    Extent,
    agents_from_points,
    agents_packed,
    one_pass,
    packed,
    prefers_points,
    takes_one_pass,
)
from alexp.estimation.onepass.particles import PARTICLES
from alexp.problem.kernels import ARD

if TYPE_CHECKING:
    from alexp.problem.models import ModelClass

SLOW, LARGE = 1.0, 2e9  # seconds of a step and bytes from which a run is announced
_FIRST, _LATER = 16, 128  # kernel rows kept at first, and after a hundred different candidates
_KERNELS = 1.7  # kernel rows, and improvements of all components, in units of `one_pass`
_UPDATE = (800e-9, 3.5e-9, 0.6e-9)  # u0, u1, u2
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Cost(NamedTuple):
    """Seconds of a step on one core, bytes that posteriors take at first, and after a hundred different candidates."""

    seconds: float
    bytes: float
    later: float


class TooLargeError(MemoryError):
    """A run would need more memory than the machine has: nothing of it was made, and to try again does not help."""

    def __init__(self, message: str, size: float) -> None:
        super().__init__(message)
        self._total_size = int(size)  # as NumPy's own errors have it


def announce(algorithm: str, models: ModelClass, n_candidates: int, ridges: int) -> None:
    """Warn of a slow or large run before it is made; raise TooLargeError if the machine has not enough for it.

    Parameters
    ----------
    algorithm : its name.
    n_candidates : N, or 0 where candidates are those of a round.
    ridges : how many posteriors it keeps of each model; 0 for none, and then only lists of columns count.
    """
    if models.enumerated_on is not None or models.device is not None:
        return  # never listed, or in the memory of a device
    cost = expected(models, n_candidates, ridges)
    most = machine_memory()
    what = f"{models.n_models:,} models" + (f" on {n_candidates:,} candidates" if n_candidates else "")
    if cost.bytes > most:
        raise TooLargeError(
            f"models take too much memory: {algorithm} needs at least {_gigabytes(cost.bytes)} for {what}, and this "
            f"machine has {_gigabytes(most)}. {_remedy(models)}",
            cost.bytes,
        )
    if cost.seconds > SLOW or cost.later > LARGE:
        more = f", {_gigabytes(cost.later)} after 100 different candidates" if cost.later > 1.2 * cost.bytes else ""
        caution(
            f"{algorithm} with {what} takes about {cost.seconds:.2g} s a step on one core and {_gigabytes(cost.bytes)} "
            f"of memory{more}. {_remedy(models)}",
            UserWarning,
        )


def expected(models: ModelClass, n_candidates: int, ridges: int) -> Cost:
    """What posteriors of the models on N candidates will take; nothing is listed for that.

    >>> from alexp.problem.models import ModelClass
    >>> cost = expected(ModelClass.legendre(degree=100, size=99), 2000, 5)
    >>> round(cost.seconds, 1), round(cost.bytes / 1e9, 1)
    (2.3, 8.9)
    """
    sizes, counts = models.sizes()
    m, n, features = models.n_models, max(n_candidates, 1), float(counts @ sizes)
    listed = 16.0 * features if models.subset_size is not None else 0.0  # else they are there already
    if ridges == 0:
        return Cost(0.0, listed, listed)
    extent = Extent(m, features / m, models.n_columns, ridges, n)
    kernels = models.kernels is not None
    learned = sum(isinstance(kernel, ARD) for kernel in models.kernels or ())
    if ridges > 1 and not models.is_contextual and takes_one_pass(models, n, ridges):
        listed += 8.0 * n * _copied(models)
        extent = extent._replace(models=m + (PARTICLES - 1) * learned)  # every particle has values of its own
        at_first, later = (_values(extent, kernels, points) for points in (_FIRST, _LATER))
        seconds = (_KERNELS if kernels else 1.0) * one_pass(extent)
        return Cost(seconds, listed + at_first, listed + later)
    if models.arm_blocks is not None:  # every arm has factors of its own
        sizes, counts = sizes / models.arm_blocks[0], counts * models.arm_blocks[0]
    elif ridges == 1 and (kernels or (not models.is_contextual and prefers_points(np.array([extent.size])))):
        seconds = m * agents_from_points(np.array([extent.size]), n, _FIRST)
        return Cost(seconds, listed + 8.0 * m * _FIRST**2, listed + 8.0 * m * _LATER**2)
    rows = sizes + 1.0 + models.intercept
    factors = 8.0 * ridges * float(counts @ (rows * (rows + 1.0) / 2.0))
    seconds = n * _agent(sizes, counts) if ridges == 1 else _mixture(sizes, counts, extent)
    return Cost(seconds, listed + factors, listed + 2.0 * factors)


def _agent(sizes: FloatArray, counts: FloatArray) -> float:
    """Seconds of a step for each candidate."""
    each = [agents_packed(np.array([size]), 1) for size in sizes]
    return float(counts @ np.array(each))


def _mixture(sizes: FloatArray, counts: FloatArray, extent: Extent) -> float:
    """A step of a mixture on packed factors: updates, and moments by the faster way."""
    constant, square, cube = _UPDATE
    update = extent.cells * float(counts @ (constant + square * sizes**2))
    through = update + extent.cells * float(counts @ (cube * sizes**3))
    return max(min(update + extent.candidates * extent.cells * _agent(sizes, counts), through), packed(extent))


def _copied(models: ModelClass) -> float:
    """How many columns models on all candidates have copies of: those of groups that are not neighbours."""
    if models.subset_size is not None:
        return float(models.n_models * models.subset_size)
    groups = {group.tobytes(): group for group in models.groups}  # equal groups share one copy
    return float(sum(group.size for group in groups.values() if np.any(np.diff(group) != 1)))


def _values(extent: Extent, kernels: bool, points: int) -> float:
    """Bytes of values that are kept on all candidates, after so many different points."""
    m, size, _, cells, n = extent
    rows, rank = (points, points) if kernels else (0, min(size, points))
    return 8.0 * m * (n * (2.0 * cells + rows) + (cells + 1.0) * rank**2)


def _remedy(models: ModelClass) -> str:
    fewer = "lower size or the number of columns" if models.subset_size is not None else "take fewer models"
    own = ' (ModelClass.from_inputs: subsets="few", or max_size=2)' if models.kernels is not None else ""
    return f"To make it smaller, {fewer}{own}, or take fewer candidates."


def machine_memory() -> float:
    """Bytes that this process may use: those of the machine, or of its container if that has fewer."""
    found = [physical_memory()]
    for place in _CGROUPS:
        with suppress(OSError, ValueError):  # "max" is no number
            found.append(int(Path(place).read_text()))
    with suppress(ImportError, OSError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        found.append(inf if limit == resource.RLIM_INFINITY else limit)
    return min(found)


def _gigabytes(number: float) -> str:
    return f"{number / 1e9:.2g} GB" if number < 1e11 else f"{number / 1e9:,.0f} GB"
