"""ALExp's probabilities against those of block coordinate descent, run until a duality gap of 1e-12."""

from __future__ import annotations

import numpy as np
import pytest

import alexp
from alexp.estimation.estimate import Estimate
from tests.estimation.group_lasso_twin import block_descent


class Descent:
    """Regression oracle: the group Lasso by block coordinate descent."""

    def bind(self, models):
        return DescentData(models)


class DescentData:
    """All observations, as they came."""

    def __init__(self, models):
        self._models, self._rows, self._y = models, [], []

    @property
    def n_observations(self):
        return len(self._y)

    def append(self, row, y, weight=1.0):
        self._rows.append(np.array(row))
        self._y.append(y)

    def solve(self, lam, start=None):
        beta = block_descent(np.array(self._rows), np.array(self._y), self._models.groups, lam, self._models.scales)
        return Estimate(beta, 0.0, np.empty(0, dtype=np.int64), np.empty(0))


class Features:
    """Given features of numbered candidates."""

    def __init__(self, table):
        self.table, self.n_columns = table, table.shape[1]
        self.names = [f"feature {i}" for i in range(table.shape[1])]

    def __call__(self, x):
        return self.table[np.asarray(x, dtype=int).ravel()]

    def to_dict(self):
        return None


def problem(kind, seed):
    """Models of random features, disjoint or overlapping, candidates and noiseless rewards that one model explains."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((40, 9))
    if kind == "disjoint":
        models = alexp.ModelClass(Features(table), [[0, 1, 2], [3, 4], [5, 6, 7], [8]])
    elif kind == "overlapping":
        models = alexp.ModelClass(Features(table), [[0, 1, 2], [2, 3], [3, 4, 5], [1, 5], [5, 6, 7], [0, 8]])
    else:
        models = alexp.ModelClass.subsets(Features(table[:, :6]), 2)
    domain = alexp.FiniteSet(np.arange(40.0))
    group = models.groups[int(rng.integers(models.n_models))]
    rewards = models.matrix(domain)[:, group] @ rng.standard_normal(group.size)
    return models, domain, rewards / np.abs(rewards).max()


def played(models, domain, rewards, seed, **oracle):
    """The candidates and q of 12 rounds."""
    opt = alexp.ALExp(models, domain, noise_std=0.3, reward_bound=1.0, norm_bound=1.0, random_state=seed, **oracle)
    indices, q = [], []
    for error in 0.3 * np.random.default_rng(seed).standard_normal(12):
        trial = opt.ask()
        opt.tell(trial, rewards[trial.index] + error)
        indices.append(trial.index)
        q.append(opt.probabilities)
    return indices, np.array(q)


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["disjoint", "overlapping", "subsets"])
def test_probabilities_equal_those_of_brute_force(kind, seed):
    models, domain, rewards = problem(kind, seed)
    indices, q = played(models, domain, rewards, seed)
    slow, expected = played(models, domain, rewards, seed, oracle=Descent())
    assert indices == slow
    assert np.ptp(expected) > 0.05  # it has learned something
    np.testing.assert_allclose(q, expected, rtol=0.0, atol=1e-6)
