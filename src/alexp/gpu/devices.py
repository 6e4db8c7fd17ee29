"""Devices: finding a GPU or saying in one sentence why there is none, and arrays of other libraries on it.

`Device` is the array API with the little that it leaves open; `DeviceArray` are numbers on a device for code that calls
NumPy's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from math import inf
from numbers import Number
from types import ModuleType
from typing import cast

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.backends import NoDeviceError, backend, check_device, is_foreign
from alexp.common.ties import tolerance
from alexp.problem.rows import RemoteRows

ADVICE = "Leave device out: everything runs on the CPU as well, and a study begun on a GPU continues there"
_KEPT = 4  # arrays of indices that stay on the device


def extra(module: str, device: str) -> ModuleType:
    """A module of the extra `gpu`, or a sentence that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = {"torch": "PyTorch", "cupy": "CuPy"}.get(
            module.partition(".")[0], module.partition(".")[0].replace("_", "-")
        )
        missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        why = "which is not installed: pip install 'alexp[gpu]'" if missing else f"which cannot be imported: {error}"
        raise NoDeviceError(f"device={device!r} needs {package}, {why}. {ADVICE}") from None


def cuda(device: str = "cuda") -> ModuleType:
    """PyTorch, if it sees this GPU; otherwise `NoDeviceError` in one sentence."""
    torch = extra("torch", device)
    number = int(device.partition(":")[2] or 0)
    seen = int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
    if number >= seen:
        found = "none" if seen == 0 else f"{seen} of them, counted from zero"
        raise NoDeviceError(f"device={device!r} needs a GPU, and PyTorch {torch.__version__} sees {found}. {ADVICE}")
    return torch


def has_cuda() -> bool:
    """Whether there is a GPU that PyTorch sees."""
    try:
        cuda()
    except NoDeviceError:
        return False
    return True


def card(device: str = "cuda") -> str:
    """What the GPU calls itself."""
    return str(cuda(device).cuda.get_device_name(device))


# -- where arrays are -----------------------------------------------------------------------------------------------


class Device:
    """An array library, and one of its devices.

    Arrays that are here are annotated `AnyArray`, as NumPy's are: they have the operators and the indexing of the array
    API. NumPy itself is the plain case, and what the tests hold the others against.

    Attributes
    ----------
    xp : functions of the array API.
    handle : the library's own object for it; None for what it takes by itself.
    name : what decisions that are computed here are logged as computed on.
    room : how many bytes of tables may stay here at most.
    """

    def __init__(self, xp: ModuleType, handle: object = None, name: str = "cpu", room: float = inf) -> None:
        self.xp, self.handle, self.name, self.room = xp, handle, name, room
        self._indices: dict[int, tuple[IntArray, AnyArray]] = {}  # by identity: both stay alive with the entry

    def array(self, values: npt.ArrayLike) -> AnyArray:
        """NumPy's array, or numbers, here and in the same precision."""
        out: AnyArray = self.xp.asarray(np.asarray(values), device=self.handle)
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
        out: AnyArray = self.xp.full(shape, value, dtype=self.xp.float64, device=self.handle)
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

    def adopt(self, name: str, value: object, n_rows: int | None) -> RemoteRows:
        """A matrix as rows that are here, checked."""
        return cast(RemoteRows, backend("device_rows")(name, value, self, n_rows))

    def fits(self, size: int) -> bool:
        """Whether so many bytes can stay here beside what is computed from them."""
        return size <= self.room

    def stream(self, source: AnyArray, step: int) -> Iterator[tuple[slice, AnyArray]]:
        """Rows of NumPy's (N, d), `step` at a time, each here when its turn comes."""
        for low in range(0, len(source), step):
            part = slice(low, min(low + step, len(source)))
            yield part, self.array(source[part])


def device_for(given: Mapping[str, object], device: str | Device | None) -> Device | None:
    """Where matrices are to be: the `device` named, or the one that all of them live on; None for the CPU."""
    if device is not None:
        return named_device(device, given.values())
    all_found = [device_of(value) for value in given.values()]
    found = [own for own in all_found if own is not None]
    if not found:
        return None
    if len(found) < len(all_found) or len({(type(own), str(own.handle)) for own in found}) > 1:
        raise ValueError(
            "some matrices live on a device and others do not, or on another one; pass device= to move them all"
        )
    return found[0]


def device_of(array: object, device: str | None = None) -> Device | None:
    """The device of an array; None for arrays in the memory of the CPU, unless a `device` is named.

    With a `device` named, "cpu" too, the memory of the CPU is a device as well, in the library of the array.
    """
    library = type(array).__module__.partition(".")[0]
    if library == "torch" and (device is not None or _torch_device(array) != "cpu"):
        from alexp.gpu.torch_backend import TorchDevice

        if (own := _torch_device(array)) != "cpu" and not own.startswith("cuda"):
            raise ValueError(f"tensors must be in the memory of the CPU or on a GPU of CUDA, got one on {own!r}")
        return TorchDevice(extra("torch", device or "cuda"), own)
    if library == "cupy":
        from alexp.gpu.cupy_backend import CupyDevice

        return CupyDevice()
    if device == "cpu" and is_foreign(array):
        return Device(array.__array_namespace__())  # type: ignore[attr-defined]
    return Device(_numpy()) if device == "cpu" else None


def named_device(device: str | Device, given: Iterable[object]) -> Device:
    """Where arrays are to be moved; with "cpu" they stay in the library they come from."""
    if isinstance(device, Device):
        return device
    check_device(device)
    devices = {(type(own), own.xp): own for array in given if (own := device_of(array, device)) is not None}
    if device == "cpu":
        in_memory = [own for own in devices.values() if own.name == "cpu"]
        if len(in_memory) != len(devices) or len(in_memory) != 1:
            raise ValueError('device="cpu" takes arrays of one library, all of them in the memory of the CPU')
        return in_memory[0]
    if [own.xp.__name__ for own in devices.values()] == ["array_api_compat.cupy"]:
        return next(iter(devices.values()))
    from alexp.gpu.torch_backend import TorchDevice

    return TorchDevice(cuda(device), device)


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


# -- numbers on a device, for NumPy's functions --------------------------------------------------------------------

# Where the array API has another name than NumPy's ufunc.
_NAMES = {
    "arcsinh": "asinh", "power": "pow", "absolute": "abs", "arctan": "atan", "true_divide": "divide",
    "conjugate": "conj",
}  # fmt: skip
_REDUCED = {"argmax", "argmin", "max", "min", "amax", "amin", "sum", "mean"}


class DeviceArray(NDArrayOperatorsMixin):
    """n numbers on a device, for code that calls NumPy's functions.

    Operators, ufuncs, `where` and `clip` return another such array, `argmax`, `max` and other reductions a number. All
    other functions of NumPy are computed on the CPU with a copy, which is slow. Operands may be Python's numbers and
    NumPy's arrays.
    """

    def __init__(self, array: AnyArray, device: Device) -> None:
        self.array, self.device = array, device

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.array.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> AnyArray:
        values = self.device.host(self.array)
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
            return taken(self.array, key, self.device)
        return DeviceArray(self.device.array(np.asarray(self)[cast(IntArray, key)]), self.device)

    def __setitem__(self, key: int, value: float) -> None:
        self.array[int(key)] = value

    def max(self) -> float:
        return float(self.device.xp.max(self.array))

    def min(self) -> float:
        return float(self.device.xp.min(self.array))

    def first_best(self, tie: float) -> int:
        """See `alexp.common.ties.first_best`."""
        xp, top = self.device.xp, self.max()
        reaching = self.array >= top - tolerance(top, self.min(), tie)
        numbers = xp.arange(len(self), device=self.device.handle)
        return int(xp.min(xp.where(reaching, numbers, xp.max(numbers))))

    def astype(self, dtype: type) -> DeviceArray:
        """The same numbers as others; what lies behind the point is cut off."""
        xp = self.device.xp
        return DeviceArray(xp.astype(self.array, getattr(xp, np.dtype(dtype).name)), self.device)

    def entries_of(self, table: FloatArray) -> DeviceArray:
        """Entries of a table (k,) of NumPy at these indices, see `mixture.entries`."""
        return DeviceArray(self.device.xp.take(self.device.array(table), self.array, axis=0), self.device)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        function = getattr(self.device.xp, _NAMES.get(ufunc.__name__, ufunc.__name__), None)
        if method != "__call__" or options or function is None:
            return NotImplemented
        values = [self._operand(value) for value in inputs]
        kinds = ["float" in str(value.dtype) for value in values]
        if any(kinds) and not all(kinds):  # the array API mixes no whole numbers with others
            values = [self.device.double(value) for value in values]
        return DeviceArray(function(*values), self.device)

    def __array_function__(
        self, function: Callable[..., object], types: object, inputs: Sequence[object], options: Mapping[str, object]
    ) -> object:
        name, xp = function.__name__, self.device.xp
        if name in _REDUCED and len(inputs) == 1 and not options:
            found = getattr(xp, name.removeprefix("a") if name in ("amax", "amin") else name)(self.array)
            return int(found) if name.startswith("arg") else float(found)
        if name in ("where", "clip") and not options:
            values = [self._operand(value) for value in inputs]
            if name == "where":
                return DeviceArray(xp.where(*values), self.device)
            return DeviceArray(xp.minimum(xp.maximum(values[0], values[1]), values[2]), self.device)
        plain = (np.asarray(value) if isinstance(value, DeviceArray) else value for value in inputs)
        return function(*plain, **options)

    def _operand(self, value: object) -> AnyArray:
        """An operand as an array of the same device."""
        if isinstance(value, DeviceArray):
            return value.array
        if isinstance(value, Number | np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            kind = self.device.xp.int64 if whole and "int" in str(self.array.dtype) else self.device.xp.float64
            # `full` needs no copy from the CPU.
            out: AnyArray = self.device.xp.full((), value, dtype=kind, device=self.device.handle)
            return out
        return self.device.array(cast(FloatArray, value))


def taken(values: AnyArray, indices: IntArray, device: Device) -> DeviceArray:
    """Some entries along the last axis."""
    return DeviceArray(device.xp.take(values, device.indices(indices), axis=values.ndim - 1), device)
