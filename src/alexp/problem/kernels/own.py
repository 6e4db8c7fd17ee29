"""Kernels of the user's own: a Gram matrix, or a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.codec import fingerprint
from alexp.common.validation import matrix
from alexp.problem.descriptions import Description
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.rows import Rows, dense, dense_blocks, spread

_SYMMETRY = 1e-6  # as a share of the largest entry: what single precision leaves
_TOLERANCE = 1e-8  # of negative eigenvalues, as a share of the largest entry times the size
_LOOKED_AT = 50  # candidates that a function is tried on
_MOST_DECOMPOSED = 2000  # things up to which all eigenvalues are looked at


def check_gram(what: str, values: FloatArray) -> None:
    """Raise unless a square matrix is symmetric and positive semidefinite up to rounding, and not zero."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        raise ValueError(f"{what} is zero: no two candidates are alike, not even with themselves")
    if float(np.abs(values - values.T).max()) > _SYMMETRY * largest:
        raise ValueError(f"{what} must be symmetric, K[i, k] = K[k, i]")
    part = values[:_MOST_DECOMPOSED, :_MOST_DECOMPOSED]
    lowest = float(np.linalg.eigvalsh(part)[0])
    if lowest < -_TOLERANCE * largest * part.shape[0]:
        raise ValueError(
            f"{what} must be positive semidefinite, its smallest eigenvalue is {lowest:.3g}; similarities become a "
            "kernel when negative eigenvalues are set to zero, or by K @ K"
        )


class Precomputed(Kernel, stored_as="precomputed"):
    """The user's own Gram matrix over L things, shape (L, L); the model's only column holds the things' numbers.

    Symmetric and positive semidefinite up to rounding, which is checked; of more than 2,000 things on 2,000 of them.

    >>> Precomputed([[1.0, 0.5], [0.5, 1.0]])(np.array([[1.0]]), np.array([[0.0], [1.0], [1.0]])).tolist()
    [[0.5, 1.0, 1.0]]
    """

    def __init__(self, gram: ArrayLike, label: str = "precomputed") -> None:
        values = matrix("the Gram matrix", gram)
        if values.shape[0] != values.shape[1]:
            raise ValueError(f"the Gram matrix must be square, got shape {values.shape}")
        check_gram("the Gram matrix", values)
        self._gram = 0.5 * (values + values.T)
        self._gram.flags.writeable = False
        self._label = str(label)

    @property
    def gram(self) -> FloatArray:
        """K, shape (L, L)."""
        return self._gram

    @property
    def name(self) -> str:
        """The label."""
        return self._label

    @cached_property
    def _key(self) -> str:
        return fingerprint(self._gram)

    def _attributes(self) -> dict[str, object]:
        return super()._attributes() | {"_gram": self._key}  # a large matrix is hashed once

    def __repr__(self) -> str:
        return f"Precomputed({self._gram.shape[0]} x {self._gram.shape[0]}, {self._label!r})"

    def _numbers(self, rows: Rows) -> IntArray:
        if rows.shape[1] != 1:
            raise ValueError(f"a Gram matrix is looked up by one column of numbers, got {rows.shape[1]} columns")
        values = dense(rows)[:, 0]
        numbers = values.astype(np.int64)
        if np.any(numbers != values) or (numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self._gram)):
            raise ValueError(f"the numbers of the things must be whole and within 0..{len(self._gram) - 1}")
        return numbers

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """Entries of the Gram matrix."""
        return self._gram[self._numbers(x)[:, None], self._numbers(z)]

    def own(self, z: Rows) -> FloatArray:
        """Entries of its diagonal."""
        return np.asarray(self._gram.diagonal()[self._numbers(z)])

    def to_dict(self) -> Description:
        """The Gram matrix and its label."""
        return {"kernel": self._stored_as, "fields": {"gram": self._gram, "label": self._label}}

    @classmethod
    def from_fields(cls, described: Description) -> Self:
        """The kernel with this Gram matrix and label."""
        return cls(**described)


class Function(Kernel, stored_as="function"):
    """A function of the user's own, k(X, Z) -> matrix of shape (n, m), for X (n, d) and Z (m, d).

    Like feature maps it is code of the user's own, which is never stored: a study needs the models again. `label` names
    it.
    """

    def __init__(self, function: Callable[[AnyArray, AnyArray], ArrayLike], label: str | None = None) -> None:
        if not callable(function):
            raise TypeError(f"a kernel of your own must be callable as k(X, Z), got {type(function).__name__}")
        self.function = function
        self._label = label or str(getattr(function, "__name__", type(function).__name__)).strip("<>")

    @property
    def name(self) -> str:
        """The label, or the function's name."""
        return self._label

    def __repr__(self) -> str:
        return f"Function({self._label})"

    def fitted(self, x: Rows) -> Function:
        """Itself, after a look at some of the candidates: is it a kernel at all?"""
        some = dense(x[spread(x.shape[0], _LOOKED_AT)])
        check_gram(f"what kernel {self._label!r} gives for some candidates", self.block(some, some))
        return self

    def block(self, x: FloatArray, z: Rows) -> FloatArray:
        """What the function returns, checked."""
        parts = [_matrix_of(self.function(x, part), (len(x), len(part)), self._label) for part in dense_blocks(z)]
        return np.hstack(parts) if len(parts) > 1 else parts[0]


def _matrix_of(values: ArrayLike, shape: tuple[int, int], label: str) -> FloatArray:
    """What a user's kernel returned, or an error unless it is a finite matrix of this shape."""
    out = np.asarray(values, dtype=np.float64)
    if out.shape != shape:
        raise ValueError(f"kernel {label!r} must return shape {shape} for k(X, Z), got {out.shape}")
    if not np.all(np.isfinite(out)):
        raise ValueError(f"kernel {label!r} returned a number that is not finite")
    return out
