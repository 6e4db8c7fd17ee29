"""Compiled: fused search for every agent's best candidate, without a models x candidates array.

The score of a candidate is mean + width * sqrt(q); a width of zero gives greedy agents.  Almost no candidate wins, so
candidates are first screened against a score that one of them reaches, usually that of the winner of the sweep before:
one observation moves few winners.  The screen works in single precision, with slack for all rounding.  It may let
losers through but never drops a winner.  A long run of candidates that leaves at most one besides the best so far is
settled at once; others are screened again block by block, and the blocks that are left are scored in double precision,
where roots are saved by the exact form of the same test: a candidate can only reach B if g |g| <= width^2 q with
g = B - mean.  The result is that of `alexp.common.ties.first_best` on the plain formula, bit for bit: B is the largest
score so far less the tolerance of ties.  Scores have no offset here, so that their size alone is their scale.

The screen.  To reach a score B a candidate must satisfy

    g |g| <= q,   g = (B - theta'phi) / unit,

with unit = width; if the width is zero, g <= 0 with any unit.  This is evaluated in single precision, where twice as
many candidates fit an instruction, and with slack: B is lowered and q is raised by what rounding can change at most.
Losers may pass, winners always do, and what passes is scored in double precision.

The slack.  Features are scaled to at most one by powers of two.  Write e for the unit roundoff, S for the sum of all
|theta_k| / unit, and bound the coordinates u_k = (phi_k - shift_k - sum_l lower_kl u_l) inverse_k by
U_k = (1 + |shift_k| + sum_l |lower_kl| U_l) inverse_k.  Every sum has at most d + 3 terms and every term a handful of
roundings, in whatever order they are added and whether or not products are fused, so with c = (d + 8) e

    |error of g| <= c (S + |B| / unit),
    |error of u_k| <= D_k = sum_l |lower_kl| inverse_k D_l + c U_k,
    |error of q| <= sum_k (2 U_k + D_k) D_k + c (constant + sum_k U_k^2).

_TINY covers underflow.  A model whose numbers are too large for this is not screened.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from alexp.common.arrays import FloatArray, IntArray, NarrowArray
from alexp.common.compiling import checked, variant
from alexp.common.ties import tolerance
from alexp.estimation.ridge._kernels import BLOCK, model_coefficients, widest_model
from alexp.estimation.ridge._values import block_means, block_quadratics, unpack

RUN = 2048  # most candidates that are screened at once; a sum of two places must be exact in single precision
_UNIT = 2.0**-24
_TINY = 1e-25
_HUGE = 1e12


class Screen(NamedTuple):
    """The candidates in single precision, and scratch."""

    table: NarrowArray  # (P, N) features divided by their scale
    scale: FloatArray  # (P,)
    place: NarrowArray  # (RUN,) 0, 1, ...
    coords: NarrowArray
    terms: NarrowArray


def narrow_table(table: FloatArray) -> tuple[NarrowArray, FloatArray]:
    """The table with every feature divided by a power of two, so that none exceeds one, and these powers (P,)."""
    narrow, scale = np.empty(table.shape, dtype=np.float32), np.ones(table.shape[0])
    _narrow(table, narrow, scale)
    return narrow, scale


@checked.entry
def _narrow(table: FloatArray, narrow: NarrowArray, scale: FloatArray) -> None:
    """``narrow_table``, given arrays, which take longest to compile; ``scale`` holds ones."""
    for k in range(table.shape[0]):
        largest = 0.0
        for i in range(table.shape[1]):
            largest = max(largest, abs(table[k, i]))
        if 1e-290 < largest < 1e290:
            scale[k] = math.ldexp(1.0, math.frexp(largest)[1])
        inverse = 1.0 / scale[k]
        for i in range(table.shape[1]):
            narrow[k, i] = table[k, i] * inverse


@checked.kernel
def screen_for(table: NarrowArray, scale: FloatArray, widest: int) -> Screen:
    """Return a screen for models of up to ``widest`` features."""
    place = np.empty(RUN, dtype=np.float32)
    for i in range(RUN):
        place[i] = i
    coords, terms = np.empty(widest * BLOCK, dtype=np.float32), np.empty(2 * BLOCK, dtype=np.float32)
    return Screen(table, scale, place, coords, terms)


@checked.leaf
def model_size(size: int) -> int:
    """Length of theta, shift and inverse (d each), constant (1) and lower, laid out in this order."""
    return 3 * size + 1 + (size * (size - 1)) // 2


@checked.leaf
def narrow_means(scale: FloatArray, own: IntArray, model: FloatArray, unit: float, out: NarrowArray) -> float:
    """Write theta in these units to ``out``; return S."""
    total = 0.0
    for k in range(own.shape[0]):
        slope = model[k] * scale[own[k]] / unit
        out[k] = slope
        total += abs(slope)
    return total


@checked.leaf
def narrow_quadratics(scale: FloatArray, own: IntArray, model: FloatArray, out: NarrowArray) -> bool:
    """Write the rest of a model in these units, its constant raised, to ``out``; return whether it can be screened.

    ``model`` has room for 2 d numbers at its end.
    """
    size = own.shape[0]
    unit, end, first = (size + 8) * _UNIT, model_size(size), 3 * size + 1
    reach, error = model[end:], model[end + size :]
    squares, slack, largest = model[3 * size], _TINY, 0.0
    for k in range(size):
        up = scale[own[k]]
        down = 1.0 / up
        offset, factor = model[size + k] * down, model[2 * size + k] * up
        out[size + k], out[2 * size + k] = offset, factor
        terms, errors = 1.0 + abs(offset), 0.0
        for j in range(k):
            entry = model[first + j] * down
            out[first + j] = entry
            largest = max(largest, abs(entry))
            terms += abs(entry) * reach[j]
            errors += abs(entry) * error[j]
        first += k
        reach[k] = terms * factor
        error[k] = 1.01 * errors * factor + unit * reach[k]
        squares += reach[k] * reach[k]
        slack += (2.0 * reach[k] + error[k]) * error[k]
    out[3 * size] = model[3 * size] + slack + unit * squares
    return squares < _HUGE and largest < _HUGE


@checked.leaf
def narrow_bound(score: float, unit: float, size: int, total: float) -> float:
    """B / unit, lowered by the slack, or NaN if it is out of range; ``total`` is S."""
    scaled = score / unit
    lowered = scaled - (size + 8) * _UNIT * (total + abs(scaled)) - _TINY
    return lowered if total + abs(scaled) < _HUGE else math.nan


@checked.loose_leaf
def _block_hits(terms: NarrowArray, widened: bool, bound: float, place: NarrowArray) -> tuple[int, int]:
    """Hits and their places, given means and, if ``widened``, quadratic forms BLOCK further on."""
    zero, one = np.float32(0.0), np.float32(1.0)
    limit, hits, where = np.float32(bound), np.float32(0.0), np.float32(0.0)
    for i in range(place.shape[0]):
        g = limit - terms[i]
        hit = g * abs(g) <= (terms[BLOCK + i] if widened else zero)
        hits += one if hit else zero
        where += place[i] if hit else zero
    return int(hits), int(where)


@checked.loose_leaf
def _small_linear_hits(
    table: NarrowArray, own: IntArray, low: int, high: int, model: NarrowArray, bound: float, place: NarrowArray
) -> tuple[int, int]:
    """``narrow_hits`` for width zero and one to four features."""
    last = own.shape[0] - 1
    f0, f1 = table[own[0], low:high], table[own[min(1, last)], low:high]
    f2, f3 = table[own[min(2, last)], low:high], table[own[min(3, last)], low:high]
    zero, one = np.float32(0.0), np.float32(1.0)
    limit, hits, where = np.float32(bound), np.float32(0.0), np.float32(0.0)
    t0, t1 = model[0], model[1] if last >= 1 else zero
    t2, t3 = model[2] if last >= 2 else zero, model[3] if last >= 3 else zero
    for i in range(f0.shape[0]):
        hit = limit <= ((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i]) + t3 * f3[i]
        hits += one if hit else zero
        where += place[i] if hit else zero
    return int(hits), int(where)


@checked.loose_leaf
def _small_hits(
    table: NarrowArray, own: IntArray, low: int, high: int, model: NarrowArray, bound: float, place: NarrowArray
) -> tuple[int, int]:
    """``narrow_hits`` for a positive width and one to four features, all in registers."""
    size = own.shape[0]
    last = size - 1
    f0, f1 = table[own[0], low:high], table[own[min(1, last)], low:high]
    f2, f3 = table[own[min(2, last)], low:high], table[own[last], low:high]
    n = f0.shape[0]
    zero, one = np.float32(0.0), np.float32(1.0)
    limit, hits, where = np.float32(bound), np.float32(0.0), np.float32(0.0)
    constant, lower = model[3 * size], model[3 * size + 1 :]
    t0, s0, v0 = model[0], model[size], model[2 * size]
    if size == 1:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            g = limit - t0 * f0[i]
            hit = g * abs(g) <= constant + u0 * u0
            hits += one if hit else zero
            where += place[i] if hit else zero
        return int(hits), int(where)
    t1, s1, v1, a10 = model[1], model[size + 1], model[2 * size + 1], lower[0]
    if size == 2:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            g = limit - (t0 * f0[i] + t1 * f1[i])
            hit = g * abs(g) <= (constant + u0 * u0) + u1 * u1
            hits += one if hit else zero
            where += place[i] if hit else zero
        return int(hits), int(where)
    t2, s2, v2, a20, a21 = model[2], model[size + 2], model[2 * size + 2], lower[1], lower[2]
    if size == 3:
        for i in range(n):
            u0 = (f0[i] - s0) * v0
            u1 = ((f1[i] - s1) - a10 * u0) * v1
            u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
            g = limit - ((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i])
            hit = g * abs(g) <= ((constant + u0 * u0) + u1 * u1) + u2 * u2
            hits += one if hit else zero
            where += place[i] if hit else zero
        return int(hits), int(where)
    t3, s3, v3, a30, a31, a32 = model[3], model[size + 3], model[2 * size + 3], lower[3], lower[4], lower[5]
    for i in range(n):
        u0 = (f0[i] - s0) * v0
        u1 = ((f1[i] - s1) - a10 * u0) * v1
        u2 = (((f2[i] - s2) - a20 * u0) - a21 * u1) * v2
        u3 = ((((f3[i] - s3) - a30 * u0) - a31 * u1) - a32 * u2) * v3
        g = limit - (((t0 * f0[i] + t1 * f1[i]) + t2 * f2[i]) + t3 * f3[i])
        hit = g * abs(g) <= (((constant + u0 * u0) + u1 * u1) + u2 * u2) + u3 * u3
        hits += one if hit else zero
        where += place[i] if hit else zero
    return int(hits), int(where)


@checked.leaf
def small_narrow_hits(
    screen: Screen, own: IntArray, low: int, high: int, model: NarrowArray, widened: bool, bound: float
) -> tuple[int, int]:
    """``narrow_hits`` where every model has one to four features: much less to compile."""
    if widened:
        return _small_hits(screen.table, own, low, high, model, bound, screen.place)
    return _small_linear_hits(screen.table, own, low, high, model, bound, screen.place)


@checked.leaf
def narrow_hits(
    screen: Screen, own: IntArray, low: int, high: int, model: NarrowArray, widened: bool, bound: float
) -> tuple[int, int]:
    """How many of the candidates low..high-1 (at most RUN) pass, and the sum of their places, counted from low.

    ``widened`` says whether the width is positive; if not, only theta is used.
    """
    size = own.shape[0]
    if 1 <= size <= 4:
        return small_narrow_hits(screen, own, low, high, model, widened, bound)
    table, place, coords, terms = screen.table, screen.place, screen.coords, screen.terms
    theta, shift, inverse, lower = model[:size], model[size:], model[2 * size :], model[3 * size + 1 :]
    total, where = 0, 0
    for begin in range(low, high, BLOCK):
        end = min(begin + BLOCK, high)
        block_means(table, own, begin, end, theta, terms)
        if widened:
            block_quadratics(table, own, begin, end, shift, inverse, lower, model[3 * size], coords, terms[BLOCK:])
        hits, places = _block_hits(terms, widened, bound, place[begin - low : end - low])
        total += hits
        where += places
    return total, where


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


# The largest score so far, the first candidate that equals it, and that one's score: not a number where scores have
# crept up in steps within the tolerance, so that the first one has to be looked for again.
Found: TypeAlias = tuple[float, int, float]


@checked.leaf
def _floor(best: float, tie: float) -> float:
    """What a score must reach to equal the largest one, `best`."""
    return best - tolerance(best, -np.inf, tie)


@checked.leaf
def _taken(score: float, place: int, found: Found, tie: float) -> Found:
    """What is found once a score that ties with the best, or is better, has been seen at a place."""
    best, winner, won = found
    if not score > best:
        return (best, place, score) if place < winner and not math.isnan(won) else found
    floor = _floor(score, tie)
    if best < floor:
        return score, place, score
    if won >= floor:
        return (score, place, score) if place < winner else (score, winner, won)
    return score, winner, math.nan


@checked.leaf
def _best_in_block(
    table: FloatArray, own: IntArray, low: int, high: int, batch: Batch, slot: int, found: Found, tie: float
) -> Found:
    """What is found after candidates low..high-1 (at most BLOCK)."""
    size, width = own.shape[0], batch.width[slot]
    model, terms = batch.exact[slot], batch.terms
    floor = _floor(found[0], tie)
    block_means(table, own, low, high, model[:size], terms)
    if width == 0.0:
        for i in range(high - low):
            if terms[i] >= floor:
                found = _taken(terms[i], low + i, found, tie)
                floor = _floor(found[0], tie)
        return found
    shift, inverse, lower = model[size:], model[2 * size :], model[3 * size + 1 :]
    block_quadratics(table, own, low, high, shift, inverse, lower, model[3 * size], batch.coords, terms[BLOCK:])
    squared = width * width * (1.0 + _MARGIN)
    tested = _SMALLEST < squared < _LARGEST
    for strip in range(0, high - low, _STRIP):
        part = terms[strip:]
        n = min(_STRIP, high - low - strip)
        if tested and _possible(part, n, squared, floor - _MARGIN * abs(floor)) == 0:
            continue
        for i in range(n):
            score = part[i] + width * math.sqrt(part[BLOCK + i])
            if score >= floor:
                found = _taken(score, low + strip + i, found, tie)
                floor = _floor(found[0], tie)
    return found


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
        found: Found,
        tie: float,
    ) -> tuple[bool, Found]:
        """Whether the screen settles candidates low..high-1, and what is found so far.

        It does if it leaves one of them to be scored, or none; the winner so far always passes and is known.
        """
        width, unit = batch.width[slot], batch.unit[slot]
        best, winner, won = found
        bound = narrow_bound(_floor(best, tie), unit, own.shape[0], batch.total[slot]) if unit > 0.0 else math.nan
        if math.isnan(bound) or math.isnan(won):
            return False, found
        others, where = hits(screen, own, low, high, batch.narrow[slot], width > 0.0, bound)
        if low <= winner < high:
            others -= 1
            where -= winner - low
        if others == 1:
            score = _score(table, own, low + where, batch.exact[slot], width)
            if score >= _floor(best, tie):
                found = _taken(score, low + where, found, tie)
        return others <= 1, found

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
        tie: float,
    ) -> tuple[float, int]:
        """Largest score over candidates low..high-1 and the first candidate that equals it."""
        found = (batch.score[slot], guess, batch.score[slot])
        if math.isnan(batch.score[slot]):
            found = (-np.inf, low, -np.inf)
        begin, closer = low, low  # candidates before ``closer`` are looked at block by block
        while begin < high:
            end = min(begin + (BLOCK if begin < closer else RUN), high)
            settled, found = _best_screened(table, screen, own, begin, end, batch, slot, found, tie)
            if not settled and end - begin > BLOCK:
                closer = end
                continue
            if not settled:
                found = _best_in_block(table, own, begin, end, batch, slot, found, tie)
            begin = end
        best, winner, won = found
        if math.isnan(won):
            floor, winner = _floor(best, tie), low
            while not _score(table, own, winner, batch.exact[slot], batch.width[slot]) >= floor:
                winner += 1
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
        tie: float,
    ) -> None:
        """The best candidate of models begin..end-1 and its score; ``index`` holds the guesses on entry."""
        for j in range(begin, end):
            own = columns[offsets[j] : offsets[j + 1]]
            value[j], index[j] = _best(table, screen, own, low, high, batch, j - begin, index[j], tie)

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
        tie: float,
        index: IntArray,
        value: FloatArray,
    ) -> None:
        widest = widest_model(offsets, first, last)
        screen, batch = screen_for(narrow, scale, widest), batch_for(widest)
        for begin in range(first, last, BATCH):
            end = min(begin + BATCH, last)
            complete_guesses(first, begin, end, low, high, index)
            load_batch(columns, offsets, coefficients, table, screen, begin, end, index, batch)
            search_batch(columns, offsets, table, screen, begin, end, low, high, index, value, batch, tie)

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
        tie: float,
        index: IntArray,
        value: FloatArray,
    ) -> None:
        widest = widest_model(offsets, first, last)
        screen, batch = screen_for(narrow, scale, widest), batch_for(widest)
        for begin in range(first, last, BATCH):
            end = min(begin + BATCH, last)
            complete_guesses(first, begin, end, low, high, index)
            unpack_batch(factor, starts, columns, offsets, lead, table, screen, width, begin, end, index, batch)
            search_batch(columns, offsets, table, screen, begin, end, low, high, index, value, batch, tie)

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

    ``search`` is (table, narrow, scale, first, last, low, high, tie, index, value); ``narrow`` and ``scale`` are
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
