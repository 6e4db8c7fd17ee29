"""Sets of features of a context, by name: entries of a vector, keys of a mapping, declared vectors, or code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import LARGEST, count, misspelt
from alexp.problem.checks import distinct
from alexp.problem.descriptions import Description
from alexp.problem.dictionaries import Transformer

Given = Any  # what a user hands in, in his own form: a context, candidates, features of either
FREE = 100.0  # what features that are practically unpenalised are multiplied by: their prior variance is 10,000-fold
# Numbers of entries of the context vector, keys of the context, the size of context[name], or code.
FeatureSet = Sequence[int] | Sequence[str] | int | Callable[[Given], Given] | Transformer


class ContextFeatures:
    """M sets of features of one context, evaluated together: p numbers, of which every set has some.

    Parameters
    ----------
    sets : by name, what a set consists of:

        - a list of whole numbers: these entries of the context, a vector;
        - a list of texts: these keys of the context, a mapping of numbers;
        - a whole number d: `context[name]`, a vector of d numbers;
        - a callable: what it returns for the context, (d,) or a number;
        - a fitted scikit-learn transformer: what it makes of the context as a table of one row.
    example : a context, or a list of contexts, or a table of contexts; without it the sizes of what is code become
        known with the first context.

    Entries and keys that several sets name are there once.

    >>> features = ContextFeatures({"clinical": [0, 1], "all": [0, 1, 2]})
    >>> features([3.0, 4.0, 5.0]).tolist(), [group.tolist() for group in features.groups]
    ([3.0, 4.0, 5.0], [[0, 1], [0, 1, 2]])
    """

    def __init__(self, sets: Mapping[str, FeatureSet], example: object = None) -> None:
        if not isinstance(sets, Mapping) or not sets:
            raise ValueError(f"feature sets must be a non-empty dict of name -> features, got {sets!r}")
        self.names_of_sets = distinct([str(name) for name in sets], len(sets))
        self._sets = {str(name): _checked(str(name), one) for name, one in sets.items()}
        listed = [item for one in self._sets.values() if isinstance(one, tuple) for item in one]
        self._entries = sorted({item for item in listed if isinstance(item, int)})
        self._keys = list(dict.fromkeys(item for item in listed if isinstance(item, str)))
        self._blocks = [name for name, one in self._sets.items() if not isinstance(one, tuple)]
        self._sizes: dict[str, int] = {
            name: self._sets[name] for name in self._blocks if isinstance(self._sets[name], int)
        }
        self.examples = [] if example is None else list(contexts(example))
        for context in self.examples:
            self(context)

    @property
    def unknown(self) -> list[str]:
        """Sets whose sizes are not known, because they are code that has not been evaluated yet."""
        return [name for name in self._blocks if name not in self._sizes]

    @property
    def size(self) -> int:
        """p, the number of features."""
        return len(self._entries) + len(self._keys) + sum(self._sizes.values())

    @property
    def names(self) -> list[str]:
        """One name per feature: its entry, its key, or set[number]."""
        own = [f"{name}[{i}]" for name in self._blocks for i in range(self._sizes[name])]
        return [f"x{i}" for i in self._entries] + self._keys + own

    @property
    def groups(self) -> list[IntArray]:
        """The features of every set, among all p."""
        places = {item: k for k, item in enumerate([*self._entries, *self._keys])}
        first, out = len(places), []
        for name, one in self._sets.items():
            if isinstance(one, tuple):
                out.append(np.array([places[item] for item in one], dtype=np.int64))
            else:
                out.append(np.arange(first, first + self._sizes[name]))
                first += self._sizes[name]
        return out

    def __call__(self, context: Given) -> FloatArray:
        """The features of one context, shape (p,); one that is refused tells no sizes."""
        known = dict(self._sizes)
        try:
            return self._evaluated(context)
        except Exception:
            self._sizes = known
            raise

    def _evaluated(self, context: Given) -> FloatArray:
        parts = [self._entries_of(context)] if self._entries else []
        parts += [self._keys_of(context)] if self._keys else []
        parts += [self._block_of(name, context) for name in self._blocks]
        out: FloatArray = np.concatenate(parts)
        if not np.all(np.abs(out) <= LARGEST):  # not a number is not, either
            k = int(np.argmin(np.abs(out) <= LARGEST))
            name = self.names[k] if len(self._sizes) == len(self._blocks) else f"number {k}"
            raise ValueError(f"feature {name} of the context is {out[k]}; features must be finite, at most {LARGEST:g}")
        return out

    def _entries_of(self, context: Given) -> FloatArray:
        last = self._entries[-1]
        vector = _vector("context", context, "a vector of numbers, because features are given by their places in it")
        if vector.size <= last:
            raise ValueError(
                f"context must have at least {last + 1} entries, because entry {last} is used, got {vector.size}"
            )
        return vector[self._entries]

    def _keys_of(self, context: Given) -> FloatArray:
        missing = [key for key in self._keys if not _holds(context, key)]
        if missing:
            said = f"context must be a mapping with the keys {self._keys}; {missing[0]!r} is missing"
            raise ValueError(said + self._misspelt(missing[0], context))
        return np.array([_number(key, context[key]) for key in self._keys])

    def _misspelt(self, missing: str, context: Given) -> str:
        given = list(context.keys()) if hasattr(context, "keys") else []
        return misspelt(missing, [key for key in given if key not in self.needs[1]])

    def _block_of(self, name: str, context: Given) -> FloatArray:
        source = self._sets[name]
        if isinstance(source, int):
            if not _holds(context, name):
                said = f"context must be a mapping with a vector for each of {self._blocks}; {name!r} is missing"
                raise ValueError(said + self._misspelt(name, context))
            values = _vector(f"context[{name!r}]", context[name], f"a vector of {source} numbers")
        else:
            made = source.transform(_one_row(context)) if hasattr(source, "transform") else source(context)
            made = made.toarray() if hasattr(made, "toarray") else made
            values = _vector(f"what {name!r} makes of the context", made, "a vector of numbers")
        known = self._sizes.setdefault(name, values.size)
        if values.size != known or known == 0:
            raise ValueError(
                f"{name!r} must have {known or 'some'} features, as many for every context, got {values.size}"
            )
        return values

    def to_dict(self) -> Description | None:
        """What `from_lists` makes the same sets of; None if there is code among them."""
        if any(not isinstance(one, tuple | int) for one in self._sets.values()):
            return None
        own = [list(one) if isinstance(one, tuple) else one for one in self._sets.values()]
        return {"names": self.names_of_sets, "sets": own}

    @classmethod
    def from_lists(cls, names: Sequence[str], sets: Sequence[FeatureSet], example: object = None) -> ContextFeatures:
        """The sets that `to_dict` has stored; JSON objects need not keep their order."""
        return cls(dict(zip(names, sets, strict=True)), example)

    @property
    def needs(self) -> tuple[bool, list[str]]:
        """Whether a context must be a vector, and the keys that it must have."""
        return bool(self._entries), self._keys + self._blocks


def packed_examples(used: Sequence[ContextFeatures]) -> Given:
    """What sets without code need of their common example: a table (E, entries), or {key: one value per context}."""
    examples = used[0].examples
    keys = list(dict.fromkeys(key for one in used for key in one.needs[1]))
    if any(one.needs[0] for one in used):
        return np.array([_vector("context", context, "a vector of numbers") for context in examples])
    return {key: np.array([np.asarray(context[key], dtype=np.float64) for context in examples]) for key in keys}


def unpacked_examples(packed: Given) -> list[Given]:
    """Invert `packed_examples`, as far as the sets can tell."""
    if not isinstance(packed, Mapping):
        return list(np.asarray(packed))
    n = len(next(iter(packed.values()), ()))
    return [{key: values[k] for key, values in packed.items()} for k in range(n)]


def contexts(example: Given) -> Sequence[Given]:
    """The contexts of an example: the items of a list, the rows of a table, or the one context it is."""
    if hasattr(example, "iloc") and hasattr(example, "columns"):
        return [example.iloc[k] for k in range(len(example))]
    if isinstance(example, np.ndarray) and example.ndim == 2:
        return list(example)
    if isinstance(example, list) and not all(isinstance(item, int | float | np.number) for item in example):
        return example
    return [example]


def _checked(name: str, one: Given) -> Given:
    if isinstance(one, bool | str | bytes):
        raise TypeError(f"features {name!r} must be a list of entries or keys, a size, or code, got {one!r}")
    if isinstance(one, Integral):
        return count(f"size of {name!r}", one)
    if callable(one) or hasattr(one, "transform"):
        return one
    try:
        items = tuple(item if isinstance(item, str) else count(f"an entry of {name!r}", item, 0) for item in one)
    except TypeError as error:
        raise TypeError(
            f"features {name!r} must be a list of whole numbers (entries of the context vector), a list of texts (keys "
            f"of the context), a size, a callable or a fitted transformer, got {one!r:.80}"
        ) from error
    if not items or len({type(item) for item in items}) > 1 or len(set(items)) < len(items):
        raise ValueError(
            f"features {name!r} must be distinct entries or distinct keys, at least one, got {list(items)!r}"
        )
    return items


def _holds(context: Given, key: str) -> bool:
    """Whether a mapping, or a row of a table, has a key."""
    return hasattr(context, "keys") and key in context


def _number(key: str, value: Given) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"context[{key!r}] must be a number, got {value!r:.80}") from error


def _vector(name: str, value: Given, what: str) -> FloatArray:
    if isinstance(value, Mapping):
        raise TypeError(f"{name} must be {what}, got a mapping")
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be {what}: {error}") from error
    if array.ndim == 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim > 1:
        raise ValueError(f"{name} must be {what}, got shape {array.shape}")
    return np.atleast_1d(array)


def _one_row(context: Given) -> Given:
    """A context as a table of one row, as transformers take it."""
    if isinstance(context, Mapping) or hasattr(context, "to_frame"):
        import pandas as pd

        return pd.DataFrame([dict(context)])
    array = np.asarray(context)
    return array.reshape(1, -1) if array.ndim < 2 else array
