"""Models of composed inputs: reactions made of a base, a ligand and a solvent, say, each described on its own.

Two reactions are alike where all their components are alike (a product over components), as far as some of them are
(a sum), or as near as all their descriptors together are (joined: a component with many descriptors matters more then,
which is often right). How much a component matters is its lengthscale; which description suits it is a question of
models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, matrix, positive
from alexp.problem.kernels.base import Kernel, Product, Scaled, Sum
from alexp.problem.kernels.choosing import KernelModels
from alexp.problem.kernels.own import Precomputed
from alexp.problem.kernels.stationary import Matern, Stationary
from alexp.problem.kernels.units import column_scales

Component = ArrayLike | Mapping[str, ArrayLike]  # one description of N candidates, or several by name
_ONLY = ""  # the name of a description without one
_PRODUCTS, _JOINED, _SUMS = 0.4, 0.4, 0.2  # shares of a description's prior mass


class Levels(NamedTuple):
    """The different values that a component takes: which one each candidate has (N,), and descriptions of them."""

    codes: IntArray
    descriptions: dict[str, FloatArray]


@dataclass(frozen=True)
class Factorial:
    """What the models of composed inputs are made of.

    Attributes
    ----------
    columns : (N, P) numbers of the levels of all components, then coordinates of the candidates for every description.
    names : of the components, then of the descriptions.
    sizes : how many columns each of those has.
    """

    columns: FloatArray
    names: list[str]
    sizes: list[int]
    models: KernelModels


def factorial_models(
    components: Mapping[str, Component],
    kernel: Stationary | None = None,
    lengthscales: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    draws: int = 48,
) -> Factorial:
    """Products and sums over components, for every description; see `ModelClass.from_components`."""
    if not isinstance(components, Mapping) or not components:
        raise ValueError(
            "components must be a non-empty dict of name -> description, or of name -> {name: description}"
        )
    base = Matern() if kernel is None else kernel
    if not isinstance(base, Stationary):
        raise TypeError(f"kernel must be Matern, RBF or another Stationary kernel, got {base!r}")
    scales = [positive("lengthscales", scale) for scale in lengthscales]
    if not scales or len(set(scales)) < len(scales):
        raise ValueError(f"lengthscales must be distinct positive numbers, got {list(lengthscales)}")
    levels = {str(name): find_levels(str(name), given) for name, given in components.items()}
    sizes = {name: own.codes.size for name, own in levels.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"components must describe the same candidates, row by row; they have {sizes} rows")
    words = list(dict.fromkeys(word for own in levels.values() for word in own.descriptions if word != _ONLY)) or [
        _ONLY
    ]
    drawn = lengthscale_draws(len(levels), len(scales), count("draws", draws))
    names, kernels, masses, groups = [], list[Kernel](), [], list[IntArray]()
    columns = [np.stack([own.codes.astype(np.float64) for own in levels.values()], axis=1)]
    codes = np.arange(len(levels))
    for word in words:
        parts = [_parts(c, name, own, word, base, scales) for c, (name, own) in enumerate(levels.items())]
        title = f"{word}: " if word else ""
        for draw in drawn:
            kernels.append(Product(tuple(part[k] for part, k in zip(parts, draw, strict=True))))
            names.append(f"{title}product, {'/'.join(f'{scales[k]:g}' for k in draw)}")
            masses.append(_PRODUCTS / len(drawn))
        for k, scale in enumerate(scales):
            kernels.append(Scaled.of(Sum(tuple(part[k] for part in parts)), 1.0 / len(parts)))
            names.append(f"{title}sum, {scale:g}")
            masses.append(_SUMS / len(scales))
        groups += [codes] * (len(drawn) + len(scales))
        together = np.hstack([_coordinates(_described(own, word))[own.codes] for own in levels.values()])
        first = sum(block.shape[1] for block in columns)
        joined = base.replaced(relative=True, standardize=False).fitted(together)
        kernels += [joined.replaced(lengthscale=scale) for scale in scales]
        names += [f"{title}joined, {scale:g}" for scale in scales]
        masses += [_JOINED / len(scales)] * len(scales)
        groups += [np.arange(first, first + together.shape[1])] * len(scales)
        columns.append(together)
    prior = np.log(np.array(masses) / len(words))
    families = np.repeat(np.arange(len(words)), len(kernels) // len(words))
    return Factorial(
        np.hstack(columns),
        [*levels, *(f"{word or 'joined'} coordinates" for word in words)],
        [1] * len(levels) + [block.shape[1] for block in columns[1:]],
        KernelModels(groups, names, kernels, prior, families),
    )


def _described(own: Levels, word: str) -> FloatArray:
    """The levels of a component as a description has them, or as its first does, shape (L, d)."""
    return own.descriptions[word if word in own.descriptions else next(iter(own.descriptions))]


def _coordinates(points: FloatArray) -> FloatArray:
    """Points (L, k), k < L, that are as far from each other as L levels with standardised descriptors (L, d) are.

    A dozen ligands with a thousand descriptors need eleven coordinates.
    """
    spread = np.array(column_scales(points))
    varying = spread > 0.0
    centred = (points[:, varying] - points[:, varying].mean(axis=0)) / spread[varying]
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray((left * sizes)[:, sizes > 1e-9 * sizes.max()])


def find_levels(name: str, given: Component) -> Levels:
    """The different values of a component; text becomes one-hot.

    >>> own = find_levels("solvent", ["water", "DMF", "water"])
    >>> own.codes.tolist(), own.descriptions[""][own.codes].tolist()
    ([0, 1, 0], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """
    described = dict(given) if isinstance(given, Mapping) else {_ONLY: given}
    if not described:
        raise ValueError(f"component {name!r} needs at least one description")
    numeric: dict[str, FloatArray] = {}
    for word, values in described.items():
        array = np.asarray(values)
        if array.dtype.kind in "OUS":
            if array.ndim != 1 or not all(isinstance(item, str) for item in array.tolist()):
                raise TypeError(f"component {name!r}: a description must be text, one per candidate, or numbers (N, d)")
            different, numbers = np.unique(array.astype(str), return_inverse=True)
            numeric[str(word)] = np.eye(different.size)[numbers]
        else:
            numeric[str(word)] = matrix(f"component {name!r}", array)
    rows = {values.shape[0] for values in numeric.values()}
    if len(rows) > 1:
        raise ValueError(f"descriptions of component {name!r} must have one row per candidate, got {sorted(rows)} rows")
    _, first, codes = np.unique(np.hstack(list(numeric.values())), axis=0, return_index=True, return_inverse=True)
    if first.size < 2:
        raise ValueError(f"component {name!r} is the same for all candidates; leave it out")
    return Levels(codes.ravel().astype(np.int64), {word: values[first] for word, values in numeric.items()})


def lengthscale_draws(n_components: int, n_scales: int, draws: int) -> IntArray:
    """Numbers of lengthscales for every component, (draws, C), without repeats: equal ones first, then spread evenly.

    Steps of an additive recurrence with the powers of the generalised golden ratio (Roberts 2018), so that no library
    has a say in it. If there are no more than `draws` combinations, all of them.
    """
    total = n_scales**n_components
    if total <= draws:
        return np.stack(np.unravel_index(np.arange(total), [n_scales] * n_components), axis=1)
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (n_components + 1))
    steps = ratio ** -np.arange(1.0, n_components + 1)
    found = dict.fromkeys((k,) * n_components for k in range(n_scales))
    number = 0
    while len(found) < draws:
        number += 1
        found.setdefault(tuple(((0.5 + number * steps) % 1.0 * n_scales).astype(int).tolist()))
    return np.array(list(found)[:draws], dtype=np.int64)


def _parts(column: int, name: str, own: Levels, word: str, base: Stationary, scales: Sequence[float]) -> list[Kernel]:
    """Kernels of one component under one description, one per lengthscale."""
    which = word if word in own.descriptions else next(iter(own.descriptions))
    points = own.descriptions[which]
    fitted = base.fitted(points)
    grams = [fitted.replaced(lengthscale=scale)(points, points) for scale in scales]
    label = " ".join(filter(None, [name, which]))
    return [
        Precomputed(gram, f"{base.shape_name}, {scale:g}").on([column], label)
        for gram, scale in zip(grams, scales, strict=True)
    ]
