"""The array libraries that device code is run with here: NumPy always, others where they are installed."""

import numpy as np
import pytest

from alexp.gpu.devices import Device, has_cuda

ARRAY_API = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy before 2.1 does not have the array API"
)
NAMES = ("numpy", "strict", "torch", "cuda")


def arrays(name, tables):
    """Tables in a library, and what to pass as `device`; skips where the library or its device is missing."""
    if name == "numpy":
        return tables, "cpu"
    if name == "strict":
        strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        return {key: strict.asarray(table) for key, table in tables.items()}, "cpu"
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    if name == "torch":
        return {key: torch.from_numpy(table) for key, table in tables.items()}, "cpu"
    if not has_cuda():
        pytest.skip("there is no GPU here")
    return tables, "cuda"


def somewhere(name="Some GPU", **options):
    """NumPy as a device of that name."""
    return Device(np, name=name, **options)
