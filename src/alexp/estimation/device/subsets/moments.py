"""Mean and covariance of the coefficients under the mixture of all subsets, and of the rewards at candidates."""

from __future__ import annotations

from dataclasses import dataclass

from alexp.common.arrays import FloatArray
from alexp.estimation.device.subsets.engine import Engine
from alexp.estimation.device.subsets.law import CellTerms
from alexp.estimation.device.subsets.sums import SharedSums


@dataclass(frozen=True)
class Gathered:
    """What a decision needs of all subsets; arrays are those of the engine.

    Attributes
    ----------
    total : summed weights, relative to exp(reference).
    noise : posterior mean of the noise's variance.
    inclusion : (P,) probability that a column is in the model.
    coefficients : (P,) posterior mean.
    within, between : (P, P) covariance of the coefficients, within subsets and between them.
    """

    total: float
    noise: float
    inclusion: FloatArray
    coefficients: FloatArray
    within: FloatArray
    between: FloatArray


def gather(engine: Engine, sums: SharedSums, law: CellTerms, reference: float, later: SharedSums) -> Gathered:
    """One pass over all subsets. ``later`` has pending rows as well, which shrink the variances within subsets.

    A subset of s columns comes once with each of its s (s - 1) / 2 pairs, and with s - 1 pairs for each of its columns.
    """
    xp, size = engine.xp, engine.size
    weights, noises, theta, squares, products, own, shared = engine.sums_of_pairs(sums, law, reference, later)
    total = float(weights.sum()) / (size * (size - 1))
    each, diagonal = total * (size - 1), xp.arange(sums.n_columns)
    mean = theta.sum(axis=1) / each
    within, between = shared / total, products / total
    within[diagonal, diagonal] = own.sum(axis=1) / each
    between[diagonal, diagonal] = squares.sum(axis=1) / each
    between = between - mean[:, None] * mean[None, :]
    noise = float(noises.sum()) / (size * (size - 1) * total)
    return Gathered(total, noise, weights.sum(axis=1) / each, mean, within, between)


def predict(
    engine: Engine, gathered: Gathered, sums: SharedSums, later: SharedSums, rows: FloatArray, candidates: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the reward at dictionary rows (n, P), which are the engine's; shapes (n,), NumPy's.

    With an intercept rows are taken about the mean of those so far, see `SharedSums.about`; the constant's own
    variance is the noise's over t.
    """
    now, then = rows - sums.mean, later.about(rows, candidates)
    mean = (sums.level if sums.intercept else 0.0) + now @ gathered.coefficients
    within = ((then @ gathered.within) * then).sum(axis=1) + later.base * gathered.noise
    between = ((now @ gathered.between) * now).sum(axis=1)
    return engine.host(mean), engine.host(engine.xp.maximum(within + between, 0.0))
