"""The conformance check of kernels."""

from __future__ import annotations

import json
from copy import deepcopy
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import FloatArray
from alexp.common.codec import pack, unpack
from alexp.problem.kernels import Kernel, kernel_from_dict
from alexp.problem.shared_kernels import SharedKernels

_ROUNDING = 1e-9  # as a share of the largest entry


def check_kernel(kernel: Kernel, rows: ArrayLike, *others: Kernel) -> None:
    """Raise AssertionError unless `kernel` is a valid kernel on these rows (n, d).

    - k(x, z) is finite, symmetric and positive semidefinite; `diagonal` is k(x, x); parts of the rows give parts of the
      whole.
    - Copies are equal, with equal hashes. Kernels that differ in one parameter are not, and keep their own values where
      many kernels are computed at once: alone, in sums `a + 0.5 * b`, in products `a * b`, and on some of the columns.
    - What `to_dict` describes is rebuilt equal, with the same values. If `to_dict` returns None, studies and saved runs
      need the models passed again.

    Every number among the attributes is varied. `others` are further kernels that differ from this one, for parameters
    that are not numbers.

    >>> from alexp.kernels import Matern
    >>> check_kernel(Matern(2.5, lengthscale=0.5), np.random.default_rng(0).normal(size=(20, 3)), Matern(1.5))
    """
    x = np.ascontiguousarray(rows, dtype=np.float64)
    own = kernel.fitted(x)
    assert own.is_fitted, "fitted(x) must leave nothing to be fitted"
    assert own.fitted(x) == own, "a fitted kernel must stay what it is when it is fitted again"
    whole = own(x, x)
    size = float(np.abs(whole).max())
    assert np.all(np.isfinite(whole)), "k(x, z) must be finite"
    assert _near(whole, whole.T, size), "k(x, z) must be k(z, x)"
    assert np.linalg.eigvalsh(whole)[0] >= -_ROUNDING * size * len(x), "k must be positive semidefinite"
    assert _near(own.diagonal(x), np.diag(whole), size), "diagonal(x) must be k(x, x)"
    half = len(x) // 2
    assert _near(own(x[:half], x[half:]), whole[:half, half:], size), "parts of the rows must give parts of k"
    assert _near(np.vstack([own(point[None], x) for point in x]), whole, size), "one point at a time must give the same"

    same = deepcopy(own)
    assert same == own, "copies of a kernel must be equal"
    assert hash(same) == hash(own), "equal kernels must have equal hashes"
    varied = [*_varied(own), *(other.fitted(x) for other in others)]
    for other in varied:
        assert other != own, f"kernels with different parameters must differ: {_shown(own)} and {_shown(other)}"
        _check_together(own, other, x)
    _check_together(own, same, x)

    described = own.to_dict()
    if described is not None:
        again = kernel_from_dict(unpack(json.loads(json.dumps(pack(described)))))
        assert again == own, f"what to_dict describes must come back equal: {_shown(again)} for {_shown(own)}"
        assert hash(again) == hash(own), "what to_dict describes must come back with an equal hash"
        assert np.array_equal(again(x, x), whole), "what to_dict describes must come back with the same values"


def _varied(kernel: Kernel) -> list[Kernel]:
    """The kernel with one of its numbers changed, for each that may be."""
    out = []
    for name, value in kernel._attributes().items():
        if isinstance(value, Real) and not isinstance(value, bool):
            try:
                out.append(kernel.replaced(**{name: value + 1 if isinstance(value, Integral) else 1.5 * value}))
            except ValueError:  # not every number is allowed
                continue
    return out


def _check_together(a: Kernel, b: Kernel, x: FloatArray) -> None:
    """Compare kernels that are computed at once with each of them alone, in NumPy."""
    columns = np.arange(x.shape[1])
    k, z = a(x, x), b(x, x)
    expected = {"a": (a, k), "b": (b, z), "a + 0.5 * b": (a + 0.5 * b, k + 0.5 * z), "a * b": (a * b, k * z)}
    expected["a.on(columns) + b"] = (a.on(columns) + b, k + z)
    kernels = [one for one, _ in expected.values()]
    together = SharedKernels(kernels, [columns] * len(kernels))
    values = np.stack([together(point, x) for point in x], axis=1)
    for found, (what, (one, wanted)) in zip(values, expected.items(), strict=True):
        size = float(np.abs(wanted).max())
        for way, got in (("beside other kernels", found), ("alone", one(x, x))):
            assert _near(got, wanted, size), f"{what} has other values {way}, for a = {_shown(a)}, b = {_shown(b)}"


def _near(found: FloatArray, wanted: FloatArray, size: float) -> bool:
    return found.shape == wanted.shape and bool(np.all(np.abs(found - wanted) <= _ROUNDING * size))


def _shown(kernel: Kernel) -> str:
    return f"{type(kernel).__name__}({', '.join(f'{k}={v!r:.60}' for k, v in kernel._attributes().items())})"
