"""Feature matrices on a device: kept there if they fit, sent a few rows at a time if they do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import AnyArray, BoolArray, FloatArray, IntArray
from alexp.common.devices.places import STREAMED, Place, is_foreign, place_named, place_of
from alexp.common.validation import matrix
from alexp.problem.rows import RemoteRows

_ROWS = 1 << 20  # of a table that are multiplied at a time
_DOUBLE = 1 << 25  # numbers that are in double precision at a time
_KEPT = ("float16", "float32", "float64")
_LARGEST = {"float32": 1e15, "float64": 1e100}  # products and sums of these do not overflow


class DeviceRows(RemoteRows):
    """N rows of d columns in the domain's order, in the precision they were handed in.

    Stands where NumPy's (N, d) stands: rows that are asked for by index come as NumPy's array, from `source` if
    there is one.

    Attributes
    ----------
    place : where the rows are.
    array : (N, d) there; None where they do not fit and are sent from `source` whenever they are needed.
    source : NumPy's array that was handed in; None where rows were on the device before.
    """

    ndim = 2

    def __init__(self, place: Place, array: AnyArray | None, source: AnyArray | None) -> None:
        known = source if array is None else array
        assert known is not None
        self.place, self.array, self.source = place, array, source
        self.shape = (int(known.shape[0]), int(known.shape[1]))
        self.dtype = known.dtype if array is None else place.precision(array)

    def __getitem__(self, key: slice | IntArray | tuple[slice, slice]) -> AnyArray | DeviceRows:
        if isinstance(key, tuple):
            arrays = (None if own is None else own[key] for own in (self.array, self.source))
            return DeviceRows(self.place, *arrays)
        if self.source is not None:
            return np.asarray(self.source[key])
        assert self.array is not None
        if isinstance(key, slice):
            return self.place.host(self.array[key, :])
        return self.place.host(self.place.xp.take(self.array, self.place.array(key), axis=0))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> AnyArray:
        rows = cast(AnyArray, self[:])
        return rows if dtype is None else rows.astype(cast(type, dtype))

    def pieces(self, rows: int = _ROWS) -> Iterator[tuple[slice, AnyArray]]:
        """Consecutive rows on the device, some at a time."""
        n, d = self.shape
        if self.array is None:
            assert self.source is not None
            yield from self.place.stream(self.source, min(rows, max(1, STREAMED // max(d * self.dtype.itemsize, 1))))
            return
        for low in range(0, n, rows):
            part = slice(low, min(low + rows, n))
            yield part, self.array[part, :]

    def doubles(self, width: int = 1) -> Iterator[tuple[slice, AnyArray]]:
        """Consecutive rows on the device in double precision, fewer at a time; `width` numbers come of each."""
        for part, rows in self.pieces(min(self._few, max(1, _DOUBLE // width))):
            yield part, self.place.double(rows)

    @property
    def _few(self) -> int:
        """Rows of which a copy in double precision does not matter."""
        return max(1, _DOUBLE // max(self.shape[1], 1))

    # -- what is asked about whole tables ----------------------------------------------------------------------

    def squared_norms(self) -> AnyArray:
        """||phi(x)||^2 of all candidates, (N,), on the device."""
        out = self.place.full((self.shape[0],), 0.0)
        for part, rows in self.doubles():
            out[part] = self.place.xp.sum(rows * rows, axis=1)
        return out

    def column_means(self) -> FloatArray:
        """Mean of every column, (d,)."""
        return np.asarray(self.place.host(self._means()))

    def _means(self) -> AnyArray:
        mean = self.place.full((self.shape[1],), 0.0)
        for _, rows in self.doubles():
            mean = mean + self.place.xp.sum(rows, axis=0) / self.shape[0]
        return mean

    def column_squares(self, centred: bool) -> FloatArray:
        """Mean square of every column, or its variance, (d,)."""
        xp, n = self.place.xp, self.shape[0]
        out = self.place.full((self.shape[1],), 0.0)
        mean = self._means() if centred else out
        for _, rows in self.doubles():
            out = out + xp.sum((rows - mean) ** 2, axis=0) / n
        return np.asarray(self.place.host(out))

    def nonzero_columns(self) -> BoolArray:
        """Which columns hold anything but zeros, (d,)."""
        out = np.zeros(self.shape[1], dtype=bool)
        for _, rows in self.pieces(self._few):
            out |= self.place.host(self.place.xp.any(rows != 0, axis=0))
            if out.all():
                break
        return out

    def check_finite(self, name: str) -> None:
        """Raise unless all entries are numbers, and so small that products with them are."""
        largest = _LARGEST.get(self.dtype.name, np.inf)
        for part, rows in self.pieces(self._few):
            finite = self.place.xp.isfinite(rows)
            if not bool(self.place.xp.all(finite)):
                row, column = np.argwhere(~self.place.host(finite))[0]
                value = float(rows[int(row), int(column)])
                where = f"row {part.start + row}, column {column}"
                raise ValueError(f"{name} has {value} at {where}; features must be finite")
            if rows.shape[0] * rows.shape[1] and float(self.place.xp.max(self.place.xp.abs(rows))) > largest:
                raise ValueError(f"{name} in {self.dtype.name} must not exceed {largest:g} in size; use other units")


def place_for(given: Mapping[str, object], device: str | Place | None) -> Place | None:
    """Where matrices are to be: the `device` named, or the one that all of them live on; None for the CPU."""
    if device is not None:
        return place_named(device, given.values())
    places = [place_of(value) for value in given.values()]
    there = [place for place in places if place is not None]
    if not there:
        return None
    if len(there) < len(places) or len({(type(place), str(place.device)) for place in there}) > 1:
        raise ValueError(
            "some matrices live on a device and others do not, or on another one; pass device= to move them all"
        )
    return there[0]


def device_rows(name: str, value: ArrayLike | object, place: Place, n_rows: int | None) -> DeviceRows:
    """A matrix where it is to be, or an error that says what is wrong with it."""
    if hasattr(value, "tocsr") or "sparse" in str(getattr(value, "layout", "")):  # of PyTorch, the latter
        raise ValueError(f"{name} is sparse, and tables on a device are dense; pass it dense, or as CSR without device")
    if not is_foreign(value):
        value = _host_rows(name, value, n_rows)
    given = cast(AnyArray, value)
    shape = tuple(int(n) for n in given.shape)
    if len(shape) != 2 or (n_rows is not None and shape[0] != n_rows):
        wanted = "(n, d)" if n_rows is None else f"({n_rows}, d), one row per point"
        raise ValueError(f"{name} must have shape {wanted}, got {shape}")
    if isinstance(value, np.ndarray) and not place.fits(value.nbytes):
        rows = DeviceRows(place, None, value)
    else:
        array = place.array(given)
        try:
            place.precision(array)
        except TypeError as error:
            raise TypeError(f"{name} {error}") from None
        rows = DeviceRows(place, array, value if isinstance(value, np.ndarray) else None)
    rows.check_finite(name)
    return rows


def _host_rows(name: str, value: object, n_rows: int | None) -> AnyArray:
    """What is no device's array as NumPy's: as it is where it holds real numbers, in double precision otherwise."""
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.name in _KEPT:
        return value
    return matrix(name, value, n_rows)
