"""How columns become features and models. It is fixed when models are made and kept with them, for later candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NotRequired, Self, TypedDict

import numpy as np

from alexp.common.arrays import AnyArray, FloatArray
from alexp.common.codec import Packable, State
from alexp.common.extras import require
from alexp.problem.domains import FiniteSet
from alexp.problem.kernel_models import AUTO, LINEAR, KernelChoice, KernelModels, factorial_models, kernel_models
from alexp.problem.kernels import Kernel, kernel_from_dict
from alexp.problem.matrices import Matrices
from alexp.problem.models import ModelClass
from alexp.table.columns import Column, Kind, yes_or_no

Form = Literal["number", "words", "fingerprints", "descriptors"]
MOLECULAR: tuple[Form, ...] = ("fingerprints", "descriptors")  # what molecules become, a map each


@dataclass(frozen=True)
class Feature:
    """What a column becomes: n cells are (n, d) numbers.

    Attributes
    ----------
    column, kind, unit : of the column.
    form : what is made of it. Words are columns of 0 and 1, molecules are bits of a fingerprint, or descriptors.
    known : words, numbers of bits, or names of descriptors: one for each of the d features.
    median : of numbers where some cells were blank, of logarithms for the kind "log": it is put there, and a second
        feature says so.
    """

    column: str
    kind: Kind
    form: Form
    unit: str = ""
    known: tuple[Any, ...] = ()
    median: float | None = None

    @classmethod
    def of(cls, column: Column, form: Form | None = None) -> Self:
        """The features that a column suggests."""
        chosen = form or ("fingerprints" if column.kind == "SMILES" else "words" if column.values is None else "number")
        out = cls(column.name, column.kind, chosen, column.unit)
        if chosen == "descriptors":
            from alexp.table.chemistry import telling_descriptors

            return replace(out, known=tuple(telling_descriptors(column.cells)))
        if chosen == "number":
            return replace(out, median=float(np.nanmedian(out._numbers(column.cells))) if column.blanks else None)
        return out.widened(column.cells)

    def widened(self, cells: Sequence[Any]) -> Self:
        """With features behind the others for words, and for bits of molecules, that are not known."""
        found: list[Any] = []
        if self.form == "words":
            found = sorted(set(cells) - set(self.known))
        elif self.form == "fingerprints":
            from alexp.table.chemistry import fingerprints

            found = [int(bit) for bit in np.flatnonzero(fingerprints(cells).any(axis=0)) if bit not in self.known]
        return replace(self, known=(*self.known, *found))

    def encoded(self, cells: Sequence[Any]) -> FloatArray:
        """The features of n cells, (n, d)."""
        if self.form == "words":
            place = {word: k for k, word in enumerate(self.known)}
            return np.eye(len(place))[[place[cell] for cell in cells]]
        if self.form == "fingerprints":
            from alexp.table.chemistry import fingerprints

            return np.ascontiguousarray(fingerprints(cells)[:, list(self.known)])
        if self.form == "descriptors":
            from alexp.table.chemistry import descriptors

            return descriptors(cells, self.known)
        values = self._numbers(cells)[:, None]
        if self.median is None:
            return values
        blank = np.isnan(values)
        return np.hstack([np.where(blank, self.median, values), blank])

    def _numbers(self, cells: Sequence[Any]) -> FloatArray:
        """The numbers of n cells, (n,), as models see them; NaN where a cell is blank."""
        if self.kind == "yes/no":
            return np.array([yes_or_no(cell) for cell in cells])
        values = np.array([np.nan if cell == "" else float(cell) for cell in cells])
        return np.log10(values) if self.kind == "log" else values

    @classmethod
    def from_dict(cls, data: State) -> Self:
        """From its fields as plain data."""
        return cls(**data | {"known": tuple(data["known"])})


def side_by_side(features: Sequence[Feature], columns: Mapping[str, Sequence[Any]]) -> FloatArray:
    """All features of n candidates, (n, d), from the cells of their columns."""
    return np.hstack([feature.encoded(columns[feature.column]) for feature in features])


Source = Literal["table", "description", "array"]


@dataclass(frozen=True)
class FeatureMatrix:
    """A matrix of features: columns of the table or of a description side by side, or an array as it was passed.

    `columns` of a description are all that it has, by name, with their kinds; its features need not use all.
    """

    values: FloatArray
    source: Source
    features: tuple[Feature, ...] = ()
    columns: Mapping[str, Kind] | None = None


class DescribedColumns(TypedDict):
    """Features, and the kinds of all columns of the description that they come from."""

    features: list[State]
    columns: dict[str, Kind]


class StoredMatrix(DescribedColumns):
    """What is kept of a `FeatureMatrix`; `width` is its number of features."""

    source: Source
    width: int


class StoredWords(DescribedColumns):
    """A description of the words of a component: `values` (L, d) of L words."""

    words: list[str]
    values: AnyArray


class OldResults(TypedDict):
    """The results of an old campaign: `rewards` (k,), and the candidates that they are of, `places` (k,).

    A place of -1 is none of the candidates; `cells` has those results in their order, by column that models use.
    """

    rewards: AnyArray
    places: AnyArray
    cells: dict[str, list[Any]]


class Encoding(TypedDict):
    """How an `alexp.Table` made models of its columns, as plain data.

    Components have the feature of a column of numbers, None for words; `described` holds descriptions of words,
    `memories` the old campaigns whose models are behind the others.
    """

    columns: list[State]  # name, kind, unit and whether it is used, of all columns
    matrices: dict[str, StoredMatrix]
    components: dict[str, State | None]
    described: dict[str, dict[str, StoredWords]]
    kernels: Packable
    intercept: bool
    memories: NotRequired[dict[str, OldResults]]


def stored_feature(feature: Feature) -> State:
    """A feature as plain data."""
    return asdict(feature) | {"known": list(feature.known)}


def described_columns(matrix: FeatureMatrix) -> DescribedColumns:
    """What the values of a matrix are made of."""
    return {"features": [stored_feature(one) for one in matrix.features], "columns": dict(matrix.columns or {})}


def stored_matrix(matrix: FeatureMatrix) -> StoredMatrix:
    """A matrix without its values."""
    return {"source": matrix.source, "width": int(matrix.values.shape[1]), **described_columns(matrix)}


def stored_kernels(choice: KernelChoice) -> Packable | None:
    """A choice of kernels as plain data; None if it holds code."""
    if isinstance(choice, str):
        return choice
    if isinstance(choice, Kernel):
        return choice.to_dict()
    if isinstance(choice, Mapping):
        by_name = {name: stored_kernels(one) for name, one in choice.items()}
        return None if None in by_name.values() else {"by_name": by_name}
    listed = [stored_kernels(one) for one in choice]
    return None if any(one is None for one in listed) else listed


def kernels_stored(data: Packable) -> Any:
    """Invert `stored_kernels`."""
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return [kernels_stored(one) for one in data]
    if "by_name" in data:
        return {name: kernels_stored(one) for name, one in data["by_name"].items()}
    return kernel_from_dict(data)


# -- models ----------------------------------------------------------------------------------------------------


def make_models(
    matrices: Mapping[str, FloatArray],
    components: Mapping[str, Any],
    kernels: KernelChoice,
    intercept: bool,
    batches: tuple[int, ...] = (),
) -> ModelClass:
    """Models of components, and of every matrix; `batches` as of `Matrices`: units come from the first."""
    n_first = batches[0] if batches else None
    if not components and kernels == LINEAR:
        out = ModelClass.from_matrices(matrices, intercept=intercept)
    elif not components:
        dictionary = Matrices(matrices)
        blocks = dict(zip(matrices, dictionary.blocks, strict=True))
        out = ModelClass.from_kernels(dictionary, kernel_models(blocks, kernels, n_first), intercept)
    else:
        out = _of_components(components, matrices, intercept, n_first)
    assert isinstance(out.dictionary, Matrices)
    out.dictionary.batches = batches
    return out


def _of_components(
    components: Mapping[str, Any], matrices: Mapping[str, FloatArray], intercept: bool, n_first: int | None
) -> ModelClass:
    """Models of components, models of every matrix, and one of all matrices; equal prior mass for each of these."""
    composed = factorial_models(components, n_first=n_first)
    if not matrices:
        dictionary = Matrices.from_table(composed.columns, composed.names, composed.sizes)
        return ModelClass.from_kernels(dictionary, composed.models, intercept)
    first, single = composed.columns.shape[1], kernel_models(matrices, AUTO, n_first)
    n_families = int(single.families.max()) + 1
    whole = np.hstack([composed.columns, *matrices.values()])
    sizes = [*composed.sizes, *(block.shape[1] for block in matrices.values())]
    dictionary = Matrices.from_table(whole, [*composed.names, *(f"{name}, features" for name in matrices)], sizes)
    models = KernelModels(
        [*composed.models.groups, *(group + first for group in single.groups)],
        [*composed.models.names, *single.names],
        [*composed.models.kernels, *single.kernels],
        np.concatenate(
            [
                composed.models.log_prior - np.log(n_families + 1),
                single.log_prior + np.log(n_families / (n_families + 1)),
            ]
        ),
        np.concatenate([composed.models.families, single.families + composed.models.families.max() + 1]),
    )
    return ModelClass.from_kernels(dictionary, models, intercept)


# -- later candidates ------------------------------------------------------------------------------------------


class Arrivals(TypedDict):
    """Candidates that are added, as plain data: their cells by column, their features, and the encoding they need.

    `features` (k, d) by name of the matrix or memory; new words and bits have columns behind those there were. Where a
    run learns from old campaigns there are no new candidates, and `learned` has what these expect of all candidates.
    `withheld` are those of the k that are proposed only where they are named.
    """

    cells: dict[str, list[Any]]
    features: dict[str, AnyArray]
    encoding: Encoding
    learned: NotRequired[dict[str, AnyArray]]
    withheld: NotRequired[list[int]]


def extended(models: ModelClass, domain: FiniteSet, arrivals: Arrivals) -> tuple[ModelClass, FiniteSet]:
    """The models and candidates of a table with later ones behind them; units, centres and scales stay."""
    require("pandas")
    import pandas as pd

    encoding, before = arrivals["encoding"], domain.candidates
    cells = {name: [*before[name].to_list(), *arrivals["cells"][name]] for name in before.columns}
    n_new = len(next(iter(arrivals["cells"].values())))
    matrices = {name: _below(old, arrivals["features"][name]) for name, old in _matrices(models, encoding).items()}
    memories = {name: matrices.pop(name)[:, 0] for name in encoding.get("memories", {}) if name in matrices}
    memories |= arrivals.get("learned", {})
    components: dict[str, Any] = {}
    for name, stored in encoding["components"].items():
        own = np.array(cells[name]) if stored is None else Feature.from_dict(stored).encoded(cells[name])
        components[name] = {
            title: _of_words(cells[name], words) for title, words in encoding["described"].get(name, {}).items()
        } or own
    batches = (*(models.batches or (domain.n_candidates,)), n_new) if n_new else models.batches
    out = make_models(matrices, components, kernels_stored(encoding["kernels"]), encoding["intercept"], batches)
    out = out.remembering(memories, trusts(memories, batches[0] if batches else len(before))) if memories else out
    out.encoding, out._scales = dict(encoding), models._scales
    withheld = [*domain.withheld.tolist(), *(len(before) + k for k in arrivals.get("withheld", []))]
    return out, FiniteSet(pd.DataFrame(cells), withheld) if n_new else domain


def trusts(memories: Mapping[str, AnyArray], n_first: int) -> dict[str, float]:
    """The share that each memory knows: the variance of its column over the first candidates."""
    return {name: min(float(np.var(column[:n_first])), 1.0) for name, column in memories.items()}


def _matrices(models: ModelClass, encoding: Encoding) -> dict[str, FloatArray]:
    """Matrices and memories by name, as the dictionary has them: behind the columns of components."""
    assert isinstance(models.dictionary, Matrices)
    sizes, table = models.dictionary.sizes, models.dictionary.table
    names = [*encoding["matrices"], *(models.encoding or {}).get("memories", {})]
    edges = np.cumsum([0, *sizes])[len(sizes) - len(names) :]
    return {name: table[:, low:high] for name, (low, high) in zip(names, pairwise(edges), strict=True)}


def _below(old: FloatArray, new: FloatArray) -> FloatArray:
    """Rows below others; further columns are zero for these."""
    further = np.zeros((len(old), new.shape[1] - old.shape[1]))
    return np.vstack([np.hstack([old, further]), new])


def _of_words(cells: Sequence[str], described: StoredWords) -> FloatArray:
    place = {word: k for k, word in enumerate(described["words"])}
    return np.asarray(described["values"])[[place[cell] for cell in cells]]
