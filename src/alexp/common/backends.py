"""The registry through which the core reaches a GPU or other machines, and what it has to know of them.

The core asks for a function by its role, `backend("draw_on_device")(weights, rng)`. `alexp.gpu` and `alexp.parts`
register them; each is imported when one of its functions is first asked for, so that an installation for one CPU needs
neither PyTorch nor CuPy nor Dask. A table asks in the same way for the mixture that learns from an old campaign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, Protocol, cast

import numpy as np

Role = Literal[
    "device_for",  # (matrices, device) -> the device that matrices are to be on, or None
    "device_rows",  # (name, matrix, device, n_rows) -> RemoteRows, checked
    "device_suggestions",  # (positions, n_candidates, spread) -> Suggestions in arrays of a device
    "draw_on_device",  # (weights, rng) -> a number drawn by weights in an array of a device
    "enumerating_card",  # (device) -> name of the card that subsets are enumerated on, or None
    "engine_for",  # (matrices) -> the engine that computes on candidates in parts
    "learned_mean",  # (models, places, rewards) -> mean of every candidate under a mixture
    "level_subsets",  # as `level_mixture`, for subsets that are enumerated
    "part_rows",  # (engine, name, matrix, n_rows) -> RemoteRows in parts, checked
    "ratio_subsets",  # as `ratio_mixture`, for subsets that are enumerated
    "subset_posteriors",  # (models, ridge) -> Posteriors of subsets that are enumerated
]

_PROVIDERS = {
    "engine_for": "alexp.parts", "part_rows": "alexp.parts", "learned_mean": "alexp.algorithms.evidence_mixture",
}  # of all other roles: alexp.gpu  # fmt: skip
_IN_PARTS = ("dask", "alexp")  # libraries whose matrices are in parts
_REGISTERED: dict[str, Callable[..., Any]] = {}
_CUDA = re.compile(r"cuda(:\d+)?")


class NoDeviceError(ValueError):
    """A device was named that is not here."""


class ComputeDevice(Protocol):
    """A device as the core sees it."""

    name: str  # what decisions are logged as computed on

    def adopt(self, name: str, value: Any, n_rows: int | None) -> Any:
        """A matrix (n_rows, d) as `RemoteRows` that are there, checked; `name` is for errors."""


def register(role: Role, function: Callable[..., Any]) -> None:
    """Provide the function of a role."""
    _REGISTERED[role] = function


def backend(role: Role) -> Callable[..., Any]:
    """The function of a role; imports the package that registers it if nothing has been registered yet."""
    if role not in _REGISTERED:
        import_module(_PROVIDERS.get(role, "alexp.gpu"))
    return _REGISTERED[role]


def check_device(name: object) -> str:
    """Return the name of a device, "cpu", "cuda" or "cuda:1", or raise; whether it exists is not checked."""
    if not isinstance(name, str) or (name != "cpu" and not _CUDA.fullmatch(name)):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:" and a number, got {name!r}')
    return name


def is_foreign(array: object) -> bool:
    """Whether it is an array of another library than NumPy."""
    other = hasattr(array, "__array_namespace__") and not isinstance(array, np.ndarray | np.generic)
    return other or _library(array) in ("torch", "cupy")


def _library(array: object) -> str:
    return type(array).__module__.partition(".")[0]


def device_for(given: Mapping[str, object], device: str | ComputeDevice | None) -> ComputeDevice | None:
    """Where matrices are to be: the `device` named, or the one that all of them live on; None for the CPU."""
    if device is None and any(_library(value) in _IN_PARTS for value in given.values()):
        return cast(ComputeDevice, backend("engine_for")(given))
    if device is None and not any(is_foreign(value) for value in given.values()):
        return None
    return cast("ComputeDevice | None", backend("device_for")(given, device))


def enumerating_card(device: str) -> str | None:
    """The name of the card that subsets are enumerated on; None for the CPU."""
    if device == "cpu":
        return None
    return cast("str | None", backend("enumerating_card")(device))
