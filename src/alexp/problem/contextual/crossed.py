"""Products of features of the context with features of the action: which of them matter is what models differ in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.validation import LARGEST, count, finite, misspelt, positive
from alexp.problem.checks import distinct
from alexp.problem.contextual.sources import FREE, ContextFeatures, Given
from alexp.problem.descriptions import Description

Unit = float | tuple[float, float]  # scale, or centre and scale
Crossing = tuple[int, ...]  # numbers of the features that are multiplied, context first

_MOST_CROSSINGS = 16  # of which all sets are looked at


class CrossedModels(NamedTuple):
    """Groups of columns, names, and logarithms of prior weights of M models."""

    groups: list[IntArray]
    names: list[str]
    log_prior: FloatArray


class Crossings:
    """Columns: the context's features, the action's features, and products of 2 to `order` different features.

    Every product has a feature of the action among its factors: others are the same for all candidates of a round.

    Parameters
    ----------
    context, action : names of the features. The context is a mapping or a vector of its features, in this order; the
        candidates are a table of theirs: an array (n, A), a list of mappings, or a DataFrame.
    order : most factors of a product.
    units : by name of a feature, its scale or (centre, scale); features are (value - centre) / scale. Products of
        features far from zero can hardly be told from the features themselves.

    The context's own features are practically unpenalised, see `free_columns`: they explain the level of a round.

    >>> Crossings(["age", "bmi"], ["dose"]).names
    ['age', 'bmi', 'dose', 'age*dose', 'bmi*dose']
    """

    def __init__(
        self,
        context: Sequence[str],
        action: Sequence[str],
        order: int = 2,
        units: Mapping[str, Unit] | None = None,
    ) -> None:
        self.context, self.action = _names("context", context), _names("action", action)
        if not self.action:
            raise ValueError("action must name at least one feature: without, all candidates are the same")
        distinct([*self.context, *self.action], len(self.context) + len(self.action))
        self.order = count("order", order)
        self._features = [*self.context, *self.action]
        first, every = len(self.context), range(len(self._features))
        self.crossings: list[Crossing] = [
            group for size in range(2, self.order + 1) for group in combinations(every, size) if group[-1] >= first
        ]
        self._known = set(self.crossings)
        self._by_name = ContextFeatures({"context": self.context or [0]})
        self._by_place = ContextFeatures({"context": range(max(first, 1))})
        self.units = dict(units or {})
        unknown = set(self.units) - set(self._features)
        if unknown:
            raise ValueError(f"units must be of features {self._features}, got {sorted(unknown)}")
        both = [_unit(name, self.units.get(name, 1.0)) for name in self._features]
        self._centres, self._scales = np.array(both).T

    @property
    def needs_context(self) -> bool:
        """Whether a round must have a context."""
        return bool(self.context)

    @property
    def n_columns(self) -> int:
        """P."""
        return len(self._features) + len(self.crossings)

    @property
    def names(self) -> list[str]:
        """The features, and products such as age*dose."""
        return self._features + [self.name_of(crossing) for crossing in self.crossings]

    def name_of(self, crossing: Crossing) -> str:
        """Factors joined by *."""
        return "*".join(self._features[k] for k in crossing)

    @property
    def free_columns(self) -> IntArray:
        """The context's features."""
        return np.arange(len(self.context))

    def offered(self, context: Given, candidates: Action) -> FloatArray:
        """Features of the n candidates of a round, shape (n, P)."""
        actions, c = self._actions(candidates), len(self.context)
        plain = np.empty((len(actions), len(self._features)))
        plain[:, :c], plain[:, c:] = self._context(context), actions
        plain = (plain - self._centres) / self._scales
        products = [np.prod(plain[:, list(crossing)], axis=1)[:, None] for crossing in self.crossings]
        out = np.hstack([FREE * plain[:, :c], plain[:, c:], *products])
        if not np.all(np.abs(out) <= LARGEST):
            row, column = np.argwhere(~(np.abs(out) <= LARGEST))[0]
            raise ValueError(f"{self.names[column]} of candidate {row} is {out[row, column]}; features must be finite")
        return out

    def _context(self, context: Given) -> FloatArray:
        if not self.context:
            return np.empty(0)
        if isinstance(context, Mapping) or hasattr(context, "keys"):
            return self._by_name(context)
        vector = self._by_place(context)
        if np.size(context) != vector.size:
            raise ValueError(f"context must have {vector.size} entries, {self.context}, got {np.size(context)}")
        return vector

    def _actions(self, candidates: Given) -> FloatArray:
        if hasattr(candidates, "columns") and hasattr(candidates, "iloc"):
            missing = [name for name in self.action if name not in candidates.columns]
            if missing:
                meant = misspelt(missing[0], candidates.columns)
                raise ValueError(f"candidates must have the columns {self.action}; {missing[0]!r} is missing{meant}")
            return np.asarray(candidates[self.action], dtype=np.float64)
        if len(candidates) and isinstance(candidates[0], Mapping):
            lacking = [(name, one) for one in candidates for name in self.action if name not in one]
            if lacking:
                name, one = lacking[0]
                said = f"every candidate must have the features {self.action}; {name!r} is missing"
                raise ValueError(said + misspelt(name, one))
            return np.array([[float(one[name]) for name in self.action] for one in candidates])
        try:
            table = np.asarray(candidates, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"candidates must be rows of the features {self.action}: {error}") from error
        table = table[:, None] if table.ndim == 1 and len(self.action) == 1 else table
        if table.ndim != 2 or table.shape[1] != len(self.action):
            raise ValueError(f"candidates must have shape (n, {len(self.action)}), {self.action}, got {table.shape}")
        return table

    def models(self, max_models: int) -> CrossedModels:
        """All sets of crossings, or those of a smaller family, see `ModelClass.crossed`."""
        base, first = np.arange(len(self._features)), len(self._features)
        places = {crossing: first + k for k, crossing in enumerate(self.crossings)}
        sets = self._sets(max_models)
        names = ["+".join(self.name_of(one) for one in chosen) or "no crossing" for chosen in sets]
        if len(sets) > 1 and len(self.crossings) > 2 and len(sets[-1]) == len(self.crossings):
            names[-1] = "all crossings"
        groups = [np.append(base, [places[one] for one in chosen]).astype(np.int64) for chosen in sets]
        sizes = np.array([len(chosen) for chosen in sets])
        counts = np.bincount(sizes)
        return CrossedModels(groups, names, -np.log(counts[sizes]))

    def _sets(self, most: int) -> list[tuple[Crossing, ...]]:
        """Sets of crossings, smallest first: all of them or, where these are too many, a family."""
        every = chain.from_iterable(combinations(self.crossings, size) for size in range(len(self.crossings) + 1))
        few = len(self.crossings) <= _MOST_CROSSINGS
        found = list(islice(filter(self._complete, every), most + 1)) if few else []
        if not 0 < len(found) <= most:
            found = self._family(most)
        return sorted(found, key=lambda chosen: (len(chosen), chosen))

    def _complete(self, chosen: tuple[Crossing, ...]) -> bool:
        """Whether with every product there are those of its factors that have one factor less."""
        have = set(chosen)
        return all(
            part in have
            for one in chosen
            if len(one) > 2
            for part in combinations(one, len(one) - 1)
            if part in self._known
        )

    def _closed(self, chosen: set[Crossing]) -> tuple[Crossing, ...]:
        """The smallest complete set that has all of these."""
        parts = {part for one in chosen for size in range(2, len(one) + 1) for part in combinations(one, size)}
        return tuple(one for one in self.crossings if one in parts)

    def _family(self, most: int) -> list[tuple[Crossing, ...]]:
        """No crossing, all of them, one at a time, all of one feature, all of one kind, two at a time: what fits."""
        c, all_of = len(self.context), self.crossings
        by_order = [[one for one in all_of if len(one) <= size] for size in range(2, self.order + 1)]
        mixed: list[Crossing] = [one for one in all_of if len(one) == 2 and one[0] < c]
        by_feature: list[list[Crossing]] = [
            [one for one in all_of if len(one) == 2 and k in one] for k in range(len(self._features))
        ]
        singles = [[one] for one in all_of]
        pairs: Iterator[list[Crossing]] = ([one, other] for one, other in combinations(all_of, 2))
        found: dict[tuple[Crossing, ...], None] = {}
        families: list[Iterable[list[Crossing]]] = [[[], all_of], by_order, [mixed], by_feature, singles, pairs]
        for chosen in chain.from_iterable(families):
            found.setdefault(self._closed(set(chosen)))
            if len(found) >= most:
                break
        return list(found)

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of an action alone."""
        raise TypeError("crossed features are those of a round: pass context= and candidates=")

    def to_dict(self) -> Description:
        """JSON-safe description."""
        units = [[name, *_unit(name, unit)] for name, unit in self.units.items()]
        return {
            "family": "crossed",
            "context": self.context,
            "action": self.action,
            "order": self.order,
            "units": units,
        }

    @classmethod
    def from_lists(cls, context: list[str], action: list[str], order: int, units: Sequence[Given]) -> Crossings:
        """What `to_dict` has stored."""
        return cls(context, action, order, {name: (centre, scale) for name, centre, scale in units})


def _names(what: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"{what} must be a list of names of features, got {names!r:.80}")
    return list(names)


def _unit(name: str, unit: Unit) -> tuple[float, float]:
    centre, scale = unit if isinstance(unit, tuple | list) else (0.0, unit)
    return finite(f"centre of {name!r}", centre), positive(f"scale of {name!r}", scale)
