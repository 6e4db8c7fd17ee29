"""Compiled single paths for the coverage report: adaptive play in the plane, one noise vector per path."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.compiling import checked


@checked.entry
def ucb_path(
    noise: FloatArray,
    actions: FloatArray,
    theta: FloatArray,
    penalty: float,
    statistic: FloatArray,
    error: FloatArray,
    level: FloatArray,
) -> None:
    """Optimistic play on the rows of ``actions`` (K, 2) with coefficients ``theta`` (2,); fills the (steps,) outputs.

    statistic = ||S_t||_{V_t^-1}, error = ||b_hat_t - theta||_{V_t}, level = log det(V_t / penalty), where
    V_t = penalty I + sum phi phi' and S_t = sum phi eps.
    """
    a, b, c = penalty, 0.0, penalty
    s0, s1 = 0.0, 0.0
    for t in range(noise.size):
        det = a * c - b * b
        # V^-1 (S - penalty theta) + theta is the ridge estimate.
        z0, z1 = s0 - penalty * theta[0], s1 - penalty * theta[1]
        f0, f1 = (c * z0 - b * z1) / det + theta[0], (a * z1 - b * z0) / det + theta[1]
        best, chosen = -np.inf, 0
        for k in range(actions.shape[0]):
            x, y = actions[k, 0], actions[k, 1]
            score = f0 * x + f1 * y + np.sqrt((c * x * x - 2.0 * b * x * y + a * y * y) / det)
            if score > best:
                best, chosen = score, k
        x, y = actions[chosen, 0], actions[chosen, 1]
        s0 += noise[t] * x
        s1 += noise[t] * y
        a += x * x
        b += x * y
        c += y * y
        det = a * c - b * b
        statistic[t] = np.sqrt((c * s0 * s0 - 2.0 * b * s0 * s1 + a * s1 * s1) / det)
        z0, z1 = s0 - penalty * theta[0], s1 - penalty * theta[1]
        error[t] = np.sqrt((c * z0 * z0 - 2.0 * b * z0 * z1 + a * z1 * z1) / det)
        level[t] = np.log(det / (penalty * penalty))


@checked.entry
def worst_model_path(
    noise: FloatArray,
    features: FloatArray,
    penalty: float,
    levels: FloatArray,
    statistic: FloatArray,
    worst: FloatArray,
) -> None:
    """Play whatever feeds the noise of the model that is worst off; fills statistic (steps,) and worst (steps, K).

    ``features`` (N, M, 2) are M models of size two on N actions. statistic = max_j ||S_j||_2 with S_j = sum phi_j eps;
    worst_k = max_j lambda_max(V_j) (log det(V_j / penalty) + levels_k) with V_j = penalty I + sum phi_j phi_j'.
    """
    n_actions, n_models = features.shape[0], features.shape[1]
    s = np.zeros((n_models, 2))
    a, b, c = np.full(n_models, penalty), np.zeros(n_models), np.full(n_models, penalty)
    target = 0
    for t in range(noise.size):
        pull, chosen = -1.0, t % n_actions
        for n in range(n_actions):
            value = abs(features[n, target, 0] * s[target, 0] + features[n, target, 1] * s[target, 1])
            if value > pull + 1e-9:
                pull, chosen = value, n
        largest = -1.0
        for k in range(levels.size):
            worst[t, k] = 0.0
        for j in range(n_models):
            x, y = features[chosen, j, 0], features[chosen, j, 1]
            s[j, 0] += noise[t] * x
            s[j, 1] += noise[t] * y
            a[j] += x * x
            b[j] += x * y
            c[j] += y * y
            norm = s[j, 0] * s[j, 0] + s[j, 1] * s[j, 1]
            if norm > largest:
                largest, target = norm, j
            top = 0.5 * (a[j] + c[j]) + np.sqrt(0.25 * (a[j] - c[j]) ** 2 + b[j] * b[j])
            level = np.log((a[j] * c[j] - b[j] * b[j]) / (penalty * penalty))
            for k in range(levels.size):
                worst[t, k] = max(worst[t, k], top * (level + levels[k]))
        statistic[t] = np.sqrt(largest)
