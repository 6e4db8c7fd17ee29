"""Compiled products of a table with a few directions: each row is read once, for five directions at a time.

Sums of a row depend on nothing but the row, so that neither threads nor pieces change a bit.
"""

from __future__ import annotations

from alexp.common.arrays import FloatArray, RealArray
from alexp.common.compiling import ieee


@ieee.loose_leaf
def _five(row: RealArray, u: RealArray, c: int, i: int, out: FloatArray) -> None:
    """Products of a row with directions c..c+4."""
    zero = row[0] - row[0]
    first, second, third, fourth, fifth = zero, zero, zero, zero, zero
    one, two, three, four, five = u[c], u[c + 1], u[c + 2], u[c + 3], u[c + 4]
    for k in range(row.shape[0]):
        x = row[k]
        first += x * one[k]
        second += x * two[k]
        third += x * three[k]
        fourth += x * four[k]
        fifth += x * five[k]
    out[c, i], out[c + 1, i], out[c + 2, i], out[c + 3, i], out[c + 4, i] = first, second, third, fourth, fifth


@ieee.loose_leaf
def _one(row: RealArray, u: RealArray) -> float:
    total = row[0] - row[0]
    for k in range(row.shape[0]):
        total += row[k] * u[k]
    return float(total)


@ieee.entry
def products(rows: RealArray, directions: RealArray, low: int, high: int, out: FloatArray) -> None:
    """out[c, i] = rows[i]'directions[c] for rows low..high-1; both of the same precision, out in double."""
    whole = directions.shape[0] // 5 * 5
    for i in range(low, high):
        for c in range(0, whole, 5):
            _five(rows[i], directions, c, i, out)
        for c in range(whole, directions.shape[0]):
            out[c, i] = _one(rows[i], directions[c])
