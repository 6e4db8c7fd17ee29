"""Numbers for every candidate, on a device: what NumPy's functions are asked to do with them happens there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.devices.places import Place

# Where the array API has another name than NumPy's ufunc.
_NAMES = {
    "arcsinh": "asinh", "power": "pow", "absolute": "abs", "arctan": "atan", "true_divide": "divide",
    "conjugate": "conj",
}  # fmt: skip
_REDUCED = {"argmax", "argmin", "max", "min", "amax", "amin", "sum", "mean"}


class DeviceArray(NDArrayOperatorsMixin):
    """n numbers on a device, for those who compute with NumPy's functions.

    Operators and ufuncs give another such array, `argmax`, `max` and their like a number; `where` and `clip` are known,
    too. Whatever else NumPy is asked for happens on the CPU, with a copy: right, and slow. Python's numbers and NumPy's
    arrays may stand beside it.
    """

    def __init__(self, array: AnyArray, place: Place) -> None:
        self.array, self.place = array, place

    @property
    def shape(self) -> tuple[int, ...]:
        """As of any array."""
        return tuple(int(n) for n in self.array.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> AnyArray:
        values = self.place.host(self.array)
        return values if dtype is None else values.astype(cast(type, dtype))

    def __float__(self) -> float:
        return float(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)

    def __getitem__(self, key: object) -> DeviceArray | float:
        if isinstance(key, int | np.integer):
            return float(self.array[int(key)])
        if isinstance(key, tuple) and len(key) == 2 and key[0] is Ellipsis:
            key = key[1]
        if isinstance(key, np.ndarray) and key.dtype.kind == "i":
            return taken(self.array, key, self.place)
        return DeviceArray(self.place.array(np.asarray(self)[cast(IntArray, key)]), self.place)

    def __setitem__(self, key: int, value: float) -> None:
        self.array[int(key)] = value

    def max(self) -> float:
        """The largest of them."""
        return float(self.place.xp.max(self.array))

    def min(self) -> float:
        """The smallest of them."""
        return float(self.place.xp.min(self.array))

    def astype(self, dtype: type) -> DeviceArray:
        """The same numbers as others; what lies behind the point is cut off."""
        xp = self.place.xp
        return DeviceArray(xp.astype(self.array, getattr(xp, np.dtype(dtype).name)), self.place)

    # -- what NumPy asks ---------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        function = getattr(self.place.xp, _NAMES.get(ufunc.__name__, ufunc.__name__), None)
        if method != "__call__" or options or function is None:
            return NotImplemented
        values = [self._beside(value) for value in inputs]
        kinds = ["float" in str(value.dtype) for value in values]
        if any(kinds) and not all(kinds):  # the array API mixes no whole numbers with others
            values = [self.place.double(value) for value in values]
        return DeviceArray(function(*values), self.place)

    def __array_function__(
        self, function: Callable[..., object], types: object, inputs: Sequence[object], options: Mapping[str, object]
    ) -> object:
        name, xp = function.__name__, self.place.xp
        if name in _REDUCED and len(inputs) == 1 and not options:
            found = getattr(xp, name.removeprefix("a") if name in ("amax", "amin") else name)(self.array)
            return int(found) if name.startswith("arg") else float(found)
        if name in ("where", "clip") and not options:
            values = [self._beside(value) for value in inputs]
            if name == "where":
                return DeviceArray(xp.where(*values), self.place)
            return DeviceArray(xp.minimum(xp.maximum(values[0], values[1]), values[2]), self.place)
        plain = (np.asarray(value) if isinstance(value, DeviceArray) else value for value in inputs)
        return function(*plain, **options)

    def _beside(self, value: object) -> AnyArray:
        """Something that stands beside an array, on its device."""
        if isinstance(value, DeviceArray):
            return value.array
        if isinstance(value, Number | np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            kind = self.place.xp.int64 if whole and "int" in str(self.array.dtype) else self.place.xp.float64
            out: AnyArray = self.place.xp.full((), value, dtype=kind, device=self.place.device)  # a launch, not a copy
            return out
        return self.place.array(cast(FloatArray, value))


def taken(values: AnyArray, indices: IntArray, place: Place) -> DeviceArray:
    """Some entries along the last axis."""
    return DeviceArray(place.xp.take(values, place.indices(indices), axis=values.ndim - 1), place)


def entries(table: FloatArray, indices: IntArray) -> FloatArray:
    """Entries of a table (k,) by indices of any shape, where these are: NumPy does not ask them."""
    if isinstance(indices, DeviceArray):
        place = indices.place
        return cast(FloatArray, DeviceArray(place.xp.take(place.array(table), indices.array, axis=0), place))
    return np.asarray(table[indices])
