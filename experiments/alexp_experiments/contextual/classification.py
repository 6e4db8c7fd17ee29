"""Classification as a bandit: the context is a row, the arms are the classes, the reward is 1 for the right one.

The tables ship inside scikit-learn. All labels are known, so the regret is the number of mistakes. Contexts are
standardised column by column, and principal components are those of the whole table: of its rows, never of its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count
from alexp_experiments.contextual.streams import ContextStream

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
