"""What runs through CuPy: its arrays, and the kernels over all subsets, compiled when they are first used."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.backends import NoDeviceError
from alexp.common.ties import rules, tolerance
from alexp.gpu.cpu_engine import LOWEST
from alexp.gpu.devices import ADVICE, Device, extra
from alexp.problem.groups import binomial_table

if TYPE_CHECKING:
    from alexp.gpu.subsets import CellTerms, SharedSums

_THREADS = 128  # of a block, as in `kernels.cu`


def cupy(device: str = "cuda") -> ModuleType:
    """CuPy with this GPU chosen, or `NoDeviceError` in one sentence."""
    found = extra("cupy", device)
    number = int(device.partition(":")[2] or 0)
    try:
        seen = int(found.cuda.runtime.getDeviceCount())
    except found.cuda.runtime.CUDARuntimeError:  # no driver
        seen = 0
    if number >= seen:
        sees = "none" if seen == 0 else f"{seen} of them, counted from zero"
        raise NoDeviceError(f"device={device!r} needs a GPU, and CuPy {found.__version__} sees {sees}. {ADVICE}")
    found.cuda.Device(number).use()
    return found


@cache
def name_of_card(device: str = "cuda") -> str:
    """What the GPU calls itself."""
    number = int(device.partition(":")[2] or 0)
    return str(cupy(device).cuda.runtime.getDeviceProperties(number)["name"].decode())


class CupyDevice(Device):
    """CuPy's current device."""

    def __init__(self) -> None:
        cupy = extra("cupy", "cuda")
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["name"]
        super().__init__(extra("array_api_compat.cupy", "cuda"), None, name.decode())

    def array(self, values: npt.ArrayLike) -> AnyArray:
        return cast(AnyArray, values) if hasattr(values, "__cuda_array_interface__") else super().array(values)

    def host(self, array: AnyArray) -> AnyArray:
        out: AnyArray = array.get()  # type: ignore[attr-defined]
        return out


@cache
def _compiled(size: int) -> object:
    """The module of kernels for subsets of one size."""
    source = files("alexp.gpu").joinpath("kernels.cu").read_text(encoding="utf-8")
    return cupy().RawModule(code=source, options=(f"-DSIZE={size}", "--std=c++17"))


class CupyEngine:
    """An `Engine` on a GPU."""

    def __init__(self, n_columns: int, size: int, device: str = "cuda") -> None:
        self.xp, self.size, self.n_columns = cupy(device), size, n_columns
        self._binomial = self.xp.asarray(binomial_table(n_columns, size))
        self._module = _compiled(size)

    def host(self, values: FloatArray) -> FloatArray:
        """A copy in the computer's memory."""
        return self.xp.asnumpy(values)  # type: ignore[no-any-return]

    def best_of_pairs(self, sums: SharedSums, terms: CellTerms) -> FloatArray:
        best = self.xp.full(sums.gram.shape, LOWEST)
        self._over_pairs("best_of_pairs", *self._known(sums, terms), best)
        return best  # type: ignore[no-any-return]

    def sums_of_pairs(self, sums: SharedSums, terms: CellTerms, reference: float, later: SharedSums) -> FloatArray:
        out = self.xp.zeros((7, *sums.gram.shape))
        after = (later.gram, later.diagonal)
        self._over_pairs("sums_of_pairs", *self._known(sums, terms), np.float64(reference), *after, out)
        return out  # type: ignore[no-any-return]

    def levels_of_ranks(self, sums: SharedSums, terms: CellTerms, ranks: IntArray) -> FloatArray:
        out, numbers = self.xp.empty(ranks.size), self.xp.asarray(ranks)
        known = (*self._known(sums, terms), self._binomial, numbers, np.int64(ranks.size), out)
        self._launch("levels_of_ranks", (-(-ranks.size // _THREADS),), *known)
        return out  # type: ignore[no-any-return]

    def sweep(
        self, sums: SharedSums, later: SharedSums, rho: float, width: float, points: FloatArray, first: int, n: int
    ) -> IntArray:
        """See `Engine`; positions are 32-bit, as there is one for every subset."""
        winners = self.xp.empty(n, dtype=np.int32)
        fits = (np.int32(self.n_columns), sums.gram, sums.diagonal, sums.cross, later.gram, later.diagonal)
        slack = np.float64(tolerance(1.0, -np.inf, rules.tie))
        numbers = (np.float64(rho), np.float64(later.base), np.float64(width), slack)
        which = (self._binomial, np.int64(first), np.int64(n))
        where = (self.xp.ascontiguousarray(points), np.int32(len(points)), winners)
        self._launch("sweep", (-(-n // _THREADS),), *fits, *numbers, *which, *where)
        return winners  # type: ignore[no-any-return]

    def _known(self, sums: SharedSums, terms: CellTerms) -> tuple[object, ...]:
        fits = (np.int32(self.n_columns), sums.gram, sums.diagonal, sums.cross, np.float64(sums.total))
        cells, units = self.xp.asarray(terms.cells), self.xp.asarray(terms.units)
        return (*fits, cells, units, np.int32(len(terms.cells)), np.float64(terms.power), np.float64(terms.shape))

    def _over_pairs(self, name: str, *arguments: object) -> None:
        self._launch(name, (self.n_columns, self.n_columns), *arguments)

    def _launch(self, name: str, grid: tuple[int, ...], *arguments: object) -> None:
        self._module.get_function(name)(grid, (_THREADS,), arguments)  # type: ignore[attr-defined]
