"""Kernels by name, for the command line and the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alexp.problem.kernel_models import AUTO, LINEAR, Choice, KernelChoice
from alexp.problem.kernels import ARD, RBF, Kernel, Linear, Matern, Stationary, Tanimoto, kernel_classes

_KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "standardized": Linear(standardize=True),
    "tanimoto": Tanimoto(),
    "matern": Matern(),
    "matern12": Matern(0.5),
    "matern32": Matern(1.5),
    "matern52": Matern(2.5),
    "rbf": RBF(),
    "ard": ARD(),
}


def kernels_from_words(words: Sequence[str]) -> KernelChoice:
    """The value of `--kernels`: "linear", "auto", or NAME=KERNEL+KERNEL for every map, a kernel with ":LENGTHSCALE".

    A kernel of your own is MODULE.CLASS, with its default parameters; the module must be imported already.

    >>> str(kernels_from_words(["bits=tanimoto", "descriptors=linear+matern:0.5"])["descriptors"][1])
    'Matern 5/2, 0.5'
    """
    if len(words) == 1 and "=" not in words[0]:
        return _choice(words[0])
    named: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name in named:
            raise ValueError(f"kernels must be given as NAME=KERNEL, once for every map, got {word!r}")
        named[name] = text
    return kernels_by_name(named)


def kernels_by_name(words: Mapping[str, str]) -> KernelChoice:
    """Kernels from {name of a map: "auto", "linear" or KERNEL+KERNEL}."""
    return {name: _choice(text) for name, text in words.items()}


def _choice(text: str) -> Choice:
    if text == AUTO:
        return AUTO
    return LINEAR if text == LINEAR else [_kernel(part.strip()) for part in text.split("+")]


def _kernel(text: str) -> Kernel:
    word, colon, scale = text.partition(":")
    own = kernel_classes().get(word) if "." in word else None  # MODULE.CLASS of the user
    if own is None and word.lower() not in _KERNELS:
        raise ValueError(f"unknown kernel {text!r}; known are {', '.join(_KERNELS)}, and auto for a whole map")
    kernel = _KERNELS[word.lower()] if own is None else _with_defaults(own)
    if not colon:
        return kernel
    try:
        number = float(scale)
    except ValueError:
        raise ValueError(f"the lengthscale in {text!r} must be a number") from None
    if isinstance(kernel, Stationary) and not isinstance(kernel, ARD):
        return kernel.replaced(lengthscale=number)
    raise ValueError(f"{word} has no lengthscale, got {text!r}")


def _with_defaults(kind: type[Kernel]) -> Kernel:
    try:
        return kind()
    except TypeError as error:
        raise ValueError(f"kernel {kind.__name__} has no default parameters, pass it in Python: {error}") from None
