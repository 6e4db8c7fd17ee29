"""A stream of rounds: what is offered, and what everything on offer would have given.

All of it is drawn before the first decision, so that everybody meets the same rounds with the same luck, and true
regret is known. The rewards do not depend on what was played before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray


class ContextRound(NamedTuple):
    """One round: a context (D,) for arms that are always the same, or features (n, P) of new candidates."""

    context: FloatArray
    candidates: FloatArray | None


@dataclass(frozen=True)
class ContextStream:
    """T rounds with K things to choose from in each.

    Attributes
    ----------
    contexts : (T, D), one row per round; D = 0 where candidates have features of their own. What was computed from
        the context, such as principal components, comes after the `n_raw` columns that are the context itself.
    values : (T, K) expected reward of each.
    rewards : (T, K) the reward that each would give in that round.
    sets : feature sets by name: which columns of the context, or of the candidates, in blocks one after the other.
    arms : names of the arms; empty where candidates change.
    candidates : (T, K, P) features of the round's candidates; None for K arms that stay.
    true_set : number of the feature set that the rewards are made of, if there is one.
    reward_range : smallest and largest possible reward.
    """

    contexts: FloatArray
    values: FloatArray
    rewards: FloatArray
    sets: Mapping[str, Sequence[int]]
    n_raw: int = 0
    arms: tuple[str, ...] = ()
    candidates: FloatArray | None = None
    true_set: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[ContextRound]:
        for t, context in enumerate(self.contexts):
            yield ContextRound(context, None if self.candidates is None else self.candidates[t])

    @cached_property
    def regrets(self) -> FloatArray:
        """(T, K) what each choice costs in expectation."""
        return np.asarray(self.values.max(axis=1, keepdims=True) - self.values)

    def with_set(self, name: str) -> ContextStream:
        """The same rounds with one of the feature sets only."""
        if name not in self.sets:
            raise ValueError(f"there is no feature set {name!r}; known are {', '.join(self.sets)}")
        columns = list(self.sets[name])
        number = list(self.sets).index(name)
        true = None if self.true_set != number else 0
        if self.candidates is None:
            return replace(self, sets={name: columns}, true_set=true)
        kept = np.ascontiguousarray(self.candidates[:, :, columns])
        return replace(self, sets={name: range(len(columns))}, candidates=kept, true_set=true)
