"""Classification as a bandit: the context is a row, the arms are the classes, the reward is 1 for the right one.

The tables ship inside scikit-learn. All labels are known, so the regret is the number of mistakes. Contexts are
standardised column by column, and principal components are those of the whole table: of its rows, never of its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count
from alexp.experiments.contextual.streams import ContextStream, FeatureMap, LinearMap


def classification_stream(name: str, passes: int, seed: int, steps: int | None = None) -> ContextStream:
    """`passes` passes over the rows of a table, each in an order of its own, cut after `steps` rounds."""
    contexts, labels, maps = _table(name)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(121,)))
    order = np.concatenate([rng.permutation(labels.size) for _ in range(count("passes", passes))])[:steps]
    n_classes = int(labels.max()) + 1
    right = np.eye(n_classes)[labels[order]]
    return ContextStream(contexts[order], right, right, tuple(_names(name, n_classes)), maps=maps)


def n_rows(name: str) -> int:
    """Rounds of one pass."""
    return int(_table(name)[1].size)


def feature_sets(name: str) -> tuple[str, ...]:
    """Names of a table's feature sets."""
    return tuple(_table(name)[2])


def _names(name: str, n_classes: int) -> list[str]:
    return {"wine": ["Barolo", "Grignolino", "Barbera"], "breast cancer": ["malignant", "benign"]}.get(
        name, [str(k) for k in range(n_classes)]
    )


@lru_cache(maxsize=4)
def _table(name: str) -> tuple[FloatArray, IntArray, Mapping[str, FeatureMap]]:
    """Standardised contexts (n, D), labels (n,), feature sets."""
    if name not in TABLES:
        raise ValueError(f"there is no table {name!r}; known are {', '.join(TABLES)}")
    loader, sets = TABLES[name]
    raw, labels = getattr(import_module("sklearn.datasets"), loader)(return_X_y=True)
    spread = raw.std(axis=0)
    contexts = np.asarray((raw - raw.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), dtype=np.float64)
    return contexts, np.asarray(labels, dtype=np.int64), sets(contexts)


def _principal(contexts: FloatArray, *numbers: int) -> dict[str, FeatureMap]:
    """The first principal components of the rows, so many for each set."""
    axes = np.linalg.svd(contexts, full_matrices=False)[2]
    return {f"{k} components": LinearMap(np.ascontiguousarray(axes[:k].T)) for k in numbers}


def _columns(groups: Mapping[str, list[int]], d: int) -> dict[str, FeatureMap]:
    return {name: LinearMap.columns(which, d) for name, which in groups.items()}


def _digits(contexts: FloatArray) -> dict[str, FeatureMap]:
    pixels = np.arange(64).reshape(8, 8)
    blocks = {
        "top left": pixels[:4, :4],
        "top right": pixels[:4, 4:],
        "bottom left": pixels[4:, :4],
        "bottom right": pixels[4:, 4:],
        "middle": pixels[2:6, 2:6],
    }
    sums = np.zeros((64, 16))
    for k in range(8):
        sums[pixels[k], k], sums[pixels[:, k], 8 + k] = 1.0, 1.0
    return {
        **_columns({name: block.ravel().tolist() for name, block in blocks.items()}, 64),
        "rows and columns": LinearMap(sums),
        **_principal(contexts, 8, 16, 32),
        "raw": LinearMap(np.eye(64)),
    }


def _wine(contexts: FloatArray) -> dict[str, FeatureMap]:
    groups = {
        "acid and ash": [1, 2, 3],
        "phenols": [5, 6, 7, 8],
        "colour": [9, 10, 11],
        "alcohol and minerals": [0, 4, 12],
    }
    return {**_columns(groups, 13), **_principal(contexts, 2, 5), "raw": LinearMap(np.eye(13))}


def _cancer(contexts: FloatArray) -> dict[str, FeatureMap]:
    groups = {
        "means": list(range(10)),
        "errors": list(range(10, 20)),
        "extremes": list(range(20, 30)),
        "size": [10 * part + k for part in range(3) for k in (0, 2, 3)],
        "shape": [10 * part + k for part in range(3) for k in (4, 5, 6, 7, 8, 9)],
    }
    return {**_columns(groups, 30), **_principal(contexts, 2, 5), "raw": LinearMap(np.eye(30))}


TABLES: dict[str, tuple[str, Callable[[FloatArray], dict[str, FeatureMap]]]] = {
    "digits": ("load_digits", _digits),
    "wine": ("load_wine", _wine),
    "breast cancer": ("load_breast_cancer", _cancer),
}
