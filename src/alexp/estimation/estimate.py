"""The interface of regressions on all feature maps at once.

A regression `bind`s itself to a model class and gives an empty `Data`; observations are `append`ed one by one, and
`solve` returns an `Estimate`: coefficients of the P dictionary columns, and the models they belong to. The group
Lasso's is a `LassoFit`, the certified kind; theory asks for that kind by type.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable, State
from alexp.common.compiling import checked
from alexp.common.schema import Check, floats, integers, number, record, same, whole

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
    def from_state(cls, state: State, n_columns: int | None = None, n_models: int | None = None) -> Self:
        """Invert `state`, of so many columns and models; what it has beyond the fields of its kind is ignored."""
        checks: dict[str, Check] = {
            "beta": floats(n_columns),
            "groups": integers(None, low=0, high=inf if n_models is None else n_models - 1),
            "magnitudes": floats(None, low=0.0),
        }
        plain: dict[str, Check] = {"float": number(), "int": whole()}
        wanted = {field.name: checks.get(field.name) or plain[str(field.type)] for field in fields(cls)}
        known = record("fit", state, wanted)
        same("length of fit['magnitudes']", known["magnitudes"].size, known["groups"].size, "one for each group")
        if np.any(np.diff(known["groups"]) <= 0):
            raise ValueError("fit['groups'] must increase")
        return cls(**known)


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
