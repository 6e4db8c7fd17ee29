"""Streams of rounds: what is offered, and what everything on offer would have given.

All of it is drawn before the first decision, so that all entrants meet the same rounds with the same luck, and true
regret is known. The rewards do not depend on what was played before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import import_module
from math import sqrt
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, non_negative


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


Sets = dict[str, list[int]]


def classification_stream(name: str, passes: int, seed: int, steps: int | None = None) -> ContextStream:
    """`passes` passes over the rows of a table, each in an order of its own, cut after `steps` rounds."""
    contexts, labels, sets, n_raw = _table(name)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(121,)))
    order = np.concatenate([rng.permutation(labels.size) for _ in range(count("passes", passes))])[:steps]
    n_classes = int(labels.max()) + 1
    right = np.eye(n_classes)[labels[order]]
    return ContextStream(contexts[order], right, right, sets, n_raw, tuple(_names(name, n_classes)))


def _names(name: str, n_classes: int) -> list[str]:
    return {"wine": ["Barolo", "Grignolino", "Barbera"], "breast cancer": ["malignant", "benign"]}.get(
        name, [str(k) for k in range(n_classes)]
    )


@lru_cache(maxsize=4)
def _table(name: str) -> tuple[FloatArray, IntArray, Sets, int]:
    """Standardised contexts with what was computed from them, labels, feature sets, number of columns of the table."""
    if name not in TABLES:
        raise ValueError(f"there is no table {name!r}; known are {', '.join(TABLES)}")
    table = TABLES[name]
    found, labels = getattr(import_module("sklearn.datasets"), table.loader)(return_X_y=True)
    spread = found.std(axis=0)
    raw = np.asarray((found - found.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), dtype=np.float64)
    d, sets = raw.shape[1], {key: list(columns) for key, columns in table.groups.items()}
    parts = [raw]
    if table.sums:
        sets["rows and columns"] = list(range(d, d + len(table.sums)))
        parts.append(np.column_stack([raw[:, which].sum(axis=1) for which in table.sums]))
    first = sum(part.shape[1] for part in parts)
    axes = np.linalg.svd(raw, full_matrices=False)[2]
    parts.append(raw @ axes[: max(table.components)].T)
    sets |= {f"{k} components": list(range(first, first + k)) for k in table.components}
    sets["raw"] = list(range(d))
    return np.hstack(parts), np.asarray(labels, dtype=np.int64), sets, d


@dataclass(frozen=True)
class Classes:
    """A table: its loader, groups of its columns, numbers of principal components, and columns that are added up."""

    loader: str
    groups: Mapping[str, Sequence[int]]
    components: tuple[int, ...]
    sums: tuple[Sequence[int], ...] = ()


_PIXELS = np.arange(64).reshape(8, 8)
TABLES: dict[str, Classes] = {
    "digits": Classes(
        "load_digits",
        {
            "top left": _PIXELS[:4, :4].ravel().tolist(),
            "top right": _PIXELS[:4, 4:].ravel().tolist(),
            "bottom left": _PIXELS[4:, :4].ravel().tolist(),
            "bottom right": _PIXELS[4:, 4:].ravel().tolist(),
            "middle": _PIXELS[2:6, 2:6].ravel().tolist(),
        },
        (8, 16, 32),
        (*_PIXELS.tolist(), *_PIXELS.T.tolist()),
    ),
    "wine": Classes(
        "load_wine",
        {
            "acid and ash": (1, 2, 3),
            "phenols": (5, 6, 7, 8),
            "colour": (9, 10, 11),
            "alcohol and minerals": (0, 4, 12),
        },
        (2, 5),
    ),
    "breast cancer": Classes(
        "load_breast_cancer",
        {
            "means": range(10),
            "errors": range(10, 20),
            "extremes": range(20, 30),
            "size": [10 * part + k for part in range(3) for k in (0, 2, 3)],
            "shape": [10 * part + k for part in range(3) for k in (4, 5, 6, 7, 8, 9)],
        },
        (2, 5),
    ),
}


def linear_stream(
    steps: int, seed: int, *, n_candidates: int = 10, n_sets: int = 8, size: int = 5, noise_std: float = 0.3
) -> ContextStream:
    """r = theta' phi_j(x) + noise, j unknown, theta of norm one; features are Gaussian with E ||phi_j||^2 = 1.

    Half of each candidate's features are those of its round, as those of a user are: candidates of a round resemble
    each other more than those of different rounds.
    """
    count("n_candidates", n_candidates, 2)
    count("n_sets", n_sets, 1)
    count("size", size)
    non_negative("noise_std", noise_std)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(123,)))
    true = int(rng.integers(n_sets))
    theta = rng.standard_normal(size)
    theta /= np.linalg.norm(theta)
    shape = (steps, n_candidates, n_sets * size)
    features = (rng.standard_normal(shape) + rng.standard_normal((steps, 1, n_sets * size))) / sqrt(2.0 * size)
    values = features[:, :, true * size : (true + 1) * size] @ theta
    rewards = values + noise_std * rng.standard_normal(values.shape)
    sets = {f"block {k}": range(k * size, (k + 1) * size) for k in range(n_sets)}
    width = 4.0 * (1.0 + noise_std)
    return ContextStream(
        np.empty((steps, 0)), values, rewards, sets, candidates=features, true_set=true,
        reward_range=(-width, width),
    )  # fmt: skip
