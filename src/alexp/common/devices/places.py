"""Arrays of other libraries, and where they are: the array API with the little that it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from types import ModuleType

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.devices import NoDeviceError, check_device, cuda, extra

STREAMED = 1 << 27  # bytes of a table that are on their way to the device at a time
_KEPT = 4  # arrays of indices that stay on the device


class Place:
    """An array library, and one of its devices.

    Arrays that are here are annotated `AnyArray`, as NumPy's are: they have the operators and the indexing of the array
    API. NumPy itself is the plain case, and what the tests hold the others against.

    Attributes
    ----------
    xp : functions of the array API.
    device : the library's own object; None for what it takes by itself.
    mark : what decisions that are computed here were computed on, in words.
    room : how many bytes of tables may stay here at most.
    """

    def __init__(self, xp: ModuleType, device: object = None, mark: str = "cpu", room: float = inf) -> None:
        self.xp, self.device, self.mark, self.room = xp, device, mark, room
        self._indices: dict[int, tuple[IntArray, AnyArray]] = {}  # by identity: both stay alive with the entry

    def array(self, values: npt.ArrayLike) -> AnyArray:
        """NumPy's array, or numbers, here and in the same precision."""
        out: AnyArray = self.xp.asarray(np.asarray(values), device=self.device)
        return out

    def indices(self, values: IntArray) -> AnyArray:
        """Indices (n,) here; those that come again and are never written to, such as a visiting order, stay."""
        if id(values) not in self._indices:
            while len(self._indices) >= _KEPT:
                del self._indices[next(iter(self._indices))]
            self._indices[id(values)] = values, self.array(values)
        return self._indices[id(values)][1]

    def full(self, shape: tuple[int, ...], value: float) -> AnyArray:
        """An array of equal numbers in double precision."""
        out: AnyArray = self.xp.full(shape, value, dtype=self.xp.float64, device=self.device)
        return out

    def host(self, array: AnyArray) -> AnyArray:
        """An array from here as NumPy's."""
        return np.asarray(array)

    def precision(self, array: AnyArray) -> np.dtype[np.floating[npt.NBitBase]]:
        """NumPy's name for the precision of an array; TypeError if it does not hold real numbers."""
        for name in ("float16", "float32", "float64"):
            if array.dtype == getattr(self.xp, name, None):
                return np.dtype(name)
        raise TypeError(f"must be float16, float32 or float64, got {array.dtype}")

    def double(self, array: AnyArray) -> AnyArray:
        """An array in double precision."""
        out: AnyArray = self.xp.astype(array, self.xp.float64, copy=False)
        return out

    def directions(self, values: FloatArray, precision: np.dtype[np.floating[npt.NBitBase]]) -> tuple[AnyArray, ...]:
        """Directions u, NumPy's (k, d), as `product` takes them with rows of a precision."""
        return (self.array(values if precision == np.float64 else values.astype(np.float32)),)

    def product(self, directions: tuple[AnyArray, ...], rows: AnyArray) -> AnyArray:
        """Phi u for each of `directions` and rows Phi (n, d): (k, n), in double precision.

        Rows in double precision are multiplied in that; others in single precision, with sums in it.
        """
        (own,) = directions
        return self.double(self.xp.matmul(own, self.xp.astype(rows, own.dtype, copy=False).T))

    def fits(self, size: int) -> bool:
        """Whether so many bytes can stay here beside what is computed from them."""
        return size <= self.room

    def stream(self, source: AnyArray, step: int) -> Iterator[tuple[slice, AnyArray]]:
        """Rows of NumPy's (N, d), `step` at a time, each here when its turn comes."""
        for low in range(0, len(source), step):
            part = slice(low, min(low + step, len(source)))
            yield part, self.array(source[part])


def is_foreign(array: object) -> bool:
    """Whether it is an array of another library than NumPy."""
    known = type(array).__module__.partition(".")[0] in ("torch", "cupy")
    return known or (hasattr(array, "__array_namespace__") and not isinstance(array, np.ndarray | np.generic))


def place_of(array: object, device: str | None = None) -> Place | None:
    """Where an array is, if it lives on a device, or anywhere at all if the `device` "cpu" is named; None otherwise.

    NumPy's own arrays live nowhere unless "cpu" is named.
    """
    library = type(array).__module__.partition(".")[0]
    if library == "torch" and (device is not None or _torch_device(array) != "cpu"):
        from alexp.common.devices.torches import TorchPlace

        if (own := _torch_device(array)) != "cpu" and not own.startswith("cuda"):
            raise ValueError(f"tensors must be in the memory of the CPU or on a GPU of CUDA, got one on {own!r}")
        return TorchPlace(extra("torch", device or "cuda"), own)
    if library == "cupy":
        from alexp.common.devices.cupies import CupyPlace

        return CupyPlace()
    if device == "cpu" and is_foreign(array):
        return Place(array.__array_namespace__())  # type: ignore[attr-defined]
    return Place(_numpy()) if device == "cpu" else None


def place_named(device: str | Place, given: Iterable[object]) -> Place:
    """Where arrays are to be moved; with "cpu" they stay in the library they come from."""
    if isinstance(device, Place):
        return device
    check_device(device)
    places = {(type(place), place.xp): place for array in given if (place := place_of(array, device)) is not None}
    if device == "cpu":
        own = [place for place in places.values() if place.mark == "cpu"]
        if len(own) != len(places) or len(own) != 1:
            raise ValueError('device="cpu" takes arrays of one library, all of them in the memory of the CPU')
        return own[0]
    if [place.xp.__name__ for place in places.values()] == ["array_api_compat.cupy"]:
        return next(iter(places.values()))
    from alexp.common.devices.torches import TorchPlace

    return TorchPlace(cuda(device), device)


def _torch_device(array: object) -> str:
    return str(getattr(array, "device", "cpu"))


def _numpy() -> ModuleType:
    """NumPy as the array API knows it: its own since 2.0."""
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return np
    try:
        return extra("array_api_compat.numpy", "cpu")
    except NoDeviceError as error:
        raise NoDeviceError(f"{error}; or use NumPy 2.1 or newer") from None
