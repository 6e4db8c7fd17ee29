"""PyTorch's devices: copies that overlap with work, and products of half precision."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import AnyArray, FloatArray
from alexp.gpu.devices import Device, extra

if TYPE_CHECKING:
    from torch import Tensor

_TOP = 10  # directions in half precision are at most 2^10, far above the smallest numbers it has
_SMALL = 1 << 22  # bytes that are sent without waiting
_SPARE = 0.15  # share of the card's memory that is left for what is computed


class TorchDevice(Device):
    """A device of PyTorch.

    Products do not use the tensor cores' own single precision (TF32), whatever PyTorch is set to: it has three digits.
    """

    def __init__(self, torch: ModuleType, device: str, room: float = inf) -> None:
        self._torch, self._on_gpu = torch, device.startswith("cuda")
        name = str(torch.cuda.get_device_name(device)) if self._on_gpu else "cpu"
        super().__init__(extra("array_api_compat.torch", device), torch.device(device), name, room)

    def array(self, values: npt.ArrayLike) -> AnyArray:
        tensor = self._tensor(values)
        small = self._on_gpu and tensor.device.type == "cpu" and tensor.nbytes <= _SMALL
        if small:  # the card goes on with what it has to do meanwhile
            tensor = tensor.pin_memory()
        return cast(AnyArray, tensor.to(self.handle, non_blocking=small))

    def _tensor(self, values: npt.ArrayLike) -> Tensor:
        if self._torch.is_tensor(values):
            return cast("Tensor", values).detach()
        if hasattr(values, "__cuda_array_interface__"):
            return cast("Tensor", self._torch.as_tensor(values, device=self.handle))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it may not be written to, and is not
            out: Tensor = self._torch.from_numpy(np.ascontiguousarray(values).reshape(np.shape(values)))
        return out

    def host(self, array: AnyArray) -> AnyArray:
        out: AnyArray = array.detach().cpu().numpy()  # type: ignore[attr-defined]
        return out

    def directions(self, values: FloatArray, precision: np.dtype[np.floating[npt.NBitBase]]) -> tuple[AnyArray, ...]:
        """As for all devices; in half precision on a GPU, sums of two such numbers, (2 k, d), and their units (k, 1).

        Two numbers of eleven binary digits make one of 22, nearly as many as single precision has, and tables are read
        as they are: sums are made in single precision.
        """
        if precision != np.float16 or not self._on_gpu:
            return super().directions(values, precision)
        largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
        units = np.exp2(np.ceil(np.log2(np.where(largest > 0.0, largest, 1.0))) - _TOP)
        high = (values / units).astype(np.float16)
        low = (values / units - high.astype(np.float64)).astype(np.float16)
        return self.array(np.concatenate([high, low])), self.array(units)

    def product(self, directions: tuple[AnyArray, ...], rows: AnyArray) -> AnyArray:
        if len(directions) == 1:
            with self._without_tf32():
                return super().product(directions, rows)
        halves, units = directions
        both = self._torch.mm(halves, rows.T, out_dtype=self._torch.float32)
        k = len(units)
        out: AnyArray = units * (self.double(both[:k]) + self.double(both[k:]))
        return out

    @contextmanager
    def _without_tf32(self) -> Iterator[None]:
        """Turn TF32 off."""
        if not self._on_gpu:
            yield
            return
        matmul = self._torch.backends.cuda.matmul
        before, matmul.allow_tf32 = matmul.allow_tf32, False
        try:
            yield
        finally:
            matmul.allow_tf32 = before

    def fits(self, size: int) -> bool:
        if not self._on_gpu or not super().fits(size):
            return super().fits(size)
        free, total = self._torch.cuda.mem_get_info(self.handle)
        return bool(size <= free - _SPARE * total)

    def stream(self, source: AnyArray, step: int) -> Iterator[tuple[slice, AnyArray]]:
        """Rows of NumPy's (N, d), `step` at a time: the next ones are on their way while these are worked with."""
        if not self._on_gpu:
            yield from super().stream(source, step)
            return
        cuda, step = self._torch.cuda, min(step, len(source))
        aside, work = cuda.Stream(self.handle), cuda.current_stream(self.handle)
        shape, dtype = (step, source.shape[1]), self._tensor(source[:1]).dtype
        staged = [self._torch.empty(shape, dtype=dtype, pin_memory=True) for _ in range(2)]
        landed = [self._torch.empty(shape, dtype=dtype, device=self.handle) for _ in range(2)]
        sent, used = [cuda.Event() for _ in range(2)], [cuda.Event() for _ in range(2)]

        def send(k: int) -> tuple[slice, AnyArray]:
            part, turn = slice(k * step, min((k + 1) * step, len(source))), k % 2
            n = part.stop - part.start
            sent[turn].synchronize()  # what was staged there has left
            staged[turn][:n].copy_(self._tensor(source[part]))
            with cuda.stream(aside):
                aside.wait_event(used[turn])
                landed[turn][:n].copy_(staged[turn][:n], non_blocking=True)
                sent[turn].record(aside)
            return part, landed[turn][:n]

        count = -(-len(source) // step)
        coming = send(0)
        for k in range(count):
            part, rows = coming
            if k + 1 < count:
                coming = send(k + 1)
            work.wait_event(sent[k % 2])
            yield part, rows
            used[k % 2].record(work)
