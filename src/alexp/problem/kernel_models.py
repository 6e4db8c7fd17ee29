"""Kernel models: of feature matrices, of subsets of inputs, and of composed inputs, with prior weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise
from math import comb
from operator import add
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.validation import count, matrix, positive
from alexp.common.warning import caution
from alexp.problem.dictionaries import Dictionary, Polynomial
from alexp.problem.domains import Box, Interval
from alexp.problem.kernels import (
    ARD,
    Kernel,
    Linear,
    Matern,
    Precomputed,
    Product,
    Scaled,
    Stationary,
    Sum,
    Tanimoto,
    fitted_together,
)
from alexp.problem.matrices import Matrices
from alexp.problem.rows import RemoteRows, Rows, column_scales, dense, dense_blocks, first_rows, spread, take

AUTO: Final = "auto"
LINEAR: Final = "linear"
ALL: Final = "all"
FEW: Final = "few"
Word = Literal["linear", "auto"]
Choice = Word | Kernel | Sequence[Word | Kernel]  # for one map
KernelChoice = Choice | Mapping[str, Choice]  # for all of them
Subsets = bool | Literal["all", "few"]
Component = ArrayLike | Mapping[str, ArrayLike]  # one description of N candidates, or several by name

_LENGTHSCALES = (0.5, 1.0, 2.0, 4.0)  # of "auto", in units of the median distance
_MOST_COMPARED = 300  # candidates that variances are estimated from
_MOST_MODELS = 4096
_MOST_INPUTS = 6  # up to which all subsets are taken by default: their number doubles with every input
_ONLY = ""  # the name of a description without one
_PRODUCTS, _JOINED, _SUMS = 0.4, 0.4, 0.2  # shares of a description's prior mass


@dataclass(frozen=True)
class KernelModels:
    """The parts of a class of kernel models: M of each, in order.

    Attributes
    ----------
    groups : columns of the dictionary.
    names : "map: kernel".
    kernels : fitted to the candidates.
    log_prior : (M,) equal mass for every map, divided equally among its kernels.
    families : (M,) the map; the sum over all maps counts as one more.
    """

    groups: list[IntArray]
    names: list[str]
    kernels: list[Kernel]
    log_prior: FloatArray
    families: IntArray


def is_counts(rows: Rows) -> bool:
    """Whether a matrix holds bits, one-hot rows or counts: 0 and 1 only, or whole numbers of which half are zero.

    Whole numbers that are rarely zero are measured in some unit (temperatures, prices) and are descriptors.

    >>> is_counts(np.eye(3)), is_counts(np.array([[0.0, 3.0], [2.0, 0.0]])), is_counts(np.array([[90.0], [105.0]]))
    (True, True, False)
    """
    if isinstance(rows, RemoteRows):
        return rows.is_counts()
    zeros, largest = 0, 0.0
    for values in dense_blocks(rows):
        if values.min(initial=0.0) < 0.0 or np.any(values != np.floor(values)):
            return False
        zeros += values.size - int(np.count_nonzero(values))
        largest = max(largest, float(values.max(initial=0.0)))
    return bool(largest <= 1.0 or 2 * zeros >= rows.shape[0] * rows.shape[1])


def automatic(rows: Rows) -> tuple[Kernel, ...]:
    """Kernels for a matrix: linear and Tanimoto for counts, linear and Matern 5/2 at four lengthscales otherwise.

    Descriptors come in units that have nothing to do with each other, so their columns are divided by their standard
    deviations over the candidates and constant ones left out; this is part of the kernels, and stored with them.
    """
    if is_counts(rows):
        return Linear(), Tanimoto()
    return Linear(standardize=True), *(Matern(2.5, lengthscale=scale) for scale in _LENGTHSCALES)


def kernel_models(blocks_of: Mapping[str, Rows], choice: KernelChoice, n_first: int | None = None) -> KernelModels:
    """One model per map and kernel, for matrices that stand side by side in the dictionary.

    With "auto" for several maps there is one more model: the sum of all kernels, each divided by the variance over the
    candidates that it gives to functions and by the number of kernels of its map, so that every map contributes as
    much. All its terms are computed for the other models anyway. Units come from the first `n_first` rows, by default
    from all.
    """
    choices = _by_map(blocks_of, choice)
    blocks_of = {name: first_rows(rows, n_first) for name, rows in blocks_of.items()}
    chosen = {name: _kernels(name, choices[name], rows) for name, rows in blocks_of.items()}
    edges = np.cumsum([0, *(rows.shape[1] for rows in blocks_of.values())])
    own = [np.arange(low, high) for low, high in pairwise(edges)]
    groups, names, kernels, masses, families = [], [], [], [], []
    parts: list[Kernel] = []
    with_sum = choice == AUTO and len(chosen) > 1
    for family, (name, fitted) in enumerate(chosen.items()):
        for kernel in fitted:
            groups.append(own[family])
            names.append(f"{name}: {kernel.name}")
            kernels.append(kernel)
            masses.append(1.0 / len(fitted))
            families.append(family)
            variance = prior_variance(kernel, blocks_of[name]) if with_sum else 0.0
            if variance > 0.0:
                parts.append(Scaled.of(kernel, 1.0 / (len(fitted) * variance)).on(own[family], name))
    if parts:
        groups.append(np.arange(edges[-1]))
        names.append("all maps: sum of kernels")
        kernels.append(Sum(tuple(parts)))
        masses.append(1.0)
        families.append(len(chosen))
    prior = np.log(np.array(masses) / reduce(add, masses))  # `sum` rounds differently from Python 3.12 on
    return KernelModels(groups, names, kernels, prior, np.array(families, dtype=np.int64))


def _by_map(names: Collection[str], choice: KernelChoice) -> Mapping[str, Choice]:
    if not isinstance(choice, Mapping):
        return dict.fromkeys(names, choice)
    unknown = [name for name in choice if name not in names]
    missing = [name for name in names if name not in choice]
    if unknown or missing:
        what = f"{unknown[0]!r} is not one of the matrices" if unknown else f"{missing[0]!r} has none"
        raise ValueError(f"kernels must name every matrix ({', '.join(map(repr, names))}): {what}")
    return choice


def _kernels(name: str, choice: Choice, rows: Rows) -> list[Kernel]:
    """The fitted kernels of one map; raises where one comes twice."""
    listed = [choice] if isinstance(choice, str | Kernel) or not isinstance(choice, Iterable) else list(choice)
    out: list[Kernel] = []
    for item in listed:
        if item == AUTO:
            out += automatic(rows)
        elif item == LINEAR:
            out.append(Linear())
        elif isinstance(item, Kernel):
            out.append(item)
        else:
            raise TypeError(
                f"kernels of {name!r} must be 'linear', 'auto', a kernel such as alexp.kernels.Matern(), or a list of "
                f"those, got {item!r}; alexp.kernels.Function(k) wraps a function k(X, Z)"
            )
    if not out:
        raise ValueError(f"{name!r} needs at least one kernel, got an empty list")
    for k, kernel in enumerate(out):
        if kernel in out[:k]:
            raise ValueError(f"{name!r} has the kernel {kernel.name!r} twice; it would count twice")
    return fitted_together(out, rows)


def prior_variance(kernel: Kernel, rows: Rows) -> float:
    """The variance over candidates of a function drawn from the prior: mean k(x, x) - mean k(x, z)."""
    some = dense(rows[spread(rows.shape[0], _MOST_COMPARED)])
    return varying_part(kernel, some, float(np.mean(kernel.diagonal(some))))


def varying_part(kernel: Kernel, some: FloatArray, whole: float) -> float:
    """mean k(x, x) - mean k(x, z) over some candidates; zero where it is rounding beside a mean k(x, x) of `whole`."""
    varying = float(np.mean(kernel.diagonal(some)) - np.mean(kernel(some, some)))
    return varying if varying > 1e-12 * whole else 0.0


# -- arguments: matrices or Gram matrices, tables of inputs, boxes -----------------------------------------------


def as_choice(
    matrices: Mapping[str, ArrayLike | Precomputed], kernels: KernelChoice
) -> tuple[Mapping[str, ArrayLike], KernelChoice]:
    """Matrices and kernels for them: Gram matrices become a column of candidate numbers, and a kernel on it."""
    grams = {name: block for name, block in matrices.items() if isinstance(block, Precomputed)}
    features = {name: block for name, block in matrices.items() if not isinstance(block, Precomputed)}
    if not grams:
        return features, kernels
    if isinstance(kernels, Mapping) and (clash := [name for name in kernels if name in grams]):
        raise ValueError(f"{clash[0]!r} is a Gram matrix, which is a kernel already; leave it out of kernels")
    numbers = {name: np.arange(float(len(gram.gram))) for name, gram in grams.items()}
    columns = {name: features[name] if name in features else numbers[name] for name in matrices}
    return columns, {**grams, **_by_map(features, kernels)}


def input_columns(inputs: ArrayLike | Box | Interval) -> tuple[Dictionary, FloatArray, int]:
    """A dictionary that has the inputs as columns, their values (N, d) on the candidates, and the first such column."""
    if isinstance(inputs, Box | Interval):
        points = np.asarray(inputs.points, dtype=np.float64)
        points = points[:, None] if points.ndim == 1 else points
        return Polynomial(1, points.shape[1]), points, 1
    kinds = getattr(inputs, "dtypes", None)
    names = [str(name) for name in inputs.columns] if hasattr(inputs, "columns") else None
    if names is not None and kinds is not None:
        for name, kind in zip(names, kinds, strict=True):
            if getattr(kind, "kind", "O") not in "biuf":
                raise TypeError(f"inputs must be numbers, but column {name!r} holds {kind}; encode it, or leave it out")
    values = matrix("inputs", inputs)
    names = names or [f"x{c}" for c in range(values.shape[1])]
    if len(set(names)) < len(names):
        raise ValueError(f"inputs must have distinct names, got {names}")
    return Matrices.from_table(values, names, [1] * len(names)), values, 0


# -- a kernel on subsets of the inputs ---------------------------------------------------------------------------


def subset_models(
    inputs: FloatArray,
    names: Sequence[str],
    kernel: Kernel,
    subsets: Subsets,
    lengthscales: Sequence[float] | None,
    max_size: int | None,
    first: int = 0,
) -> KernelModels:
    """One model per subset of the columns of `inputs` (N, d) and lengthscale; see `ModelClass.from_inputs`.

    The inputs are columns `first`, `first` + 1, ... of the dictionary; `names` are theirs.
    """
    kernels = _at_lengthscales(kernel, lengthscales)
    d = inputs.shape[1]
    sizes = _sizes(d, len(kernels), subsets, max_size)
    groups, labels, fitted, masses = [], [], list[Kernel](), []
    for size in sizes:
        for group in combinations(range(d), size):
            columns = np.array(group)
            groups += [columns + first] * len(kernels)
            labels += [f"{'+'.join(names[c] for c in group)}: {one.name}" for one in kernels]
            fitted += fitted_together(kernels, take(inputs, columns))
            masses += [1.0 / (len(sizes) * comb(d, size) * len(kernels))] * len(kernels)
    families = np.arange(len(groups)) // len(kernels)
    return KernelModels(groups, labels, fitted, np.log(np.array(masses)), families)


def _at_lengthscales(kernel: Kernel, lengthscales: Sequence[float] | None) -> list[Kernel]:
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a kernel such as alexp.kernels.Matern(), got {type(kernel).__name__}")
    if not isinstance(kernel, Stationary) or isinstance(kernel, ARD) or lengthscales is None:
        return [kernel]
    return [kernel.replaced(lengthscale=scale) for scale in _distinct_scales(lengthscales)]


def _distinct_scales(lengthscales: Sequence[float]) -> list[float]:
    scales = [positive("lengthscales", scale) for scale in lengthscales]
    if not scales or len(set(scales)) < len(scales):
        raise ValueError(f"lengthscales must be distinct positive numbers, got {list(lengthscales)}")
    return scales


def _sizes(d: int, per_subset: int, subsets: Subsets, max_size: int | None) -> list[int]:
    """Sizes of the subsets that have models, smallest first."""
    if subsets not in (ALL, FEW) and not isinstance(subsets, bool | np.bool_):
        raise ValueError(f'subsets must be True, False, "all" or "few", got {subsets!r}')
    if not subsets:
        return [d]
    if max_size is not None and subsets == FEW:
        raise ValueError('max_size means all subsets of up to so many inputs; leave it out, or subsets="few"')
    every = list(range(1, d + 1 if max_size is None else min(count("max_size", max_size), d) + 1))
    if max_size is not None or subsets == ALL:
        return _not_too_many(d, every, per_subset, 'lower max_size, use fewer lengthscales or subsets="few"')
    total = _n_models(d, every, per_subset)
    if subsets != FEW and d <= _MOST_INPUTS and total <= _MOST_MODELS:
        return every
    few = sorted({1, 2, d - 1, d} & set(every))
    if _n_models(d, few, per_subset) > _MOST_MODELS:
        few = sorted({1, d - 1, d} & set(every))
    _not_too_many(d, few, per_subset, "use subsets=False or fewer lengthscales")
    if subsets != FEW:
        pairs = ", of two inputs" if 2 in few else ""
        every_one = f'subsets="all" for all of them ({total:,} models), ' if total <= _MOST_MODELS else ""
        caution(
            f"{d} inputs have {2**d - 1:,} subsets: {_n_models(d, few, per_subset):,} models are made, of one input"
            f'{pairs}, of all inputs but one and of all inputs. State subsets="few" to choose this, {every_one}'
            "max_size for all subsets of up to so many inputs, or subsets=False for all inputs together",
            UserWarning,
        )
    return few


def _n_models(d: int, sizes: Sequence[int], per_subset: int) -> int:
    return per_subset * sum(comb(d, size) for size in sizes)


def _not_too_many(d: int, sizes: list[int], per_subset: int, remedy: str) -> list[int]:
    models = _n_models(d, sizes, per_subset)
    if models > _MOST_MODELS:
        raise ValueError(
            f"subsets of up to {sizes[-1]} of {d} inputs make {models:,} models, more than {_MOST_MODELS:,}; {remedy}"
        )
    return sizes


# -- composed inputs: reactions of a base, a ligand and a solvent, each described on its own ---------------------


class LevelPoints(NamedTuple):
    """The L levels of a component as numbers, (L, d); the last `n_new` columns tell words apart that were added."""

    points: FloatArray
    n_new: int = 0


class Levels(NamedTuple):
    """The different values of a component: which one each candidate has (N,), and descriptions of them.

    The first `n_first` of them were there first, and units come from these.
    """

    codes: IntArray
    descriptions: dict[str, LevelPoints]
    n_first: int


@dataclass(frozen=True)
class Factorial:
    """The parts of the models of composed inputs.

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
    n_first: int | None = None,
) -> Factorial:
    """Products, sums and joined descriptors of components, for every description; see `ModelClass.from_components`.

    Two reactions are alike where all their components are alike (a product over components), as far as some of them are
    (a sum), or as near as all their descriptors together are (joined: a component with many descriptors then matters
    more). The lengthscale of a component says how much it matters. Units come from the first `n_first` candidates, by
    default from all; a word that only others have is as far from every word as these are from each other.
    """
    if not isinstance(components, Mapping) or not components:
        raise ValueError(
            "components must be a non-empty dict of name -> description, or of name -> {name: description}"
        )
    base = Matern() if kernel is None else kernel
    if not isinstance(base, Stationary) or isinstance(base, ARD):
        raise TypeError(f"kernel must be Matern, RBF or another Stationary kernel but ARD, got {base!r}")
    scales = _distinct_scales(lengthscales)
    levels = {str(name): find_levels(str(name), given, n_first) for name, given in components.items()}
    sizes = {name: own.codes.size for name, own in levels.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"components must describe the same candidates, row by row; they have {sizes} rows")
    described = dict.fromkeys(word for own in levels.values() for word in own.descriptions if word != _ONLY)
    words = list(described) or [_ONLY]
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
        together = np.hstack([_coordinates(_description(own, word), own.n_first)[own.codes] for own in levels.values()])
        first = sum(block.shape[1] for block in columns)
        joined = base.replaced(relative=True, standardize=False).fitted(together[:n_first])
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


def _description(own: Levels, word: str) -> LevelPoints:
    """The levels of a component as a description has them, or as its first does."""
    return own.descriptions[word if word in own.descriptions else next(iter(own.descriptions))]


def _scales(described: LevelPoints, n_first: int) -> FloatArray:
    """Standard deviations of the descriptors over the first levels, (d,); those of new words are as of the others."""
    spread = np.array(column_scales(described.points[:n_first]))
    spread[spread.size - described.n_new :] = spread[0]
    return spread


def _coordinates(described: LevelPoints, n_first: int) -> FloatArray:
    """Points (L, k), k < L, that are as far from each other as L levels with standardised descriptors (L, d) are.

    A dozen ligands with a thousand descriptors need eleven coordinates. Levels beyond the first ones keep the
    coordinates of these, and have further ones for what these do not span.
    """
    points, spread = described.points, _scales(described, n_first)
    varying = spread > 0.0
    centred = (points[:, varying] - points[:n_first, varying].mean(axis=0)) / spread[varying]
    left, sizes, axes = np.linalg.svd(centred[:n_first], full_matrices=False)
    kept = sizes > 1e-9 * sizes.max()
    known = np.asarray((left * sizes)[:, kept])
    if n_first == len(points):
        return known
    own = centred[n_first:] @ axes[kept].T
    left, rest, _ = np.linalg.svd(centred[n_first:] - own @ axes[kept], full_matrices=False)
    further = (left * rest)[:, rest > 1e-9 * sizes.max()]
    return np.block([[known, np.zeros((n_first, further.shape[1]))], [own, further]])


def find_levels(name: str, given: Component, n_first: int | None = None) -> Levels:
    """The different values of a component, those of the first `n_first` candidates first; text becomes one-hot.

    >>> own = find_levels("solvent", ["water", "DMF", "water"])
    >>> own.codes.tolist(), own.descriptions[""].points[own.codes].tolist()
    ([0, 1, 0], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """
    described = dict(given) if isinstance(given, Mapping) else {_ONLY: given}
    if not described:
        raise ValueError(f"component {name!r} needs at least one description")
    numeric: dict[str, LevelPoints] = {}
    for word, values in described.items():
        array = np.asarray(values)
        if array.dtype.kind in "OUS":
            if array.ndim != 1 or not all(isinstance(item, str) for item in array.tolist()):
                raise TypeError(f"component {name!r}: a description must be text, one per candidate, or numbers (N, d)")
            places, numbers = _first_and_further(array.astype(str), n_first)
            n_words = places.size
            numeric[str(word)] = LevelPoints(np.eye(n_words)[numbers], int(np.sum(places >= (n_first or array.size))))
        else:
            numeric[str(word)] = LevelPoints(matrix(f"component {name!r}", array))
    rows = {values.points.shape[0] for values in numeric.values()}
    if len(rows) > 1:
        raise ValueError(f"descriptions of component {name!r} must have one row per candidate, got {sorted(rows)} rows")
    whole = np.hstack([values.points for values in numeric.values()])
    first, codes = _first_and_further(whole, n_first)
    n_known = int(np.sum(first < (n_first or len(whole))))
    if n_known < 2:
        raise ValueError(f"component {name!r} is the same for all candidates; leave it out")
    levels = {word: values._replace(points=values.points[first]) for word, values in numeric.items()}
    return Levels(codes, levels, n_known)


def _first_and_further(values: AnyArray, n_first: int | None) -> tuple[IntArray, IntArray]:
    """Where each of the different values first occurs, and the number of each value (N,).

    Those among the first `n_first` values come first, in their order, then those of the others.
    """
    _, places, codes = np.unique(values, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(places >= (n_first or len(values)), kind="stable")
    return places[order], np.argsort(order)[codes.ravel()].astype(np.int64)


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
    described = own.descriptions[which]
    points = described.points
    fitted = base.fitted(points[: own.n_first])
    if described.n_new and fitted.scales is not None:
        fitted = fitted.replaced(scales=tuple(_scales(described, own.n_first).tolist()))
    grams = [fitted.replaced(lengthscale=scale)(points, points) for scale in scales]
    label = " ".join(filter(None, [name, which]))
    return [
        Precomputed(gram, f"{base.shape_name}, {scale:g}").on([column], label)
        for gram, scale in zip(grams, scales, strict=True)
    ]
