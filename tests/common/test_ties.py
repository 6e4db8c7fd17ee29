"""Which of several equally good choices is taken."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from alexp.common.ties import TIE, first_best, first_best_in_rows, first_few, rules, tie_of
from tests.common import ties_twin


def hard_scores(rng):
    """Scores with ties that rounding has broken, of any size and offset, some infinite or no numbers."""
    n = int(rng.integers(1, 40))
    scores = rng.choice(rng.standard_normal(4), n) * (
        1.0 + rng.choice([0.0, 1e-15, 1e-13, 1e-11, 1e-9]) * rng.random(n)
    )
    scores = scores * 10.0 ** rng.uniform(-300, 290) + rng.choice([0.0, 1.0, 1e6])
    if rng.random() < 0.3:
        scores[rng.integers(n)] = rng.choice([np.inf, -np.inf, np.nan, -1e300])
    return scores


@pytest.mark.parametrize("seed", range(20))
def test_the_first_of_the_best_is_that_of_the_twin(seed):
    rng, differs = np.random.default_rng(seed), 0
    for _ in range(300):
        scores = hard_scores(rng)
        found = first_best(scores)
        assert found == ties_twin.first_best(scores), scores
        assert first_best_in_rows(np.array([scores, scores[::-1]]))[0] == found
        differs += found != int(np.argmax(scores))
        known = np.where(np.isnan(scores), -np.inf, scores)
        with tie_of(0.0):
            assert first_best(scores) == int(np.argmax(known))
    assert differs > 10


def test_the_unit_drops_out_bit_for_bit():
    rng = np.random.default_rng(0)
    for _ in range(300):
        scores = rng.choice(rng.standard_normal(3), 20) * (1.0 + 10.0 ** rng.uniform(-16, -8) * rng.random(20))
        assert {first_best(scores * 2.0**k) for k in (-900, -60, 0, 1, 60, 900)} == {first_best(scores)}


def test_what_counts_as_equal():
    assert first_best(np.array([0.0, 1.0 - 1e-11, 1.0])) == 1
    assert first_best(np.array([0.0, 1.0 - 1e-9, 1.0])) == 2
    assert first_best(np.array([1e-30, 0.0, 2e-30])) == 2  # tiny everywhere
    assert first_best(np.array([-1e300, -3.0, -3.0 + 1e-12, -np.inf])) == 1  # a ratio, of any size
    assert first_best(1e8 + np.array([0.0, 1.0 - 1e-3, 1.0])) == 2  # an offset is no scale
    assert first_best(7.0 + np.array([0.0, 1e-15, 4e-15])) == 0  # all equal
    assert first_best(np.array([np.inf, 1.0, np.inf])) == 0
    assert first_best(np.full(2, -np.inf)) == 0


def test_the_few_best_do_not_depend_on_rounding():
    rng = np.random.default_rng(1)
    for _ in range(100):
        scores = rng.choice(rng.standard_normal(5), 50)
        n = int(rng.integers(1, 60))
        found = first_few(scores, n)
        np.testing.assert_array_equal(found, np.sort(np.argsort(-scores, kind="stable")[:n]))
        np.testing.assert_array_equal(first_few(scores * (1.0 + 1e-14 * rng.random(50)), n), found)


def test_a_rule_is_that_of_its_thread_and_ends():
    seen = []

    def look():
        thread = threading.Thread(target=lambda: seen.append(rules.tie))
        thread.start()
        thread.join()
        seen.append(rules.tie)
        raise RuntimeError

    with pytest.raises(RuntimeError), tie_of(0.0):
        look()
    assert [*seen, rules.tie] == [TIE, 0.0, TIE]
