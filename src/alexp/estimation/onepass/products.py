"""Products of a table with a few directions, in the table's own precision."""

from __future__ import annotations

import os
from typing import cast

import numpy as np

from alexp.common.arrays import FloatArray, RealArray
from alexp.estimation.onepass._products import products
from alexp.estimation.ridge.threads import run_parts
from alexp.problem.rows import Rows, is_sparse

_PIECE = 1 << 20  # numbers converted at a time
_THREADED = 10_000_000  # products and sums from which threads pay


def product(rows: Rows, directions: FloatArray) -> FloatArray:
    """Phi u for each of several directions u, (k, d), and rows Phi (N, d): shape (k, N), in double precision.

    Tables in double precision are multiplied in that, those in single or half precision in single: some seven digits
    of the largest terms. Half precision is converted a few rows at a time.
    """
    if is_sparse(rows):
        return np.ascontiguousarray((rows @ directions.T).T, dtype=np.float64)
    table = cast(RealArray, rows)
    out = np.empty((len(directions), len(table)))
    if table.dtype == np.float64:
        _multiply(table, np.ascontiguousarray(directions), out)
        return out
    narrow = np.ascontiguousarray(directions, dtype=np.float32)
    if table.dtype == np.float32:
        _multiply(table, narrow, out)
        return out
    step = max(1, _PIECE // table.shape[1])
    for low in range(0, len(table), step):
        piece = np.asarray(table[low : low + step], dtype=np.float32)
        products(piece, narrow, 0, len(piece), out[:, low : low + step])
    return out


def _multiply(rows: RealArray, directions: RealArray, out: FloatArray) -> None:
    """The whole product, by all cores if it is large."""
    n, threads = len(rows), os.cpu_count() or 1
    if threads == 1 or directions.size * n < _THREADED:
        products(rows, directions, 0, n, out)
        return
    cuts = [n * part // threads for part in range(threads + 1)]
    run_parts(lambda low, high: products(rows, directions, low, high, out), cuts, threads)
