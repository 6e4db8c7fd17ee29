"""`alexp bench gpu`: a sentence where there is no GPU, and every number where there is one."""

import pytest

from alexp.common.backends import NoDeviceError
from alexp.gpu.devices import has_cuda
from alexp_experiments.bench.page import COLUMNS, table
from alexp_experiments.bench.suite import run_benchmarks


@pytest.mark.skipif(has_cuda(), reason="there is a GPU here")
def test_without_a_gpu_there_is_a_sentence():
    with pytest.raises(NoDeviceError, match="device='cuda' needs"):
        run_benchmarks(["gpu"])


@pytest.mark.skipif(not has_cuda(), reason="there is no GPU here")
def test_every_number_is_measured():
    records = run_benchmarks(["gpu"], quick=True)["records"]["gpu"]
    shown = {key for row in records for key in row if row[key] is not None}
    assert {key for _, key, _ in COLUMNS["gpu"]} <= shown
    assert len(table("gpu", records)[1]) == len(records)
