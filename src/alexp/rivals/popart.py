"""PopArt: explore by a design, estimate coefficient by coefficient, commit (Jang, Zhang and Jun 2022)."""

from __future__ import annotations

from math import cbrt, ceil, log, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    Algorithm,
    Certain,
    Decision,
    Domain,
    Estimate,
    Exploration,
    FloatArray,
    HOptimal,
    IntArray,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    Weighted,
    a_dict,
    count,
    design_features,
    first_best,
    fraction,
    independent_columns,
    maybe,
    offering,
    on_choices,
    predict,
    record,
    second_moment,
)
from alexp.rivals.etc import Commitment

# PopArt: coefficients as robust means of one-sample estimates, set to zero below a threshold (Jang et al. 2022).

_FAR = 1e100


def influence(u: FloatArray) -> FloatArray:
    """psi(u) = sign(u) log(1 + |u| + u^2 / 2), Catoni's (2012): linear near zero, logarithmic far away."""
    size = np.abs(u)
    near, far = np.minimum(size, _FAR), np.maximum(size, _FAR)  # u^2 would not be a number far away
    return np.asarray(np.sign(u) * (np.log1p(near + 0.5 * near**2) + 2.0 * np.log(far / _FAR)))


def catoni_mean(samples: FloatArray, alpha: float) -> float:
    """The root m of sum_t psi(alpha (z_t - m)) = 0 for samples (n,); it lies between the smallest and the largest.

    >>> round(catoni_mean(np.array([1.0, 2.0, 3.0]), 0.1), 12)
    2.0
    """
    from scipy.optimize import brentq  # slow to import, needed here only

    low, high = float(samples.min()), float(samples.max())
    if low == high:
        return low
    return brentq(lambda m: float(influence(alpha * (samples - m)).sum()), low, high, xtol=1e-14 * (high - low))


def popart(samples: FloatArray, variance: float, log_term: float) -> FloatArray:
    """The estimate from one-sample estimates z_t (n, P), unbiased, each coordinate of variance at most `variance`.

    With L = `log_term` = log(2 P / delta) and n > 2 L: alpha = sqrt(2 L / (v n (1 + 2 L / (n - 2 L)))), and a
    coordinate counts as zero where its mean is at most sqrt(2 v L / (n - 2 L)), its error with probability
    1 - delta.
    """
    n = len(samples)
    if n <= 2.0 * log_term:
        raise ValueError(f"PopArt needs more than {2.0 * log_term:.1f} samples at this delta, got {n}")
    spare = n - 2.0 * log_term
    alpha = sqrt(2.0 * log_term / (variance * n * (1.0 + 2.0 * log_term / spare)))
    means = np.array([catoni_mean(column, alpha) for column in np.ascontiguousarray(samples.T)])
    return np.where(np.abs(means) <= sqrt(2.0 * variance * log_term / spare), 0.0, means)


class PopArt(Algorithm):
    """Explore until n0 rewards are known, then play the best action of a thresholded robust estimate for ever.

    With Q = sum_a pi_a f_a f_a', H^2 = max_i (Q^-1)_ii and actions drawn from pi, z = Q^-1 f y is an unbiased estimate
    of theta whose coordinates have variance at most v = (S^2 + sigma^2) H^2, S = `reward_bound`. Each coordinate is
    Catoni's mean of its z, and zero where that is at most sqrt(2 v L / (n0 - 2 L)), L = log(2 P / delta);

        n0 = ((sparsity horizon / S)^2 v L)^(1/3), at most the horizon.

    These are the constants of the released code, line by line. The threshold in print is sqrt(4 v L / n0), as known: at
    least as large from n0 = 4 L on, where the bound on Catoni's mean, which the release uses, implies it. `pi`
    minimises H^2 (`HOptimal`).

    `warm=True` is Warm-PopArt: half of the exploration gives a pilot theta_0, the other half estimates what is left,
    z = Q^-1 f (y - f . theta_0) + theta_0 with v = 2 sigma^2 H^2, which has lost S, and is right once the pilot
    predicts to within sigma; n0 = 4 ((sparsity sigma horizon / S)^2 H^2 L)^(1/3). It is in no released code. The
    factor 4 follows: the printed threshold on n0/2 samples of variance 2 sigma^2 H^2 is 4 sigma sqrt(H^2 L / n0), the
    l1 error at most 2 s of these, and S n0 + 2 horizon x that error is smallest at this n0.

    Columns that depend on others on all candidates are left out; the models' constant is one more coordinate. Only what
    was drawn from pi is used: external measurements do not count, and rounds restricted by `available` or by
    pending trials bias the estimate.

    Needs `horizon`, `sparsity`, `reward_bound` and `noise_std`.
    """

    name: ClassVar[str] = "popart"
    needs_columns: ClassVar[str] = "it estimates coefficients of columns"
    needs_table: ClassVar[str] = "it explores by a design on a fixed set of candidates"
    settings: ClassVar[tuple[str, ...]] = ("horizon", "sparsity", "delta", "warm", "n_explore", "exploration")
    example: ClassVar[State] = {"horizon": 30, "sparsity": 2, "delta": 0.9, "n_explore": 8}

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        horizon: int,
        sparsity: int,
        delta: float = 0.05,
        warm: bool = False,
        n_explore: int | None = None,
        exploration: Exploration | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.horizon, self.sparsity = count("horizon", horizon), count("sparsity", sparsity)
        self.delta, self.warm = fraction("delta", delta), bool(warm)
        self.exploration = HOptimal() if exploration is None else exploration
        offering("exploration", self.exploration, "design")
        self._pi = self.exploration.design(models, domain).weights
        features = design_features(models, domain)
        played = features[self._pi > 0.0]
        self._columns = independent_columns(played)
        self._inverse = np.linalg.inv(second_moment(features[:, self._columns], self._pi))
        self._estimate: Estimate | None = None  # set once, when exploration ends
        self._n_drawn = 0  # rewards of what was drawn from pi
        self.n_explore = None if n_explore is None else count("n_explore", n_explore)
        shortest = ceil(2.0 * self._log_term) + 1
        self.n_exploring = max(self.n_explore or self._length(), 2 * shortest if self.warm else shortest)

    @property
    def h_squared(self) -> float:
        """H^2, the largest variance of a coefficient per unit of the reward's."""
        return float(np.diag(self._inverse).max())

    @property
    def relies_on(self) -> frozenset[str]:
        """The noise and the bound, for the length of the exploration and for the threshold."""
        return frozenset({"noise_std", "reward_bound"})

    @property
    def _log_term(self) -> float:
        return log(2.0 * self._columns.size / self.delta)

    def _length(self) -> int:
        """n0 by the theory."""
        s, n, bound, sigma = self.sparsity, self.horizon, self.reward_bound, self.noise_std
        variance = (64.0 * sigma**2 if self.warm else bound**2 + sigma**2) * self.h_squared
        return min(self.horizon, max(1, int(cbrt((s * n / bound) ** 2 * variance * self._log_term))))

    def _decide(self, round_: Round) -> Decision:
        if self._estimate is None and self._n_drawn < self.n_exploring:
            pi = on_choices(self._pi, round_.indices)
            return Decision(Weighted(np.arange(pi.size), pi, explored=True))
        fit = self.fit
        return Commitment(Certain(first_best(round_.narrow(predict(fit, round_.wide.table)))), fit)

    def _commit(self, round_: Round, decision: Decision) -> None:
        if isinstance(decision, Commitment):
            self._estimate = decision.fit

    def _learn(self, seen: Observation) -> None:
        asked = seen.trial < self.n_asked  # an external measurement gets its number now
        self._n_drawn += asked and self._log.explored[seen.trial]

    @property
    def fit(self) -> Estimate:
        """The estimate it committed to, or that it would commit to now."""
        return self._cached("fit", self._solve) if self._estimate is None else self._estimate

    def _drawn(self) -> IntArray:
        """Trials that were drawn from pi and have a reward, in order."""
        known = zip(self._log.reward, self._log.explored, strict=True)
        return np.flatnonzero([reward == reward and drawn for reward, drawn in known])

    def _solve(self) -> Estimate:
        trials, theta = self._drawn(), np.zeros(self.models.n_columns + 1)
        if trials.size > 2.0 * self._log_term * (2 if self.warm else 1):  # fewer say nothing
            rows = np.column_stack([self._rows(trials), np.ones(trials.size)])[:, self._columns]
            theta[self._columns] = self._thresholded(rows, self._sign * np.array(self._log.reward)[trials])
        used = np.flatnonzero(theta[:-1])
        return Estimate(theta[:-1], float(theta[-1]), used, np.abs(theta[used]))

    def _thresholded(self, rows: FloatArray, y: FloatArray) -> FloatArray:
        """PopArt on rows (n, k) of the columns in use, in one step or in two."""
        noise, samples = self.noise_std**2 * self.h_squared, rows @ self._inverse
        half = y.size // 2 if self.warm else y.size
        largest = self.reward_bound**2 * self.h_squared
        pilot = popart(samples[:half] * y[:half, None], largest + noise, self._log_term)
        if not self.warm:
            return pilot
        left = y[half:] - rows[half:] @ pilot
        return popart(samples[half:] * left[:, None] + pilot, 2.0 * noise, self._log_term)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        values = predict(self.fit, round_.choices.table)
        position = first_best(values)
        return position, float(values[position]), None

    def _state(self) -> State:
        return {"fit": None if self._estimate is None else self._estimate.state()}

    def _restore(self, state: State) -> None:
        saved = record("state", state, {"fit": maybe(a_dict)})["fit"]
        p = self.models.n_columns
        self._estimate = None if saved is None else Estimate.from_state(saved, p, p)
        self._n_drawn = self._drawn().size
