"""Logistic regressions on several feature sets, kept by recursive Laplace approximations and weighed by their evidence.

Component (set, s): P(y = 1) = sigmoid(c + phi'theta), theta ~ N(0, s^2 I), c ~ N(0, 5^2). A reward at x changes the
posterior N(m, C) along C x only: with v = x'C x the new logit solves eta = m'x + v (y - sigmoid(eta)), and
w = sigmoid'(eta) takes C x x'C w / (1 + w v) from C. The log evidence gains
log p(y | eta) - (eta - m'x)^2 / (2 v) - log(1 + w v) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.common.arrays import FloatArray, IntArray

SCALES = (0.3, 1.0, 3.0)
_CONSTANT = 5.0  # prior deviation of the constant
_NEWTON = 12


class LogisticMixture:
    """Feature sets x prior scales, C components of at most D coefficients, the constant first."""

    def __init__(self, groups: Sequence[IntArray], n_columns: int, scales: Sequence[float] = SCALES) -> None:
        width = 1 + max(len(group) for group in groups)
        self._places = np.full((len(groups), width), n_columns + 1)  # a column of zeros
        for place, group in zip(self._places, groups, strict=True):
            place[0], place[1 : 1 + len(group)] = n_columns, group
        self._places = np.repeat(self._places, len(scales), axis=0)
        spread = np.tile(np.asarray(scales), len(groups))[:, None] * np.ones(width)
        spread[:, 0] = _CONSTANT
        self.means: FloatArray = np.zeros((len(self._places), width))
        self.covariances: FloatArray = spread[:, :, None] ** 2 * np.eye(width)
        self.log_evidence = np.zeros(len(spread))

    def update(self, row: FloatArray, y: float) -> None:
        """Take in one reward, 0 or 1, at a dictionary row (P,)."""
        x = self._extended(row[None])[0]
        direction = np.einsum("cde,ce->cd", self.covariances, x)
        v, start = np.einsum("cd,cd->c", direction, x), np.einsum("cd,cd->c", self.means, x)
        eta = _new_logit(start, v, y)
        p = sigmoid(eta)
        w = p * (1.0 - p)
        likelihood = -np.logaddexp(0.0, -eta if y > 0.5 else eta)
        self.log_evidence += likelihood - 0.5 * (y - p) ** 2 * v - 0.5 * np.log1p(w * v)
        self.means += (y - p)[:, None] * direction
        self.covariances -= (w / (1.0 + w * v))[:, None, None] * direction[:, :, None] * direction[:, None, :]

    def weights(self) -> FloatArray:
        """Posterior probability of every component, shape (C,)."""
        weights = np.exp(self.log_evidence - self.log_evidence.max())
        return np.asarray(weights / weights.sum())

    def moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the probability of a reward at n rows (n, P), shapes (n,): within and between."""
        x, weights = np.swapaxes(self._extended(rows), 0, 1), self.weights()  # (C, n, D)
        eta: FloatArray = np.einsum("cnd,cd->cn", x, self.means)
        v: FloatArray = np.einsum("cnd,cnd->cn", x @ self.covariances, x)
        p = sigmoid(eta / np.sqrt(1.0 + np.pi * v / 8.0))
        mean: FloatArray = weights @ p
        slope = sigmoid(eta) * (1.0 - sigmoid(eta))
        return mean, weights @ (slope**2 * v + (p - mean) ** 2)

    def draw(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Logits at n rows under one component and one draw of its coefficients, shape (n,)."""
        c = int(rng.choice(len(self.log_evidence), p=self.weights()))
        root = np.linalg.cholesky(self.covariances[c] + 1e-12 * np.eye(self.means.shape[1]))
        theta = self.means[c] + root @ rng.standard_normal(self.means.shape[1])
        return np.asarray(self._extended(rows)[:, c] @ theta)

    def _extended(self, rows: FloatArray) -> FloatArray:
        """The features of every component at n rows, (n, C, D)."""
        padded = np.hstack([rows, np.ones((len(rows), 1)), np.zeros((len(rows), 1))])
        return np.asarray(padded[:, self._places])


def _new_logit(start: FloatArray, v: FloatArray, y: float) -> FloatArray:
    """Solve eta = start + v (y - sigmoid(eta)) by Newton steps, halving the bracket where one leaves it."""
    far = start + v * (y - sigmoid(start))
    low, high = np.minimum(start, far), np.maximum(start, far)
    eta = start
    for _ in range(_NEWTON):
        p = sigmoid(eta)
        gap = eta - start - v * (y - p)
        low, high = np.where(gap < 0.0, eta, low), np.where(gap > 0.0, eta, high)
        newton = eta - gap / (1.0 + v * p * (1.0 - p))
        eta = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
    return eta


def sigmoid(eta: FloatArray) -> FloatArray:
    """1 / (1 + exp(-eta)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * eta)))
