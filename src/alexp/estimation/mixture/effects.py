"""Evidence mixture with candidate effects: what a reward has beyond any model.

On a table no model is exactly true: r(x) = phi_j(x)'theta + u_x, where u_x ~ N(0, tau^2), independent between
candidates, is what makes a candidate better or worse than its features say. Playing it again measures it. With
n_x plays of mean y_x and rho = tau^2 / s^2, integrating u out leaves a weighted ridge regression,

    sum_x omega_x (y_x - phi_j(x)'theta)^2 + ridge^2 ||theta||^2,     omega_x = n_x / (1 + rho n_x),

and the posterior of a reward moves from the model's towards the candidate's own mean by c_x = rho omega_x:

    mean (1 - c_x) mu(x) + c_x y_x,     variance (1 - c_x)^2 s^2 ||phi||^2_{V^-1} + tau^2 (1 - c_x).

Weights only grow, so another reward of x is another row of the regression: weight omega' - omega and value
y + rho n_x (y - y_x).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.schema import anything, floats, record, same
from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.posteriors import CandidateMoments, Component
from alexp.estimation.ridge.bank import RidgeBank, RidgeGrid
from alexp.problem.candidates import NOTHING, Choices, Pending

_CONSTANT = 10.0  # value of the column that stands for the intercept: its prior is ten times as wide


class EffectMixture(Mixture):
    """`Mixture` over a grid of noise levels, prior scales and sizes of candidate effects, effect-major.

    ``effect_grid`` are values of tau / B, the first of them zero: no effects. An intercept becomes a column with a wide
    prior, since rows have weights here.
    """

    grid: RidgeGrid

    def __init__(
        self,
        n_columns: int,
        columns: IntArray,
        offsets: IntArray,
        divisors: FloatArray,
        intercept: bool,
        *,
        n_candidates: int,
        effect_grid: Sequence[float],
        noise_std: float,
        norm_bound: float,
        noise_grid: Sequence[float] = (1.0,),
        scale_grid: Sequence[float] = (1.0,),
        power: float = 1.0,
        log_prior: FloatArray | None = None,
    ) -> None:
        ridges = divisors * noise_std / norm_bound
        self._plain = RidgeBank(columns, offsets, ridges, intercept)
        self._constant = intercept
        if intercept:
            columns = np.insert(columns, offsets[1:], n_columns)
            offsets = offsets + np.arange(offsets.size)
        super().__init__(
            n_columns + int(intercept),
            columns,
            offsets,
            divisors,
            False,
            noise_std=noise_std,
            norm_bound=norm_bound,
            noise_grid=noise_grid,
            scale_grid=scale_grid,
            copies=len(effect_grid),
            may_sleep=False,
            power=power,
            log_prior=log_prior,
        )
        cells = len(self.ridges) // len(effect_grid)
        self.tau = np.repeat(np.asarray(effect_grid, dtype=np.float64) * norm_bound, cells)
        self._rho = (self.tau / self.noise) ** 2
        self._counts, self._means = np.zeros(n_candidates), np.zeros(n_candidates)
        self._fixed = np.zeros(len(self.ridges))  # parts of the log evidence that all models of a cell share

    @property
    def n_observations(self) -> int:
        """Number of rewards taken in so far, t."""
        return self._plain.n_observations

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb a reward of candidate ``index`` with dictionary row (P,)."""
        if index is None:
            raise ValueError("effects belong to candidates: a reward needs the candidate's index")
        self._plain.update(row, y)
        row = np.append(row, _CONSTANT) if self._constant else row
        n, mean = float(self._counts[index]), float(self._means[index])
        for g in range(len(self.grid.cells)):
            rho = float(self._rho[g])
            before, after = n / (1.0 + rho * n), (n + 1.0) / (1.0 + rho * (n + 1.0))
            value = y + rho * n * (y - mean)
            root = np.sqrt(max(after - before, 0.0))
            self.grid.update_cell(g, root * row, root * value)
            # What the added row puts into the residual beyond sum omega y_x^2 and the spread around the means: only
            # rounding, since both are n / (n + 1) (y - y_x)^2. It counts where it is a number: runs of 0.1.0 had it.
            with np.errstate(over="ignore", invalid="ignore"):
                surplus = (
                    (after - before) * np.square(value) - after * self._mean_after(n, mean, y) ** 2 + before * mean**2
                )
                rest = (surplus - n / (n + 1.0) * (y - mean) ** 2) / (2.0 * self.noise[g] ** 2)
            self._fixed[g] += rest if np.isfinite(rest) else 0.0
            self._fixed[g] -= 0.5 * np.log((1.0 + rho * (n + 1.0)) / (1.0 + rho * n))
        self._means[index] = self._mean_after(n, mean, y)
        self._counts[index] += 1.0

    @staticmethod
    def _mean_after(n: float, mean: float, y: float) -> float:
        return mean + (y - mean) / (n + 1.0)

    def log_evidence(self) -> FloatArray:
        """Log evidence of every component up to a common constant, shape (cells, M)."""
        return super().log_evidence() + self._fixed[:, None]

    def moments(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the reward, effects included; points that are no candidates have none.

        ``pending`` trials shrink the models' variances by rows of the weight they will have. A candidate's own effect
        is left as uncertain as it is: a pending candidate is not to be chosen again.
        """
        inner = self._levelled(choices, pending)
        shares = weights.sum(axis=1)
        merged = CandidateMoments.empty(len(choices))
        for g in np.flatnonzero(shares > 1e-12):
            alone = np.zeros_like(weights)
            alone[g] = weights[g] / shares[g]
            centre, variance = super().moments(alone, inner, self._weighted(int(g), pending))
            merged.merge(float(shares[g]), *self._pulled(int(g), choices, centre, variance))
        return merged.mean, (merged.within + merged.between) / merged.total

    def components(
        self, weights: FloatArray, choices: Choices, pending: Pending = NOTHING, least: float = 1e-12
    ) -> Iterator[Component]:
        """The components of weight above ``least`` one by one, effects included."""
        inner = self._levelled(choices, pending)
        for g in range(len(weights)):
            alone = np.zeros_like(weights)
            alone[g] = weights[g]
            share = float(weights[g][weights[g] > least].sum()) / float(weights[weights > least].sum())
            for part in super().components(alone, inner, self._weighted(g, pending), least):
                mean, variance = self._pulled(g, choices, part.mean, part.variance)
                yield part._replace(share=share * part.share, mean=mean, variance=variance)

    def _pulled(
        self, cell: int, choices: Choices, mean: FloatArray, variance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Moments of a cell's models, with the candidates' own effects."""
        own, pull = self._pull(cell, choices)
        mean = (1.0 - pull) * mean + pull * own
        return mean, (1.0 - pull) ** 2 * variance + self.tau[cell] ** 2 * (1.0 - pull)

    def _weighted(self, cell: int, pending: Pending) -> Pending:
        """Pending trials with the rows that their rewards would add to the regression of a cell."""
        if not len(pending):
            return pending
        earlier = np.array([np.sum(pending.indices[:k] == index) for k, index in enumerate(pending.indices)])
        n, rho = self._counts[pending.indices] + earlier, self._rho[cell]
        with np.errstate(over="ignore"):
            roots = 1.0 / np.sqrt((1.0 + rho * n) * (1.0 + rho * (n + 1.0)))  # omega' - omega is their square
        return replace(pending, rows=roots[:, None] * self._extended(pending.rows.T).T)

    def _pull(self, cell: int, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Candidates' own means and how far they pull, c_x, shapes (n,)."""
        if choices.indices is None:
            return np.zeros(len(choices)), np.zeros(len(choices))
        counts, rho = self._counts[choices.indices], self._rho[cell]
        return self._means[choices.indices], np.asarray(rho * counts / (1.0 + rho * counts))

    def draw(self, cell: int, model: int, rng: np.random.Generator, choices: Choices) -> FloatArray:
        """Rewards at the choices under one draw of coefficients and effects, shape (n,)."""
        own, pull = self._pull(cell, choices)
        values = (1.0 - pull) * super().draw(cell, model, rng, self._with_constant(choices)) + pull * own
        if self.tau[cell] > 0.0:
            values = values + self.tau[cell] * np.sqrt(1.0 - pull) * rng.standard_normal(values.size)
        return np.asarray(values)

    def _chances(self, weights: FloatArray, choices: Choices, rng: np.random.Generator) -> FloatArray:
        return self._shares_of_draws(weights, choices, rng)  # effects are drawn as well

    def _levelled(self, choices: Choices, pending: Pending) -> Choices:
        """The choices with their constant; less their mean, and so without it, as long as nothing is known of it."""
        if not self._constant or len(pending):
            return self._with_constant(choices)
        table = self._plain.levelled(choices)
        constant = _CONSTANT if table is choices.table else 0.0
        return Choices(choices.indices, np.vstack([table, np.full((1, len(choices)), constant)]))

    def _with_constant(self, choices: Choices) -> Choices:
        return Choices(choices.indices, self._extended(choices.table)) if self._constant else choices

    def _extended(self, table: FloatArray) -> FloatArray:
        if not self._constant:
            return table
        return np.vstack([table, np.full((1, table.shape[1]), _CONSTANT)])

    def state(self) -> Packable:
        """Everything that observations have changed."""
        own = {"counts": self._counts, "means": self._means, "fixed": self._fixed, "plain": self._plain.state()}
        return own | {"banks": super().state()}

    def restore(self, state: Packable) -> None:
        """Continue from `state`."""
        n, cells = self._counts.size, self._fixed.size
        columns = {"counts": floats(n, low=0.0), "means": floats(n), "fixed": floats(cells)}
        known = record("mixture", state, columns | {"banks": anything, "plain": anything})
        super().restore(known["banks"])
        self._plain.restore(known["plain"])
        self._counts, self._means, self._fixed = known["counts"], known["means"], known["fixed"]
        same("sum of mixture['counts']", self._counts.sum(), self.n_observations, "the number of rewards")
