"""A ball: rounds offer all of its points, and the algorithm makes the one it plays."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.common.validation import count, matrix, positive
from alexp.problem.contextual.domains import ContextualDomain
from alexp.problem.descriptions import Description

_OUTSIDE = 1e-9  # by which a point on the sphere may lie outside after rounding, in radii


class Ball(ContextualDomain):
    """{x in R^dim: ||x|| <= radius}. An action is a point of it, an array (dim,); features are its coordinates.

    There is no table of candidates: `ask()` without arguments gives a point, and rewards of other points are told by
    `observe(0, reward, candidates=[x])`. Models are `ModelClass.coordinates(dim)`, or any from `ModelClass.from_blocks`
    with dim columns. Most algorithms choose from lists and refuse a ball; `LinUCB` and `SLUCB` play on it.

    >>> Ball(3).inside([[0.6, 0.0, 0.8]]).shape
    (1, 3)
    """

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        self.dim, self.radius = count("dim", dim), positive("radius", radius)

    def inside(self, points: Action) -> FloatArray:
        """Points of the ball as an array (n, dim), or an error that says which is none; one point may be (dim,)."""
        is_one = np.ndim(points) == 1 and not isinstance(points, str | dict | set)
        rows = matrix("candidates", [points] if is_one else points)
        if rows.shape[1] != self.dim or not len(rows):
            raise ValueError(f"candidates must be points with {self.dim} coordinates, at least one, got {rows.shape}")
        norms = np.linalg.norm(rows, axis=1)
        if np.any(norms > self.radius * (1.0 + _OUTSIDE)):
            k = int(np.argmax(norms))
            raise ValueError(f"candidates must lie in the ball of radius {self.radius:g}, {k} has norm {norms[k]:.6g}")
        return rows

    def __repr__(self) -> str:
        return f"Ball({self.dim}{'' if self.radius == 1.0 else f', radius={self.radius:g}'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ball) and (self.dim, self.radius) == (other.dim, other.radius)

    def __hash__(self) -> int:
        return hash((self.dim, self.radius))

    def to_dict(self) -> Description:
        """JSON-safe description."""
        return {"kind": "ball", "dim": self.dim, "radius": self.radius}

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"a ball has infinitely many points: it has no {what}")
