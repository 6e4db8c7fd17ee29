"""Kernels from what they were stored as."""

from __future__ import annotations

from collections.abc import Callable

from alexp.problem.descriptions import Description
from alexp.problem.kernels.base import Kernel, Product, Restricted, Scaled, Sum
from alexp.problem.kernels.own import Precomputed
from alexp.problem.kernels.plain import Linear, Tanimoto
from alexp.problem.kernels.stationary import RBF, Matern


def kernel_from_dict(data: Description) -> Kernel:
    """Rebuild a kernel from what its `to_dict` stored."""
    arguments = dict(data)
    kind = arguments.pop("kernel", None)
    if kind in ("sum", "product"):
        parts = tuple(kernel_from_dict(part) for part in arguments["parts"])
        return Sum(parts) if kind == "sum" else Product(parts)
    if kind == "scaled":
        return Scaled(kernel_from_dict(arguments["part"]), arguments["factor"])
    if kind == "restricted":
        return Restricted(kernel_from_dict(arguments["part"]), tuple(arguments["columns"]), arguments["label"])
    known: dict[str, Callable[..., Kernel]] = {
        "linear": Linear,
        "tanimoto": Tanimoto,
        "matern": Matern,
        "rbf": RBF,
        "precomputed": Precomputed,
    }
    if kind not in known:
        raise ValueError(
            f"unknown kind of kernel {kind!r}; known are sum, product, scaled, restricted, {sorted(known)}"
        )
    return known[kind](**arguments)
