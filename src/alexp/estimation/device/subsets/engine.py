"""Who computes with all subsets: the processor, or a card that has the same kernels."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import comb
from types import ModuleType
from typing import Protocol

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.devices import NoDeviceError, check_device
from alexp.estimation.device.subsets import _twin as twin
from alexp.estimation.device.subsets.law import CellTerms
from alexp.estimation.device.subsets.sums import SharedSums
from alexp.estimation.ridge.threads import run_parts
from alexp.problem.models import ANYWHERE

SIZES = (2, 6)  # columns of a subset, from and to: each size is compiled by itself


class Engine(Protocol):
    """Kernels over all subsets of ``size`` columns. Arrays go in and come out in those of ``xp``."""

    xp: ModuleType
    size: int

    def host(self, values: FloatArray) -> FloatArray:
        """An array of ``xp`` as one of NumPy."""

    def best_of_pairs(self, sums: SharedSums, law: CellTerms) -> FloatArray:
        """The largest level of the subsets whose two smallest columns are a < b, (P, P); -1.7e308 elsewhere.

        The level of a subset is the logarithm of its components' summed weights.
        """

    def sums_of_pairs(self, sums: SharedSums, law: CellTerms, reference: float, later: SharedSums) -> FloatArray:
        """Sums over the subsets with columns a and b, (7, P, P): see `moments`."""

    def levels_of_ranks(self, sums: SharedSums, law: CellTerms, ranks: IntArray) -> FloatArray:
        """Levels of the subsets of some ranks, (K,)."""

    def sweep(
        self, sums: SharedSums, later: SharedSums, rho: float, width: float, points: FloatArray, first: int, n: int
    ) -> IntArray:
        """First position of the largest mean + width s among points (n, P), of the n subsets from rank `first` on."""


def binomials(n_columns: int, size: int) -> IntArray:
    """C(n, k) for n <= P and k <= s, (P + 1, s + 1)."""
    if comb(n_columns, size) >= 2**63:
        raise ValueError(f"subsets of {size} out of {n_columns} columns are more than 2**63; use a smaller size")
    return np.array([[comb(n, k) for k in range(size + 1)] for n in range(n_columns + 1)], dtype=np.int64)


def engine_for(device: str, n_columns: int, size: int) -> Engine:
    """The kernels on a device, "cpu" or "cuda", or a sentence that says why there are none; `ANYWHERE` takes both."""
    if not SIZES[0] <= size <= SIZES[1]:
        raise ValueError(f"subsets that are not listed must have {SIZES[0]} to {SIZES[1]} columns, got {size}")
    if device != ANYWHERE and check_device(device) == "cpu":
        return Processor(n_columns, size)
    from alexp.estimation.device.subsets.card import Card

    try:
        return Card(n_columns, size, "cuda" if device == ANYWHERE else device)
    except NoDeviceError:
        if device != ANYWHERE:
            raise
        return Processor(n_columns, size)


def enumerating_card(device: str | None) -> str | None:
    """The name of the card that subsets are enumerated on; None for the CPU, or where they are listed."""
    if device is None or device == "cpu":
        return None
    from alexp.estimation.device.subsets.card import name_of_card

    try:
        return name_of_card("cuda" if device == ANYWHERE else device)
    except NoDeviceError:
        return None


class Processor:
    """An `Engine` on all cores."""

    xp: ModuleType = np

    def __init__(self, n_columns: int, size: int, threads: int | None = None) -> None:
        self.size, self._binomial = size, binomials(n_columns, size)
        self._threads = threads or os.cpu_count() or 1

    def host(self, values: FloatArray) -> FloatArray:
        """The array itself."""
        return values

    def best_of_pairs(self, sums: SharedSums, law: CellTerms) -> FloatArray:
        """See `Engine`."""
        best = np.full(sums.gram.shape, twin.LOWEST)
        known = (*_known(sums, law), self.size)
        self._in_parts(lambda low, high: twin.best_of_pairs(*known, low, high, best), len(best))
        return best

    def sums_of_pairs(self, sums: SharedSums, law: CellTerms, reference: float, later: SharedSums) -> FloatArray:
        """See `Engine`."""
        out = np.zeros((7, *sums.gram.shape))
        known = (*_known(sums, law), reference, later.gram, self.size)
        self._in_parts(lambda low, high: twin.sums_of_pairs(*known, low, high, out), len(sums.gram))
        return out

    def levels_of_ranks(self, sums: SharedSums, law: CellTerms, ranks: IntArray) -> FloatArray:
        """See `Engine`."""
        out = np.empty(ranks.size)
        known = (*_known(sums, law), self._binomial, ranks)
        self._in_parts(lambda low, high: twin.levels_of_ranks(*known, low, high, out), ranks.size)
        return out

    def sweep(
        self, sums: SharedSums, later: SharedSums, rho: float, width: float, points: FloatArray, first: int, n: int
    ) -> IntArray:
        """See `Engine`."""
        winners = np.empty(n, dtype=np.int64)
        known = (sums.gram, sums.cross, later.gram, later is not sums, rho, later.base, width, self._binomial, points)
        self._in_parts(lambda low, high: twin.sweep(*known, first, low, high, winners), n)
        return winners

    def _in_parts(self, task: Callable[[int, int], None], n: int) -> None:
        """Run task(low, high) in parts that differ in work, hence many of them."""
        cuts = [n * part // (16 * self._threads) for part in range(16 * self._threads + 1)]
        run_parts(task, sorted(set(cuts)), self._threads)


def _known(
    sums: SharedSums, law: CellTerms
) -> tuple[FloatArray, FloatArray, float, FloatArray, FloatArray, float, float]:
    return sums.gram, sums.cross, sums.total, law.cells, law.units, law.power, law.shape
