"""Few wide models or kernels at several ridges: a `PosteriorGrid` of values that are kept on all candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.estimation.device.wide import DeviceGround
from alexp.estimation.onepass.families import Believed, Family
from alexp.estimation.onepass.grounds import Ground, HostGround
from alexp.estimation.onepass.regressions import PointTold
from alexp.estimation.posteriors import CandidateMoments, Component, Score
from alexp.problem.candidates import NOTHING, Choices, Pending
from alexp.problem.rows import dense
from alexp.problem.shared_kernels import SharedKernels
from alexp.problem.tables import ModelOnTable

_NEGLIGIBLE = 1e-12  # components of smaller weight are left out of predictions


class KernelRows:
    """k_j(x, all candidates) of the models on one table, made at once and kept for the last point asked for."""

    def __init__(self, specs: Mapping[int, ModelOnTable]) -> None:
        first = next(iter(specs.values()))
        self.models, self._rows, self._columns = list(specs), first.table.rows, first.table.columns
        self._kernels = SharedKernels([spec.kernel for spec in specs.values()], [spec.local for spec in specs.values()])
        self._last: tuple[bytes, FloatArray] = (b"", np.empty(0))

    def at(self, row: FloatArray) -> FloatArray:
        """Kernel rows of all these models at a dictionary row (P,), shape (models, N)."""
        own = row[self._columns]
        if self._last[0] != (key := own.tobytes()):
            self._last = key, self._kernels(own, self._rows)
        return self._last[1]


class OnePassGrid:
    """A `PosteriorGrid` in which a reward takes one pass over the table of each model.

    Parameters
    ----------
    models : M models on tables of all candidates.
    ridges : (M,) for each cell, the square roots of the penalties.
    intercept : whether every model has an unpenalised constant.
    """

    def __init__(self, models: Sequence[ModelOnTable], ridges: Sequence[FloatArray], intercept: bool) -> None:
        self._models, self.intercept, self.n_models = models, intercept, len(models)
        self._wanted = np.array(ridges) ** 2  # (cells, M)
        rows = models[0].block.on_device
        self._ground: Ground = HostGround() if rows is None else DeviceGround(rows.place)
        self._shared = self._share()
        self._begin()

    def _begin(self) -> None:
        """No rewards yet."""
        both = zip(self._models, self._wanted.T, strict=True)
        common = (self.intercept, self._ground)
        self.families = [Family(model.block, model.kernel, ratios, *common) for model, ratios in both]
        self._ratios = np.array([family.ratios for family in self.families]).T
        self._rewards: list[float] = []
        self._indices: list[int] = []  # of the candidates; -1 for other points
        self._elsewhere: list[FloatArray] = []  # dictionary rows of those
        self._believed: tuple[list[bytes], list[Believed]] = ([], [])  # pending rows, and what they leave

    def _share(self) -> dict[int, tuple[KernelRows, int]]:
        """Where the kernel rows of each model come from: those on one table are made together."""
        tables: dict[int, dict[int, ModelOnTable]] = {}
        for j, model in enumerate(self._models):
            if model.kernel is not None:
                tables.setdefault(id(model.table), {})[j] = model
        shared = [KernelRows(specs) for specs in tables.values()]
        return {j: (rows, place) for rows in shared for place, j in enumerate(rows.models)}

    def _told(self, j: int, row: FloatArray, index: int | None) -> PointTold:
        """A point as model j sees it."""
        own = self._own(j, row)
        if j not in self._shared:
            return PointTold(own, index, _nothing)
        rows, place = self._shared[j]
        return PointTold(own, index, lambda: np.asarray(rows.at(row)[place]))

    def _own(self, j: int, rows: FloatArray) -> FloatArray:
        """The columns of model j in dictionary rows (..., P), less what was taken off its block."""
        model = self._models[j]
        own = rows[..., model.group]
        return own if model.origin is None else own - model.origin

    @property
    def n_observations(self) -> int:
        """Number of rewards, t."""
        return len(self._rewards)

    @property
    def n_constants(self) -> int:
        """One once the constant has had a reward."""
        return min(int(self.intercept), self.n_observations)

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward of an action with dictionary row (P,), the candidate `index` if it is one."""
        for j, family in enumerate(self.families):
            family.update(self._told(j, row, index), y)
        self._log(row, y, index)

    def _log(self, row: FloatArray, y: float, index: int | None) -> None:
        self._rewards.append(y)
        self._indices.append(-1 if index is None else index)
        if index is None:
            self._elsewhere.append(np.array(row))
        self._believed = ([], [])

    # -- evidence ----------------------------------------------------------------------------------------------

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        """`score` of every component, (cells, M)."""
        return score(self.residuals(), self.log_determinants())

    def residuals(self) -> FloatArray:
        """Penalised residuals of every component, (cells, M)."""
        return np.array([family.regression.residuals for family in self.families]).T

    def log_determinants(self) -> FloatArray:
        """log det(V / ridge^2) of every component, (cells, M)."""
        return np.array([family.regression.log_determinants() for family in self.families]).T

    # -- moments -----------------------------------------------------------------------------------------------

    def moments(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the reward under weights and noise variances, (cells, M) each, shapes (n,)."""
        if choices.indices is None:
            merged = CandidateMoments.empty(len(choices))
            for part in self.components(weights, variances, choices):
                merged.merge(part.share, part.mean, part.variance)
            return merged.mean, merged.within + merged.between
        kept, total, beliefs = float(weights[weights > _NEGLIGIBLE].sum()), 0.0, self._believing(pending)
        moments = self._ground.zeros(3, self._models[0].block.n_rows)
        for j, family in enumerate(self.families):
            cells = np.flatnonzero(weights[:, j] > _NEGLIGIBLE)
            shares, scales = weights[cells, j] / kept, variances[cells, j] / self._ratios[cells, j]
            spread = family.variance if beliefs is None else beliefs[j].variance
            moments = self._ground.merge(moments, family.mean, spread, cells, shares, scales, total)
            total += float(shares.sum())
        both = (moments[0, :], moments[1, :] + moments[2, :])
        return self._ground.taken(both[0], choices.indices), self._ground.taken(both[1], choices.indices)

    def components(
        self,
        weights: FloatArray,
        variances: FloatArray,
        choices: Choices,
        pending: Pending = NOTHING,
        least: float = _NEGLIGIBLE,
    ) -> Iterator[Component]:
        """Every component whose weight matters, with its mean and variance at the choices, shapes (n,)."""
        kept = float(weights[weights > least].sum())
        beliefs = self._believing(pending)
        for j, family in enumerate(self.families):
            active = np.flatnonzero(weights[:, j] > least)
            if active.size == 0:
                continue
            if choices.indices is None:
                mean, variance = family.at(np.ascontiguousarray(self._own(j, choices.table.T)))
            else:
                mean, variance = family.mean, family.variance if beliefs is None else beliefs[j].variance
            for c in active:
                scale = variances[c, j] / self._ratios[c, j]
                own = (mean[int(c), :], variance[int(c), :])
                if choices.indices is not None:
                    own = self._ground.taken(own[0], choices.indices), self._ground.taken(own[1], choices.indices)
                values, spread = own
                yield Component(float(weights[c, j]) / kept, int(c), j, values, scale * spread)

    def n_normals(self, model: int) -> int:
        """How many standard normals a draw of a model takes."""
        return self.families[model].n_normals

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices, which must be candidates, under one draw of a component's function, (n,)."""
        if choices.indices is None:
            raise ValueError("functions are drawn at candidates only, where values are kept")
        return self.families[model].draw(cell, choices.indices, normals, scale)

    def _believing(self, pending: Pending) -> list[Believed] | None:
        """Beliefs of all families after pending trials, taken in one after the other."""
        if not pending:
            return None
        rows = [np.ascontiguousarray(row) for row in pending.rows]
        keys = [row.tobytes() for row in rows]
        known, beliefs = self._believed
        if not known or known != keys[: len(known)]:
            known, beliefs = [], [family.belief() for family in self.families]
        for row, index in zip(rows[len(known) :], pending.indices[len(known) :].tolist(), strict=True):
            beliefs = [belief.believing(self._told(j, row, index)) for j, belief in enumerate(beliefs)]
        self._believed = (keys, beliefs)
        return beliefs

    # -- storage -----------------------------------------------------------------------------------------------

    def root_width(self, n: int) -> None:
        """There are no roots: draws stand in for them."""

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """There are none."""
        raise NotImplementedError("one pass keeps no square roots of covariances; use draw")

    def state(self) -> Packable:
        """The rewards and where they were measured: all else follows from that, bit for bit."""
        own = {"rewards": np.array(self._rewards), "indices": np.array(self._indices, dtype=np.int64)}
        return own | {"elsewhere": np.array(self._elsewhere)}

    def restore(self, state: Packable) -> None:
        """Continue from `state` of a grid with the same models, whatever this one has seen."""
        rewards, indices = np.asarray(state["rewards"]).tolist(), np.asarray(state["indices"]).tolist()
        elsewhere = np.asarray(state["elsewhere"])
        places = np.cumsum(np.asarray(indices) < 0) - 1  # among the rows of other points

        def row(k: int) -> FloatArray:
            return self._row(indices[k]) if indices[k] >= 0 else np.asarray(elsewhere[places[k]])

        self._begin()
        anew = [
            family.last_refresh(self._own(j, row(k)) for k in range(len(rewards)))
            for j, family in enumerate(self.families)
        ]
        for k, y in enumerate(rewards):
            full, index = row(k), indices[k] if indices[k] >= 0 else None
            for j, family in enumerate(self.families):
                at = self._told(j, full, index)
                if k < anew[j]:
                    family.recall(at, y, k == anew[j] - 1)
                else:
                    family.update(at, y)
            self._log(full, y, index)

    def _row(self, index: int) -> FloatArray:
        """The dictionary at a candidate, as far as models use it, shape (P,)."""
        tables = {id(model.table): model.table for model in self._models}.values()
        out = np.zeros(1 + max(int(table.columns[-1]) for table in tables))
        for table in tables:
            out[table.columns] = dense(table.rows[index : index + 1])[0]
        return out


def keeps_values(state: Packable) -> bool:
    """Whether a state is that of an `OnePassGrid`."""
    return isinstance(state, dict) and {"rewards", "indices", "elsewhere"} == set(state)


def _nothing() -> FloatArray:
    """Similarities of linear models, which have no need of them."""
    return np.empty(0)
