"""Kernels that models are made with, and the models that are made with them."""

from alexp.problem.kernels.base import Kernel, Product, Restricted, Scaled, Sum, kernel_from_dict
from alexp.problem.kernels.own import Function, Precomputed
from alexp.problem.kernels.plain import Linear, Tanimoto
from alexp.problem.kernels.sharing import SharedKernels
from alexp.problem.kernels.stationary import RBF, Matern, Stationary

__all__ = [
    "RBF",
    "Function",
    "Kernel",
    "Linear",
    "Matern",
    "Precomputed",
    "Product",
    "Restricted",
    "Scaled",
    "SharedKernels",
    "Stationary",
    "Sum",
    "Tanimoto",
    "kernel_from_dict",
]
