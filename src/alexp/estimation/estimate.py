"""The seam between regressions on all feature maps at once and those who use them.

A regression `bind`s itself to a model class and gives an empty `Data`; observations are `append`ed one by one, and
`solve` returns an `Estimate`: coefficients of the P dictionary columns, and who they belong to. The group Lasso's is
a `LassoFit`, the certified kind; theory asks for that kind by type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable, State
from alexp.common.compiling import checked

if TYPE_CHECKING:
    from alexp.problem.models import ModelClass


@dataclass(frozen=True, eq=False)
class Estimate:
    """A linear estimate of the reward: intercept + beta . features.

    Attributes
    ----------
    beta : (P,) coefficients of the dictionary columns.
    intercept : the constant.
    groups : (k,) numbers of the models it uses, in increasing order.
    magnitudes : (k,) how much it uses each: a norm or a probability, whatever the regression says.
    """

    beta: FloatArray
    intercept: float
    groups: IntArray
    magnitudes: FloatArray

    def at(self, table: FloatArray) -> FloatArray:
        """Estimated rewards of n candidates, feature-major (P, n), shape (n,)."""
        out = np.zeros(table.shape[1])
        _add_combination(np.ascontiguousarray(self.beta), np.ascontiguousarray(table), out)
        return np.asarray(out + self.intercept)

    def state(self) -> State:
        """The fields as a dict of arrays and numbers."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Invert `state`; what a state has beyond the fields of its kind is ignored."""
        return cls(**{field.name: _READ[str(field.type)](state[field.name]) for field in fields(cls)})


def _floats(value: npt.ArrayLike) -> FloatArray:
    return np.array(value, dtype=np.float64)


def _integers(value: npt.ArrayLike) -> IntArray:
    return np.array(value, dtype=np.int64)


_READ: dict[str, Callable[[Any], Any]] = {"FloatArray": _floats, "IntArray": _integers, "float": float, "int": int}


class Data(Protocol):
    """Observations of one run, as a regression keeps them."""

    @property
    def n_observations(self) -> int:
        """Number of observations so far, t."""

    def append(self, row: FloatArray, y: float, weight: float = 1.0) -> None:
        """Add the observation y with dictionary row (P,); `weight` multiplies its squared error."""

    def solve(self, lam: float, start: Estimate | None = None) -> Estimate:
        """The estimate at regularisation `lam`, started from an earlier one if that helps; changes nothing."""

    def read(self, state: State) -> Estimate:
        """An estimate of this regression from its `state()`."""

    def state(self) -> Packable:
        """Everything needed to continue bit for bit."""

    def restore(self, state: Packable) -> None:
        """Continue from `state` of data bound to the same models."""


class Oracle(Protocol):
    """A regression on all feature maps at once."""

    def bind(self, models: ModelClass) -> Data:
        """An empty data set for these models."""


def predict(estimate: Estimate, table: FloatArray) -> FloatArray:
    """Estimated rewards of n candidates, shape (n,); table is feature-major, shape (P, n).

    Group Lasso coefficients are sparse, so only the columns in use are read.
    """
    return estimate.at(table)


@checked.entry
def _add_combination(beta: FloatArray, table: FloatArray, out: FloatArray) -> None:
    """Add beta . table to ``out`` (n,), in the order of the columns.

    Small products like this one gain nothing from a threaded library, lose milliseconds when other programs keep the
    cores busy, and would depend on the number of cores in their last bits.
    """
    for i in range(beta.shape[0]):
        if beta[i] != 0.0:
            for k in range(out.shape[0]):
                out[k] += beta[i] * table[i, k]
