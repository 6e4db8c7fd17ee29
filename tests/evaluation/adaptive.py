"""Digits as a bandit: many adaptive logs at once, and policies whose true value is known because all labels are.

A round shows an image, drawn with replacement; an action is a class, its reward 1 if it is right. Loggers fit one
linear model per class to what they have seen and play by it, so that propensities depend on everything before.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

ARMS = 10
EXPLORE = 0.2  # share of uniform exploration in every round
FLOOR = EXPLORE / ARMS
DRAWS = 20


class Logs(NamedTuple):
    """L logs of n rounds: images (L, n), actions, rewards, probabilities of all classes and predictions (L, n, 10)."""

    images: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    probabilities: np.ndarray
    predictions: np.ndarray

    @property
    def propensities(self):
        return np.take_along_axis(self.probabilities, self.actions[:, :, None], axis=2)[:, :, 0]


@cache
def digits(size=12):
    """Images as a constant and their first principal components, (1797, size + 1), and their classes."""
    pixels, labels = load_digits(return_X_y=True)
    centred = pixels / 16.0 - (pixels / 16.0).mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ directions[:size].T
    return np.hstack([np.ones((len(scores), 1)), scores / scores.std(axis=0)]), labels


def target(kind, seed=1):
    """Probabilities of the new policy on all images, (1797, 10)."""
    rows, labels = digits()
    some = np.random.default_rng(seed).choice(len(rows), 150, replace=False)
    gram = rows[some].T @ rows[some] + np.eye(rows.shape[1])
    scores = rows @ np.linalg.solve(gram, rows[some].T @ np.eye(ARMS)[labels[some]])
    sharpness = {"sharp": 12.0, "soft": 2.0, "wrong": 12.0}[kind]
    weights = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    found = weights / weights.sum(axis=1, keepdims=True)
    return np.roll(found, 1, axis=1) if kind == "wrong" else found


def value(policy):
    """The true value of a policy."""
    return float(policy[np.arange(len(policy)), digits()[1]].mean())


def play(logger, logs, rounds, seed):
    """L logs of an adaptive logger, "greedy" or "thompson", each with uniform exploration."""
    rows, labels = digits()
    rng = np.random.default_rng(seed)
    d, each = rows.shape[1], np.arange(logs)
    inverse = np.broadcast_to(np.eye(d), (logs, ARMS, d, d)).copy()
    moment, weights = np.zeros((logs, ARMS, d)), np.zeros((logs, ARMS, d))
    images = rng.integers(len(rows), size=(logs, rounds))
    out = Logs(
        images,
        np.empty((logs, rounds), dtype=int),
        np.empty((logs, rounds)),
        np.empty((logs, rounds, ARMS)),
        np.empty((logs, rounds, ARMS)),
    )
    for t in range(rounds):
        x = rows[images[:, t]]
        scores = np.einsum("lad,ld->la", weights, x)
        out.predictions[:, t] = np.clip(scores, 0.0, 1.0)
        if logger == "greedy":
            favoured = (scores >= scores.max(axis=1, keepdims=True) - 1e-12).astype(float)
        else:  # how often each class wins in draws from the posterior; the propensity is exact given these
            spread = np.sqrt(np.einsum("lade,ld,le->la", inverse, x, x))
            draws = scores[:, :, None] + 0.3 * spread[:, :, None] * rng.standard_normal((logs, ARMS, DRAWS))
            favoured = (draws == draws.max(axis=1, keepdims=True)).sum(axis=2).astype(float)
        chances = EXPLORE / ARMS + (1.0 - EXPLORE) * favoured / favoured.sum(axis=1, keepdims=True)
        actions = np.minimum((chances.cumsum(axis=1) < rng.random(logs)[:, None]).sum(axis=1), ARMS - 1)
        rewards = (labels[images[:, t]] == actions).astype(float)
        out.actions[:, t], out.rewards[:, t], out.probabilities[:, t] = actions, rewards, chances
        step = np.einsum("lde,le->ld", inverse[each, actions], x)
        step_norm = 1.0 + (x * step).sum(axis=1)
        inverse[each, actions] -= step[:, :, None] * step[:, None, :] / step_norm[:, None, None]
        moment[each, actions] += x * rewards[:, None]
        weights[each, actions] = np.einsum("lde,le->ld", inverse[each, actions], moment[each, actions])
    return out
