"""Slow, obvious versions of what the group Lasso computes, on the explicitly concatenated matrix Phi."""

from __future__ import annotations

import itertools

import numpy as np
from numba import njit
from numpy.polynomial import legendre
from scipy.optimize import nnls

from alexp.estimation.lasso.group_lasso import GroupLasso, GroupLassoPath, LassoFit


def flat(groups):
    """Columns and offsets of a list of groups."""
    return np.concatenate(groups), np.concatenate([[0], np.cumsum([len(group) for group in groups])])


def bound(groups, n_columns, weights=None, intercept=False, **options) -> GroupLassoPath:
    return GroupLasso(**({"canonical": False} | options)).bind_groups(n_columns, *flat(groups), weights, intercept)


def all_subsets(n_columns, size, weight=1.0, intercept=False, **options) -> GroupLassoPath:
    plain = {"canonical": False} | options
    return GroupLasso(**plain).bind_groups(n_columns, None, None, [weight], intercept, size)


def filled(path: GroupLassoPath, rows, y) -> GroupLassoPath:
    for row, value in zip(rows, y, strict=True):
        path.append(row, value)
    return path


def lambda_max(rows, y, groups, weights=None, intercept=False) -> float:
    """The least lambda at which every coefficient is zero."""
    if intercept:
        rows, y = rows - rows.mean(axis=0), y - y.mean()
    weights = np.ones(len(groups)) if weights is None else weights
    g = rows.T @ y
    return max(np.linalg.norm(g[group]) / w for group, w in zip(groups, weights, strict=True)) / len(y)


def explicit_gap(rows, y, groups, weights, intercept, lam, path: GroupLassoPath, fit: LassoFit) -> float:
    """(P - D) / P from Phi and theta in extended precision, in the paper's units."""
    rows, y = rows.astype(np.longdouble), y.astype(np.longdouble)
    t = len(y)
    weights = np.ones(len(groups)) if weights is None else weights
    theta = path.group_coefficients(fit)
    r = y - fit.intercept
    penalty = np.longdouble(0.0)
    for j, coefficients in theta.items():
        r = r - rows[:, groups[j]] @ coefficients
        penalty += weights[j] * np.sqrt(np.sum(coefficients.astype(np.longdouble) ** 2))
    primal = r @ r / t + 2.0 * lam * penalty
    if primal == 0.0:
        return 0.0
    if intercept:  # the dual point must be orthogonal to the unpenalised column
        r = r - r.mean()
    g = rows.T @ r
    largest = max(np.sqrt(np.sum(g[group] ** 2)) / w for group, w in zip(groups, weights, strict=True))
    square = r @ r
    s = y @ r / square if square > 0.0 else np.longdouble(0.0)
    if largest > 0.0:
        s = np.clip(s, -lam * t / largest, lam * t / largest)
    dual = (2.0 * s * (y @ r) - s * s * square) / t
    return float((primal - dual) / primal)


def rounding_of_gap(rows, y, groups, weights, lam, fit: LassoFit) -> float:
    """What rounding beta to doubles does to :func:`explicit_gap`: the error of Phi_j'r relative to its bound."""
    weights = np.ones(len(groups)) if weights is None else weights
    largest = max(np.linalg.norm(rows[:, group]) / w for group, w in zip(groups, weights, strict=True))
    size = np.linalg.norm(y) + np.linalg.norm(np.abs(rows) @ np.abs(fit.beta)) + abs(fit.intercept) * len(y) ** 0.5
    return float(16.0 * np.finfo(float).eps * largest * size / (lam * len(y)))


def fista(rows, y, groups, lam, weights=None, gap=1e-11, steps=200_000):
    """Fitted values (t,) by accelerated proximal gradient with restarts on the concatenated matrix."""
    phi = np.concatenate([rows[:, group] for group in groups], axis=1)
    _, offsets = flat(groups)
    label = np.repeat(np.arange(len(groups)), np.diff(offsets))
    weights = np.ones(len(groups)) if weights is None else np.asarray(weights)
    mu = lam * len(y)
    lipschitz = np.linalg.norm(phi, 2) ** 2
    theta = momentum = np.zeros(phi.shape[1])
    age = 1.0
    for step in range(steps):
        forward = momentum + phi.T @ (y - phi @ momentum) / lipschitz
        norms = np.sqrt(np.bincount(label, forward**2))
        shrink = np.maximum(0.0, 1.0 - mu * weights / lipschitz / np.maximum(norms, 1e-300))
        new = shrink[label] * forward
        if (momentum - new) @ (new - theta) > 0.0:
            age, momentum = 1.0, new
        else:
            older, age = age, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * age * age))
            momentum = new + (older - 1.0) / age * (new - theta)
        theta = new
        if step % 50 == 0:
            r = y - phi @ theta
            norms = np.sqrt(np.bincount(label, (phi.T @ r) ** 2))
            s = min(1.0, mu / max(np.max(norms / weights), 1e-300))
            primal = 0.5 * r @ r + mu * weights @ np.sqrt(np.bincount(label, theta**2))
            if primal - (s * (y @ r) - 0.5 * s * s * (r @ r)) <= gap * primal:
                return phi @ theta
    raise AssertionError("the slow twin did not converge")


def legendre_instance(degree, size, n, seed, noise=0.01):
    """Rows (n, degree + 1), rewards and all subsets of the given size, as in the paper's experiments."""
    rng = np.random.default_rng(seed)
    rows = legendre.legvander(rng.uniform(-1.0, 1.0, n), degree)
    theta = rng.normal(size=size)
    support = rng.choice(degree + 1, size, replace=False)
    y = rows[:, support] @ (theta / np.linalg.norm(theta)) + noise * rng.normal(size=n)
    groups = [np.array(group) for group in itertools.combinations(range(degree + 1), size)]
    return rows, y, groups


def weak_lambda(t, n_models, size, noise=0.01, delta=0.1):
    """The published experiments' lambda_t: 0.009 times the theory's with its fourfold constant."""
    w = np.log(8.0 * n_models / delta)
    inner = 1.0 + 5.0 / np.sqrt(2.0) * np.sqrt(size * w) + 12.0 / np.sqrt(2.0) * w
    return 0.009 * 8.0 * noise / np.sqrt(t) * np.sqrt(inner)


def odd_instance(rng):
    """A small problem from the corners: rank one, repeated, constant, zero, badly scaled columns, odd groups."""
    n_columns, t = int(rng.choice([1, 2, 3, 5, 8, 12, 20])), int(rng.choice([1, 2, 3, 5, 10, 20]))
    rows = rng.normal(size=(t, n_columns))
    kind = rng.integers(0, 9)
    some = rng.random(n_columns) < 0.5
    if kind == 1:
        rows = np.outer(rng.normal(size=t), rng.normal(size=n_columns))
    elif kind == 2:
        rows = rows[:, rng.integers(0, n_columns, n_columns)]
    elif kind == 3:
        rows[:, some] = 1.0
    elif kind == 4:
        rows *= 10.0 ** rng.uniform(-6, 6, n_columns)
    elif kind == 5:
        rows[:, some] = 0.0
    elif kind == 6:
        rows = legendre.legvander(rng.uniform(-1.0, 1.0, t), n_columns - 1)
    elif kind == 7:
        rows = rows.round()
    elif kind == 8:
        rows = rows[rng.integers(0, t, t)]
    groups = []
    for _ in range(int(rng.choice([1, 2, 5, 20, 60]))):
        size = rng.integers(1, n_columns + 1) if rng.random() < 0.3 else min(n_columns, rng.integers(1, 4))
        groups.append(rng.choice(n_columns, int(size), replace=False))
    if rng.random() < 0.3:
        groups = groups + groups[: rng.integers(1, len(groups) + 1)]
    weights = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 3, len(groups))
    support = groups[rng.integers(len(groups))]
    beta = np.zeros(n_columns)
    beta[support] = rng.normal(size=len(support)) / np.maximum(np.abs(rows[:, support]).max(axis=0), 1e-300)
    y = rows @ beta + rng.choice([0.0, 1e-6, 0.01, 1.0]) * rng.normal(size=t)
    if rng.random() < 0.1:
        y = np.full(t, rng.choice([0.0, 3.0]))
    return rows, y * 10.0 ** rng.integers(-3, 4), groups, weights, bool(rng.random() < 0.4)


def least_weights(n_columns, groups, weights=None):
    """w_i (P,): the least weight of a group with column i; zero for columns in no group."""
    least = np.full(n_columns, np.inf)
    for group, weight in zip(groups, np.ones(len(groups)) if weights is None else weights, strict=True):
        least[group] = np.minimum(least[group], weight)
    return np.where(np.isfinite(least), least, 0.0)


def least_norm(rows, groups, weights, mu, beta, r):
    """The minimiser of least sum_i (w_i beta_i)^2 (P,), given any minimiser and its residual.

    All minimisers are sum_j eta_j g_{S_j} / mu with eta >= 0 over the groups with ||g_{S_j}|| = mu w_j, g = rows'r, and
    have the same fitted values: least squares with bounds, in which the fitted values count a million times more.
    """
    g = rows.T @ r
    weights = np.ones(len(groups)) if weights is None else weights
    tight = [j for j, group in enumerate(groups) if np.linalg.norm(g[group]) >= (1.0 - 1e-7) * mu * weights[j]]
    if not tight or not beta.any():
        return np.zeros_like(beta)
    parts = np.zeros((beta.size, len(tight)))
    for column, j in enumerate(tight):
        parts[groups[j], column] = g[groups[j]]
    parts /= np.linalg.norm(parts)
    fits, lengths = rows @ parts, least_weights(beta.size, groups, weights)[:, None] * parts
    much = 1e6 * np.linalg.norm(lengths) / np.linalg.norm(fits)
    left, right = np.vstack([much * fits, lengths]), np.concatenate([much * (rows @ beta), np.zeros(beta.size)])
    return parts @ nnls(left, right, maxiter=10_000)[0]


def block_descent(rows, y, groups, lam, weights=None, gap=1e-12, rounds=20_000):
    """beta (P,) by exact block coordinate descent from zero, until the duality gap is at most ``gap``."""
    weights = np.ones(len(groups)) if weights is None else np.asarray(weights, dtype=float)
    offsets = flat(groups)[1]
    spectra = [np.linalg.eigh(rows[:, group].T @ rows[:, group]) for group in groups]
    # Turned within the groups, which changes no norm, the columns of a group are orthogonal.
    turned = np.vstack([(rows[:, group] @ basis).T for group, (_, basis) in zip(groups, spectra, strict=True)])
    squares = np.concatenate([values for values, _ in spectra])
    mu, theta, r = lam * len(y), np.zeros(len(turned)), np.array(y, dtype=float)
    for _ in range(rounds):
        _sweep(turned, squares, offsets, mu * weights, theta, r, 200)
        r = y - theta @ turned
        top = (np.sqrt(np.add.reduceat((turned @ r) ** 2, offsets[:-1])) / weights).max(initial=1e-300)
        s = min(1.0, mu / top)
        primal = 0.5 * r @ r + mu * weights @ np.sqrt(np.add.reduceat(theta**2, offsets[:-1]))
        if primal - (s * (y @ r) - 0.5 * s * s * (r @ r)) <= gap * primal:
            break
    else:
        raise AssertionError("block coordinate descent did not converge")
    beta = np.zeros(rows.shape[1])
    for j, (group, (_, basis)) in enumerate(zip(groups, spectra, strict=True)):
        beta[group] += basis @ theta[offsets[j] : offsets[j + 1]]
    return beta


@njit
def _sweep(columns, squares, offsets, levels, theta, r, sweeps):
    """Minimise over one group after the other: theta_i = pull_i / (squares_i + level / ||theta||), or all are zero."""
    pull = np.zeros(theta.size)
    for _ in range(sweeps):
        for j in range(levels.size):
            start, stop, total = offsets[j], offsets[j + 1], 0.0
            for i in range(start, stop):
                pull[i] = squares[i] * theta[i]
                for t in range(r.size):
                    pull[i] += columns[i, t] * r[t]
                total += pull[i] * pull[i]
            length = 0.0
            if total > levels[j] * levels[j]:
                low, high = 0.0, 1.0
                while _share(pull, squares, levels[j], start, stop, high) > 1.0:
                    low, high = high, 2.0 * high
                length = 0.5 * (low + high)
                while low < length < high:
                    if _share(pull, squares, levels[j], start, stop, length) > 1.0:
                        low = length
                    else:
                        high = length
                    length = 0.5 * (low + high)
            for i in range(start, stop):
                new = pull[i] * length / (squares[i] * length + levels[j])
                for t in range(r.size):
                    r[t] -= (new - theta[i]) * columns[i, t]
                theta[i] = new


@njit
def _share(pull, squares, level, start, stop, length):
    """||theta||^2 / length^2 for theta_i = pull_i / (squares_i + level / length)."""
    total = 0.0
    for i in range(start, stop):
        total += (pull[i] / (squares[i] * length + level)) ** 2
    return total
