"""Naming a device: what is refused, in which words, and that nothing is imported before."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import alexp
from alexp.common.backends import NoDeviceError
from alexp.estimation.mixture.mixture import entries
from alexp.gpu.devices import Device, DeviceArray, cuda, has_cuda

from .libraries import ARRAY_API

pytestmark = ARRAY_API

TABLES = {"a": np.ones((4, 2)), "b": np.eye(4)}
make = alexp.ModelClass.from_matrices


@pytest.mark.skipif(has_cuda(), reason="there is a GPU here")
def test_without_a_gpu_there_is_a_sentence():
    with pytest.raises(NoDeviceError, match=r"^device='cuda' needs .*Leave device out: everything runs on the CPU"):
        make(TABLES, device="cuda")


def test_without_pytorch_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(NoDeviceError, match=r"device='cuda:1' needs PyTorch, .*alexp"):
        cuda("cuda:1")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda1", 0, "mps"])
def test_unknown_devices_are_refused(device):
    with pytest.raises(ValueError, match='device must be "cpu", "cuda" or "cuda:" and a number'):
        make(TABLES, device=device)


def test_what_devices_do_not_take_is_refused():
    with pytest.raises(ValueError, match="features 'a' is sparse"):
        make({"a": csr_array(np.eye(3))}, device="cpu")
    with pytest.raises(ValueError, match="kernels are computed on the CPU"):
        make(TABLES, kernels="auto", device="cpu")
    with pytest.raises(ValueError, match=r"features 'b' must have shape \(4, d\)"):
        make({"a": np.ones((4, 2)), "b": np.ones((3, 2))}, device="cpu")
    with pytest.raises(ValueError, match="features 'a' has nan at row 1, column 0"):
        make({"a": np.array([[0.0], [np.nan]])}, device="cpu")
    for precision, size in (("float32", 1e16), ("float64", 1e101)):
        with pytest.raises(ValueError, match=f"features 'a' in {precision} must not exceed"):
            make({"a": np.full((3, 2), size, dtype=precision)}, device="cpu")
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    with pytest.raises(ValueError, match="arrays of one library"):
        make({"a": np.ones((4, 2)), "b": strict.ones((4, 2))}, device="cpu")
    with pytest.raises(TypeError, match="features 'a' must be float16, float32 or float64, got .*int64"):
        make({"a": strict.ones((4, 2), dtype=strict.int64)}, device="cpu")


def test_tensors_on_other_devices_are_refused():
    tensor = type("Tensor", (), {"__module__": "torch", "device": "mps:0"})()
    with pytest.raises(
        ValueError, match="tensors must be in the memory of the CPU or on a GPU of CUDA, got one on 'mps"
    ):
        make({"a": tensor})


def test_sparse_tensors_are_refused():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    with pytest.raises(ValueError, match="features 'a' is sparse"):
        make({"a": torch.eye(3).to_sparse()}, device="cpu")


@pytest.mark.parametrize("name", sorted(set(alexp.Algorithm.registry) - {"sl-ucb"}))  # which plays on balls only
def test_only_the_mixture_computes_there(name):
    kind = alexp.Algorithm.registry[name]
    domain, models = alexp.FiniteSet(range(4)), make(TABLES, device="cpu")
    if kind.computes_on_device:
        assert kind(models, domain).ask().index in range(4)
        return
    who = "ETC" if name == "doubling" else kind.__name__  # the one inside, which is made first
    with pytest.raises(ValueError, match=f"{who} computes in the memory of the CPU"):
        kind(models, domain, **kind.example)


def test_importing_and_running_on_the_cpu_needs_no_other_library():
    code = (
        "import sys, numpy as np, alexp\n"
        "models = alexp.ModelClass.from_matrices({'a': np.eye(4)})\n"
        "alexp.EvidenceMixture(models, alexp.FiniteSet(range(4)))\n"
        "assert not {'torch', 'array_api_compat', 'cupy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("precision", ["float16", "float32", "float64"])
def test_features_are_recognised_wherever_they_are(precision):
    given = {name: table.astype(precision) for name, table in TABLES.items()}
    domain = alexp.FiniteSet(range(4))
    here, there = (alexp.EvidenceMixture(make(given, device=device), domain) for device in (None, "cpu"))
    assert here.fingerprint() == there.fingerprint()
    assert np.array_equal(here.features(), there.features())
    assert there.models.device == "cpu"
    assert here.models.device is None
    assert alexp.ModelClass.from_dict(there.models.to_dict()).device is None


def test_numpy_computes_on_the_device():
    rng = np.random.default_rng(0)
    plain, device = rng.standard_normal(9), Device(np)
    values = DeviceArray(device.array(plain), device)
    found = np.log1p(np.minimum(values**2 / 0.3, 1e3)) - 2.0 * np.sqrt(np.abs(values))
    assert isinstance(found, DeviceArray)
    assert np.array_equal(np.asarray(found), np.log1p(np.minimum(plain**2 / 0.3, 1e3)) - 2.0 * np.sqrt(np.abs(plain)))
    assert (np.argmax(values), np.argmin(values)) == (np.argmax(plain), np.argmin(plain))
    assert (values.max(), values.min(), values[3]) == (plain.max(), plain.min(), plain[3])
    assert isinstance(np.where(values > 0.0, values, 1.0), DeviceArray)
    assert np.array_equal(np.asarray(np.where(values > 0.0, values, 1.0)), np.where(plain > 0.0, plain, 1.0))
    assert np.array_equal(np.asarray(values[..., np.array([2, 0])]), plain[[2, 0]])
    found = entries(plain, values.astype(np.int64) * 0 + 1)
    assert isinstance(found, DeviceArray)
    assert np.array_equal(np.asarray(found), np.full(9, plain[1]))
    assert np.allclose(np.sort(values), np.sort(plain))  # not known there: on the CPU
    with pytest.raises(TypeError):
        np.add.reduce(values)
