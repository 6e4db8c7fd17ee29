"""The registry through which the core reaches a GPU, and what it has to know of devices.

The core asks for a function by its role, `backend("array_backend")(device)`. `alexp.gpu` registers all of them; it is
imported when the first one is asked for, so that an installation for the CPU needs neither PyTorch nor CuPy nor
array-api-compat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, Protocol, cast

import numpy as np

Role = Literal[
    "array_backend",  # (device) -> ArrayBackend: values of wide models at all candidates
    "device_for",  # (matrices, device) -> the device that matrices are to be on, or None
    "device_rows",  # (name, matrix, device, n_rows) -> RemoteRows, checked
    "device_suggestions",  # (positions, n_candidates, spread) -> Suggestions in arrays of a device
    "draw_on_device",  # (weights, rng) -> a number drawn by weights in an array of a device
    "enumerating_card",  # (device) -> name of the card that subsets are enumerated on, or None
    "level_subsets",  # as `level_mixture`, for subsets that are enumerated
    "ratio_subsets",  # as `ratio_mixture`, for subsets that are enumerated
    "subset_posteriors",  # (models, ridge) -> Posteriors of subsets that are enumerated
]

_PROVIDER = "alexp.gpu"
_REGISTERED: dict[str, Callable[..., Any]] = {}
_CUDA = re.compile(r"cuda(:\d+)?")


class NoDeviceError(ValueError):
    """A device was named that is not here."""


class ComputeDevice(Protocol):
    """A device as the core sees it."""

    name: str  # what decisions are logged as computed on


def register(role: Role, function: Callable[..., Any]) -> None:
    """Provide the function of a role."""
    _REGISTERED[role] = function


def backend(role: Role) -> Callable[..., Any]:
    """The function of a role; imports `alexp.gpu` if nothing has been registered for it."""
    if role not in _REGISTERED:
        import_module(_PROVIDER)
    return _REGISTERED[role]


def check_device(name: object) -> str:
    """Return the name of a device, "cpu", "cuda" or "cuda:1", or raise; whether it exists is not checked."""
    if not isinstance(name, str) or (name != "cpu" and not _CUDA.fullmatch(name)):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:" and a number, got {name!r}')
    return name


def is_foreign(array: object) -> bool:
    """Whether it is an array of another library than NumPy."""
    known = type(array).__module__.partition(".")[0] in ("torch", "cupy")
    return known or (hasattr(array, "__array_namespace__") and not isinstance(array, np.ndarray | np.generic))


def device_for(given: Mapping[str, object], device: str | ComputeDevice | None) -> ComputeDevice | None:
    """Where matrices are to be: the `device` named, or the one that all of them live on; None for the CPU."""
    if device is None and not any(is_foreign(value) for value in given.values()):
        return None
    return cast("ComputeDevice | None", backend("device_for")(given, device))


def enumerating_card(device: str) -> str | None:
    """The name of the card that subsets are enumerated on; None for the CPU."""
    if device == "cpu":
        return None
    return cast("str | None", backend("enumerating_card")(device))
