"""Problems as plain data, for the command line and the service: kernels by name, tables as CSV text or columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import did_you_mean, matrix
from alexp.problem.kernel_models import AUTO, LINEAR, Choice, KernelChoice
from alexp.problem.kernels import RBF, Kernel, Linear, Matern, Stationary, Tanimoto, kernel_classes
from alexp.study.tables import candidates_of, check_reserved, features_of, lines_of

if TYPE_CHECKING:
    import pandas as pd


_KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "standardized": Linear(standardize=True),
    "tanimoto": Tanimoto(),
    "matern": Matern(),
    "matern12": Matern(0.5),
    "matern32": Matern(1.5),
    "matern52": Matern(2.5),
    "rbf": RBF(),
}


def kernels_from_words(words: Sequence[str]) -> KernelChoice:
    """The value of `--kernels`: "linear", "auto", or NAME=KERNEL+KERNEL for every map, a kernel with ":LENGTHSCALE".

    A kernel of your own is MODULE.CLASS, with its default parameters; the module must be imported already.

    >>> str(kernels_from_words(["bits=tanimoto", "descriptors=linear+matern:0.5"])["descriptors"][1])
    'Matern 5/2, 0.5'
    """
    if len(words) == 1 and "=" not in words[0]:
        return _choice(words[0])
    named: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name in named:
            raise ValueError(f"kernels must be given as NAME=KERNEL, once for every map, got {word!r}")
        named[name] = text
    return kernels_by_name(named)


def kernels_by_name(words: Mapping[str, str]) -> KernelChoice:
    """Kernels from {name of a map: "auto", "linear" or KERNEL+KERNEL}."""
    return {name: _choice(text) for name, text in words.items()}


def _choice(text: str) -> Choice:
    if text == AUTO:
        return AUTO
    return LINEAR if text == LINEAR else [_kernel(part.strip()) for part in text.split("+")]


def _kernel(text: str) -> Kernel:
    word, colon, scale = text.partition(":")
    own = kernel_classes().get(word) if "." in word else None  # MODULE.CLASS of the user
    if own is None and word.lower() not in _KERNELS:
        raise ValueError(f"unknown kernel {text!r}; known are {', '.join(_KERNELS)}, and auto for a whole map")
    kernel = _KERNELS[word.lower()] if own is None else _with_defaults(own)
    if not colon:
        return kernel
    try:
        number = float(scale)
    except ValueError:
        raise ValueError(f"the lengthscale in {text!r} must be a number") from None
    if isinstance(kernel, Stationary):
        return kernel.replaced(lengthscale=number)
    raise ValueError(f"{word} has no lengthscale, got {text!r}")


def _with_defaults(kind: type[Kernel]) -> Kernel:
    try:
        return kind()
    except TypeError as error:
        raise ValueError(f"kernel {kind.__name__} has no default parameters, pass it in Python: {error}") from None


Cell = str | int | float
# Features of the candidates under one model: CSV text, one row of numbers per candidate, or names of table columns.
Features = str | Sequence[str] | Sequence[Sequence[float]]

_MOST_VALUES = 200  # of a column of texts, each of which becomes a column of zeros and ones


def declared_table(csv: str | None, columns: Mapping[str, Sequence[Cell]] | None) -> pd.DataFrame:
    """Candidates, one per row, from CSV text or column by column."""
    import pandas as pd

    if (csv is None) == (columns is None):
        raise ValueError("csv or columns must be given, and not both")
    if csv is not None:
        table = candidates_of(lines_of(csv, "csv"))
    else:
        assert columns is not None
        lengths = {len(values) for values in columns.values()}
        if len(lengths) != 1 or lengths == {0} or "" in columns:
            raise ValueError("columns must be named lists of the same length, with one entry per candidate")
        table = pd.DataFrame({name: _of_one_kind(values) for name, values in columns.items()})
    check_reserved(table, "csv" if columns is None else "columns")
    return table


def _of_one_kind(values: Sequence[Cell]) -> list[Cell]:
    """Numbers if all are numbers, else texts."""
    plain = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if plain and all(abs(value) < 2**63 for value in values if isinstance(value, int)):
        return list(values)
    return [str(value) for value in values]


def declared_features(name: str, features: Features, table: pd.DataFrame) -> FloatArray:
    """Features of all candidates under one model, shape (N, d)."""
    if isinstance(features, str):
        return features_of(lines_of(features, f"models.{name}"), table)
    names = [one for one in features if isinstance(one, str)]
    if not names:
        return matrix(f"models.{name}", _rectangular(name, features), len(table))
    if len(names) != len(features):
        raise ValueError(f"models.{name} must be rows of numbers, or names of columns, not both")
    blocks = [_column(name, one, table) for one in dict.fromkeys(names)]
    return matrix(f"models.{name}", np.hstack(blocks), len(table))


def _rectangular(name: str, rows: Sequence[object]) -> Sequence[object]:
    sizes = {len(row) for row in rows if isinstance(row, Sequence)}
    if len(sizes) != 1 or sizes == {0}:
        raise ValueError(f"models.{name} must have one row of numbers per candidate, all of the same length")
    return rows


def _column(model: str, name: str, table: pd.DataFrame) -> FloatArray:
    """A column of numbers unchanged; a column of text one-hot encoded."""
    if name not in table.columns:
        meant = did_you_mean(name, table.columns)
        there = ", ".join(map(repr, table.columns))
        raise ValueError(f"models.{model} names the unknown column {name!r}; known are {there}{meant}")
    values = table[name].to_numpy()
    if values.dtype.kind in "if":
        return np.asarray(values, dtype=np.float64)[:, None]
    distinct, place = np.unique(values.astype(str), return_inverse=True)
    if distinct.size > _MOST_VALUES:
        raise ValueError(f"models.{model}: column {name!r} has {distinct.size} different texts; features are numbers")
    return np.asarray(np.eye(distinct.size)[place])
