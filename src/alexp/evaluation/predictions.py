"""Predictions of rewards for all candidates: ridge regression on what the log knows, or what the user brings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from alexp.common.arrays import BoolArray, FloatArray
from alexp.common.validation import count, one_of, positive
from alexp.evaluation.log import Log
from alexp.evaluation.ragged import Ragged

FITS = ("predictable", "crossfit")
GROWTH = 1.1  # the regression is solved anew each time there are so many times more rewards


def predictions(
    log: Log, model: object, fit: str, ridge: float, folds: int, limits: tuple[float, float] | None
) -> Ragged:
    """Predicted rewards of all candidates in the rounds that can be used, in the units of the rewards.

    model
        "ridge", or predictions per round, (n, K) or a list of (n_t,), for all rounds of the log.
    fit
        "predictable": round t is predicted from rounds s < t. "crossfit": from the rounds whose number differs from t
        modulo `folds`, later ones included.
    """
    one_of("fit", fit, FITS)
    if not isinstance(model, str):
        if isinstance(model, np.ndarray) and model.ndim == 3 and model.shape[2] == 1:
            model = model[:, :, 0]  # as Open Bandit Pipeline has them
        return Ragged.of("model", model, log.n).take(log.usable)
    one_of("model", model, ("ridge",))
    if log.features is None:
        raise ValueError(
            "predicting the rewards of all candidates needs the features of all candidates, and the log has "
            + ("those of the chosen ones only" if log.chosen is not None else "none")
            + ': run with log_features="all", add them by log.with_features(...), or pass predictions as model='
        )
    rows, rewards = log.features.take(log.usable), log.rewards[log.usable]
    chosen = rows.at(log.index[log.usable])
    ridge = positive("ridge", ridge)
    if fit == "predictable":
        values = _predictable(rows, chosen, rewards, ridge)
    else:
        values = _crossfitted(rows, chosen, rewards, ridge, count("folds", folds, minimum=2))
    if limits is not None:
        values = np.clip(values, *limits)
    return rows.like(values)


def _predictable(rows: Ragged, chosen: FloatArray, rewards: FloatArray, ridge: float) -> FloatArray:
    values = np.zeros(len(rows.values))
    sums = _Sums(chosen.shape[1])
    for start, stop in _stretches(len(rewards)):
        weights, level = sums.solve(ridge)
        part = slice(rows.starts[start], rows.starts[stop])
        values[part] = rows.values[part] @ weights + level
        sums.add(chosen[start:stop], rewards[start:stop])
    return values


def _crossfitted(rows: Ragged, chosen: FloatArray, rewards: FloatArray, ridge: float, folds: int) -> FloatArray:
    values = np.zeros(len(rows.values))
    fold = np.arange(len(rewards)) % folds
    of_row = np.repeat(fold, rows.lengths)
    for k in range(folds):
        sums = _Sums(chosen.shape[1])
        others: BoolArray = fold != k
        sums.add(chosen[others], rewards[others])
        weights, level = sums.solve(ridge)
        values[of_row == k] = rows.values[of_row == k] @ weights + level
    return values


def _stretches(n: int) -> Iterator[tuple[int, int]]:
    """Rounds [start, stop) that are predicted by one fit, which knows the rounds before start."""
    start = 0
    while start < n:
        stop = min(n, max(start + 1, int(GROWTH * start)))
        yield start, stop
        start = stop


class _Sums:
    """Sums behind a ridge regression with a free constant; columns are penalised in units of their own spread."""

    def __init__(self, columns: int) -> None:
        self._n = 0
        self._row = np.zeros(columns)
        self._level = 0.0
        self._gram = np.zeros((columns, columns))
        self._moment = np.zeros(columns)

    def add(self, rows: FloatArray, rewards: FloatArray) -> None:
        self._n += len(rewards)
        self._row += rows.sum(axis=0)
        self._level += rewards.sum()
        self._gram += rows.T @ rows
        self._moment += rows.T @ rewards

    def solve(self, ridge: float) -> tuple[FloatArray, float]:
        """Coefficients (P,) and the constant; before there is data, all are 0."""
        if not self._n:
            return np.zeros_like(self._row), 0.0
        mean, level = self._row / self._n, self._level / self._n
        gram = self._gram - self._n * np.outer(mean, mean)
        spread = np.diag(gram) / self._n
        flat = spread <= 1e-12 * np.diag(self._gram) / self._n  # rounding of a constant column
        penalty = np.where(flat, 1.0, spread)
        gram[flat] = gram[:, flat] = 0.0
        moment = np.where(flat, 0.0, self._moment - self._level * mean)
        weights = np.asarray(np.linalg.solve(gram + np.diag(ridge * penalty), moment), dtype=np.float64)
        return weights, float(level - weights @ mean)
