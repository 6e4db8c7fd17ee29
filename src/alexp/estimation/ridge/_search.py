"""Fused search for every agent's best candidate, without a models x candidates array.

The score of a candidate is mean + width * sqrt(q); a width of zero gives greedy agents.  Almost no candidate wins, so
candidates are first screened against a score that one of them reaches, usually that of the winner of the sweep before:
one observation moves few winners.  The screen (``_screen``) works in single precision, with slack for all
rounding.  It may let losers through but never drops a winner.  A long run of candidates that leaves at most one
besides the best so far is settled at once; others are screened again block by block, and the blocks that are left are
scored in double precision, where roots are saved by the exact form of the same test: a candidate can only reach B if
g |g| <= width^2 q with g = B - mean.

The result is the argmax of the plain formula, bit for bit, the first of equal candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, NarrowArray
from alexp.common.compiling import checked, variant
from alexp.estimation.ridge._blocks import BLOCK, block_means, block_quadratics, unpack
from alexp.estimation.ridge._kernels import model_coefficients
from alexp.estimation.ridge._screen import (
    RUN,
    Screen,
    model_size,
    narrow_bound,
    narrow_means,
    narrow_quadratics,
)

Hits = Callable[..., tuple[int, int]]  # ``narrow_hits`` or what stands in for it

# Suppose fl(mean + x) >= B with x = fl(width fl(sqrt(q))).  Then x >= B - mean up to 2^-53 |B|, which lowering B by
# _MARGIN |B| absorbs, and g^2 <= width^2 q up to a handful of relative roundings, absorbed by width^2 (1 + _MARGIN).
# Rounding is monotone, so an inequality that holds for the factors also holds for the rounded products, even where
# those underflow.  Only width^2 itself must be an ordinary number; outside these limits nothing is tested.
_MARGIN = 1e-14
_SMALLEST, _LARGEST = 1e-280, 1e280

_STRIP = 16  # candidates of a block that are dropped together
BATCH = 16  # models that are unpacked before they are searched: their divisions and roots overlap


class Batch(NamedTuple):
    """Some models, unpacked, and scratch for searching them."""

    exact: FloatArray  # (B, model_size + 2 d) theta, shift, inverse, constant, lower, and room to narrow them
    narrow: NarrowArray  # (B, model_size) the same as the screen takes them
    width: FloatArray  # (B,)
    unit: FloatArray  # (B,) unit of the screen, zero if the model cannot be screened
    total: FloatArray  # (B,) S of the screen
    score: FloatArray  # (B,) score of the guess
    coords: FloatArray
    terms: FloatArray


@checked.kernel
def batch_for(widest: int) -> Batch:
    """Return room for models of up to ``widest`` features."""
    length = model_size(widest)
    return Batch(
        np.empty((BATCH, length + 2 * widest)),
        np.empty((BATCH, length), dtype=np.float32),
        np.empty(BATCH),
        np.empty(BATCH),
        np.empty(BATCH),
        np.empty(BATCH),
        np.empty(widest * BLOCK),
        np.empty(2 * BLOCK),
    )


@checked.leaf
def _score(table: FloatArray, own: IntArray, candidate: int, model: FloatArray, width: float) -> float:
    """theta'phi + width sqrt(q) at one candidate, by the operations of the block kernels in the same order."""
    size = own.shape[0]
    mean = 0.0
    for k in range(size):
        mean += model[k] * table[own[k], candidate]
    if width == 0.0:
        return mean
    lower, coords = model[3 * size + 1 :], model[model_size(size) :]
    quadratic, place = model[3 * size], 0
    for k in range(size):
        left = table[own[k], candidate] - model[size + k]
        for j in range(k):
            left -= lower[place + j] * coords[j]
        place += k
        coords[k] = left * model[2 * size + k]
        quadratic += coords[k] * coords[k]
    return mean + width * math.sqrt(quadratic)


@checked.leaf
def _prepare(
    table: FloatArray, screen: Screen, own: IntArray, width: float, guess: int, batch: Batch, slot: int
) -> None:
    """Score the guess of the model in this slot, and hand the model to the screen."""
    model, narrow = batch.exact[slot], batch.narrow[slot]
    batch.width[slot] = width
    batch.score[slot] = _score(table, own, guess, model, width)
    unit = width
    if width == 0.0:  # the screen is then indifferent to the unit; this one makes all numbers ordinary
        unit = max(narrow_means(screen.scale, own, model, 1.0, narrow), _SMALLEST)
    batch.total[slot] = narrow_means(screen.scale, own, model, unit, narrow)
    sound = _SMALLEST <= unit < _LARGEST and (width == 0.0 or narrow_quadratics(screen.scale, own, model, narrow))
    batch.unit[slot] = unit if sound else 0.0


@checked.leaf
def _possible(terms: FloatArray, n: int, squared: float, bound: float) -> int:
    """How many of n candidates may reach ``bound``: means and, BLOCK further on, quadratic forms."""
    hits = 0
    for i in range(n):
        g = bound - terms[i]
        hits += g * abs(g) <= squared * terms[BLOCK + i]
    return hits


@checked.leaf
def _best_in_block(
    table: FloatArray, own: IntArray, low: int, high: int, batch: Batch, slot: int, best: float, winner: int
) -> tuple[float, int]:
    """The best score so far and its candidate, after candidates low..high-1 (at most BLOCK)."""
    size, width = own.shape[0], batch.width[slot]
    model, terms = batch.exact[slot], batch.terms
    block_means(table, own, low, high, model[:size], terms)
    if width == 0.0:
        for i in range(high - low):
            if terms[i] > best or (terms[i] == best and low + i < winner):
                best, winner = terms[i], low + i
        return best, winner
    shift, inverse, lower = model[size:], model[2 * size :], model[3 * size + 1 :]
    block_quadratics(table, own, low, high, shift, inverse, lower, model[3 * size], batch.coords, terms[BLOCK:])
    squared = width * width * (1.0 + _MARGIN)
    tested = _SMALLEST < squared < _LARGEST
    for strip in range(0, high - low, _STRIP):
        part = terms[strip:]
        n = min(_STRIP, high - low - strip)
        if tested and _possible(part, n, squared, best - _MARGIN * abs(best)) == 0:
            continue
        for i in range(n):
            score = part[i] + width * math.sqrt(part[BLOCK + i])
            if score > best or (score == best and low + strip + i < winner):
                best, winner = score, low + strip + i
    return best, winner


def search_with(hits: Hits, kind: str) -> Callable[..., None]:
    """The search of a batch with a screen of this kind; the screen decides how much there is to compile."""

    @checked.leaf
    @variant(kind)
    def _best_screened(
        table: FloatArray,
        screen: Screen,
        own: IntArray,
        low: int,
        high: int,
        batch: Batch,
        slot: int,
        best: float,
        winner: int,
    ) -> tuple[bool, float, int]:
        """Whether the screen settles candidates low..high-1, and the best score so far and its candidate.

        It does if it leaves one of them to be scored, or none; the best so far always passes and is known.
        """
        width, unit = batch.width[slot], batch.unit[slot]
        bound = narrow_bound(best, unit, own.shape[0], batch.total[slot]) if unit > 0.0 else math.nan
        if math.isnan(bound):
            return False, best, winner
        others, where = hits(screen, own, low, high, batch.narrow[slot], width > 0.0, bound)
        if low <= winner < high:
            others -= 1
            where -= winner - low
        if others == 1:
            score = _score(table, own, low + where, batch.exact[slot], width)
            if score > best or (score == best and low + where < winner):
                best, winner = score, low + where
        return others <= 1, best, winner

    @checked.leaf
    @variant(kind)
    def _best(
        table: FloatArray,
        screen: Screen,
        own: IntArray,
        low: int,
        high: int,
        batch: Batch,
        slot: int,
        guess: int,
    ) -> tuple[float, int]:
        """Largest score over candidates low..high-1 and the first candidate that attains it."""
        best, winner = batch.score[slot], guess
        if math.isnan(best):
            best, winner = -np.inf, low
        begin, closer = low, low  # candidates before ``closer`` are looked at block by block
        while begin < high:
            end = min(begin + (BLOCK if begin < closer else RUN), high)
            settled, best, winner = _best_screened(table, screen, own, begin, end, batch, slot, best, winner)
            if not settled and end - begin > BLOCK:
                closer = end
                continue
            if not settled:
                best, winner = _best_in_block(table, own, begin, end, batch, slot, best, winner)
            begin = end
        return best, winner

    @checked.leaf
    @variant(kind)
    def search_batch(
        columns: IntArray,
        offsets: IntArray,
        table: FloatArray,
        screen: Screen,
        begin: int,
        end: int,
        low: int,
        high: int,
        index: IntArray,
        value: FloatArray,
        batch: Batch,
    ) -> None:
        """The best candidate of models begin..end-1 and its score; ``index`` holds the guesses on entry."""
        for j in range(begin, end):
            own = columns[offsets[j] : offsets[j + 1]]
            value[j], index[j] = _best(table, screen, own, low, high, batch, j - begin, index[j])

    return search_batch


@checked.leaf
def unpack_batch(
    factor: FloatArray,
    starts: IntArray,
    columns: IntArray,
    offsets: IntArray,
    lead: int,
    table: FloatArray,
    screen: Screen,
    width: FloatArray,
    begin: int,
    end: int,
    guess: IntArray,
    batch: Batch,
) -> None:
    """Prepare models begin..end-1 with their posterior means and widths."""
    for j in range(begin, end):
        own, packed = columns[offsets[j] : offsets[j + 1]], factor[starts[j] : starts[j + 1]]
        size, model = own.shape[0], batch.exact[j - begin]
        rows = lead + size + 1
        model_coefficients(packed, rows, lead, model[:size])
        if width[j] > 0.0:
            model[3 * size] = unpack(packed, rows, lead, model[size:], model[2 * size :], model[3 * size + 1 :])
        _prepare(table, screen, own, width[j], guess[j], batch, j - begin)


@checked.leaf
def load_batch(
    columns: IntArray,
    offsets: IntArray,
    coefficients: FloatArray,
    table: FloatArray,
    screen: Screen,
    begin: int,
    end: int,
    guess: IntArray,
    batch: Batch,
) -> None:
    """Prepare models begin..end-1 with given coefficients and no widths."""
    for j in range(begin, end):
        own, model = columns[offsets[j] : offsets[j + 1]], batch.exact[j - begin]
        for k in range(own.shape[0]):
            model[k] = coefficients[offsets[j] + k]
        _prepare(table, screen, own, 0.0, guess[j], batch, j - begin)


@checked.leaf
def complete_guesses(first: int, begin: int, end: int, low: int, high: int, index: IntArray) -> None:
    """Where there is no guess within low..high-1, take the winner of the model before the batch."""
    for j in range(begin, end):
        if not low <= index[j] < high:
            index[j] = index[begin - 1] if begin > first else low


@checked.leaf
def widest_model(offsets: IntArray, first: int, last: int) -> int:
    widest = 0
    for j in range(first, last):
        widest = max(widest, offsets[j + 1] - offsets[j])
    return widest
