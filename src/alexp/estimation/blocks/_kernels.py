"""Compiled helpers for per-arm columns."""

from __future__ import annotations

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import checked


@checked.entry
def block_of(rows: FloatArray, size: int, out: IntArray) -> None:
    """Number of the block of `size` columns that row i is not zero in, for rows (n, blocks * size); 0 if it is zero.

    The same column of all blocks is looked at first: mostly that settles it.
    """
    blocks = rows.shape[1] // size
    for i in range(rows.shape[0]):
        out[i] = 0
        found = False
        for c in range(size):
            for block in range(blocks):
                if rows[i, block * size + c] != 0.0:
                    out[i] = block
                    found = True
                    break
            if found:
                break
