"""Where arrays live: finding a GPU, or saying in one sentence why there is none.

Nothing here is imported before somebody names a device, so that an installation for the CPU needs neither PyTorch nor
array-api-compat.
"""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

_CUDA = re.compile(r"cuda(:\d+)?")
_ADVICE = "Leave device out: everything runs on the CPU as well, and a study begun on a GPU continues there"


class NoDeviceError(ValueError):
    """A device was named that is not here."""


def check_device(name: object) -> str:
    """Return the name of a device, "cpu", "cuda" or "cuda:1", or raise; whether it is there is another question."""
    if not isinstance(name, str) or (name != "cpu" and not _CUDA.fullmatch(name)):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:" and a number, got {name!r}')
    return name


def extra(module: str, device: str) -> ModuleType:
    """A module of the extra `gpu`, or a sentence that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = {"torch": "PyTorch", "cupy": "CuPy"}.get(
            module.partition(".")[0], module.partition(".")[0].replace("_", "-")
        )
        missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        why = "which is not installed: pip install 'alexp[gpu]'" if missing else f"which cannot be imported: {error}"
        raise NoDeviceError(f"device={device!r} needs {package}, {why}. {_ADVICE}") from None


def cuda(device: str = "cuda") -> ModuleType:
    """PyTorch, if it sees this GPU; otherwise `NoDeviceError` in one sentence."""
    torch = extra("torch", device)
    number = int(device.partition(":")[2] or 0)
    seen = int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
    if number >= seen:
        found = "none" if seen == 0 else f"{seen} of them, counted from zero"
        raise NoDeviceError(f"device={device!r} needs a GPU, and PyTorch {torch.__version__} sees {found}. {_ADVICE}")
    return torch


def has_cuda() -> bool:
    """Whether there is a GPU that PyTorch sees."""
    try:
        cuda()
    except NoDeviceError:
        return False
    return True


def card(device: str = "cuda") -> str:
    """What the GPU calls itself."""
    return str(cuda(device).cuda.get_device_name(device))
