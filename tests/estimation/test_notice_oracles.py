"""PostLasso and Evidence with an intercept and with scales, by normal equations."""

from math import log

import numpy as np
import pytest

from alexp import Evidence, GroupLasso, ModelClass
from alexp.estimation.lasso.post_lasso import PostLasso
from alexp.problem import Matrices

TABLE = np.random.default_rng(4).uniform(-1.0, 1.0, (9, 4)) + np.array([0.0, 0.5, 1.0, -0.5])
GROUPS, SCALES = ([0, 1], [1, 2], [3]), (1.0, 2.0, 0.5)
REWARDS = 5.0 + TABLE @ np.array([1.0, -0.5, 0.2, 0.0]) + 0.1 * np.cos(9 * np.arange(9))


def models(intercept):
    return ModelClass(Matrices({"f": TABLE}), list(GROUPS), scales=list(SCALES), intercept=intercept)


def bound(oracle, intercept, rewards=REWARDS):
    data = oracle.bind(models(intercept))
    for row, y in zip(TABLE, rewards, strict=True):
        data.append(row, float(y))
    return data


@pytest.mark.parametrize("lam", [0.02, 0.1])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_post_lasso_refits_on_centred_data(intercept, lam):
    """min over (c, b) of ||y - c - F b||^2 + ridge^2 sum_i b_i^2 / votes_i; votes count the selected groups."""
    found = bound(PostLasso(ridge=0.4), intercept).solve(lam)
    chosen = bound(GroupLasso(1e-6), intercept).solve(lam).groups
    assert found.groups.tolist() == chosen.tolist()
    assert chosen.size > 0
    votes = np.zeros(4)
    for j in chosen:
        votes[GROUPS[int(j)]] += 1
    used = np.flatnonzero(votes)
    rows = TABLE[:, used]
    penalty = np.diag(0.4**2 / votes[used])
    if intercept:  # an unpenalised column of ones
        rows = np.column_stack([np.ones(9), rows])
        penalty = np.pad(penalty, ((1, 0), (1, 0)))
    solution = np.linalg.solve(rows.T @ rows + penalty, rows.T @ REWARDS)
    beta = np.zeros(4)
    beta[used] = solution[-used.size :]
    assert found.beta == pytest.approx(beta)
    assert found.intercept == pytest.approx(solution[0] if intercept else 0.0)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_evidence_with_the_noise_integrated_out(intercept):
    """F^(-(t - 1)/2) det^(-1/2) with a free constant, F^(-t/2) det^(-1/2) without; ridges times scales."""
    ridges = (0.1, 1.0)
    found = bound(Evidence(ridges), intercept).solve(0.0)
    scores, fits = [], []
    for ridge in ridges:
        for group, scale in zip(GROUPS, SCALES, strict=True):
            phi = TABLE[:, group] / scale
            centre, level = (phi.mean(axis=0), REWARDS.mean()) if intercept else (0.0, 0.0)
            v = (phi - centre).T @ (phi - centre) + ridge**2 * np.eye(len(group))
            b = np.linalg.solve(v, (phi - centre).T @ (REWARDS - level))
            loss = np.sum((REWARDS - level - (phi - centre) @ b) ** 2) + ridge**2 * b @ b
            freedom = 8 if intercept else 9
            scores.append(-freedom / 2 * log(loss) - 0.5 * np.linalg.slogdet(v / ridge**2)[1])
            beta = np.zeros(5)
            beta[group] = b / scale
            beta[4] = level - np.sum(centre * b) if intercept else 0.0
            fits.append(beta)
    q = np.exp(np.array(scores) - max(scores))
    q /= q.sum()
    assert np.sum(q > 0.05) > 1  # several of them matter
    mean = q @ np.array(fits)
    assert found.beta == pytest.approx(mean[:4])
    assert found.intercept == pytest.approx(mean[4])
    assert found.groups.tolist() == [0, 1, 2]
    assert found.magnitudes == pytest.approx(q.reshape(2, 3).sum(axis=0))
