"""Ties: which of several equally good choices is taken, the same one on every processor.

Choices often tie exactly: even polynomials cannot tell x from -x, and many reactions have the same features. What is
computed for them then differs in the last bits, and differently on processors of another kind, whose libraries add in
another order. Scores within `tolerance` of the largest count as equal to it, and the first of them wins. Choices are in
a random visiting order, so that this favours none.

Runs that began in version 1.0.0 took the largest score to the last bit, and go on like that: their log, repeated, has
to give the choices that are in it. `rules.tie` is zero in a thread while such a run is called.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import ieee

__all__ = ["TIE", "first_best", "first_best_in_rows", "first_few", "rules", "tie_of", "tolerance"]

TIE = 1e-10  # of the scale of the scores: ties, and what is too small to matter
ROUNDING = 1e-12  # of the size of the largest score: what rounding can make of a tie in spite of a large offset


class _Rules(threading.local):
    """What a thread takes for a tie, in units of the scale of the scores: `TIE`, zero for a run of version 1.0.0."""

    tie: float = TIE


rules = _Rules()


@contextmanager
def tie_of(tie: float) -> Iterator[None]:
    """Take scores within `tie` of their scale for equal, in this thread."""
    before, rules.tie = rules.tie, tie
    try:
        yield
    finally:
        rules.tie = before


@ieee.entry
def tolerance(top: float, lowest: float, tie: float) -> float:
    """By how much a score may fall short of the largest, `top`, and be equal to it.

    The scale of the scores is the size of `top`, or how far the scores spread where that is less: an offset of all
    scores is no scale. Powers of two drop out bit for bit, of the unit of rewards for example. Other scores may be of
    any size, infinite too, as where a ratio is to be small. `lowest` is minus infinity where it is not known.
    """
    size = abs(top)
    if not size < np.inf:
        return 0.0
    return tie * min(size, top - lowest) + (ROUNDING / TIE) * tie * size


@ieee.leaf
def first_reaching(scores: FloatArray, bound: float) -> int:
    """Position of the first score of at least `bound`; 0 if there is none."""
    for i in range(scores.shape[0]):
        if scores[i] >= bound:
            return i
    return 0


@ieee.leaf
def first_best_of(scores: FloatArray, tie: float) -> int:
    """`first_best` for compiled code. What is not a number is never the best."""
    n = scores.shape[0]
    whole = n - n % 4
    tops, lows = (-np.inf, -np.inf, -np.inf, -np.inf), (np.inf, np.inf, np.inf, np.inf)
    a, b, c, d = tops
    e, f, g, h = lows
    for i in range(0, whole, 4):  # four at a time, because each comparison waits for the one before
        w, x, y, z = scores[i], scores[i + 1], scores[i + 2], scores[i + 3]
        a = w if w > a else a
        b = x if x > b else b
        c = y if y > c else c
        d = z if z > d else d
        e = w if w < e else e
        f = x if x < f else f
        g = y if y < g else g
        h = z if z < h else h
    for i in range(whole, n):
        w = scores[i]
        a = w if w > a else a
        e = w if w < e else e
    top, lowest = max(max(a, b), max(c, d)), min(min(e, f), min(g, h))
    return first_reaching(scores, top - tolerance(top, lowest, tie))


@ieee.entry
def _first_best(scores: FloatArray, tie: float) -> int:
    return first_best_of(scores, tie)


@ieee.entry
def _first_best_in_rows(scores: FloatArray, tie: float, out: IntArray) -> None:
    for j in range(scores.shape[0]):
        out[j] = first_best_of(scores[j], tie)


def first_best(scores: FloatArray) -> int:
    """Position of the first of the largest scores (n,), which are those within the tolerance of the largest.

    >>> first_best(np.array([0.0, 1.0 - 1e-13, 1.0]))
    1
    """
    if hasattr(scores, "first_best"):
        return int(scores.first_best(rules.tie))
    if not isinstance(scores, np.ndarray):  # an array of another library
        top = float(scores.max())
        return int((scores >= top - tolerance(top, float(scores.min()), rules.tie)).argmax())
    return int(_first_best(np.ascontiguousarray(scores, dtype=np.float64), rules.tie))


def first_best_in_rows(scores: FloatArray) -> IntArray:
    """`first_best` of every row of scores (K, n), shape (K,)."""
    out = np.empty(len(scores), dtype=np.int64)
    _first_best_in_rows(np.ascontiguousarray(scores, dtype=np.float64), rules.tie, out)
    return out


def first_few(scores: FloatArray, n: int) -> IntArray:
    """Positions, in increasing order, of the n largest scores; of those that tie for the last places the first.

    >>> first_few(np.array([0.0, 3.0, 1.0, 1.0 + 1e-13, 2.0]), 3)
    array([1, 2, 4])
    """
    if n >= scores.size:
        return np.arange(scores.size)
    last = float(np.partition(scores, scores.size - n)[scores.size - n])
    slack = tolerance(last, float(scores.min()), rules.tie)
    chosen = scores > last + slack
    equal = np.flatnonzero(~chosen & (scores >= last - slack))
    chosen[equal[: n - int(np.count_nonzero(chosen))]] = True
    return np.flatnonzero(chosen)
