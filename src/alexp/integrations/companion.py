"""Companion: model probabilities and certificates for optimisation loops of other libraries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from alexp.algorithms.base import Direction, check_reward
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.algorithms.log import Recommendation
from alexp.algorithms.statements import DELTA, ModelCheck, StopReport
from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.validation import positive
from alexp.problem.domains import Box, Domain, FiniteSet
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = -1  # code of a value that no candidate has


class MixtureSettings(TypedDict, total=False):
    """Settings of the `EvidenceMixture` behind a companion."""

    direction: Direction
    noise_std: float | None
    reward_bound: float | None
    norm_bound: float | None
    ratio_grid: Sequence[float] | None
    power: float | None
    random_state: int


class CompanionOptions(MixtureSettings, total=False):
    """Optional arguments of a companion."""

    keys: Sequence[str] | None
    tolerance: float


class Companion:
    """An `EvidenceMixture` that learns from the measurements of another optimisation loop.

    Parameters
    ----------
    models, domain : as for any algorithm; the domain is a FiniteSet or a Box.
    reward : the column of tables that has the outcome.
    keys : columns of tables that identify the candidate of a row. By default all columns of a DataFrame of candidates;
        for a Box the names of its coordinates, in order.
    tolerance : how far numbers in tables may be from those of a candidate, as a share of the column's range.
    settings : of the `EvidenceMixture`: `direction`, and for certificates `noise_std` with `norm_bound` or
        `reward_bound`.

    Certificates hold for any loop whose choices depend on earlier outcomes only. They are wrong if failures or poor
    outcomes are omitted.

    Measured points of a Box become candidates.

    >>> import alexp
    >>> models = alexp.ModelClass.from_matrices({"line": [[0.0], [1.0], [2.0]], "other": [[1.0], [0.0], [1.0]]})
    >>> companion = Companion(models, alexp.FiniteSet(["a", "b", "c"]))
    >>> for name, outcome in [("a", 1.0), ("b", 2.1), ("c", 2.9), ("a", 1.1)]:
    ...     companion.tell(name, outcome)
    >>> companion.posterior().index[0], companion.best().x
    ('line', 'c')
    """

    def __init__(
        self,
        models: ModelClass,
        domain: FiniteSet | Box,
        *,
        reward: str = "reward",
        keys: Sequence[str] | None = None,
        tolerance: float = 1e-6,
        **settings: Unpack[MixtureSettings],
    ) -> None:
        self.models, self.reward = models, reward
        self._lookup = _lookup(domain, keys, tolerance)
        self._settings: MixtureSettings = {"random_state": 0, **settings}
        self._algorithm = EvidenceMixture(models, domain, **self._settings)
        self._told: list[tuple[int, float]] = []  # candidates by number, and rewards

    def __len__(self) -> int:
        return len(self._told)

    def tell(self, x: Action, reward: float) -> None:
        """Add the reward of one candidate, given in its own form or as {column: value}."""
        value = check_reward(reward)
        self._told.append((self._lookup.one(x), value))

    def tell_frame(self, frame: pd.DataFrame, reward: str | None = None) -> int:
        """Add new measurements, one per row, and return their number; rows without a reward are skipped."""
        new = self._read(frame, reward)
        self._told += new
        return len(new)

    def follow(self, frame: pd.DataFrame, reward: str | None = None) -> int:
        """Replace all measurements by those of a table, and return how many are new.

        Call it with the same table as it grows. If earlier rows have changed, everything is computed again.
        """
        measurements, before = self._read(frame, reward), len(self._told)
        if measurements[:before] != self._told:
            self._algorithm = EvidenceMixture(self.models, self._lookup.domain, **self._settings)
        self._told = measurements
        return max(len(measurements) - before, 0)

    def _read(self, frame: pd.DataFrame, reward: str | None) -> list[tuple[int, float]]:
        """The measurements in a table, as (candidate, reward)."""
        column = self.reward if reward is None else reward
        if column not in frame.columns:
            raise ValueError(f"the table has no column {column!r} of rewards; it has {list(map(str, frame.columns))}")
        try:
            rewards = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the column {column!r} of rewards must hold numbers: {error}") from error
        known = ~np.isnan(rewards)
        values = [check_reward(float(value)) for value in rewards[known]]
        return list(zip(self._lookup.rows(frame[known]), values, strict=True))

    @property
    def algorithm(self) -> EvidenceMixture:
        """The mixture with all measurements, for `predict`, `confidence`, `trials_dataframe` and more."""
        domain = self._lookup.domain
        if self._algorithm.domain.n_candidates < domain.n_candidates:  # new points of a box
            self._algorithm = EvidenceMixture(self.models, domain, **self._settings)
        for index, reward in self._told[self._algorithm.n_told :]:
            self._algorithm.observe(index, reward)
        return self._algorithm

    def next(self, n: int = 1, *, pending: Sequence[Action] = (), exclude: Sequence[Action] = ()) -> list[Action]:
        """The next n experiments, for a loop that leaves the choice to the mixture; see `next_candidates`.

        Measured candidates, `pending` ones and those in `exclude` are left out.
        """
        on_their_way = [self._lookup.one(x) for x in pending]
        out = {index for index, _ in self._told} | {*on_their_way, *(self._lookup.one(x) for x in exclude)}
        domain = self._lookup.domain
        free = [index for index in range(domain.n_candidates) if index not in out]
        chosen = next_candidates(
            self.models, domain, self._told, n, pending=on_their_way, available=free, **self._settings
        )
        return [domain[index] for index in chosen]

    def posterior(self) -> pd.Series[float]:
        """Posterior probability of every model by name, largest first."""
        import pandas as pd

        q = self.algorithm.probabilities
        order = np.argsort(-q, kind="stable")
        names = pd.Index([self.models.names[int(j)] for j in order], name="model")
        return pd.Series(q[order], index=names, name="probability")

    def plausible_models(self, delta: float = DELTA) -> list[str]:
        """Names of the models not yet ruled out; raises NotCertified if noise or bounds are not stated.

        The true model is among them at every moment of the run with probability 1 - delta.
        """
        return [self.models.names[int(j)] for j in self.algorithm.plausible_models(delta)]

    def stop_report(self, delta: float = DELTA, epsilon: float | None = None) -> StopReport:
        """Whether the recommended candidate is within `epsilon` of the best one, as a certificate.

        If noise or bounds are not stated, an estimate with the reason why it is not certified.
        """
        return self.algorithm.stop_report(delta, epsilon)

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the measurements contradict what was stated about noise, bounds and models."""
        return self.algorithm.check_models(delta)

    def best(self) -> Recommendation:
        """The recommended candidate."""
        return self.algorithm.best()

    def summary(self) -> str:
        """Two lines for a log: the most probable models, and how far the best candidate may be from the best."""
        if not self._told:
            return "no measurements yet"
        leading = ", ".join(f"{name} {share:.2f}" for name, share in self.posterior().head(3).items())
        return f"{len(self)} measurements; models: {leading}\n{self.stop_report()}"

    def __repr__(self) -> str:
        return f"Companion({self.models!r}, {len(self)} measurements)"


def next_candidates(
    models: ModelClass,
    domain: FiniteSet | Box,
    told: Sequence[tuple[int, float]],
    n: int,
    *,
    pending: Sequence[int] = (),
    available: Sequence[int],
    **settings: Unpack[MixtureSettings],
) -> list[int]:
    """The next n candidates, by number, for loops that keep measurements themselves.

    They follow from the arguments alone. The goal is the best candidate. Candidates may be measured again where
    `available` has some of the measured ones.

    Parameters
    ----------
    told : candidates by number, and their rewards, in the order of measurement.
    pending : candidates whose rewards are on their way; the choice counts on them.
    available : candidates that may be chosen.
    """
    measured = {index for index, _ in told}
    repeats = not measured.isdisjoint([*pending, *available])
    own: MixtureSettings = {"random_state": 0, **settings}
    run = EvidenceMixture(models, domain, goal="best", repeats=repeats, **own)
    for index, reward in told:
        run.observe(index, reward)
    for index in pending:
        run.ask(available=[index])
    return [trial.index for trial in run.ask(n, available=available)]


class _NumberColumn:
    """The values of a column of numbers, found up to a tolerance, because tables may be rounded."""

    def __init__(self, values: FloatArray, tolerance: float) -> None:
        self.values = np.unique(values)
        span = float(self.values[-1] - self.values[0]) or abs(float(self.values[0])) or 1.0
        self._reach = tolerance * span

    def codes(self, given: AnyArray) -> IntArray:
        """The number of each value, or UNKNOWN, (n,)."""
        numbers = np.asarray(given, dtype=np.float64)
        above = np.clip(np.searchsorted(self.values, numbers), 1, self.values.size - 1) if self.values.size > 1 else 0
        below = np.maximum(np.asarray(above) - 1, 0)
        nearer = np.abs(self.values[above] - numbers) < np.abs(self.values[below] - numbers)
        found = np.where(nearer, above, below)
        return np.where(np.abs(self.values[found] - numbers) <= self._reach, found, UNKNOWN)


class _TextColumn:
    """The values of any other column, found by equality."""

    def __init__(self, values: Sequence[Hashable]) -> None:
        self._codes = {value: code for code, value in enumerate(dict.fromkeys(values))}

    def codes(self, given: AnyArray) -> IntArray:
        """The number of each value, or UNKNOWN, (n,)."""
        return np.array([self._codes.get(value, UNKNOWN) for value in given.tolist()], dtype=np.int64)


def _lookup(domain: Domain, keys: Sequence[str] | None, tolerance: float) -> ListLookup | BoxLookup:
    """The lookup for a domain; raises for domains other than FiniteSet and Box."""
    named = None if keys is None else [str(key) for key in keys]
    if isinstance(domain, FiniteSet):
        return ListLookup(domain, named, positive("tolerance", tolerance))
    if isinstance(domain, Box):
        return BoxLookup(domain, named)
    raise TypeError(
        f"domain must be a FiniteSet or a Box, got {type(domain).__name__}; Box([a], [b]) stands for an interval"
    )


class ListLookup:
    """Candidates of a FiniteSet.

    Parameters
    ----------
    keys : columns that identify a candidate: by default all of a DataFrame's; for an array, names for its columns, and
        for a list of values, the name of their column. The name of a DataFrame's index may be used, too.
    tolerance : how far numbers may be from a candidate's, as a share of the column's range.
    """

    def __init__(self, domain: FiniteSet, keys: list[str] | None, tolerance: float) -> None:
        self.domain, self._keys = domain, list[str]()
        table = _as_frame(domain.candidates, keys)
        if table is None:
            return
        self._keys = [str(name) for name in table.columns]
        self._columns = [_column(name, table[name].to_numpy(), tolerance) for name in table.columns]
        self._numbers: dict[tuple[int, ...], int] = {}
        for number, row in enumerate(map(tuple, self._codes(table).tolist())):
            if (first := self._numbers.setdefault(row, number)) != number:
                raise ValueError(
                    f"keys must identify every candidate, but candidates {first} and {number} are equal in "
                    f"{_listed(self._keys)}; name more columns in keys"
                )

    def _codes(self, table: pd.DataFrame) -> IntArray:
        """(n, keys)."""
        both = zip(self._columns, table.columns, strict=True)
        return np.stack([column.codes(table[name].to_numpy()) for column, name in both], axis=1)

    def rows(self, table: pd.DataFrame) -> list[int]:
        """The candidate of every row of a table."""
        if not self._keys:
            raise ValueError(
                "these candidates have no named columns; pass keys, the columns of your table that identify the "
                "candidate of a row"
            )
        own = _own_columns(table, self._keys)
        codes = self._codes(own)
        found = [self._numbers.get(row, UNKNOWN) for row in map(tuple, codes.tolist())]
        if UNKNOWN in found:
            place = found.index(UNKNOWN)
            strange = [key for key, code in zip(self._keys, codes[place], strict=True) if code == UNKNOWN]
            row = ", ".join(f"{key} = {own[key].iloc[place]}" for key in strange or self._keys)
            what = "which no candidate has" if strange else "which is none of the candidates"
            raise ValueError(f"row {table.index[place]!r} of the table has {row}, {what}")
        return found

    def one(self, x: Action) -> int:
        """The number of one candidate."""
        return self.rows(_one_row(x))[0] if _is_named(x) else self.domain.locate(x)


class BoxLookup:
    """Points of a Box, whose coordinates tables have in the columns `keys`; points that are new become candidates."""

    def __init__(self, box: Box, keys: list[str] | None) -> None:
        if keys is not None and len(keys) != box.dim:
            raise ValueError(f"keys must name the {box.dim} coordinates of the box, got {_listed(keys)}")
        self._box, self._keys, self._new = box, keys, list[FloatArray]()
        self._numbers = {point.tobytes(): number for number, point in reversed([*enumerate(box.points)])}

    @property
    def domain(self) -> Box:
        """The box with all points so far."""
        box = self._box
        if self._new:
            self._box = Box(box.lower, box.upper, box.resolution, box.seed, np.vstack([box.extra, *self._new]))
            self._new = []
        return self._box

    def rows(self, table: pd.DataFrame) -> list[int]:
        """The candidate of every row of a table."""
        if self._keys is None:
            raise ValueError(f"keys must name the {self._box.dim} columns that are the coordinates of the box")
        own = _own_columns(table, self._keys)
        return self._found(own.to_numpy(dtype=np.float64)) if len(own) else []

    def one(self, x: Action) -> int:
        """The number of one candidate, a vector (dim,) or coordinates by name."""
        if _is_named(x):
            return self.rows(_one_row(x))[0]
        return self._found(np.asarray(x, dtype=np.float64).reshape(1, -1))[0]

    def _found(self, given: FloatArray) -> list[int]:
        out, points = [], self._box.batch(given)[0]
        for point in points:
            key = np.ascontiguousarray(point).tobytes()
            if key not in self._numbers:
                self._numbers[key] = self._box.n_candidates + len(self._new)
                self._new.append(np.array(point))
            out.append(self._numbers[key])
        return out


def _is_named(x: Action) -> bool:
    return isinstance(x, Mapping) or (hasattr(x, "index") and hasattr(x, "to_dict"))


def _one_row(x: Action) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([dict(x)])


def _own_columns(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    if missing := [key for key in keys if key not in table.columns]:
        raise ValueError(
            f"the table must have the columns {_listed(keys)}, which identify the candidate of a row; it has no "
            f"{missing[0]!r}. Name the right columns in keys"
        )
    return table[keys]


def _as_frame(candidates: Action, keys: Sequence[str] | None) -> pd.DataFrame | None:
    import pandas as pd

    if isinstance(candidates, pd.DataFrame):
        if keys is None:
            return candidates
        table = candidates.reset_index() if candidates.index.name in keys else candidates
        if unknown := [key for key in keys if key not in table.columns]:
            raise ValueError(f"keys must be columns of the candidates, {_listed(table.columns)}; got {unknown[0]!r}")
        return table[list(keys)]
    if keys is None:
        return None
    values = np.asarray(candidates)
    wide = values.ndim == 2
    if len(keys) != (values.shape[1] if wide else 1) or values.ndim > 2:
        raise ValueError(f"keys must name each column of the candidates, of shape {values.shape}; got {_listed(keys)}")
    return pd.DataFrame(values if wide else {keys[0]: values}, columns=list(keys))


def _column(name: object, values: AnyArray, tolerance: float) -> _NumberColumn | _TextColumn:
    if values.dtype.kind in "iuf":
        if not np.all(np.isfinite(values)):
            raise ValueError(f"column {str(name)!r} of the candidates has missing values; leave it out of keys")
        return _NumberColumn(np.asarray(values, dtype=np.float64), tolerance)
    return _TextColumn(values.tolist())


def _listed(names: Sequence[str] | pd.Index) -> str:
    return ", ".join(repr(str(name)) for name in names)
