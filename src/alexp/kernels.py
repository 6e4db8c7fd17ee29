"""Kernels as models: `Linear`, `Tanimoto`, `Matern`, `RBF`, sums and products of them, and those of your own,
which subclass `Stationary` or `Kernel`.

>>> from alexp.kernels import Matern, Tanimoto
>>> str(Tanimoto() + 0.5 * Matern(2.5, lengthscale=0.5).on([0, 1]))
'Tanimoto + 0.5 Matern 5/2, 0.5 on 0, 1'
"""

from alexp.problem.kernels import (
    ARD,
    RBF,
    Function,
    Kernel,
    Linear,
    Matern,
    Precomputed,
    Product,
    Stationary,
    Sum,
    Tanimoto,
)

__all__ = [
    "ARD",
    "RBF",
    "Function",
    "Kernel",
    "Linear",
    "Matern",
    "Precomputed",
    "Product",
    "Stationary",
    "Sum",
    "Tanimoto",
]
