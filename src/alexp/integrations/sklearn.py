"""scikit-learn transformers as models: every transformer is one map of the candidates.

>>> import numpy as np
>>> from sklearn.decomposition import PCA
>>> from sklearn.preprocessing import StandardScaler
>>> from sklearn.pipeline import make_pipeline
>>> X = np.random.default_rng(0).normal(size=(20, 4))
>>> from_transformers([StandardScaler(), make_pipeline(StandardScaler(), PCA(2))], X).names
['standardscaler', 'standardscaler+pca']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from alexp.common.arrays import Action
from alexp.problem.kernel_models import LINEAR, KernelChoice
from alexp.problem.matrices import Matrices, frame_labels
from alexp.problem.models import ModelClass, non_empty

PASSTHROUGH = "passthrough"  # scikit-learn's word for the inputs themselves


class Transforms(Protocol):
    """What a transformer can do, fitted or not."""

    def fit(self, X: Action, y: object = None) -> Transforms:
        """Learn from n points."""

    def transform(self, X: Action) -> Action:
        """Features of n points, (n, d)."""


Listed = Mapping[str, Transforms | str] | Sequence[Transforms | str | tuple[str, Transforms | str]]


class _Fitted(NamedTuple):
    features: Action
    columns: list[str] | None  # what the transformer calls them


def from_transformers(
    transformers: Listed, X: Action, *, kernels: KernelChoice | None = None, intercept: bool | None = None
) -> ModelClass:
    """One model per transformer, on the candidates X; the domain that goes with them is `FiniteSet(X)`.

    Parameters
    ----------
    transformers : {name: transformer}, a list of transformers or of pairs (name, transformer), or a FeatureUnion, whose
        transformers become a model each. Anything with `fit` and `transform` will do: pipelines, ColumnTransformers,
        vectorizers. "passthrough" stands for X itself. Without names they are called by their classes, pipelines by
        their steps.
    X : the candidates, n rows of whatever the transformers take: a DataFrame, an array, a list of texts.
    kernels : as in `ModelClass.from_matrices`; None for linear models on the features.
    intercept : as there; True unless stated.

    Transformers that are not fitted are cloned and fitted on the candidates; fitted ones are used as they are. Sparse
    features stay sparse, those in single precision stay so, and their names are those of `get_feature_names_out`.
    """
    named = _named(transformers)
    if not hasattr(X, "__len__") and not hasattr(X, "shape"):
        raise TypeError(f"X must be a table or a list of candidates, got {type(X).__name__}")
    fitted = {name: _transformed(name, transformer, X) for name, transformer in named.items()}
    matrices = {name: made.features for name, made in fitted.items()}
    models = ModelClass.from_matrices(matrices, kernels=LINEAR if kernels is None else kernels, intercept=intercept)
    table = cast(Matrices, models.dictionary)
    sizes = dict(zip(fitted, table.sizes, strict=True))
    table.name_columns([_column_names(made.columns, sizes[name]) for name, made in fitted.items()])
    if table.labels is None:
        table.labels = frame_labels(X)
    return models


def _named(transformers: Listed) -> dict[str, Transforms | str]:
    """Transformers by name; what is in no list gets the name of its class, numbered where that comes again."""
    union = getattr(transformers, "transformer_list", None)  # of a FeatureUnion
    listed: object = transformers if union is None else [pair for pair in union if pair[1] != "drop"]
    if isinstance(listed, Mapping):
        return {str(name): _checked(name, item) for name, item in non_empty(listed, "transformers").items()}
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(
            "transformers must be a list, a dict {name: transformer} or a FeatureUnion; put a single transformer, "
            f"also a ColumnTransformer, into a list; got {type(transformers).__name__}"
        )
    pairs = [item if isinstance(item, tuple) else (None, item) for item in listed]
    if not pairs:
        raise ValueError("transformers must not be empty")
    names = [_called(item) if name is None else str(name) for name, item in pairs]
    often, seen, out = Counter(names), Counter[str](), dict[str, Transforms | str]()
    for own, (given, item) in zip(names, pairs, strict=True):
        seen[own] += 1
        if given is not None and often[own] > 1:
            raise ValueError(f"transformers must have distinct names, got {own!r} twice")
        out[own if often[own] == 1 else f"{own}-{seen[own]}"] = _checked(own, item)
    return out


def _called(transformer: object) -> str:
    steps = getattr(transformer, "steps", None)  # of a Pipeline
    if steps:
        return "+".join(str(name) for name, step in steps if step not in (None, PASSTHROUGH)) or PASSTHROUGH
    return transformer if isinstance(transformer, str) else type(transformer).__name__.lower()


def _checked(name: object, item: object) -> Transforms | str:
    if item == PASSTHROUGH and isinstance(item, str):
        return item
    if isinstance(item, type) or not (hasattr(item, "transform") and hasattr(item, "fit")):
        shown = f"the class {item.__name__}; pass an instance" if isinstance(item, type) else repr(item)
        raise TypeError(f"transformer {name!r} must have fit and transform, or be 'passthrough'; got {shown}")
    return cast(Transforms, item)


def _transformed(name: str, transformer: Transforms | str, X: Action) -> _Fitted:
    if isinstance(transformer, str):
        own = getattr(X, "columns", None)
        return _Fitted(X, None if own is None else [str(column) for column in own])
    ready = transformer if _is_fitted(transformer) else _fit(name, transformer, X)
    features = ready.transform(X)
    return _Fitted(features, _feature_names(ready))


def _is_fitted(transformer: Transforms) -> bool:
    from sklearn.exceptions import NotFittedError  # slow to import, as is everything of it
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return False
    except (AttributeError, TypeError):  # none of scikit-learn's own kind: its convention is all there is to go by
        return any(name.endswith("_") and not name.startswith("_") for name in vars(transformer))
    return True


def _fit(name: str, transformer: Transforms, X: Action) -> Transforms:
    """A clone that was fitted on the candidates: the caller's own stays as it is."""
    from copy import deepcopy

    from sklearn.base import BaseEstimator, clone

    own = clone(transformer) if isinstance(transformer, BaseEstimator) else deepcopy(transformer)
    try:
        return cast(Transforms, own.fit(X) or own)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"transformer {name!r} cannot be fitted on the candidates alone: {error}. If it needs outcomes, fit it on "
            "earlier ones first; the rewards of the run itself must not choose the features they are explained by"
        ) from error


def _feature_names(transformer: Transforms) -> list[str] | None:
    names = getattr(transformer, "get_feature_names_out", None)
    if names is None:
        return None
    try:
        return [str(name) for name in names()]
    except (AttributeError, TypeError, ValueError):  # a step of a pipeline that has no names, or was fitted without
        return None


def _column_names(names: list[str] | None, size: int) -> list[str] | None:
    """The names, if there is one for every column."""
    return names if names is not None and len(names) == size else None
