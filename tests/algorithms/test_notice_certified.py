"""Certificates by hand: radii, plausible models and bands with every share of delta, through what users see."""

from math import log, sqrt

import numpy as np
import pytest

import alexp

from .plain import Ridge, problem, reward

NOISE, BOUND = 0.4, 1.5


def certificate(now, ridges, delta, intercept, norms):
    """Squared radii: the mixture of all models' likelihoods, each model with its own prior scale."""
    t = now[0].t
    levels = np.array([f.log_determinant + (log(t) if intercept else 0.0) for f in now])
    losses = np.array([f.loss for f in now])
    share = delta / 2 if intercept else delta
    mixed = np.mean(np.exp(-(losses + NOISE**2 * levels) / (2 * NOISE**2)))
    beta = -2 * NOISE**2 * log(mixed) + 2 * NOISE**2 * log(1 / share)
    first = 2 * NOISE**2 * log(4 / delta) if intercept else 0.0
    return beta + first + np.array(ridges) ** 2 * norms**2 - losses


def compare(opt, now, ridges, delta, intercept, norms=BOUND):
    squares = certificate(now, ridges, delta, intercept, norms)
    alive = np.flatnonzero(squares >= 0)
    assert opt.plausible_models(delta).tolist() == alive.tolist()
    for index in range(12):
        low = min(now[j].mean[index] - sqrt(squares[j]) * now[j].norm[index] for j in alive)
        high = max(now[j].mean[index] + sqrt(squares[j]) * now[j].norm[index] for j in alive)
        assert opt.confidence(f"item {index}", delta) == pytest.approx((low, high))
    return alive.size


DATA = [(i, reward(i)) for i in (3, 7, 3, 10, 0, 5)]


@pytest.mark.parametrize("delta", [0.3, 0.01])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.LMUCB, alexp.O2CSEW])
def test_bands_of_the_natural_ridge(kind, intercept, delta):
    """Whatever the algorithm fits for itself, certificates come from ridge = noise / norm."""
    models, domain, table = problem(intercept=intercept)
    opt = kind(models, domain, noise_std=NOISE, norm_bound=BOUND, random_state=0)
    for index, value in DATA:
        opt.observe(index, value)
    ridge = NOISE / BOUND
    now = [Ridge(table, g, s, ridge, DATA, intercept) for g, s in zip(models.groups, models.scales, strict=True)]
    compare(opt, now, [ridge] * 3, delta, intercept)


@pytest.mark.parametrize("delta", [0.3, 0.01])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_bands_from_a_bound_on_the_reward(intercept, delta):
    """|r| <= B bounds the norm of each model's coefficients by its own number, which is also its own prior scale."""
    models, domain, table = problem(intercept=intercept)
    opt = alexp.ALExp(models, domain, noise_std=NOISE, reward_bound=BOUND, random_state=0)
    for index, value in DATA:
        opt.observe(index, value)
    norms = []
    for group, scale in zip(models.groups, models.scales, strict=True):
        features = table[:, group] / scale
        features = features - features.mean(axis=0) if intercept else features
        norms.append(BOUND * sqrt(len(table)) / np.linalg.svd(features, compute_uv=False)[-1])
    ridges = [NOISE / norm for norm in norms]
    now = [
        Ridge(table, g, s, ridge, DATA, intercept)
        for g, s, ridge in zip(models.groups, models.scales, ridges, strict=True)
    ]
    compare(opt, now, ridges, delta, intercept, np.array(norms))


def test_models_are_ruled_out():
    """The same comparison where it bites: rewards of model 0 rule out the others."""
    models, domain, table = problem()
    truth = table[:, [0, 1]] @ np.array([1.0, -0.8])
    opt = alexp.LMUCB(models, domain, noise_std=NOISE, norm_bound=BOUND, random_state=0)
    data = [(i % 12, float(truth[i % 12] + 0.05 * np.cos(5 * i))) for i in range(90)]
    for index, value in data:
        opt.observe(index, value)
    ridge = NOISE / BOUND
    now = [Ridge(table, g, s, ridge, data) for g, s in zip(models.groups, models.scales, strict=True)]
    assert compare(opt, now, [ridge] * 3, 0.1, False) < 3


def test_nothing_is_certified_before_the_constant_is_known():
    models, domain, _ = problem(intercept=True)
    opt = alexp.LMUCB(models, domain, noise_std=NOISE, norm_bound=BOUND, random_state=0)
    for question in (lambda: opt.confidence("item 1"), opt.plausible_models):
        with pytest.raises(alexp.NotCertified, match="no reward"):
            question()
