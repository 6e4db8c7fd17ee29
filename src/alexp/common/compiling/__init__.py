"""Everything about compilation: how functions are marked for it, and where their code is kept.

`checked` and `ieee` differ in what division by zero does, an exception or infinity and NaN.  `compact` is `ieee` for
functions whose own loops are short: made for size, their code takes half the time to compile and is no slower.  Long
loops belong in functions that these call.  Each has three decorators:

* ``entry``: Python may call it.  Its code, with that of all it calls, is kept on disk (`_code_cache`).
* ``kernel``: only compiled code calls it.
* ``leaf``: a kernel that makes no arrays.  It does without reference counts, which Numba otherwise keeps for every
  slice and which cost as much as the work on a small model.

Nothing here needs attention when a kernel changes: kept code is valid for the sources it was made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import njit
from numba.core.dispatcher import Dispatcher

from alexp.common.compiling import _forking as _forking  # forks wait for compilations
from alexp.common.compiling._code_cache import CodeCache, cache_folder
from alexp.common.compiling._internals import Internal

# The first and the last version of Numba whose inner workings were tried; others compile the same code, slowly.
_TRIED = ((0, 63), (0, 68))

PIPELINES: dict[str, type[Internal]] = {}
if _TRIED[0] <= tuple(int(part) for part in numba.__version__.split(".")[:2]) <= _TRIED[1]:
    from alexp.common.compiling._pipeline import PIPELINES

__all__ = ["cache_folder", "checked", "compact", "ieee", "variant"]

Function = TypeVar("Function", bound=Callable[..., Any])
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Decorators:
    """Ways to compile functions that agree on division by zero (`error_model` of Numba)."""

    def __init__(self, error_model: str, style: str = "") -> None:
        self._common: dict[str, Any] = {"nogil": True, "error_model": error_model}
        self._style = style

    def entry(self, function: Function) -> Function:
        """Compile a function that Python calls, and keep the result."""
        return self._entry(function)

    def fused_entry(self, function: Function) -> Function:
        """``entry`` where the compiler may turn a product and a sum into one operation, which rounds differently."""
        return self._entry(function, fastmath={"contract"})

    def kernel(self, function: Function) -> Function:
        """Compile a function that compiled code calls."""
        return _compiled(function, self._common | _INNER | self._pipeline("kernel"))

    def leaf(self, function: Function) -> Function:
        """Compile a function that compiled code calls and that makes no arrays."""
        return _compiled(function, self._common | _INNER | self._pipeline("kernel") | {"_nrt": False})

    def loose_leaf(self, function: Function) -> Function:
        """``leaf`` where the compiler may fuse and reorder sums: only for what allows for both."""
        options = {"_nrt": False, "fastmath": {"contract", "reassoc"}}
        return _compiled(function, self._common | _INNER | self._pipeline("loop") | options)

    def _entry(self, function: Function, **options: Any) -> Function:
        options |= {"no_cfunc_wrapper": True}  # for calls from C, of which there are none
        compiled = _compiled(function, self._common | self._pipeline("entry") | options)
        if isinstance(compiled, Dispatcher):  # and not the function itself, as NUMBA_DISABLE_JIT asks for
            vars(compiled)["_cache"] = CodeCache(function)
        return compiled

    def _pipeline(self, kind: str) -> dict[str, Any]:
        found = PIPELINES.get(self._style + kind)
        return {} if found is None else {"pipeline_class": found}


def variant(kind: str) -> Callable[[Function], Function]:
    """Give a function that is defined several times over, inside another, a name for this time.

    Code is linked and kept under the names of functions, so two that differ must not share one.
    """

    def named(function: Function) -> Function:
        function.__qualname__ = f"{function.__qualname__}.{kind}"
        return function

    return named


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    decorate: Callable[[Function], Function] = njit(**options)
    return decorate(function)


checked = Decorators("python")
ieee = Decorators("numpy")
compact = Decorators("numpy", "compact ")
