"""Bounds of which only the promising are looked at find what all values would."""

from __future__ import annotations

import numpy as np
import pytest

from alexp.common.ties import TIE, tie_of
from alexp.problem.candidates import NOTHING
from alexp.problem.plates import UpperBounds
from tests.common import ties_twin


@pytest.mark.parametrize("tie", [TIE, 0.0])
@pytest.mark.parametrize("spread", [0.0, 1e-14, 1e-11, 1e-9])
def test_the_first_of_the_best_is_found_by_looking_at_some(spread, tie):
    rng, looked = np.random.default_rng(0), 0
    for turn in range(100):
        n = 300
        values = rng.choice(rng.random(40), n) * (1.0 + spread * rng.random(n))
        bounds = UpperBounds(n, NOTHING, 1e-4)
        bounds.upper[:] = values * (1.0 + rng.choice([0.0, 3e-10] if turn % 2 else [0.0, 1e-4, 0.2], n))
        bounds.is_exact[:] = bounds.upper == values
        indices = rng.permutation(n)[:200]
        seen = []

        def look(some, values=values, indices=indices, seen=seen):
            seen.extend(some.tolist())
            return values[indices[some]]

        def score(some, bounds=bounds, indices=indices):
            return bounds.upper[indices[some]]

        with tie_of(tie):
            position, size = bounds.first_best(indices, score, look)
        in_order = values[indices]
        assert position == (ties_twin.first_best(in_order) if tie else int(np.argmax(in_order)))
        assert size == in_order[position]
        looked += len(seen)
    assert looked < 100 * 100  # of 200 each
