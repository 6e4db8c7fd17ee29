"""Candidates that nobody has seen before, with rewards that are linear in one of several blocks of their features."""

from __future__ import annotations

from math import sqrt

import numpy as np

from alexp.common.validation import count, non_negative
from alexp_experiments.contextual.streams import ContextStream


def linear_stream(
    steps: int, seed: int, *, n_candidates: int = 10, n_sets: int = 8, size: int = 5, noise_std: float = 0.3
) -> ContextStream:
    """r = theta' phi_j(x) + noise, j unknown, theta of norm one; features are Gaussian with E ||phi_j||^2 = 1.

    Half of each candidate's features are those of its round, as those of a user are: candidates of a round resemble
    each other more than those of different rounds.
    """
    count("n_candidates", n_candidates, 2)
    count("n_sets", n_sets, 1)
    count("size", size)
    non_negative("noise_std", noise_std)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(123,)))
    true = int(rng.integers(n_sets))
    theta = rng.standard_normal(size)
    theta /= np.linalg.norm(theta)
    shape = (steps, n_candidates, n_sets * size)
    features = (rng.standard_normal(shape) + rng.standard_normal((steps, 1, n_sets * size))) / sqrt(2.0 * size)
    values = features[:, :, true * size : (true + 1) * size] @ theta
    rewards = values + noise_std * rng.standard_normal(values.shape)
    sets = {f"block {k}": range(k * size, (k + 1) * size) for k in range(n_sets)}
    width = 4.0 * (1.0 + noise_std)
    return ContextStream(
        np.empty((steps, 0)), values, rewards, sets, candidates=features, true_set=true,
        reward_range=(-width, width),
    )  # fmt: skip
