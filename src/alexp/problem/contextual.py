"""Dictionaries of contextual rounds: features of a context and of its candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from numbers import Integral
from typing import Any

import numpy as np

from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.extras import require
from alexp.common.validation import LARGEST, count, finite, fraction, matrix, misspelt, positive
from alexp.problem.dictionaries import EvaluatedMaps, Transformer, distinct

Given = Any  # what a user hands in, in any form: a context, candidates, features of either
FREE = 100.0  # what features that are practically unpenalised are multiplied by: their prior variance is 10,000-fold
# Numbers of entries of the context vector, keys of the context, the size of context[name], or code.
FeatureSet = Sequence[int] | Sequence[str] | int | Callable[[Given], Given] | Transformer
ContextualMap = Callable[[Given, Given], Given] | Transformer  # (context, candidates) to (n, d)
CommonMap = Callable[[Given, Given], Given]  # (context, names of the arms) to (K, q)
Unit = float | tuple[float, float]  # scale, or centre and scale
Crossing = tuple[int, ...]  # numbers of the features that are multiplied, context first
_MOST_COLUMNS = 10**6  # more than any regression could take, and few enough to be listed
_ALL_UNIONS = 4  # sets of features up to which all unions are models
_ENOUGH = 10  # contexts in an example that tell how large features are
_MOST_CROSSINGS = 16  # of which all sets are looked at


class ContextMaps(EvaluatedMaps):
    """Maps side by side, each a callable (context, candidates) -> (n, d_j) or a fitted scikit-learn transformer.

    A transformer sees the candidates alone: one row each, texts and numbers as one column. `example` is a round
    (context, candidates) or a list of such rounds: it tells how many features the maps return.

    >>> maps = ContextMaps({"product": lambda c, x: c * np.asarray(x)[:, None]}, example=(2.0, [1.0]))
    >>> maps.offered(3.0, [1.0, 2.0]).tolist()
    [[3.0], [6.0]]
    """

    _missing = "pass example=(context, candidates) to from_maps"

    needs_context = False  # callables get what there is, be it None

    def __init__(self, maps: Mapping[str, ContextualMap], example: object = None) -> None:
        super().__init__(maps)
        self.example_rows: FloatArray | None = None
        if example is not None:
            self.example_rows = np.vstack([self.offered(*one) for one in _rounds(example)])

    @property
    def awaits_round(self) -> bool:
        """Whether the maps have not been evaluated yet, so that their sizes are unknown."""
        return self._sizes is None

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """Features of the n candidates of a round, shape (n, P)."""
        return self._evaluated(len(candidates), lambda: _as_rows(candidates), context, candidates)

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of an action alone."""
        raise TypeError("these maps are contextual: features are those of a round, offered(context, candidates)")


def _rounds(example: Given) -> Sequence[tuple[object, Action]]:
    rounds = example if isinstance(example, list) else [example]
    if not rounds or not all(isinstance(one, tuple) and len(one) == 2 for one in rounds):
        raise TypeError(f"example must be a pair (context, candidates) or a list of such pairs, got {example!r:.80}")
    return rounds


def _as_rows(candidates: Action) -> Given:
    """Candidates as a table, as transformers take them."""
    if hasattr(candidates, "iloc"):
        return candidates
    if len(candidates) and isinstance(candidates[0], Mapping):
        require("pandas")
        import pandas as pd

        return pd.DataFrame(list(candidates))
    array = np.asarray(candidates, dtype=object if isinstance(candidates[0], str) else None)
    return array[:, None] if array.ndim == 1 else array


class Blocks:
    """Named blocks of columns side by side; a round brings the features of its candidates.

    Parameters
    ----------
    sizes : number of columns of each block, by its name.
    example : features of typical candidates, as `rows` takes them. Prior scales and the fingerprint of a run come from
        them, where there are any.

    >>> blocks = Blocks({"user": 2, "item": 1})
    >>> blocks.rows({"user": [[1.0, 2.0]], "item": [[3.0]]}).tolist(), blocks.names
    ([[1.0, 2.0, 3.0]], ['user[0]', 'user[1]', 'item[0]'])
    """

    def __init__(self, sizes: Mapping[str, int], example: object = None) -> None:
        if not isinstance(sizes, Mapping) or not sizes:
            raise ValueError(f"blocks must be a non-empty dict of name -> number of columns, got {sizes!r}")
        distinct([str(name) for name in sizes], len(sizes))
        self.blocks = {str(name): count(f"size of block {name!r}", size) for name, size in sizes.items()}
        self.sizes = list(self.blocks.values())
        self.n_columns = sum(self.sizes)
        if self.n_columns > _MOST_COLUMNS:
            raise ValueError(f"blocks must have at most {_MOST_COLUMNS} columns together, got {self.n_columns}")
        self.example_rows = None if example is None else self.rows(example, "example")

    @classmethod
    def from_lists(cls, blocks: Sequence[str], sizes: Sequence[int], example: FloatArray | None) -> Blocks:
        """What `to_dict` has stored: JSON objects need not keep their order."""
        return cls(dict(zip(blocks, map(int, sizes), strict=True)), example)

    @property
    def names(self) -> list[str]:
        """block[column]."""
        return [f"{name}[{i}]" for name, size in self.blocks.items() for i in range(size)]

    def rows(self, features: object, name: str = "features") -> FloatArray:
        """Features of n candidates, (n, P) or a dict of blocks (n, size), as one table (n, P)."""
        if isinstance(features, Mapping):
            features = np.hstack(self._parts(features, name))
        table = matrix(name, features)
        if table.shape[1] != self.n_columns or table.shape[0] == 0:
            sizes = ", ".join(f"{key}: {size}" for key, size in self.blocks.items())
            raise ValueError(
                f"{name} must have one row per candidate, at least one, and {self.n_columns} columns ({sizes}), got "
                f"shape {table.shape}; or be a dict of these blocks"
            )
        return table

    def _parts(self, features: Mapping[str, object], name: str) -> list[FloatArray]:
        if set(features) != set(self.blocks):
            raise ValueError(f"{name} must have the blocks {list(self.blocks)}, got {list(features)}")
        parts = [matrix(f"{name}[{key!r}]", features[key]) for key in self.blocks]
        for part, (key, size) in zip(parts, self.blocks.items(), strict=True):
            if part.shape != (parts[0].shape[0], size):
                raise ValueError(f"{name}[{key!r}] must have shape ({parts[0].shape[0]}, {size}), got {part.shape}")
        return parts

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """There is no map from a context: features are passed as `features=`."""
        raise TypeError("these models are declared by blocks: pass features=, not context= or candidates=")

    def __call__(self, x: Action) -> FloatArray:
        """There is no map from an action either."""
        raise TypeError("these models are declared by blocks: features are passed to ask(features=...)")

    def to_dict(self) -> dict[str, Any]:
        return {"family": "blocks", "blocks": list(self.blocks), "sizes": self.sizes, "example": self.example_rows}


# -- sets of features of a context -------------------------------------------------------------------------------


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
    unions : whether unions of these sets are sets as well: all of them for up to four sets, else of each two and all.

    Entries and keys that several sets name are there once.

    >>> features = ContextFeatures({"clinical": [0, 1], "all": [0, 1, 2]})
    >>> features([3.0, 4.0, 5.0]).tolist(), [group.tolist() for group in features.groups]
    ([3.0, 4.0, 5.0], [[0, 1], [0, 1, 2]])
    """

    def __init__(self, sets: Mapping[str, FeatureSet], example: object = None, unions: bool = False) -> None:
        if not isinstance(sets, Mapping) or not sets:
            raise ValueError(f"feature sets must be a non-empty dict of name -> features, got {sets!r}")
        own, n = distinct([str(name) for name in sets], len(sets)), len(sets)
        sizes = (range(1, n + 1) if n <= _ALL_UNIONS else (1, 2, n)) if unions else (1,)
        self._unions = [union for size in sizes for union in combinations(range(n), size)]
        self.names_of_sets = distinct(["+".join(own[k] for k in union) for union in self._unions], len(self._unions))
        self._sets = {str(name): _checked_set(str(name), one) for name, one in sets.items()}
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
        """Sets of unknown size: code that has not been evaluated yet."""
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
        """The features of every set, unions included, among all p."""
        own = self._own_groups
        return [
            own[union[0]] if len(union) == 1 else np.unique(np.hstack([own[k] for k in union]))
            for union in self._unions
        ]

    @property
    def _own_groups(self) -> list[IntArray]:
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
        return np.array([_number_of(key, context[key]) for key in self._keys])

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
            result = source.transform(_one_row(context)) if hasattr(source, "transform") else source(context)
            result = result.toarray() if hasattr(result, "toarray") else result
            values = _vector(f"the result of {name!r} for the context", result, "a vector of numbers")
        known = self._sizes.setdefault(name, values.size)
        if values.size != known or known == 0:
            raise ValueError(
                f"{name!r} must have {known or 'some'} features, as many for every context, got {values.size}"
            )
        return values

    def to_dict(self) -> dict[str, Any] | None:
        """What `from_lists` makes the same sets of; None if there is code among them."""
        if any(not isinstance(one, tuple | int) for one in self._sets.values()):
            return None
        own = [list(one) if isinstance(one, tuple) else one for one in self._sets.values()]
        return {"names": list(self._sets), "sets": own} | ({"unions": True} if self._has_unions else {})

    @property
    def _has_unions(self) -> bool:
        return len(self._unions) > len(self._sets)

    @classmethod
    def from_lists(
        cls, names: Sequence[str], sets: Sequence[FeatureSet], example: object = None, unions: bool = False
    ) -> ContextFeatures:
        """The sets that `to_dict` has stored; JSON objects need not keep their order."""
        return cls(dict(zip(names, sets, strict=True)), example, unions)

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


def _checked_set(name: str, one: Given) -> Given:
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


def _number_of(key: str, value: Given) -> float:
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
        require("pandas")
        import pandas as pd

        return pd.DataFrame([dict(context)])
    array = np.asarray(context)
    return array.reshape(1, -1) if array.ndim < 2 else array


# -- columns for every arm ---------------------------------------------------------------------------------------


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
    correlation : of the coefficients of one feature in two arms, a priori. With C = (1 - correlation) I + correlation
        11' = L L' (Cholesky), arm a has L_ab f(context) in block b <= a: independent coefficients z_b of the blocks
        then give coefficients theta_a = sum_b L_ab z_b of covariance C. Constants stay in the blocks of their arms.

    Attributes
    ----------
    arm_blocks : (K, p) if arms have nothing in common: then they do not learn from each other.
    free_columns : columns that are practically unpenalised: their values are multiplied by 100.
    """

    def __init__(
        self,
        features: ContextFeatures,
        arms: int | Sequence[str],
        intercept: bool,
        shared: ContextFeatures | None = None,
        common: CommonMap | None = None,
        correlation: float = 0.0,
    ) -> None:
        self.features, self.shared, self.common = features, shared, common
        self._arms = None if isinstance(arms, int) else list(arms)
        self.n_arms = count("arms", arms if isinstance(arms, int) else len(arms))
        self.lead = int(intercept)
        self.correlation = correlation if correlation == 0.0 else fraction("correlation", correlation)
        between = (1.0 - self.correlation) * np.eye(self.n_arms) + self.correlation
        self._root: FloatArray = np.asarray(np.linalg.cholesky(between), dtype=np.float64)
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
        return None if self._is_joint else (self.n_arms, self._size)

    @property
    def _is_joint(self) -> bool:
        return self._first > 0 or self.correlation > 0.0

    @property
    def joined_sets(self) -> IntArray | None:
        """Numbers of the sets of columns that always occur together, (P,); -1 for constants and shared columns.

        None where every model is one such set.
        """
        size, groups = self.features.size, self.features.groups
        member = np.zeros((size, len(groups)), dtype=bool)
        for j, group in enumerate(groups):
            member[group, j] = True
        _, numbers = np.unique(member, axis=0, return_inverse=True)
        if not self._n_common and all(np.ptp(numbers[group]) == 0 for group in groups):
            return None
        block = np.append(np.full(self.lead, -1), numbers)
        before = np.full(self._first, -1)
        before[: self._n_common] = numbers.max() + 1
        return np.concatenate([before, np.tile(block, self.n_arms)])

    @property
    def free_columns(self) -> IntArray:
        """The shared columns, and the constants of arms that have something in common."""
        shared = np.arange(self._n_common, self._first)
        constants = self._first + self._size * np.arange(self.n_arms)
        return np.concatenate([shared, constants]) if self.lead and self._is_joint else shared

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
        arms = np.arange(self.n_arms)
        blocks[arms, arms, : self.lead] = FREE if self._is_joint else 1.0
        if self.correlation:
            blocks[:, :, self.lead :] = self._root[:, :, None] * features
        else:
            blocks[arms, arms, self.lead :] = features
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
        return None if len(self.features.examples) < _ENOUGH else self.identifying_rows

    @property
    def identifying_rows(self) -> FloatArray:
        """Rows of the example's contexts, however few they are, (E, P); they identify code."""
        contexts = enumerate(self.features.examples)
        rows = [self.offered(one, self._arms)[k % self.n_arms] for k, one in contexts]
        return np.array(rows).reshape(len(rows), self.n_columns)

    def with_arms(self, arms: int | Sequence[str]) -> PerArm:
        """The same for other arms; those there were keep their places."""
        return PerArm(self.features, arms, bool(self.lead), self.shared, self.common, self.correlation)

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of an arm alone."""
        raise TypeError("features of arms are those of a round: pass context=")

    def to_dict(self) -> dict[str, Any] | None:
        """JSON-safe description; None if there is code among the features."""
        features = self.features.to_dict()
        shared = None if self.shared is None else self.shared.to_dict()
        if features is None or self.common is not None or (shared is None and self.shared is not None):
            return None
        used = [one for one in (self.features, self.shared) if one is not None]
        vectors, keys = zip(*(one.needs for one in used), strict=True)
        if self.features.examples and any(vectors) and any(keys):  # contexts that are both, rows of tables
            return None
        example = packed_examples(used) if self.features.examples else None
        own: dict[str, Any] = {"features": features, "arms": self._arms or self.n_arms, "intercept": bool(self.lead)}
        own |= {"correlation": self.correlation} if self.correlation else {}
        return {"family": "per-arm", **own, "shared": shared, "example": example}

    @classmethod
    def from_lists(
        cls,
        features: dict[str, Any],
        arms: int | Sequence[str],
        intercept: bool,
        shared: dict[str, Any] | None,
        example: Given = None,
        correlation: float = 0.0,
    ) -> PerArm:
        """What `to_dict` has stored."""
        known = None if example is None else unpacked_examples(example)
        own = ContextFeatures.from_lists(**features, example=known)
        extra = None if shared is None else ContextFeatures.from_lists(**shared, example=known)
        return cls(own, arms, intercept, extra, correlation=correlation)


def shared_features(shared: FeatureSet | None, example: object) -> ContextFeatures | None:
    """The set of shared features, if there is one."""
    out = None if shared is None else ContextFeatures({"shared": shared}, example)
    if out is not None and out.unknown:
        raise ValueError("how many shared features there are is not known before they are evaluated: pass example=")
    return out


# -- products of features ----------------------------------------------------------------------------------------


class Crossings:
    """Columns: the context's features, the action's features, and products of 2 to `order` different features.

    Every product has a feature of the action among its factors: others are the same for all candidates of a round.

    Parameters
    ----------
    context, action : names of the features. The context is a mapping or a vector of its features, in this order; the
        candidates are a table of theirs: an array (n, A), a list of mappings, or a DataFrame.
    order : most factors of a product.
    units : by name of a feature, its scale or (centre, scale); features are (value - centre) / scale. Products of
        features far from zero can hardly be distinguished from the features themselves.

    The context's own features are practically unpenalised, see `free_columns`: they explain the level of a round.

    >>> Crossings(["age", "bmi"], ["dose"]).names
    ['age', 'bmi', 'dose', 'age*dose', 'bmi*dose']
    """

    def __init__(
        self,
        context: Sequence[str],
        action: Sequence[str],
        order: int = 2,
        units: Mapping[str, Unit] | None = None,
    ) -> None:
        self.context, self.action = _names("context", context), _names("action", action)
        if not self.action:
            raise ValueError("action must name at least one feature: without, all candidates are the same")
        distinct([*self.context, *self.action], len(self.context) + len(self.action))
        self.needs_context = bool(self.context)
        self.order = count("order", order)
        self._features = [*self.context, *self.action]
        first, every = len(self.context), range(len(self._features))
        self.crossings: list[Crossing] = [
            group for size in range(2, self.order + 1) for group in combinations(every, size) if group[-1] >= first
        ]
        self._known = set(self.crossings)
        self.names = self._features + [self.name_of(crossing) for crossing in self.crossings]
        self.n_columns = len(self.names)
        self.free_columns: IntArray = np.arange(first)
        self._by_name = ContextFeatures({"context": self.context or [0]})
        self._by_place = ContextFeatures({"context": range(max(first, 1))})
        self.units = dict(units or {})
        unknown = set(self.units) - set(self._features)
        if unknown:
            raise ValueError(f"units must be of features {self._features}, got {sorted(unknown)}")
        both = [_unit(name, self.units.get(name, 1.0)) for name in self._features]
        self._centres, self._scales = np.array(both).T

    def name_of(self, crossing: Crossing) -> str:
        """Factors joined by *."""
        return "*".join(self._features[k] for k in crossing)

    def offered(self, context: Given, candidates: Action) -> FloatArray:
        """Features of the n candidates of a round, shape (n, P)."""
        actions, c = self._actions(candidates), len(self.context)
        plain = np.empty((len(actions), len(self._features)))
        plain[:, :c], plain[:, c:] = self._context(context), actions
        plain = (plain - self._centres) / self._scales
        products = [np.prod(plain[:, list(crossing)], axis=1)[:, None] for crossing in self.crossings]
        out = np.hstack([FREE * plain[:, :c], plain[:, c:], *products])
        if not np.all(np.abs(out) <= LARGEST):
            row, column = np.argwhere(~(np.abs(out) <= LARGEST))[0]
            raise ValueError(f"{self.names[column]} of candidate {row} is {out[row, column]}; features must be finite")
        return out

    def _context(self, context: Given) -> FloatArray:
        if not self.context:
            return np.empty(0)
        if isinstance(context, Mapping) or hasattr(context, "keys"):
            return self._by_name(context)
        vector = self._by_place(context)
        if np.size(context) != vector.size:
            raise ValueError(f"context must have {vector.size} entries, {self.context}, got {np.size(context)}")
        return vector

    def _actions(self, candidates: Given) -> FloatArray:
        if hasattr(candidates, "columns") and hasattr(candidates, "iloc"):
            missing = [name for name in self.action if name not in candidates.columns]
            if missing:
                meant = misspelt(missing[0], candidates.columns)
                raise ValueError(f"candidates must have the columns {self.action}; {missing[0]!r} is missing{meant}")
            return np.asarray(candidates[self.action], dtype=np.float64)
        if len(candidates) and isinstance(candidates[0], Mapping):
            lacking = [(name, one) for one in candidates for name in self.action if name not in one]
            if lacking:
                name, one = lacking[0]
                said = f"every candidate must have the features {self.action}; {name!r} is missing"
                raise ValueError(said + misspelt(name, one))
            return np.array([[float(one[name]) for name in self.action] for one in candidates])
        try:
            table = np.asarray(candidates, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"candidates must be rows of the features {self.action}: {error}") from error
        table = table[:, None] if table.ndim == 1 and len(self.action) == 1 else table
        if table.ndim != 2 or table.shape[1] != len(self.action):
            raise ValueError(f"candidates must have shape (n, {len(self.action)}), {self.action}, got {table.shape}")
        return table

    def models(self, max_models: int) -> tuple[list[IntArray], list[str], FloatArray]:
        """Groups of columns, names and log prior weights of M models: all sets of crossings, or a smaller family."""
        base, first = np.arange(len(self._features)), len(self._features)
        places = {crossing: first + k for k, crossing in enumerate(self.crossings)}
        sets = self._sets(max_models)
        names = ["+".join(self.name_of(one) for one in chosen) or "no crossing" for chosen in sets]
        if len(sets) > 1 and len(self.crossings) > 2 and len(sets[-1]) == len(self.crossings):
            names[-1] = "all crossings"
        groups = [np.append(base, [places[one] for one in chosen]).astype(np.int64) for chosen in sets]
        sizes = np.array([len(chosen) for chosen in sets])
        counts = np.bincount(sizes)
        return groups, names, -np.log(counts[sizes])

    def _sets(self, most: int) -> list[tuple[Crossing, ...]]:
        """Sets of crossings, smallest first: all of them or, where these are too many, a family."""
        every = chain.from_iterable(combinations(self.crossings, size) for size in range(len(self.crossings) + 1))
        few = len(self.crossings) <= _MOST_CROSSINGS
        found = list(islice(filter(self._complete, every), most + 1)) if few else []
        if not 0 < len(found) <= most:
            found = self._family(most)
        return sorted(found, key=lambda chosen: (len(chosen), chosen))

    def _complete(self, chosen: tuple[Crossing, ...]) -> bool:
        """Whether with every product there are those of its factors that have one factor less."""
        have = set(chosen)
        return all(
            part in have
            for one in chosen
            if len(one) > 2
            for part in combinations(one, len(one) - 1)
            if part in self._known
        )

    def _closed(self, chosen: set[Crossing]) -> tuple[Crossing, ...]:
        """The smallest complete set that has all of these."""
        parts = {part for one in chosen for size in range(2, len(one) + 1) for part in combinations(one, size)}
        return tuple(one for one in self.crossings if one in parts)

    def _family(self, most: int) -> list[tuple[Crossing, ...]]:
        """No crossing, all of them, one at a time, all of one feature, all of one kind, two at a time: what fits."""
        c, all_of = len(self.context), self.crossings
        by_order = [[one for one in all_of if len(one) <= size] for size in range(2, self.order + 1)]
        mixed: list[Crossing] = [one for one in all_of if len(one) == 2 and one[0] < c]
        by_feature: list[list[Crossing]] = [
            [one for one in all_of if len(one) == 2 and k in one] for k in range(len(self._features))
        ]
        singles = [[one] for one in all_of]
        pairs: Iterator[list[Crossing]] = ([one, other] for one, other in combinations(all_of, 2))
        found: dict[tuple[Crossing, ...], None] = {}
        families: list[Iterable[list[Crossing]]] = [[[], all_of], by_order, [mixed], by_feature, singles, pairs]
        for chosen in chain.from_iterable(families):
            found.setdefault(self._closed(set(chosen)))
            if len(found) >= most:
                break
        return list(found)

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of an action alone."""
        raise TypeError("crossed features are those of a round: pass context= and candidates=")

    def to_dict(self) -> dict[str, Any]:
        units = [[name, *_unit(name, unit)] for name, unit in self.units.items()]
        features = {"context": self.context, "action": self.action}
        return {"family": "crossed", **features, "order": self.order, "units": units}

    @classmethod
    def from_lists(cls, context: list[str], action: list[str], order: int, units: Sequence[Given]) -> Crossings:
        """What `to_dict` has stored."""
        return cls(context, action, order, {name: (centre, scale) for name, centre, scale in units})


def _names(what: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"{what} must be a list of names of features, got {names!r:.80}")
    return list(names)


def _unit(name: str, unit: Unit) -> tuple[float, float]:
    centre, scale = unit if isinstance(unit, tuple | list) else (0.0, unit)
    return finite(f"centre of {name!r}", centre), positive(f"scale of {name!r}", scale)
