"""Are these the same kernels? Exactly, by a text; up to the last bits, by numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.kernels.base import Kernel
from alexp.problem.kernels.rows import Rows, dense, spread, take

_PROBES = 6  # candidates that code of the user's own is evaluated on


class Marks(NamedTuple):
    """What kernels are recognised by: their kinds as text, and their numbers one after the other.

    Other machines and library versions may compute a median with another last bit: the numbers are then close, not
    equal. Of arrays there are two fixed linear combinations along the last axis.
    """

    kinds: str
    numbers: FloatArray


def marks(kernels: Sequence[Kernel | None], groups: Sequence[IntArray], table: Rows) -> Marks:
    """The marks of the kernels of all models, on the candidates' rows (N, P)."""
    kinds: list[str] = []
    numbers: list[FloatArray] = []
    rows = table[spread(table.shape[0], _PROBES)]
    for kernel, group in zip(kernels, groups, strict=True):
        described = None if kernel is None else kernel.to_dict()
        if kernel is not None and (described is None or _names_code(described)):
            some = dense(take(rows, group))
            described = {"kernel": described or type(kernel).__name__, "values": kernel(some, some).ravel()}
        for path, value in _walk(described):
            kinds.append(path)
            if value is not None:
                numbers.append(value)
    return Marks("\n".join(kinds), np.concatenate([np.empty(0), *numbers]))


def _names_code(described: object) -> bool:
    """Whether a description names a class of the user's, module and all, anywhere in it."""
    if isinstance(described, Mapping):
        return "." in str(described.get("kernel", "")) or any(_names_code(item) for item in described.values())
    return isinstance(described, list) and any(_names_code(item) for item in described)


def _walk(value: object, path: str = "") -> Iterator[tuple[str, FloatArray | None]]:
    """What a description says, in order of its keys: words with their places, and numbers."""
    if isinstance(value, Mapping):
        for key, item in sorted(value.items()):
            yield from _walk(item, f"{path}.{key}")
    elif isinstance(value, list | tuple) and not (value and all(isinstance(item, float) for item in value)):
        for k, item in enumerate(value):
            yield from _walk(item, f"{path}[{k}]")
    elif isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value, dtype=np.float64)
        yield f"{path}: {array.shape}", (array @ directions(array.shape[-1])).ravel()
    elif isinstance(value, float):
        yield path, np.array([value])
    else:
        yield f"{path}: {value}", None


def directions(size: int) -> FloatArray:
    """Two fixed directions without symmetry, shape (size, 2), from formulas that no library version changes."""
    k = np.arange(1, size + 1, dtype=np.float64)
    return np.stack([np.cos(0.7 * k) + 1.5, np.sin(1.3 * k + 0.2) - 1.5], axis=1)
