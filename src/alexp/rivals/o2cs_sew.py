"""O2CS-SEW: online-to-confidence-set conversion of SeqSEW (Abbasi-Yadkori, Pal, Szepesvari 2012), regret measured."""

from __future__ import annotations

from math import log, sqrt
from typing import ClassVar, Literal, Unpack, get_args

import numpy as np

from alexp.extend import (
    AGENTS,
    SQUARE,
    Certain,
    Certified,
    Decision,
    Domain,
    FloatArray,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    anything,
    count,
    first_best,
    floats,
    fraction,
    linear_posteriors,
    number,
    one_of,
    positive,
    record,
    same,
)

# Sparse exponential weights: the posterior mean of SeqSEW (Gerchinovitz 2013), by Gibbs sampling.
#
# The prior of a coefficient, (3/(2 tau)) (1 + |u|/tau)^-4, is a double exponential whose rate is Gamma(3, tau), and
# that a Gaussian whose variance is exponential: given rates and variances the weights exp(-eta ||y - X u||^2) make u
# Gaussian, and given u all of them are independent and known. Sweeps through the three have the posterior as their
# limit; how far the mean of finitely many is from it is not known, and the width below does not rely on it.

_NEAR = 1e-9  # of tau, below which coefficients count as being this large
_FARTHEST = 1e150  # coefficients beyond it have squares that overflow
_WIDEST = 1e-9  # least precision of a coefficient before any reward


class SparseWeights:
    """Coefficients of P columns under sparse exponential weights.

    Parameters
    ----------
    sweeps : of the sampler after every reward; the first third is left out of the mean.

    Attributes
    ----------
    mean : (P,) the mean of the coefficients, given all rewards so far.
    """

    def __init__(self, n_columns: int, sweeps: int) -> None:
        self.sweeps = sweeps
        self._gram, self._cross = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
        self._draw, self.mean = np.zeros(n_columns), np.zeros(n_columns)

    def learn(self, row: FloatArray, y: float, eta: float, tau: float, rng: np.random.Generator) -> None:
        """Add the reward of a row (P,), and compute the mean again, starting from the last sweep."""
        self._gram = self._gram + np.outer(row, row)
        self._cross = self._cross + row * y
        self._draw, self.mean = self.swept(self._draw, eta, tau, rng)

    def swept(
        self, draw: FloatArray, eta: float, tau: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Where the sweeps that begin at `draw` (P,) end, and the mean of their conditional means, (P,)."""
        from scipy.linalg import LinAlgError, cholesky, solve_triangular  # slow to import, needed here only

        p, begin, first = draw.size, self.sweeps // 3, draw
        total, right = np.zeros(p), 2.0 * eta * self._cross
        for k in range(self.sweeps):
            size = np.maximum(np.abs(draw), _NEAR * tau)
            rate = rng.gamma(4.0, 1.0, p) / (tau + size)
            precision = np.fmax(np.fmin(rng.wald(rate / size, rate**2), 1.0 / (_NEAR * tau) ** 2), _WIDEST)
            try:
                factor = cholesky(2.0 * eta * self._gram + np.diag(precision), check_finite=False)
            except LinAlgError:  # features of sizes that no arithmetic takes together: it learns nothing here
                return first, self.mean
            half = solve_triangular(factor, right, trans="T", check_finite=False)
            both = np.column_stack([half, half + rng.standard_normal(p)])
            solved = solve_triangular(factor, both, check_finite=False)
            mean, draw = solved[:, 0], solved[:, 1]
            if not np.all(np.abs(solved) < _FARTHEST):  # rewards of sizes that no arithmetic takes together
                return first, self.mean
            if k >= begin:
                total += mean
        return draw, total / (self.sweeps - begin)

    def state(self) -> State:
        return {"gram": self._gram, "cross": self._cross, "draw": self._draw, "mean": self.mean}

    def restore(self, state: State) -> None:
        p = self.mean.size
        vectors = {name: floats(p, low=-SQUARE, high=SQUARE) for name in ("cross", "draw", "mean")}
        known = record("weights", state, vectors | {"gram": floats(p, p, low=-SQUARE, high=SQUARE)})
        self._gram, self._cross, self._draw, self.mean = (known[name] for name in ("gram", "cross", "draw", "mean"))


MOST_COLUMNS = 50
Temperature = Literal["noise", "printed"]
TEMPERATURES: tuple[Temperature, ...] = get_args(Temperature)


class O2CSSEW(Certified):
    """OFUL on forecasts by sparse exponential weights; the better the forecasts, the smaller the confidence set.

    Forecasts f_s are made before their rewards. For any forecaster, Q_t = sum_s (f_s - r(x_s))^2 is the regret
    L_t(f) - L_t(theta) of their squared loss against the truth plus 2 sum_s noise_s (f_s - r(x_s)). The theorem on
    SeqSEW's regret is about an integral that cannot be computed exactly; sampled forecasts have no theorem. But the
    regret can be bounded from the data: the loss L_t(f) is known, and since one of the models is true,

        L_t(theta) >= min_j F_j - ridge^2 S^2,   F_j = min_b ||y - Phi_j b||^2 + ridge^2 ||b||^2,
        B_t = L_t(f) - min_j F_j + ridge^2 S^2,  Q_t <= 2 B_t + 8 sigma^2 log(1/delta) at all times

    with probability 1 - delta (Ville's inequality with one fixed parameter, l sigma^2 = 1/2), S = `norm_bound`. No
    property of the forecaster enters: a poor sampler makes the set larger, never wrong. Ridge regression on the
    forecasts gives centre and set; the action with the largest value in it is played.

    Forecasts are <u, x> cut to +-`reward_bound`, u the mean of weights exp(-eta sum (y - <u, x>)^2) under the prior
    prod (3/(2 tau)) (1 + |u_j|/tau)^-4, tau = S/sqrt(t + 1), by `sweeps` of a Gibbs sampler after every reward.

    Parameters
    ----------
    delta : share of the runs in which the set may miss the truth.
    scale : multiplies the width; 1 is the theory.
    temperature : 1/eta. "noise" is 4 noise_std^2 (Dalalyan and Tsybakov 2012); "printed" is 8 Y_t^2, Y_t = reward_bound
        + noise_std sqrt(2 log(4 t (t + 1)/delta)), which the theorem needs and which learns slowly.

    What the set gains from sparsity is what `models` know of it: with all subsets of s columns min_j F_j is that of
    the best s columns, with one model of all columns the set is no smaller than OFUL's. Differences from print: losses
    within the weights are not cut, tau moves with t, and the width is measured. At most 50 columns. The forecasts
    depend on the order of tells; models with an intercept are outside of this theory.

    Needs `noise_std`, `norm_bound` and `reward_bound`.
    """

    name: ClassVar[str] = "o2cs-sew"
    needs_columns: ClassVar[str] = "it plays a regression on all columns together"
    settings: ClassVar[tuple[str, ...]] = ("delta", "scale", "temperature", "sweeps")
    example: ClassVar[State] = {"sweeps": 6}
    depends_on: ClassVar[frozenset[str]] = frozenset({"order"})

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        delta: float = 0.1,
        scale: float = 1.0,
        temperature: Temperature = "noise",
        sweeps: int = 30,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        if models.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"O2CSSEW is for at most {MOST_COLUMNS} columns, because every sweep costs the cube of them; got "
                f"{models.n_columns}: use O2CSEW"
            )
        self.delta, self.scale = fraction("delta", delta), positive("scale", scale)
        self.temperature = one_of("temperature", temperature, TEMPERATURES)
        self.sweeps = count("sweeps", sweeps, 2)
        self.ridge = self.noise_std / self.norm_bound
        self._weights = SparseWeights(models.n_columns + int(models.intercept), self.sweeps)
        self._fits = linear_posteriors(models, self.ridge)
        self._set = linear_posteriors(models.pooled(self._distinct_columns()), self.ridge)
        self._loss = 0.0  # L_t(f)

    def _decide(self, round_: Round) -> Decision:
        fits = self._set.with_fantasies(round_.pending.rows) if round_.pending else self._set
        return Decision(Certain(int(fits.argmax_ucb(round_.choices, self.width())[0])))

    def regret(self) -> float:
        """B_t, which the forecasts' regret against the true model cannot exceed."""
        return self._loss - float(self._fits.residuals().min()) + self.noise_std**2

    def width(self) -> float:
        """Radius of the confidence set for the coefficients, times `scale`."""
        distance = max(2.0 * self.regret() + 8.0 * self.noise_std**2 * log(1.0 / self.delta), 0.0)
        norm = self.noise_std / float(self.models.scales.min())  # ridge x norm_bound
        return self.scale * sqrt(max(distance + norm**2 - float(self._set.residuals()[0]), 0.0))

    def _eta(self) -> float:
        if self.temperature == "noise":
            return 1.0 / (4.0 * self.noise_std**2)
        t = self.n_told + 1
        bound = self.reward_bound + self.noise_std * sqrt(2.0 * log(4.0 * t * (t + 1) / self.delta))
        return 1.0 / (8.0 * bound**2)

    def _learn(self, seen: Observation) -> None:
        row = np.append(seen.row, 1.0) if self.models.intercept else seen.row
        unit, t = self.norm_bound, self.n_told + 1  # coefficients are of size one in the sampler
        forecast = float(np.clip(unit * (self._weights.mean @ row), -self.reward_bound, self.reward_bound))
        self._loss += (seen.reward - forecast) ** 2
        rng = self._streams.generator(AGENTS, t)
        self._weights.learn(row, seen.reward / unit, self._eta() * unit**2, 1.0 / sqrt(t + 1), rng)
        self._fits.update(seen.row, seen.reward)
        self._set.update(seen.row, forecast)

    def coefficients(self) -> FloatArray:
        """The forecaster's mean of the coefficients of all columns, (P,), and behind them the constant's."""
        return self.norm_bound * self._weights.mean

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        theta, p = self.coefficients(), self.models.n_columns
        estimates = theta[:p] @ round_.choices.table + (theta[p] if self.models.intercept else 0.0)
        position = first_best(estimates)
        return position, float(estimates[position]), None

    def _state(self) -> State:
        fits, sets = self._fits.state(), self._set.state()
        return {"bank": fits, "set": sets, "weights": self._weights.state(), "loss": self._loss}

    def _restore(self, state: State) -> None:
        checks = {"bank": anything, "set": anything, "weights": anything, "loss": number(0.0, SQUARE)}
        known = record("state", state, checks)
        self._fits.restore(known["bank"])
        self._set.restore(known["set"])
        self._weights.restore(known["weights"])
        self._loss = known["loss"]
        for n_seen in (self._fits.n_observations, self._set.n_observations):
            same("n_observations of fits and set", n_seen, self.n_told, "the number of rewards")
