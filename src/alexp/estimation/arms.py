"""Models with coefficients of their own for every arm: V_j is block diagonal, and an arm's block is a small bank.

P = K p columns, arm-major: arm a has columns a p .. (a + 1) p - 1, and a row is zero outside the block of its arm.
Every model uses the same columns of each block. With an intercept the first column of a block is the constant 1 of its
arm, which every model has and none penalises.

A reward changes the bank of the arm that was played and nothing else. Residuals F_j and log determinants of a model add
over arms. Memory is K p^2 per model instead of (K p)^2, and so is time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.compiling import checked
from alexp.common.schema import anything, number, record, sequence
from alexp.common.ties import first_best_in_rows
from alexp.estimation.posteriors import (
    CandidateMoments,
    Envelope,
    MergedGrid,
    Score,
    dictionary_rows,
    feature_major,
)
from alexp.estimation.ridge.bank import RidgeBank, per_model

if TYPE_CHECKING:
    from alexp.estimation.posteriors import Where
    from alexp.problem.candidates import Choices, Pending

_MOST_ROWS = 1024  # rows of one arm that are looked at together
_UNSEEN = 1e3  # standard deviation of the constant of an arm without rewards, in units of the noise's


@checked.entry
def block_of(rows: FloatArray, size: int, out: IntArray) -> None:
    """Number of the block of `size` columns that row i is not zero in, for rows (n, blocks * size); 0 if it is zero.

    The same column of all blocks is looked at first: mostly that settles it.
    """
    blocks = rows.shape[1] // size
    for i in range(rows.shape[0]):
        out[i] = 0
        found = False
        for c in range(size):
            for block in range(blocks):
                if rows[i, block * size + c] != 0.0:
                    out[i] = block
                    found = True
                    break
            if found:
                break


class Piece(NamedTuple):
    """Rows of one arm: where they are among all rows (m,), and their features in the arm's block (m, p)."""

    arm: int
    places: IntArray
    features: FloatArray


class ArmColumns:
    """Groups of per-arm columns.

    Parameters
    ----------
    blocks : (K, p).
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows, numbered in all K p columns.
    intercept : whether the first column of a block is its arm's unpenalised constant.

    Attributes
    ----------
    columns, offsets : the same groups within one block, the constant left out.
    """

    def __init__(self, blocks: tuple[int, int], columns: IntArray, offsets: IntArray, intercept: bool) -> None:
        self.n_arms, self.size = blocks
        self.intercept, self.lead = bool(intercept), int(intercept)
        self._last: tuple[Where, list[Piece]] | None = None
        sizes = np.diff(offsets)
        owner = np.repeat(np.arange(sizes.size), sizes)
        each = np.maximum(sizes // self.n_arms, 1)[owner]  # columns of a model in one block
        arm, place = np.divmod(np.arange(len(columns)) - offsets[owner], each)
        local = columns[np.minimum(offsets[owner] + place, len(columns) - 1)]
        whole = (columns == local + self.size * arm) & (local < self.size) & (arm < self.n_arms)
        if np.any(sizes % self.n_arms) or not sizes.all() or not whole.all():
            raise ValueError(
                f"a per-arm model must have the same columns in each of {self.n_arms} blocks of {self.size} columns, "
                "one block after the other"
            )
        kept = (arm == 0) & (local >= self.lead)
        if self.intercept and np.bincount(owner[(arm == 0) & (local == 0)], minlength=sizes.size).min() == 0:
            raise ValueError("a per-arm model with an intercept must have the first column of a block, its constant")
        self.columns: IntArray = columns[kept]
        counts = np.bincount(owner[kept], minlength=sizes.size)
        self.offsets: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def repeated(self, times: int) -> ArmColumns:
        """The same groups several times over, one after the other."""
        out = copy(self)
        out.columns, ends = np.tile(self.columns, times), np.tile(np.diff(self.offsets), times).cumsum()
        out.offsets = np.append(0, ends)
        return out

    def arm(self, row: FloatArray) -> int:
        """The arm of a dictionary row (P,); an error if the row is not zero outside of one block."""
        arm = int(self.arms(row[None, :])[0])
        if np.count_nonzero(row) != np.count_nonzero(self.block(arm, row)):
            raise ValueError("a row of per-arm features must be zero outside the block of one arm")
        return arm

    def arms(self, rows: FloatArray) -> IntArray:
        """The arms of dictionary rows (n, P), shape (n,); 0 for rows that are zero, which say nothing of any arm."""
        if rows.ndim != 2 or rows.shape[1] != self.n_arms * self.size:
            raise ValueError(f"rows must have the {self.n_arms * self.size} columns of all arms, got {rows.shape}")
        out = np.empty(len(rows), dtype=np.int64)
        block_of(rows, self.size, out)
        return out

    def block(self, arm: int, rows: FloatArray) -> FloatArray:
        """The columns of one arm, last axis."""
        return rows[..., arm * self.size : (arm + 1) * self.size]

    def pieces(self, where: Where) -> list[Piece]:
        """Choices or dictionary rows (n, P) arm by arm, those of an arm in their order and not too many at once.

        Those of the last choices are kept: several draws of a round look at the same.
        """
        if self._last is None or self._last[0] is not where:
            self._last = where, list(self._taken_apart(dictionary_rows(where)))
        pieces, self._last = self._last[1], None if isinstance(where, np.ndarray) else self._last
        return pieces

    def _taken_apart(self, rows: FloatArray) -> Iterator[Piece]:
        arms = self.arms(rows)
        order = np.argsort(arms, kind="stable")
        starts = np.flatnonzero(np.diff(arms[order], prepend=-1)).tolist()
        for low, high in pairwise([*starts, arms.size]):
            arm = int(arms[order[low]])
            for begin in range(low, high, _MOST_ROWS):
                places = order[begin : min(begin + _MOST_ROWS, high)]
                yield Piece(arm, places, np.ascontiguousarray(self.block(arm, rows)[places]))


class ArmBanks:
    """`Posteriors` of M per-arm models.

    Parameters
    ----------
    columns : the groups, see `ArmColumns`.
    ridge : (M,) or a number, the square root of the ridge penalty, the same for all arms.
    forget : weight of a reward for each one that came after it, of any arm.

    With an intercept every arm has an unpenalised constant. Until its first reward an arm's constant is the mean of all
    rewards, give or take 1,000 standard deviations of the noise: optimistic rules play every arm once.

    >>> groups = ArmColumns((2, 1), np.array([0, 1]), np.array([0, 2]), intercept=False)
    >>> fits = ArmBanks(groups, 1.0)
    >>> fits.update(np.array([0.0, 3.0]), 2.0)  # the second arm
    >>> fits.mean(0, np.eye(2)).round(3).tolist()
    [0.0, 0.6]
    """

    def __init__(self, columns: ArmColumns, ridge: npt.ArrayLike, forget: float | None = None) -> None:
        self.columns, self.intercept, self.n_models = columns, columns.intercept, columns.offsets.size - 1
        ridges = per_model("ridge", ridge, self.n_models)
        own = (columns.columns, columns.offsets, ridges, columns.intercept)
        self.forget = forget
        self.banks = [RidgeBank(*own, threads=1, forget=forget) for _ in range(columns.n_arms)]
        self.n_observations = 0
        self._level = 0.0  # mean of all rewards
        self._everyone = np.arange(self.n_models)
        self._read_off(range(columns.n_arms))

    def _read_off(self, arms: range) -> None:
        """Keep residuals and log determinants of some arms, of which a reward changes one: (K, M) each."""
        if len(arms) == len(self.banks):
            self._losses, self._volumes = np.empty((2, len(self.banks), self.n_models))
        for arm in arms:
            self._losses[arm] = self.banks[arm].residuals()
            self._volumes[arm] = self.banks[arm].log_determinants()

    @property
    def counts(self) -> IntArray:
        """Number of rewards of every arm, and so of every constant, shape (K,)."""
        return np.array([bank.n_observations for bank in self.banks])

    @property
    def losses(self) -> FloatArray:
        """F_j of the rewards of every arm, (K, M)."""
        return self._losses

    @property
    def n_constants(self) -> int:
        """How many constants have had a reward: each takes a degree of freedom."""
        return int(np.count_nonzero(self.counts)) if self.intercept else 0

    def update(self, row: FloatArray, y: float) -> None:
        """Absorb one reward into the bank of the arm that the row (P,) is of."""
        features = np.asarray(row, dtype=np.float64)
        arm = self.columns.arm(features)
        self.banks[arm].update(self.columns.block(arm, features), y)
        self.n_observations += 1
        self._level += (float(y) - self._level) / self.n_observations
        if self.forget is None:
            self._read_off(range(arm, arm + 1))
            return
        for other in range(len(self.banks)):
            if other != arm:
                self.banks[other].fade()
        self._read_off(range(len(self.banks)))

    def with_fantasies(self, rows: FloatArray, members: IntArray | None = None) -> ArmBanks:
        """The same, or some models, with pending rows (k, P) absorbed at the banks' own means.

        Banks of arms with nothing pending are shared as long as neither is updated.
        """
        out, own = copy(self), self._everyone if members is None else members
        out.banks, out.n_models, out._everyone = list(self.banks), own.size, np.arange(own.size)
        out._losses, out._volumes = self._losses[:, own], self._volumes[:, own]
        if members is not None:
            nothing = np.empty((0, self.columns.size))
            out.banks = [bank.with_fantasies(nothing, members) for bank in self.banks]
        for arm, features in self.pending(rows).items():
            out.banks[arm] = out.banks[arm].with_fantasies(features)
        for arm in self.pending(rows):
            out._read_off(range(arm, arm + 1))
        return out

    def pending(self, rows: FloatArray) -> dict[int, FloatArray]:
        """Pending rows (k, P) by arm, each in its arm's columns, oldest first."""
        arms = self.columns.arms(rows) if len(rows) else np.empty(0, dtype=np.int64)
        return {
            int(arm): np.ascontiguousarray(self.columns.block(int(arm), rows)[arms == arm]) for arm in np.unique(arms)
        }

    # -- values at rows ----------------------------------------------------------------------------------------

    def values(
        self,
        where: Where,
        members: IntArray | None = None,
        normals: FloatArray | None = None,
        fantasies: dict[int, RidgeBank] | None = None,
        unknown: float = _UNSEEN,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means, squared widths and deviations of some models at choices or rows (n, P), shapes (K, n).

        Deviations are u'n of `RidgeBank.values` under `normals` (arms, K, widest), and empty without. `fantasies` take
        the place of some arms' banks; `unknown` is how little is known of a constant without rewards.
        """
        own = self._everyone if members is None else members
        mean, squares = np.empty((2, own.size, len(where)))
        deviations = np.empty((0, 0) if normals is None else mean.shape)
        for arm, places, features in self.columns.pieces(where):
            bank = self.banks[arm] if fantasies is None else fantasies.get(arm, self.banks[arm])
            given = None if normals is None else normals[arm]
            means, squares[:, places], noise = bank.values(features, own, unknown, given)
            mean[:, places] = means + self._level if self._unseen(arm) else means
            if normals is not None:
                deviations[:, places] = noise
        return mean, squares, deviations

    def _unseen(self, arm: int) -> bool:
        """Whether the constant of an arm stands for the mean of all rewards; pending ones do not change that."""
        return self.intercept and self.banks[arm].n_observations == 0

    def mean(self, j: int, features: Where) -> FloatArray:
        return np.asarray(self.values(features, np.array([j]))[0][0])

    def width(self, j: int, features: Where) -> FloatArray:
        return np.asarray(np.sqrt(self.values(features, np.array([j]))[1][0]))

    def at(self, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, squares, _ = self.values(row[None, :])
        return mean[:, 0], squares[:, 0]

    def argmax_ucb(self, choices: Choices, width: npt.ArrayLike) -> IntArray:
        widths = per_model("width", width, self.n_models)
        if widths.min() < 0.0:
            raise ValueError(f"width must not be negative, got {widths.min()}")
        mean, squares, _ = self.values(choices)
        return first_best_in_rows(mean + widths[:, None] * np.sqrt(squares))

    def argmax_mean(self, choices: Choices) -> IntArray:
        return first_best_in_rows(self.values(choices)[0])

    def argmax_draw(self, choices: Choices, rng: np.random.Generator, scale: float) -> IntArray:
        normals = [rng.standard_normal(self.n_normals(j)) for j in range(self.n_models)]
        mean, _, deviations = self.values(choices, None, self.spread(normals))
        return first_best_in_rows(mean + scale * deviations)

    def n_normals(self, j: int) -> int:
        """How many standard normals a draw of model j takes: one for each coefficient of each arm."""
        size = self.columns.offsets[j + 1] - self.columns.offsets[j]
        return int(self.columns.n_arms * (self.columns.lead + size))

    def spread(self, normals: list[FloatArray]) -> FloatArray:
        """The normals of some models, arm after arm each, side by side: (arms, K, widest)."""
        arms = self.columns.n_arms
        out = np.zeros((arms, len(normals), max(own.size for own in normals) // arms))
        for k, own in enumerate(normals):
            out[:, k, : own.size // arms] = own.reshape(arms, -1)
        return out

    def roots(self, choices: Choices, members: IntArray) -> tuple[FloatArray, FloatArray]:
        """Means (K, n) and square roots (K, n, n) of the covariances of some models at choices."""
        mean, squares, _ = self.values(choices, members)
        n = mean.shape[1]
        roots = np.zeros((members.size, n, n))
        roots[:, np.arange(n), np.arange(n)] = np.sqrt(squares)
        for arm, places, features in self.columns.pieces(choices):
            for k, j in enumerate(members) if places.size > 1 else ():
                units = np.eye(self.n_normals(int(j)) // self.columns.n_arms)
                u = np.array([self.banks[arm].values(features, members[[k]], _UNSEEN, e[None])[2][0] for e in units])
                triangle = np.asarray(np.linalg.qr(u, mode="r"))
                roots[k, places, places] = 0.0
                roots[k][np.ix_(places, places[: len(triangle)])] = triangle.T
        return mean, roots

    # -- all models together -----------------------------------------------------------------------------------

    def residuals(self) -> FloatArray:
        """F_j, the sum over arms, shape (M,)."""
        return np.asarray(self._losses.sum(axis=0))

    def log_determinants(self) -> FloatArray:
        """log det(V_j / ridge_j^2), the sum over arms, shape (M,)."""
        return np.asarray(self._volumes.sum(axis=0))

    def evidence(self, noise: float) -> FloatArray:
        with np.errstate(over="ignore"):  # to minus infinity, for rewards beyond 1e150 times the noise
            return np.asarray(-self.residuals() / (2.0 * noise**2) - 0.5 * self.log_determinants())

    def envelope(self, members: IntArray, radii: FloatArray, choices: Choices) -> Envelope:
        """Extremes of mu_j -/+ radius_j s_j over some models; infinite where an arm's constant may be anything."""
        mean, squares, _ = self.values(choices, members, unknown=np.inf)
        if members.size == 0:
            n = mean.shape[1]
            return Envelope(np.full(n, np.inf), np.full(n, -np.inf), np.full(n, -1, dtype=np.int64))
        widths = radii[:, None] * np.sqrt(squares)
        return Envelope(
            (mean - widths).min(axis=0), (mean + widths).max(axis=0), members[first_best_in_rows((mean + widths).T)]
        )

    def largest_gaps(
        self, members: IntArray, radii: FloatArray, choices: Choices, reference: int
    ) -> tuple[FloatArray, FloatArray]:
        """By how much some choice can beat the one at `reference`: within the radii, and by the estimates, (K,).

        Choices of two arms have independent errors; those of one arm are compared in its bank.
        """
        mean, squares, _ = self.values(choices, members, unknown=np.inf)
        table = feature_major(choices)
        arms = self.columns.arms(table.T)
        same = np.flatnonzero(arms == arms[reference])
        others = np.flatnonzero(arms != arms[reference])
        local = np.ascontiguousarray(self.columns.block(int(arms[reference]), table.T)[same].T)
        bank = self.banks[arms[reference]]
        gaps, estimates = bank.largest_gaps(members, radii, local, int(np.searchsorted(same, reference)))
        if others.size:
            means = mean[:, others] - mean[:, [reference]]
            widths = radii[:, None] * np.sqrt(squares[:, others] + squares[:, [reference]])
            gaps = np.maximum(gaps, (means + widths).max(axis=1))
            estimates = np.maximum(estimates, means.max(axis=1))
        return gaps, estimates

    def add_coefficients(self, members: IntArray, shares: FloatArray, out: FloatArray) -> None:
        lead, size = self.columns.lead, self.columns.size
        for arm, bank in enumerate(self.banks):
            own = np.zeros(size + lead)
            bank.add_coefficients(members, shares, own)
            if lead:
                own[0] = self._level * shares.sum() if self._unseen(arm) else own[-1]
            out[arm * size : (arm + 1) * size] += own[:size]

    def merge_moments(
        self, into: CandidateMoments, members: IntArray, shares: FloatArray, variances: FloatArray, choices: Choices
    ) -> None:
        mean, squares, _ = self.values(choices, members)
        into.merge_many(shares, mean, variances[:, None] * squares)

    # -- state -------------------------------------------------------------------------------------------------

    def state(self) -> Packable:
        return {"arms": [bank.state() for bank in self.banks], "level": self._level}

    def restore(self, state: Packable) -> None:
        known = record("state", state, {"arms": anything, "level": number()})
        arms = sequence("state['arms']", known["arms"], len(self.banks))
        fresh = [copy(bank) for bank in self.banks]
        for bank, saved in zip(fresh, arms, strict=True):
            bank.restore(saved)
        self.banks, self._level = fresh, known["level"]
        self.n_observations = int(self.counts.sum())
        self._read_off(range(len(fresh)))


class ArmGrid(MergedGrid):
    """A `PosteriorGrid` of `ArmBanks`.

    Parameters
    ----------
    blocks : (K, p), arms and columns of each.
    columns : int (nnz,) and offsets : int (M+1,), the groups in compressed rows of all K p columns.
    ridges : (M,) for each cell, the square roots of the penalties.
    intercept : whether the first column of a block is its arm's unpenalised constant.
    forget : weight of a reward for each one that came after it.
    """

    def __init__(
        self,
        blocks: tuple[int, int],
        columns: IntArray,
        offsets: IntArray,
        ridges: Sequence[FloatArray],
        intercept: bool,
        forget: float | None = None,
    ) -> None:
        self.n_models, self._cells = len(offsets) - 1, len(ridges)
        groups = ArmColumns(blocks, columns, offsets, intercept)
        self._banks = ArmBanks(groups.repeated(self._cells), np.concatenate(ridges), forget)
        self._fantasies: dict[int, tuple[bytes, RidgeBank]] = {}  # by arm: pending rows, and the fits with them

    @property
    def n_observations(self) -> int:
        return self._banks.n_observations

    @property
    def n_constants(self) -> int:
        return self._banks.n_constants

    def update(self, row: FloatArray, y: float, index: int | None = None) -> None:
        """Absorb one reward into every cell; it does not matter which candidate it is of."""
        arm = self._banks.columns.arm(row)
        self._banks.update(row, y)
        if self._banks.forget is None:
            self._fantasies.pop(arm, None)
        else:
            self._fantasies = {}

    def evidence(self, score: Score, reach: float = 1.0) -> FloatArray:
        return score(self.residuals(), self._by_cell(self._banks.log_determinants()))

    def residuals(self) -> FloatArray:
        return self._by_cell(self._banks.residuals())

    def residuals_by_arm(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F of every arm's rewards (K,), and its number of coefficients, both averaged under weights (cells, M)."""
        columns, shares = self._banks.columns, weights.ravel()
        sizes = np.diff(columns.offsets) + columns.lead
        return self._banks.losses @ shares, np.full(columns.n_arms, float(sizes @ shares))

    def _by_cell(self, values: FloatArray) -> FloatArray:
        return values.reshape(self._cells, self.n_models)

    # -- predictions -------------------------------------------------------------------------------------------

    def _components(
        self, weights: FloatArray, variances: FloatArray, choices: Choices, pending: Pending, least: float
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        members = np.flatnonzero(weights.ravel() > least)
        shares = weights.ravel()[members]
        mean, squares, _ = self._banks.values(choices, members, fantasies=self._with_fantasies(pending))
        return members, shares / shares.sum(), mean, variances.ravel()[members, None] * squares

    def _with_fantasies(self, pending: Pending) -> dict[int, RidgeBank]:
        """The banks of arms with pending trials once they have absorbed these at their own means.

        They are kept until the arm has a reward or a trial less; a trial more is absorbed alone, to the same bits.
        """
        rows = self._banks.pending(pending.rows) if pending else {}
        kept, self._fantasies = self._fantasies, {}
        for arm, features in rows.items():
            own, key = self._banks.banks[arm], features.tobytes()
            known, bank = kept.get(arm, (b"", own))
            if key[: len(known)] != known:
                known, bank = b"", own
            new = features[len(known) // features[:1].nbytes :]
            self._fantasies[arm] = key, bank.with_fantasies(new) if len(new) else bank
        return {arm: bank for arm, (_, bank) in self._fantasies.items()}

    def n_normals(self, model: int) -> int:
        return self._banks.n_normals(model)

    def draw(self, cell: int, model: int, choices: Choices, normals: FloatArray, scale: float) -> FloatArray:
        """Rewards at the choices under one draw of a component's coefficients, constants included, shape (n,)."""
        member = np.array([cell * self.n_models + model])
        mean, _, deviations = self._banks.values(choices, member, self._banks.spread([normals]))
        return np.asarray(mean[0] + scale * deviations[0])

    def root_width(self, n: int) -> int:
        """D = n: choices of different arms have a dimension each, and those of one arm need no more."""
        return n

    def roots(self, cell: int, members: IntArray, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Means (m, n), constants included, and square roots (m, n, n) of the covariances of some models."""
        return self._banks.roots(choices, cell * self.n_models + members)

    def state(self) -> Packable:
        return self._banks.state()

    def restore(self, state: Packable) -> None:
        self._banks.restore(state)
        self._fantasies = {}
