"""A domain."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from alexp.extend import Domain, FloatArray


@dataclass(frozen=True)
class Simplex(Domain):
    """Mixtures of named parts in steps of 1 / `steps`; an action is a dict of shares."""

    parts: tuple[str, ...]
    steps: int = 4

    @cached_property
    def points(self) -> FloatArray:
        """(N, parts) shares."""
        counts = product(range(self.steps + 1), repeat=len(self.parts))
        return np.array([c for c in counts if sum(c) == self.steps]) / self.steps

    def __getitem__(self, index: int) -> dict[str, float]:
        return dict(zip(self.parts, self.points[index].tolist(), strict=True))

    def batch(self, x: object) -> tuple[FloatArray, bool]:
        """Shares of one mixture or of a list."""
        several = [x] if isinstance(x, dict) else list(x)  # type: ignore[call-overload]
        return np.array([[one[part] for part in self.parts] for one in several]), isinstance(x, dict)
