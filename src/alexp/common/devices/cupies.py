"""CuPy's arrays: the array API as it is, and the way back to NumPy."""

from __future__ import annotations

from typing import cast

import numpy.typing as npt

from alexp.common.arrays import AnyArray
from alexp.common.devices import extra
from alexp.common.devices.places import Place


class CupyPlace(Place):
    """CuPy's current device."""

    def __init__(self) -> None:
        cupy = extra("cupy", "cuda")
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["name"]
        super().__init__(extra("array_api_compat.cupy", "cuda"), None, name.decode())

    def array(self, values: npt.ArrayLike) -> AnyArray:
        """NumPy's array, or CuPy's own, here and in the same precision."""
        return cast(AnyArray, values) if hasattr(values, "__cuda_array_interface__") else super().array(values)

    def host(self, array: AnyArray) -> AnyArray:
        """An array of CuPy as NumPy's."""
        out: AnyArray = array.get()  # type: ignore[attr-defined]
        return out
