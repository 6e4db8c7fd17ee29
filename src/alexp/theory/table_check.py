"""Checks of a table before the first experiment, in the words of a laboratory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb, sqrt

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.notebook import paragraph
from alexp.problem.rows import column_scales, reciprocals, spread, squared_distances
from alexp.table.table import Table

_MOST_COMPARED = 1000  # candidates that are compared with each other
_NEAR = 0.01  # of the median distance: nearly the same candidate
_ALIKE = 0.99  # similarity of two descriptions that say the same
_MOST_NAMED = 3
_TOP, _SURE = 0.05, 0.95


@dataclass(frozen=True)
class TableCheck:
    """What to know about a table before the first experiment.

    Attributes
    ----------
    n_candidates : N.
    constant : columns that all candidates share.
    near_duplicates : pairs of candidates, by name, that hardly differ.
    alike : pairs of descriptions that say nearly the same.
    experiments : how many draws at random find one of the best 5% with probability 95%.
    """

    n_candidates: int
    constant: list[str]
    nearly_constant: list[str]
    near_duplicates: list[list[str]]
    alike: list[list[str]]
    experiments: int

    def sentences(self) -> Iterator[str]:
        """The same in words."""
        if self.constant:
            yield f"The same for all candidates, and left out: {', '.join(self.constant)}."
        if self.nearly_constant:
            yield f"Nearly the same for all candidates, and of little use to models: {', '.join(self.nearly_constant)}."
        for first, second in self.near_duplicates[:_MOST_NAMED]:
            yield f"{first} and {second} hardly differ: one experiment nearly tells the other."
        if len(self.near_duplicates) > _MOST_NAMED:
            yield f"So do {len(self.near_duplicates) - _MOST_NAMED} more pairs."
        for first, second in self.alike:
            yield f"The descriptions {first!r} and {second!r} say nearly the same: one of them is enough."
        yield (
            f"Drawn at random, {self.experiments} of {self.n_candidates} candidates have one of the best 5% among them "
            "with probability 95%. Plan for no more than that; models that fit need fewer."
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        return paragraph(self)

    def to_dict(self) -> State:
        """The same as JSON data."""
        return dict(vars(self))


def check_table(table: Table) -> TableCheck:
    """Near-duplicates, constant columns, descriptions that say the same, and how many experiments to expect."""
    features = table.features()
    columns = [column for column in table.understood if not column.description]
    chosen = spread(table.n_candidates, _MOST_COMPARED)
    scaled = {name: _standardized(values[chosen]) for name, values in features.items()}
    scaled = {name: values for name, values in scaled.items() if values.shape[1]}
    pairs = _near(np.hstack([values / np.sqrt(values.shape[1]) for values in scaled.values()])) if scaled else []
    return TableCheck(
        table.n_candidates,
        [column.name for column in columns if column.becomes.startswith("left out: the same")],
        [column.name for column in columns if "nearly constant" in column.becomes],
        [[table.called(int(chosen[i])), table.called(int(chosen[j]))] for i, j in pairs],
        [[a, b] for a, b in combinations(scaled, 2) if _similarity(scaled[a], scaled[b]) > _ALIKE],
        _experiments(table.n_candidates),
    )


def _standardized(values: FloatArray) -> FloatArray:
    """Centred columns divided by their standard deviations; constant ones left out."""
    factors = reciprocals(column_scales(values))
    kept = factors > 0.0
    return np.asarray((values[:, kept] - values[:, kept].mean(axis=0)) * factors[kept])


def _near(values: FloatArray) -> list[tuple[int, int]]:
    """Pairs of rows that are nearer than a hundredth of the median distance."""
    squares = squared_distances(values, values)
    rows, others = np.triu_indices(len(values), 1)
    apart = squares[rows, others]
    if not apart.size or not (typical := float(np.median(apart))):
        return []
    return [(int(rows[k]), int(others[k])) for k in np.flatnonzero(apart < _NEAR**2 * typical)]


def _similarity(a: FloatArray, b: FloatArray) -> float:
    """Centred kernel alignment of two descriptions of the same candidates, between 0 and 1."""
    across, own, other = (float(np.sum((x.T @ y) ** 2)) for x, y in ((a, b), (a, a), (b, b)))
    return across / sqrt(own * other)


def _experiments(n: int) -> int:
    """The smallest k such that k of n candidates, drawn at random, have one of the best 5% with probability 95%.

    >>> _experiments(96), _experiments(10_000)
    (43, 59)
    """
    best = max(1, round(_TOP * n))
    return next(k for k in range(1, n + 1) if comb(n - best, k) <= (1.0 - _SURE) * comb(n, k))
