"""`alexp bench gpu`: steps on the GPU of this machine, against the peak of the card and the CPU beside it."""

from __future__ import annotations

from alexp.gpu.devices import cuda
from alexp_experiments.bench.device.small import bench_small_models
from alexp_experiments.bench.device.wide import bench_wide_device
from alexp_experiments.bench.records import Measurement


def bench_gpu(quick: bool = False) -> list[Measurement]:
    """Wide maps, then many small models; `NoDeviceError` in one sentence where there is no GPU."""
    cuda()
    return bench_wide_device(quick) + bench_small_models(quick)
