"""`Posteriors` of Gaussian processes and wide models whose values are computed where and when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.schema import anything, floats, integers, record
from alexp.common.ties import first_best, first_few, rules, tolerance
from alexp.estimation.onepass.regressions import KernelRegression, LinearRegression, PointTold, about_level, lifted
from alexp.estimation.posteriors import CandidateMoments, Envelope, NotFiniteError, dictionary_rows, is_finite
from alexp.problem.candidates import Choices
from alexp.problem.kernels import Kernel

if TYPE_CHECKING:
    from alexp.estimation.posteriors import Where

MOST_DRAWN = 1000  # candidates that a draw is made for jointly
_PIECE = 4096  # candidates whose similarities are in memory


class Processes:
    """M models, one regression each, with V_j and s_j as `Posteriors` has them: for a kernel

        mu_j(x) = k(x)'(K + ridge_j^2 I)^-1 y,     s_j^2(x) = (k(x, x) - k(x)'(K + ridge_j^2 I)^-1 k(x)) / ridge_j^2,

    which is the same as for linear models where k(x, z) = <phi(x), phi(z)>.

    Parameters
    ----------
    groups, kernels : the columns of each model, and its kernel, None for <x, z>.
    ridge : (M,).
    intercept : whether every model has an unpenalised constant.
    origin : (P,) what is taken off the columns of linear models, see `ModelClass.origin`.
    largest : (M,) the largest k(x, x) of the candidates, for `lifted`; none is known by default.
    """

    def __init__(
        self,
        groups: Sequence[IntArray],
        kernels: Sequence[Kernel | None],
        ridge: FloatArray,
        intercept: bool,
        origin: FloatArray | None = None,
        largest: FloatArray | float = 0.0,
    ) -> None:
        self._groups, self._kernels, self.intercept, self._origin = groups, kernels, intercept, origin
        self.n_models, self._ratios = len(groups), lifted(np.asarray(ridge, dtype=np.float64) ** 2, largest)
        self._fits = self._begin()

    def _own(self, j: int, rows: FloatArray) -> FloatArray:
        """phi_j of dictionary rows (..., P), less the origin: in place where nothing is taken off neighbours."""
        group = self._groups[j]
        together = rows.ndim == 2 and group.size == group[-1] - group[0] + 1 and self._kernels[j] is None
        own = rows[:, group[0] : group[-1] + 1] if together else rows[..., group]
        if self._origin is None or self._kernels[j] is not None:
            return own if together else np.ascontiguousarray(own)
        return np.asarray(own - self._origin[group])

    def _begin(self) -> list[KernelRegression]:
        self._rows: list[FloatArray] = []  # that were told, once each
        self._numbers: dict[bytes, int] = {}  # theirs
        self._order: list[int] = []  # which of them each reward was of
        self._rewards: list[float] = []
        self._known: dict[int, tuple[Where, FloatArray, FloatArray]] = {}  # where a model was last asked for values
        out: list[KernelRegression] = []
        for group, kernel, ratio in zip(self._groups, self._kernels, self._ratios.tolist(), strict=True):
            ratios = np.array([ratio])
            if kernel is None:
                out.append(LinearRegression(group.size, ratios, self.intercept))
            else:
                out.append(KernelRegression(kernel, group.size, ratios, self.intercept))
        return out

    @property
    def n_observations(self) -> int:
        return len(self._rewards)

    @property
    def counts(self) -> IntArray:
        return np.array([self.n_observations])

    def update(self, row: FloatArray, y: float) -> None:
        for j, fit in enumerate(self._fits):
            at = _point(self._own(j, row))
            fit.tell(at, y, fit.probe(at))
            if fit.points.n == fit.limit and isinstance(fit, LinearRegression):
                fit.rebuild()  # into its smaller form
        key = row.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self._rows)
            self._rows.append(np.array(row))
        self._order.append(self._numbers[key])
        self._rewards.append(float(y))
        self._known.clear()

    def with_fantasies(self, rows: FloatArray, members: IntArray | None = None) -> Processes:
        chosen = range(self.n_models) if members is None else members.tolist()
        out = copy(self)
        out._groups, out._kernels = [self._groups[j] for j in chosen], [self._kernels[j] for j in chosen]
        out._ratios, out.n_models, out._known = self._ratios[list(chosen)], len(chosen), {}
        out._fits = [self._with_fantasies(j, rows) for j in chosen]
        return out

    def _with_fantasies(self, j: int, rows: FloatArray) -> KernelRegression:
        fit = self._fits[j].copy()
        for row in rows:  # rewards that are as expected leave the means where they are
            at = _point(self._own(j, row))
            probe = fit.probe(at)
            fit.tell(at, float(probe.mean[0]), probe)
        return fit

    # -- one model ---------------------------------------------------------------------------------------------

    def mean(self, j: int, features: Where) -> FloatArray:
        return self._values(j, features)[0]

    def width(self, j: int, features: Where) -> FloatArray:
        return self._values(j, features)[1]

    def _values(self, j: int, where: Where) -> tuple[FloatArray, FloatArray]:
        """mu_j and s_j, shapes (n,)."""
        if j in self._known and self._known[j][0] is where:
            return self._known[j][1:]
        rows = self._features(j, where)
        mean, variance = np.empty((2, len(rows)))
        for low in range(0, len(rows), _PIECE):
            part = slice(low, low + _PIECE)
            own = self._fits[j].moments(rows[part])
            mean[part], variance[part] = own[0][0], own[1][0]
        if self._is_unlevelled(j) and isinstance(where, Choices) and where.indices is not None and len(rows) > 1:
            variance = about_level(self._kernels[j], rows, variance)
        for what, values in (("mean", mean), ("variance", variance)):
            if values.size and not is_finite(values):
                raise NotFiniteError(what, j)
        self._known[j] = (where, mean, np.sqrt(variance / self._ratios[j]))
        return self._known[j][1:]

    def _is_unlevelled(self, j: int) -> bool:
        """Whether nothing is known of the constant of model j."""
        return self.intercept and not self._fits[j].points.n

    def _features(self, j: int, where: Where) -> FloatArray:
        """phi_j at choices or rows, (n, d)."""
        return self._own(j, dictionary_rows(where))

    def at(self, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        both = [self._values(j, row[None]) for j in range(self.n_models)]
        return np.array([mean[0] for mean, _ in both]), np.array([width[0] ** 2 for _, width in both])

    # -- all models --------------------------------------------------------------------------------------------

    def argmax_ucb(self, choices: Choices, width: FloatArray | float) -> IntArray:
        widths = np.broadcast_to(np.asarray(width, dtype=np.float64), (self.n_models,))
        both = [self._values(j, choices) for j in range(self.n_models)]
        return np.array([first_best(mean + w * own) for (mean, own), w in zip(both, widths, strict=True)], np.int64)

    def argmax_mean(self, choices: Choices) -> IntArray:
        return self.argmax_ucb(choices, 0.0)

    def argmax_draw(self, choices: Choices, rng: np.random.Generator, scale: float) -> IntArray:
        """Position of every model's best choice under one draw of covariance scale^2 s_j^2, shape (M,).

        Under a kernel the 1,000 choices of largest mean + 2 std are drawn jointly; others hardly ever are the best.
        """
        best = []
        for j in range(self.n_models):
            mean, width = self._values(j, choices)
            unit, fit = scale / np.sqrt(self._ratios[j]), self._fits[j]
            if isinstance(fit, LinearRegression):
                direction = fit.direction(0, rng.standard_normal(fit.n_normals))
                best.append(first_best(mean + unit * (self._features(j, choices) @ direction)))
                continue
            upper = mean + 2.0 * scale * width
            chosen = first_few(upper, MOST_DRAWN)
            rows = np.ascontiguousarray(choices.table[self._groups[j]][:, chosen].T)
            drawn = fit.root(0, rows) @ rng.standard_normal(chosen.size)
            best.append(int(chosen[first_best(mean[chosen] + unit * drawn)]))
        return np.array(best, dtype=np.int64)

    def residuals(self) -> FloatArray:
        """F_j = min over f of RSS + ridge_j^2 ||f||^2 in the norm that belongs to the kernel, shape (M,)."""
        return np.array([float(fit.residuals[0]) for fit in self._fits])

    def log_determinants(self) -> FloatArray:
        """log det(I + K_j / ridge_j^2), shape (M,)."""
        return np.array([float(fit.log_determinants()[0]) for fit in self._fits])

    def evidence(self, noise: float) -> FloatArray:
        """-F_j / (2 noise^2) - log det(I + K_j / ridge_j^2) / 2, shape (M,)."""
        out = -self.residuals() / (2.0 * noise**2) - 0.5 * self.log_determinants()
        if not (out < np.inf).all():
            raise NotFiniteError("evidence", int(np.argmin(out < np.inf)))
        return out

    def envelope(self, members: IntArray, radii: FloatArray, choices: Choices) -> Envelope:
        n = len(choices)
        lower, upper, model = np.full(n, np.inf), np.full(n, -np.inf), np.full(n, -1, dtype=np.int64)
        for j, radius in zip(members.tolist(), radii.tolist(), strict=True):
            mean, width = self._values(j, choices)
            lower = np.minimum(lower, mean - radius * width)
            end = mean + radius * width
            model = np.where(upper >= end - tolerance(1.0, -np.inf, rules.tie) * np.abs(end), model, j)
            upper = np.maximum(upper, end)
        return Envelope(lower, upper, model)

    def largest_gaps(
        self, members: IntArray, radii: FloatArray, choices: Choices, reference: int
    ) -> tuple[FloatArray, FloatArray]:
        gaps, estimates = np.empty(members.size), np.empty(members.size)
        for place, j in enumerate(members.tolist()):
            mean, width = self._values(j, dictionary_rows(choices) if self._is_unlevelled(j) else choices)
            rows = np.ascontiguousarray(self._features(j, choices))
            shared = self._fits[j].covariances(rows, rows[reference]) / self._ratios[j]
            apart = np.sqrt(np.maximum(width**2 + width[reference] ** 2 - 2.0 * shared, 0.0))
            ahead = mean - mean[reference]
            apart[reference] = 0.0
            gaps[place], estimates[place] = float((ahead + radii[place] * apart).max()), float(ahead.max())
        return gaps, estimates

    def merge_moments(
        self, into: CandidateMoments, members: IntArray, shares: FloatArray, variances: FloatArray, choices: Choices
    ) -> None:
        for j, share, noise in zip(members.tolist(), shares.tolist(), variances.tolist(), strict=True):
            mean, width = self._values(j, choices)
            into.merge(share, mean, noise * width**2)

    # -- storage -----------------------------------------------------------------------------------------------

    def state(self) -> Packable:
        """The rewards and where they were measured: all else follows from that, bit for bit."""
        own = {"rows": np.array(self._rows), "order": np.array(self._order, dtype=np.int64)}
        return own | {"rewards": np.array(self._rewards)}

    def restore(self, state: Packable) -> None:
        some: int | None = None  # of a size that is not known before
        checks = {"rows": anything, "order": integers(some, low=0), "rewards": floats(some)}
        known = record("state", state, checks)
        rewards, rows = known["rewards"], np.asarray(known["rows"], dtype=np.float64)
        order = known["order"]
        if rewards.size != order.size or (order.size and order.max() >= len(rows)):
            raise ValueError("state['order'] must have the number of a row for every reward")
        if len(rows) and (rows.ndim != 2 or rows.shape[1] <= max(int(group.max()) for group in self._groups)):
            raise ValueError(f"state['rows'] must have a column for every feature, got shape {rows.shape}")
        self._fits = self._begin()
        for number, y in zip(order.tolist(), rewards.tolist(), strict=True):
            self.update(rows[number], y)


def _point(row: FloatArray) -> PointTold:
    return PointTold(row, None, lambda: np.empty(0))
