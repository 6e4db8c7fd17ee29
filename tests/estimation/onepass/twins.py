"""Slow and obvious: dense formulas that the one-pass posteriors are held against."""

import numpy as np

from alexp.estimation.onepass.grid import OnePassGrid
from alexp.problem.candidates import CandidateTable
from alexp.problem.domains import FiniteSet


def candidates(models, n, seed=0):
    return CandidateTable(models, FiniteSet(np.arange(n)), np.random.default_rng(seed).permutation(n))


def grid(models, table, ridges):
    return OnePassGrid(table.models(models), ridges, models.intercept)


def dense(gram, indices, rewards, ratio, intercept):
    """Mean and variance of all candidates, residual and log determinant, from the Gram matrix and t rewards.

    Prior covariance `gram`, noise variance `ratio`; a flat constant by the formulas of universal kriging.
    """
    t = len(rewards)
    if t == 0:
        return np.zeros(len(gram)), np.diag(gram).copy(), 0.0, 0.0
    kernel, cross, y = gram[np.ix_(indices, indices)], gram[indices], np.asarray(rewards)
    inverse = np.linalg.inv(kernel + ratio * np.eye(t))
    log_det = np.linalg.slogdet(np.eye(t) + kernel / ratio)[1]
    mean, variance = cross.T @ inverse @ y, np.diag(gram) - np.einsum("tn,ts,sn->n", cross, inverse, cross)
    if not intercept:
        return mean, variance, ratio * y @ inverse @ y, log_det
    ones = np.ones(t)
    s = ones @ inverse @ ones
    level = ones @ inverse @ y / s
    rest = y - level
    mean = level + cross.T @ inverse @ rest
    variance = variance + (1.0 - cross.T @ inverse @ ones) ** 2 / s
    return mean, variance, ratio * rest @ inverse @ rest, log_det + np.log(ratio * s / t)
