"""Kernels from what they were stored as."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from alexp.problem.descriptions import Description
from alexp.problem.kernels.base import Kernel, Product, Restricted, Scaled, Sum
from alexp.problem.kernels.own import Precomputed
from alexp.problem.kernels.plain import Linear, Tanimoto
from alexp.problem.kernels.stationary import RBF, Matern

_KNOWN: dict[str, Callable[..., Kernel]] = {
    "linear": Linear,
    "tanimoto": Tanimoto,
    "matern": Matern,
    "rbf": RBF,
    "precomputed": Precomputed,
    "sum": lambda parts: Sum(tuple(kernel_from_dict(part) for part in parts)),
    "product": lambda parts: Product(tuple(kernel_from_dict(part) for part in parts)),
    "scaled": lambda part, factor: Scaled(kernel_from_dict(part), factor),
    "restricted": lambda part, columns, label: Restricted(kernel_from_dict(part), tuple(columns), label),
}


def kernel_from_dict(data: Description) -> Kernel:
    """Rebuild a kernel from what its `to_dict` stored; nothing but what is listed here can come of it."""
    kind = data.get("kernel") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in _KNOWN:
        raise ValueError(f"unknown kind of kernel {kind!r}; known are {', '.join(_KNOWN)}")
    arguments = {key: value for key, value in data.items() if key != "kernel"}
    try:
        return _KNOWN[kind](**arguments)
    except TypeError as error:
        raise ValueError(f"what was stored of a kernel {kind!r} is damaged: {error}") from error
