"""Exploration designs that need nothing but linear algebra: D- and H-optimality, and bounds on E-optimality.

A design is a probability vector pi over N candidates with feature rows f_i; S(pi) = sum_i pi_i f_i f_i' is its
second-moment matrix, (P, P).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.ties import first_best, rules

# A column counts as dependent when pivoting leaves less than this fraction of its length: designs work with S, whose
# condition number is the square of the features', and double precision resolves 1e-14 there.
RANK_TOLERANCE = 1e-7
_MOST_STEPS = 20_000  # towards an H-optimal design
_MIRROR_STEPS = 2000  # of mirror ascent


def second_moment(features: FloatArray, weights: FloatArray) -> FloatArray:
    """S(pi) = sum_i pi_i f_i f_i' for features (N, P) and weights (N,); exactly symmetric, shape (P, P)."""
    moment = features.T @ (weights[:, None] * features)
    return np.asarray(0.5 * (moment + moment.T), dtype=np.float64)


def smallest_eigenvalue(features: FloatArray, weights: FloatArray) -> float:
    """lambda_min(S(pi)), not below zero; zero without any work when there are fewer candidates than columns."""
    if np.count_nonzero(weights) < features.shape[1]:
        return 0.0
    return float(lowest_eigenvalues(second_moment(features, weights)))


def lowest_eigenvalues(moments: FloatArray) -> FloatArray:
    """lambda_min of positive semi-definite matrices (..., d, d), not below zero, to relative accuracy.

    Columns in wildly different units make S graded, and a plain eigenvalue solver then loses the small end. With
    S = C K C, C the root of the diagonal, it is 1 / lambda_max(C^-1 K^-1 C^-1), and only the conditioning of K matters.
    """
    roots = np.sqrt(np.diagonal(moments, axis1=-2, axis2=-1))
    usable = roots.min(axis=-1) > 0.0
    safe = np.where(roots > 0.0, roots, 1.0)
    values, vectors = np.linalg.eigh(moments / (safe[..., :, None] * safe[..., None, :]))
    usable = usable & (values[..., 0] > 1e-13)
    inverse = (vectors / np.where(values > 1e-13, values, 1.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    largest = np.linalg.eigvalsh(inverse / (safe[..., :, None] * safe[..., None, :]))[..., -1]
    return np.asarray(np.where(usable, 1.0 / largest, 0.0), dtype=np.float64)


def independent_columns(features: FloatArray) -> IntArray:
    """Sorted indices of a largest set of linearly independent columns of (N, P), by QR with column pivoting.

    Columns are first scaled to unit length, so that neither the units of a feature nor their spread decide.

    >>> x = np.array([0.0, 1.0, 2.0])
    >>> independent_columns(np.stack([x, 3 * x, x**2], axis=1)).size
    2
    """
    lengths = np.linalg.norm(features, axis=0)
    nonzero = np.flatnonzero(lengths > 0.0)
    if nonzero.size == 0:
        return nonzero.astype(np.int64)
    unit = features[:, nonzero] / lengths[nonzero]
    triangle, pivots = _pivoted_qr(unit)
    diagonal = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(diagonal > RANK_TOLERANCE * diagonal[0]))
    return np.sort(nonzero[pivots[:rank]]).astype(np.int64)


def spread_rows(features: FloatArray) -> IntArray:
    """Indices of P rows of a rank-P matrix (N, P) that span the space, by QR with pivoting on the rows.

    Rows are made longer the earlier they come, by a millionth at most: of those that tie the first is taken.
    """
    n = len(features)
    longer = 1.0 + 1e4 * rules.tie * np.arange(n, 0, -1) / n
    return _pivoted_qr(features.T * longer)[1][: features.shape[1]]


def _pivoted_qr(matrix: FloatArray) -> tuple[FloatArray, IntArray]:
    from scipy.linalg import qr  # slow to import, needed by designs only

    triangle, pivots = qr(matrix, mode="r", pivoting=True, check_finite=False)
    return np.asarray(triangle, dtype=np.float64), np.asarray(pivots, dtype=np.int64)


def dual_value(features: FloatArray, matrix: FloatArray) -> float:
    """max_i f_i' Z f_i: an upper bound on C_min for every positive semi-definite Z (P, P) of trace one."""
    return float(np.einsum("ij,ij->i", features @ matrix, features).max())


def inverse_moment_bound(features: FloatArray, weights: FloatArray) -> float:
    """Bound on C_min by Z = S(pi)^-1 / tr, kept positive definite where S is nearly singular.

    For a D-optimal pi it is at most P lambda_min(S(pi)), which is why such a design keeps C_min / P.
    """
    values, vectors = np.linalg.eigh(second_moment(features, weights))
    inverse = 1.0 / np.maximum(values, 1e-14 * values[-1])
    return float(((features @ vectors) ** 2 @ (inverse / inverse.sum())).max())


def trivial_bound(features: FloatArray) -> float:
    """min(max_i ||f_i||^2 / P, min_p max_i f_ip^2): the bound on C_min by Z = I / P and by Z = e_p e_p'."""
    squares = features**2
    return float(min(squares.sum(axis=1).max() / features.shape[1], squares.max(axis=0).min()))


def mirror_bounds(features: FloatArray) -> tuple[FloatArray, float, float]:
    """Design, its lambda_min and a certified upper bound on C_min, without a semidefinite solver.

    Entropic mirror ascent, pi_i <- pi_i exp(h_t (v'f_i)^2) normalised, with v the lowest eigenvector of S(pi) and
    h_t = 4 sqrt(log N / t) / max ||f||^2. The running average of pi is the design and the running average Z of vv',
    which has trace one, bounds C_min by max_i f_i'Zf_i. The bracket closes like 1/sqrt(iterations): within 10% on
    Legendre features after 2,000 rounds.
    """
    n_candidates, n_columns = features.shape
    scores, average = np.zeros(n_candidates), np.zeros(n_candidates)
    dual = np.zeros((n_columns, n_columns))
    speed = 4.0 * np.sqrt(np.log(max(n_candidates, 2))) / float((features**2).sum(axis=1).max())
    best_bound = trivial_bound(features)
    for t in range(1, _MIRROR_STEPS + 1):
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        lowest = np.linalg.eigh(second_moment(features, weights))[1][:, 0]
        average += weights
        dual += np.outer(lowest, lowest)
        scores += speed / np.sqrt(t) * (features @ lowest) ** 2
    average /= _MIRROR_STEPS
    bound = min(best_bound, dual_value(features, dual / _MIRROR_STEPS))
    return average, smallest_eigenvalue(features, average), bound


@dataclass(frozen=True)
class DOptimalSolution:
    """What `d_optimal` found: weights (N,), log det S(pi), and how far that is at most from the best log det."""

    weights: FloatArray
    log_determinant: float
    log_determinant_gap: float
    iterations: int


def d_optimal(features: FloatArray, tol: float = 1e-4, max_iterations: int = 100_000) -> DOptimalSolution:
    """Maximise log det S(pi) over designs on the rows of ``features`` (N, P), which must have rank P.

    Frank-Wolfe with away steps and exact line search (Wynn 1970; Atwood 1973; Todd and Yildirim 2007): move mass to
    the candidate with the largest g_i = f_i' S^-1 f_i, or away from the support point with the smallest. By
    Kiefer and Wolfowitz g_i <= P at the optimum, and log det falls short by at most P log(max g / P); the loop
    stops when max g <= P (1 + tol). S^-1 is updated by rank one and recomputed every 64 steps. The start is uniform
    on P independent rows, so that the support stays small.
    """
    n_candidates, n_columns = features.shape
    scale = np.linalg.norm(features, axis=0)
    rows = features / scale
    weights = np.zeros(n_candidates)
    if n_columns == 1:  # the line search below divides by zero here, and the answer is one point
        weights[first_best(np.abs(rows[:, 0]))] = 1.0
    else:
        weights[spread_rows(rows)] = 1.0 / n_columns
    leverage: FloatArray = np.empty(n_candidates)
    inverse: FloatArray = np.empty((n_columns, n_columns))
    iteration = 0
    for iteration in range(max_iterations):
        if iteration % 64 == 0:
            inverse = np.asarray(np.linalg.inv(second_moment(rows, weights)), dtype=np.float64)
            leverage = np.einsum("ij,ij->i", rows @ inverse, rows)
        if leverage.max() <= n_columns * (1.0 + tol):
            break
        chosen, step = _exchange(leverage, weights, n_columns)
        direction = inverse @ rows[chosen]
        odds = step / (1.0 - step)
        factor = odds / (1.0 + odds * leverage[chosen])
        inverse = (inverse - factor * np.outer(direction, direction)) / (1.0 - step)
        leverage = (leverage - factor * (rows @ direction) ** 2) / (1.0 - step)
        weights *= 1.0 - step
        weights[chosen] = max(weights[chosen] + step, 0.0)
    weights /= weights.sum()
    moment = second_moment(rows, weights)
    leverage = np.einsum("ij,ij->i", rows @ np.linalg.inv(moment), rows)
    gap = n_columns * float(np.log(max(leverage.max() / n_columns, 1.0)))
    log_determinant = float(np.linalg.slogdet(moment)[1] + 2.0 * np.log(scale).sum())
    return DOptimalSolution(weights, log_determinant, gap, iteration)


def _exchange(leverage: FloatArray, weights: FloatArray, n_columns: int) -> tuple[int, float]:
    """Candidate to move and the step a of pi <- (1 - a) pi + a e_i that maximises log det along that line."""
    up = first_best(leverage)
    support = np.flatnonzero(weights > 0.0)
    down = int(support[first_best(-leverage[support])])
    if leverage[up] - n_columns >= n_columns - leverage[down]:
        return up, (leverage[up] / n_columns - 1.0) / (leverage[up] - 1.0)
    drop = -weights[down] / (1.0 - weights[down])
    if leverage[down] <= 1.0:
        return down, drop
    return down, max((leverage[down] / n_columns - 1.0) / (leverage[down] - 1.0), drop)


def h_optimal(features: FloatArray, tol: float = 1e-3) -> tuple[FloatArray, float, float]:
    """Weights (N,) that minimise max_i (S(pi)^-1)_ii, that value, and a certified lower bound, for rows of rank P.

    Multiplicative steps to the saddle point: pi_a grows with the square root of pull_a = f_a' S^-1 diag(l) S^-1 f_a, as
    for the A-optimal design with weights l (Torsney 1983), and l_i with the variance of coefficient i. They stop
    when the bracket is closed to `tol`, mostly after some hundred steps, or after 20,000.

    For l >= 0 that sums to one, phi(pi) = sum_i l_i (S(pi)^-1)_ii is convex and homogeneous of degree -1, whence
    phi(pi)^2 / max_a pull_a bounds the best value from below, whatever pi and l are.
    """
    lengths = np.abs(features).max(axis=0)
    rows = features / lengths  # so that units do not upset the inverse
    weights, shares = np.full(len(rows), 1.0 / len(rows)), np.full(lengths.size, 1.0 / lengths.size)
    best, value, bound = weights, np.inf, 0.0
    for _ in range(_MOST_STEPS):
        inverse = np.linalg.inv(second_moment(rows, weights))
        variances = np.diagonal(inverse) / lengths**2
        if (largest := float(variances.max())) < value:
            best, value = weights, largest
        pull, phi = (rows @ inverse / lengths) ** 2 @ shares, float(shares @ variances)
        bound = max(bound, phi**2 / float(pull.max()))
        if value <= bound * (1.0 + tol):
            break
        weights = weights * np.sqrt(pull / phi)
        weights /= weights.sum()
        shares = shares * variances
        shares /= shares.sum()
    return best, value, bound
