"""The sweeps over all models and candidates that Python calls; `_search` says how they work."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, NarrowArray
from alexp.common.compiling import checked, variant
from alexp.estimation.ridge._blocks import BLOCK, block_means, block_quadratics, unpack
from alexp.estimation.ridge._screen import (
    narrow_hits,
    screen_for,
    small_narrow_hits,
)
from alexp.estimation.ridge._search import (
    BATCH,
    Hits,
    batch_for,
    complete_guesses,
    load_batch,
    search_with,
    unpack_batch,
    widest_model,
)


def _sweeps(hits: Hits, kind: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """`sweep_linear` and `sweep_ucb` with a screen of this kind."""
    search_batch = search_with(hits, kind)

    @checked.entry
    @variant(kind)
    def linear(
        columns: IntArray,
        offsets: IntArray,
        coefficients: FloatArray,
        table: FloatArray,
        narrow: NarrowArray,
        scale: FloatArray,
        first: int,
        last: int,
        low: int,
        high: int,
        index: IntArray,
        value: FloatArray,
    ) -> None:
        widest = widest_model(offsets, first, last)
        screen, batch = screen_for(narrow, scale, widest), batch_for(widest)
        for begin in range(first, last, BATCH):
            end = min(begin + BATCH, last)
            complete_guesses(first, begin, end, low, high, index)
            load_batch(columns, offsets, coefficients, table, screen, begin, end, index, batch)
            search_batch(columns, offsets, table, screen, begin, end, low, high, index, value, batch)

    @checked.entry
    @variant(kind)
    def ucb(
        factor: FloatArray,
        starts: IntArray,
        columns: IntArray,
        offsets: IntArray,
        lead: int,
        width: FloatArray,
        table: FloatArray,
        narrow: NarrowArray,
        scale: FloatArray,
        first: int,
        last: int,
        low: int,
        high: int,
        index: IntArray,
        value: FloatArray,
    ) -> None:
        widest = widest_model(offsets, first, last)
        screen, batch = screen_for(narrow, scale, widest), batch_for(widest)
        for begin in range(first, last, BATCH):
            end = min(begin + BATCH, last)
            complete_guesses(first, begin, end, low, high, index)
            unpack_batch(factor, starts, columns, offsets, lead, table, screen, width, begin, end, index, batch)
            search_batch(columns, offsets, table, screen, begin, end, low, high, index, value, batch)

    return linear, ucb


_small_linear, _small_ucb = _sweeps(small_narrow_hits, "small")
_any_linear, _any_ucb = _sweeps(narrow_hits, "any")


@checked.entry
def _all_small(offsets: IntArray) -> bool:
    """Whether every model has one to four features; the screen for these is a fraction of the whole to compile."""
    for j in range(offsets.shape[0] - 1):  # noqa: SIM110 (generators do not compile)
        if not 1 <= offsets[j + 1] - offsets[j] <= 4:
            return False
    return True


def sweep_linear(columns: IntArray, offsets: IntArray, coefficients: FloatArray, *search: Any) -> None:
    """argmax over candidates low..high-1 of theta_j'phi_j for models first..last-1, and its value.

    ``search`` is (table, narrow, scale, first, last, low, high, index, value); ``narrow`` and ``scale`` are
    ``narrow_table(table)``.  On entry ``index`` holds a guess for each model, or -1.  Guesses save time and never
    change the result.
    """
    sweep = _small_linear if _all_small(offsets) else _any_linear
    sweep(columns, offsets, coefficients, *search)


def sweep_ucb(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    width: FloatArray,
    *search: Any,
) -> None:
    """``sweep_linear`` for the scores mean + width_j sqrt(q) of the posteriors."""
    sweep = _small_ucb if _all_small(offsets) else _any_ucb
    sweep(factor, starts, columns, offsets, lead, width, *search)


@checked.entry
def model_posterior(
    packed: FloatArray,
    lead: int,
    features: FloatArray,
    coefficients: FloatArray,
    mean: FloatArray,
    width: FloatArray,
) -> None:
    """Fill mean (n,) = coefficients'phi and width (n,) = sqrt(q) of one model at ``features`` (d_j, n)."""
    size, n = features.shape
    coords = np.empty(size * BLOCK)
    shift, inverse, lower = np.empty(size), np.empty(size), np.empty((size * (size - 1)) // 2 + 1)
    constant = unpack(packed, lead + size + 1, lead, shift, inverse, lower)
    own = np.arange(size)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        block_means(features, own, begin, end, coefficients, mean[begin:end])
        out = width[begin:end]
        block_quadratics(features, own, begin, end, shift, inverse, lower, constant, coords, out)
        for i in range(out.shape[0]):
            out[i] = math.sqrt(out[i])
