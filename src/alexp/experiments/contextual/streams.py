"""A stream of rounds: what is offered, and what everything on offer would have given.

All of it is drawn before the first decision, so that everybody meets the same rounds with the same luck, and true
regret is known. The rewards do not depend on what was played before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from alexp.common.arrays import FloatArray, IntArray

FeatureMap = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class LinearMap:
    """Features that are linear in the context: x -> x W, W of shape (D, p)."""

    matrix: FloatArray

    def __call__(self, context: FloatArray) -> FloatArray:
        """Features (p,) of a context (D,)."""
        return np.asarray(context @ self.matrix)

    @classmethod
    def columns(cls, which: IntArray | list[int], n_columns: int) -> LinearMap:
        """Some columns of the context as they are."""
        return cls(np.eye(n_columns)[:, np.asarray(which, dtype=np.int64).ravel()])


@dataclass(frozen=True)
class Offering:
    """One round: a context (D,) for arms that are always the same, or features (n, P) of new candidates."""

    context: FloatArray
    candidates: FloatArray | None


@dataclass(frozen=True)
class ContextStream:
    """T rounds with K things to choose from in each.

    Attributes
    ----------
    contexts : (T, D), one row per round; D = 0 where candidates have features of their own.
    candidates : (T, K, P) features of the round's candidates; None for K arms that stay.
    values : (T, K) expected reward of each.
    rewards : (T, K) the reward that each would give in that round.
    arms : names of the arms; empty where candidates change.
    maps : feature sets of arms by name, each a function of the context.
    blocks : feature sets of changing candidates: sizes of consecutive blocks of the P columns.
    true_set : number of the feature set that the rewards are made of, if there is one.
    reward_range : smallest and largest possible reward.
    """

    contexts: FloatArray
    values: FloatArray
    rewards: FloatArray
    arms: tuple[str, ...] = ()
    candidates: FloatArray | None = None
    maps: Mapping[str, FeatureMap] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)
    true_set: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Offering]:
        for t, context in enumerate(self.contexts):
            yield Offering(context, None if self.candidates is None else self.candidates[t])

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the feature sets."""
        return tuple(self.maps) or tuple(self.blocks)

    @cached_property
    def regrets(self) -> FloatArray:
        """(T, K) what each choice costs in expectation."""
        return np.asarray(self.values.max(axis=1, keepdims=True) - self.values)

    def with_sets(self, names: tuple[str, ...]) -> ContextStream:
        """The same rounds with some of the feature sets only; names that are not there raise."""
        unknown = [name for name in names if name not in self.sets]
        if unknown:
            raise ValueError(f"there is no feature set {unknown[0]!r}; known are {', '.join(self.sets)}")
        true = None if self.true_set is None else self.sets[self.true_set]
        kept, candidates = {name: self.maps[name] for name in names if name in self.maps}, self.candidates
        blocks = {name: self.blocks[name] for name in names if name in self.blocks}
        if candidates is not None:
            ends = dict(zip(self.blocks, np.cumsum(list(self.blocks.values())).tolist(), strict=True))
            columns = [k for name in names for k in range(ends[name] - self.blocks[name], ends[name])]
            candidates = np.ascontiguousarray(candidates[:, :, columns])
        return ContextStream(
            self.contexts, self.values, self.rewards, self.arms, candidates, kept, blocks,
            names.index(true) if true in names else None, self.reward_range,
        )  # fmt: skip
