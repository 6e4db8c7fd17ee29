"""Shortcuts through Numba's compiler: what it would look up again for every line is looked up once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
from numba.core import types
from numba.core.compiler import Flags
from numba.core.targetconfig import ConfigStack

from alexp.common.compiling._internals import Internal

_SAME_FOR_ALL = hash(Flags())  # Numba hashes flags by their names only


class QuickFlags(Flags):  # type: ignore[misc]
    """Flags that remember their values: Numba compares them for every operator of every line."""

    __slots__ = ("_known",)
    _known: Mapping[str, Internal]

    def values(self) -> Mapping[str, Internal]:
        """All options; flags do not change any more once they are compared."""
        if not hasattr(self, "_known"):
            self._known = super().values()
        return self._known

    def __hash__(self) -> int:
        return _SAME_FOR_ALL

    def __eq__(self, other: object) -> bool:
        return self is other or bool(super().__eq__(other))


def nothing_new() -> None:
    """Do not look for newly registered operations: Numba has just done so, and would again for every array element."""


class Sizes:
    """Sizes in memory, looked up once: Numba has LLVM read a small program to learn each, for every array element."""

    _known: ClassVar[dict[str, int]] = {}

    def __init__(self, measure: Callable[[Internal], int]) -> None:
        self._measure = measure

    def __call__(self, kind: Internal) -> int:
        name = str(kind)
        if name not in self._known:
            self._known[name] = self._measure(kind)
        return self._known[name]


_SIGNATURES: dict[Internal, Internal] = {}
# Their code is the same whatever the options of the caller, and need not be compiled for each of them.
_INDIFFERENT = {min, max, int, np.empty, np.zeros, np.ones}
_FUNCTION: Internal = types.Function
_look_up = _FUNCTION.get_call_type


def _recall(self: Internal, context: Internal, args: Internal, keywords: Internal) -> Internal:
    """The signature of a function or operator for these types, as Numba found it the first time."""
    flags = None if self.typing_key in _INDIFFERENT else ConfigStack.top_or_none()
    options = None if flags is None else (flags.error_model, frozenset(flags.fastmath.flags), flags.nrt)
    try:
        key = self, tuple(args), tuple(keywords.items()), options
        known = _SIGNATURES.get(key)
    except TypeError:  # a constant that cannot be hashed
        return _look_up(self, context, args, keywords)
    if known is None:
        known = _SIGNATURES[key] = _look_up(self, context, args, keywords)
    return known


@contextmanager
def remembered_signatures() -> Iterator[None]:
    """Let Numba remember what it makes of an operator: it tries all that might apply, twice for every line.

    Compiling is under a lock, and what is compiled otherwise goes on without this.
    """
    before = _FUNCTION.get_call_type
    _FUNCTION.get_call_type = _recall
    try:
        yield
    finally:
        _FUNCTION.get_call_type = before


@contextmanager
def without_collector() -> Iterator[None]:
    """Compiling makes a hundred thousand objects that live to its end: there is no garbage to look for among them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
