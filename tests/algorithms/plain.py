"""Slow and obvious twins for the tests in test_notice_*.py: ridge regression by normal equations, one model at a time.

Nothing here looks inside an algorithm; the tests compare with what users see.
"""

import numpy as np

import alexp
from alexp.problem import Matrices


def problem(seed=0, n=12, columns=5, groups=((0, 1), (2, 3, 4), (1, 4)), scales=(1.0, 2.0, 0.5), intercept=False):
    """Models with shared columns, different sizes and scales on a table of random features: no two actions tie."""
    table = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, columns))
    dictionary = Matrices({"f": table})
    models = alexp.ModelClass(dictionary, [list(g) for g in groups], scales=list(scales), intercept=intercept)
    return models, alexp.FiniteSet([f"item {i}" for i in range(n)]), table


class Ridge:
    """One model's ridge fit of (index, reward) pairs: ||y - Phi b||^2 + ridge^2 ||b||^2, perhaps with a free constant.

    `columns` and `scale` say what the model's features are; `table` has one row of dictionary features per candidate.
    Before the first reward the constant is open, and norms are about the mean of the `allowed` candidates.
    """

    def __init__(self, table, columns, scale, ridge, data, intercept=False, allowed=slice(None)):
        phi = table[:, list(columns)] / scale
        seen = phi[[i for i, _ in data]]
        y = np.array([reward for _, reward in data], dtype=float)
        self.t, size = len(data), phi.shape[1]
        centre = (seen if data else phi[allowed]).mean(axis=0) if intercept else np.zeros(size)
        level = y.mean() if intercept and data else 0.0
        self.v = (seen - centre).T @ (seen - centre) + ridge**2 * np.eye(size)
        b = np.linalg.solve(self.v, (seen - centre).T @ (y - level))
        self.loss = float(np.sum((y - level - (seen - centre) @ b) ** 2) + ridge**2 * b @ b)
        self.log_determinant = float(np.linalg.slogdet(self.v / ridge**2)[1])
        self.mean = level + (phi - centre) @ b
        squares = np.einsum("nd,de,ne->n", phi - centre, np.linalg.inv(self.v), phi - centre)
        if intercept and data:
            squares = squares + 1.0 / self.t
        self.norm = np.sqrt(squares)  # ||phi(x)||_{V^-1}


def fits(models, table, ridge, data, allowed=slice(None)):
    """The fits of all models."""
    return [
        Ridge(table, columns, scale, ridge, data, models.intercept, allowed)
        for columns, scale in zip(models.groups, models.scales, strict=True)
    ]


def best_of(values, allowed):
    """Candidate with the largest value among the allowed ones."""
    allowed = np.asarray(allowed)
    return int(allowed[np.argmax(np.asarray(values)[allowed])])


def reward(index):
    """A reward for each candidate that no model explains."""
    return float(np.cos(1.7 * index) - 0.3 * index / (1 + index))
