"""Features of a context with coefficients of their own for every arm: e_arm (x) f(context)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.validation import count, matrix
from alexp.problem.contextual.sources import (
    FREE,
    ContextFeatures,
    FeatureSet,
    Given,
    packed_examples,
    unpacked_examples,
)
from alexp.problem.descriptions import Description

CommonMap = Callable[[Given, Given], Given]  # (context, names of the arms) to (K, q)
_ENOUGH = 10  # contexts in an example that tell how large features are


class PerArm:
    """Columns for K arms: q common ones, r shared ones, and then K blocks of p columns, arm after arm.

    The row of arm a has 1 (with an intercept) and f(context) in block a, and zeros in the other blocks.

    Parameters
    ----------
    features : f, the sets of features that become models.
    arms : K, or the names of the arms.
    intercept : whether every arm has a constant, first in its block.
    shared : features of the context with one coefficient for all arms, practically unpenalised: they explain the level
        of a round's rewards and no decision. In every model.
    common : (context, names of arms) -> (K, q), features of arms with coefficients common to all arms, penalised like
        others and in every model. With them the models are hybrid ones (Li et al. 2010).

    Attributes
    ----------
    arm_blocks : (K, p) if there are neither shared nor common columns: then arms know nothing of each other.
    free_columns : columns that are practically unpenalised: their values are multiplied by 100.
    """

    def __init__(
        self,
        features: ContextFeatures,
        arms: int | Sequence[str],
        intercept: bool,
        shared: ContextFeatures | None = None,
        common: CommonMap | None = None,
    ) -> None:
        self.features, self.shared, self.common = features, shared, common
        self._arms = None if isinstance(arms, int) else list(arms)
        self.n_arms = count("arms", arms if isinstance(arms, int) else len(arms))
        self.lead = int(intercept)
        self._n_common = 0
        if common is not None:
            if not callable(common):
                raise TypeError(f"common must be a callable (context, arms) -> (K, q), got {type(common).__name__}")
            if not features.examples or self._arms is None:
                raise ValueError(
                    "common features are code that sees arms: pass names as arms=, and a context as example="
                )
            self._n_common = self._common_of(features.examples[0], self._arms).shape[1]

    @property
    def awaits_round(self) -> bool:
        """Whether the number of features is not known before a first context is."""
        return bool(self.features.unknown)

    @property
    def _first(self) -> int:
        """Where the blocks of the arms begin."""
        return self._n_common + (0 if self.shared is None else self.shared.size)

    @property
    def _size(self) -> int:
        """p."""
        return self.lead + self.features.size

    @property
    def arm_blocks(self) -> tuple[int, int] | None:
        """(K, p), where arms have nothing in common."""
        return None if self._first else (self.n_arms, self._size)

    @property
    def free_columns(self) -> IntArray:
        """The shared columns, and the constants of the arms beside these or common ones."""
        shared = np.arange(self._n_common, self._first)
        constants = self._first + self._size * np.arange(self.n_arms)
        return np.concatenate([shared, constants]) if self.lead and self._first else shared

    @property
    def n_columns(self) -> int:
        """P = q + r + K p."""
        return self._first + self.n_arms * self._size

    @property
    def names(self) -> list[str]:
        """common[i], the shared features, and feature@arm."""
        own = [*(["1"] if self.lead else []), *self.features.names]
        shared = [] if self.shared is None else [f"shared {name}" for name in self.shared.names]
        arms = self._arms or [str(arm) for arm in range(self.n_arms)]
        return (
            [f"common[{i}]" for i in range(self._n_common)] + shared + [f"{name}@{arm}" for arm in arms for name in own]
        )

    @property
    def groups(self) -> list[IntArray]:
        """The columns of every model: common and shared ones, and its set of features in every arm."""
        constant = np.zeros(self.lead, dtype=np.int64)
        return self.in_every_arm([np.append(constant, self.lead + group) for group in self.features.groups])

    def in_every_arm(self, blocks: Sequence[IntArray]) -> list[IntArray]:
        """Columns of models that have these columns of an arm's block, and all common and shared ones."""
        starts, before = self._first + self._size * np.arange(self.n_arms)[:, None], np.arange(self._first)
        return [np.concatenate([before, (starts + block).ravel()]) for block in blocks]

    def of_an_arm(self, groups: Sequence[IntArray]) -> list[IntArray]:
        """The columns of an arm's block that models have; undoes `in_every_arm`."""
        low, high = self._first, self._first + self._size
        return [group[(group >= low) & (group < high)] - low for group in groups]

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """Rows of all arms in a context, shape (K, P)."""
        if candidates is not None and len(candidates) != self.n_arms:
            raise ValueError(f"these models are for {self.n_arms} arms, and there are {len(candidates)}")
        features = self.features(context)  # after which their number is known
        rows = np.zeros((self.n_arms, self.n_columns))
        blocks = rows[:, self._first :].reshape(self.n_arms, self.n_arms, self._size)  # a view
        own = blocks[np.arange(self.n_arms), np.arange(self.n_arms)]  # a copy, only for its shape
        own[:, : self.lead] = FREE if self._first else 1.0
        own[:, self.lead :] = features
        blocks[np.arange(self.n_arms), np.arange(self.n_arms)] = own
        if self.common is not None:
            rows[:, : self._n_common] = self._common_of(context, self._arms if candidates is None else candidates)
        if self.shared is not None:
            rows[:, self._n_common : self._first] = FREE * self.shared(context)
        return rows

    def _common_of(self, context: object, arms: Given) -> FloatArray:
        assert self.common is not None
        out = matrix("output of the common map", self.common(context, arms), self.n_arms)
        if self._n_common and out.shape[1] != self._n_common:
            raise ValueError(f"the common map returned {out.shape[1]} features now but {self._n_common} before")
        return out

    @property
    def example_rows(self) -> FloatArray | None:
        """Rows of the example's contexts, an arm each in turn; None if they are too few to tell sizes by."""
        return None if len(self.features.examples) < _ENOUGH else self.marks

    @property
    def marks(self) -> FloatArray:
        """The same however few they are, (E, P): code is recognised by what it makes of them."""
        contexts = enumerate(self.features.examples)
        rows = [self.offered(one, self._arms)[k % self.n_arms] for k, one in contexts]
        return np.array(rows).reshape(len(rows), self.n_columns)

    def with_arms(self, arms: int | Sequence[str]) -> PerArm:
        """The same for other arms; those there were keep their places."""
        return PerArm(self.features, arms, bool(self.lead), self.shared, self.common)

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of an arm alone."""
        raise TypeError("features of arms are those of a round: pass context=")

    def to_dict(self) -> Description | None:
        """JSON-safe description; None if there is code among the features."""
        features = self.features.to_dict()
        shared = None if self.shared is None else self.shared.to_dict()
        if features is None or self.common is not None or (shared is None and self.shared is not None):
            return None
        vectors, keys = zip(*(one.needs for one in self._used), strict=True)
        if self.features.examples and any(vectors) and any(keys):  # contexts that are both, rows of tables
            return None
        return {
            "family": "per-arm", "features": features, "arms": self._arms or self.n_arms,
            "intercept": bool(self.lead), "shared": shared, "example": self._packed_example(),
        }  # fmt: skip

    def _packed_example(self) -> Given:
        return packed_examples(self._used) if self.features.examples else None

    @property
    def _used(self) -> list[ContextFeatures]:
        return [one for one in (self.features, self.shared) if one is not None]

    @classmethod
    def from_lists(
        cls,
        features: Description,
        arms: int | Sequence[str],
        intercept: bool,
        shared: Description | None,
        example: Given = None,
    ) -> PerArm:
        """What `to_dict` has stored."""
        known = None if example is None else unpacked_examples(example)
        own = ContextFeatures.from_lists(**features, example=known)
        extra = None if shared is None else ContextFeatures.from_lists(**shared, example=known)
        return cls(own, arms, intercept, extra)


def shared_features(shared: FeatureSet | None, example: object) -> ContextFeatures | None:
    """The set of shared features, if there is one."""
    out = None if shared is None else ContextFeatures({"shared": shared}, example)
    if out is not None and out.unknown:
        raise ValueError("how many shared features there are is not known before they are evaluated: pass example=")
    return out
