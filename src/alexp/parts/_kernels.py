"""A compiled loop over candidates: the points that no other exceeds in two values."""

from __future__ import annotations

import math

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import ieee

_NEAR = 1e-9  # share of the values by which one may be smaller and still tie


@ieee.entry
def extend_front(
    one: FloatArray, two: FloatArray, visited: IntArray, values: FloatArray, places: IntArray, n: int
) -> tuple[int, int, bool, bool]:
    """Take points (N,) into a front of n, ``values`` (2, capacity) and visiting positions ``places`` (capacity,).

    The first value falls along the front and the second rises. Of equal points the first to be visited stays. Returns
    how many there are, how many points were taken in, whether the next one is not finite, there was no room for it
    otherwise, and whether a point was left out that `UpperFront.has_ties` is about.
    """
    falling, rising, last = values[0], values[1], 0
    ties, slack = False, _NEAR * max(abs(falling[0]), abs(falling[n - 1])) if n else 0.0
    for i in range(one.shape[0]):
        x, y = one[i], two[i]
        if n and x <= falling[last] and y <= rising[last] and (x < falling[last] or y < rising[last]):
            if x >= falling[last] - slack and visited[i] < places[last]:
                ties = True
            continue  # by the point that exceeded another just now
        if not (x < math.inf and y < math.inf):
            return n, i, True, ties
        low, high = 0, n  # those before `low` are no smaller in the first value
        while low < high:
            middle = (low + high) // 2
            if falling[middle] >= x:
                low = middle + 1
            else:
                high = middle
        last = max(low - 1, 0)
        if low and rising[low - 1] >= y:
            if rising[low - 1] == y and falling[low - 1] == x:
                places[low - 1] = min(places[low - 1], visited[i])
            elif x >= falling[low - 1] - slack and visited[i] < places[low - 1]:
                ties = True
            continue
        if low and falling[low - 1] == x:
            low -= 1
        end = low
        while end < n and rising[end] <= y:
            if falling[end] >= x - slack and places[end] < visited[i]:
                ties = True
            end += 1
        if end == low:
            if n == falling.shape[0]:
                return n, i, False, ties
            for k in range(n, low, -1):
                falling[k], rising[k], places[k] = falling[k - 1], rising[k - 1], places[k - 1]
            n += 1
        else:
            for k in range(end, n):
                to = low + 1 + k - end
                falling[to], rising[to], places[to] = falling[k], rising[k], places[k]
            n -= end - low - 1
        falling[low], rising[low], places[low] = x, y, visited[i]
        last = low
        slack = _NEAR * max(abs(falling[0]), abs(falling[n - 1]))
    return n, one.shape[0], False, ties
