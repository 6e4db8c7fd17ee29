"""Blocks: features that the caller computes, of sizes that are declared once. Nothing but numbers, hence storable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.common.validation import count, matrix
from alexp.problem.checks import distinct
from alexp.problem.descriptions import Description

_MOST_COLUMNS = 10**6  # more than any regression could take, and few enough to be listed


class Blocks:
    """Named blocks of columns side by side; a round brings the features of its candidates.

    Parameters
    ----------
    sizes : number of columns of each block, by its name.
    example : features of typical candidates, as `rows` takes them. Prior scales and the fingerprint of a run come from
        them, where there are any.

    >>> blocks = Blocks({"user": 2, "item": 1})
    >>> blocks.rows({"user": [[1.0, 2.0]], "item": [[3.0]]}).tolist(), blocks.names
    ([[1.0, 2.0, 3.0]], ['user[0]', 'user[1]', 'item[0]'])
    """

    def __init__(self, sizes: Mapping[str, int], example: object = None) -> None:
        if not isinstance(sizes, Mapping) or not sizes:
            raise ValueError(f"blocks must be a non-empty dict of name -> number of columns, got {sizes!r}")
        distinct([str(name) for name in sizes], len(sizes))
        self.blocks = {str(name): count(f"size of block {name!r}", size) for name, size in sizes.items()}
        if self.n_columns > _MOST_COLUMNS:
            raise ValueError(f"blocks must have at most {_MOST_COLUMNS} columns together, got {self.n_columns}")
        self.example_rows = None if example is None else self.rows(example, "example")

    @classmethod
    def from_lists(cls, blocks: Sequence[str], sizes: Sequence[int], example: FloatArray | None) -> Blocks:
        """What `to_dict` has stored: JSON objects need not keep their order."""
        return cls(dict(zip(blocks, map(int, sizes), strict=True)), example)

    @property
    def sizes(self) -> list[int]:
        """Number of columns of each block."""
        return list(self.blocks.values())

    @property
    def n_columns(self) -> int:
        """P, the sum of the sizes."""
        return sum(self.blocks.values())

    @property
    def names(self) -> list[str]:
        """block[column]."""
        return [f"{name}[{i}]" for name, size in self.blocks.items() for i in range(size)]

    def rows(self, features: object, name: str = "features") -> FloatArray:
        """Features of n candidates, (n, P) or a dict of blocks (n, size), as one table (n, P)."""
        if isinstance(features, Mapping):
            features = np.hstack(self._parts(features, name))
        table = matrix(name, features)
        if table.shape[1] != self.n_columns or table.shape[0] == 0:
            sizes = ", ".join(f"{key}: {size}" for key, size in self.blocks.items())
            raise ValueError(
                f"{name} must have one row per candidate, at least one, and {self.n_columns} columns ({sizes}), got "
                f"shape {table.shape}; or be a dict of these blocks"
            )
        return table

    def _parts(self, features: Mapping[str, object], name: str) -> list[FloatArray]:
        if set(features) != set(self.blocks):
            raise ValueError(f"{name} must have the blocks {list(self.blocks)}, got {list(features)}")
        parts = [matrix(f"{name}[{key!r}]", features[key]) for key in self.blocks]
        for part, (key, size) in zip(parts, self.blocks.items(), strict=True):
            if part.shape != (parts[0].shape[0], size):
                raise ValueError(f"{name}[{key!r}] must have shape ({parts[0].shape[0]}, {size}), got {part.shape}")
        return parts

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """There is no map from a context: features are passed as `features=`."""
        raise TypeError("these models are declared by blocks: pass features=, not context= or candidates=")

    def __call__(self, x: Action) -> FloatArray:
        """There is no map from an action either."""
        raise TypeError("these models are declared by blocks: features are passed to ask(features=...)")

    def to_dict(self) -> Description:
        """JSON-safe description after packing."""
        return {"family": "blocks", "blocks": list(self.blocks), "sizes": self.sizes, "example": self.example_rows}
