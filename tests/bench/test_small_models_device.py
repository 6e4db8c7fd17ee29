"""The benchmark of many small models, with the CPU in place of a GPU."""

import numpy as np
import pytest

from alexp_experiments.bench.device import small


@pytest.mark.parametrize("kind", list(small.RULES))
def test_decisions_are_those_of_listed_models(kind):
    row = small._agreement(kind, 6, "cpu")
    assert row["agreement"] == 1.0
    assert row["max_gap"] == 0.0


def test_rewards_are_of_three_columns():
    problem = small.SparseRewards.make(50, 9)
    assert problem.models("cpu").n_models == problem.models(None).n_models == 84
    theta = np.linalg.lstsq(problem.table, problem.rewards, rcond=None)[0]
    assert np.flatnonzero(abs(theta) > 1e-9).tolist() == [1, 3, 7]


def test_differences_are_measured_in_widths():
    problem = small.SparseRewards.make(50, 9)
    run = small.RULES["mixture, noise and bound given, ucb"](problem.models(None), problem.domain)
    run.observe(3, 1.0)
    assert small._apart(run, 4, 4) == 0.0
    assert small._apart(run, 3, 4) > 0.1
