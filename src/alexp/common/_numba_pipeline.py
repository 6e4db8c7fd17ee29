"""How Numba is made to compile this library faster: private internals of Numba, used for versions that were tried.

The first rounds of ALExp with nothing kept take 10 to 25 s of processor time with this, 63 to 76 s with Numba's own
`njit(cache=True)`; those of EvidenceMixture 3 to 5 s and 4 to 7 s.

Left to itself Numba optimises a function, emits machine code for it, and does both again inside each caller, at every
level of the call tree. Here every function is translated once and optimised once. Functions that only compiled code
calls are left as translated; their code is linked into the entry points that reach them, which alone are optimised and
made executable. Steps of Numba's front end that these functions have no use for are left out: object mode, closures,
array expressions, branches on None. What Numba would look up again for every line is looked up once.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.lowering import Lower
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

Internal = Any  # Numba's and LLVM's own objects are typed in part, and differently by every version

TEXT = "alexp: compiling for this machine, once; later runs start at once (`alexp warmup` does it ahead)"


class Notice:
    """What this process has spent on compiling, and whether it has said so."""

    patience: ClassVar[float] = 1.0  # seconds of compiling, all together, that need no explanation
    spent: ClassVar[float] = 0.0
    said: ClassVar[bool] = False
    _depth: ClassVar[int] = 0

    @classmethod
    @contextmanager
    def while_compiling(cls) -> Iterator[None]:
        """Count the time of the block (that of the outermost, if nested) and speak up when it gets long."""
        cls._depth += 1  # compilations hold Numba's lock, so no other thread is here
        outermost = cls._depth == 1
        timer = None
        if outermost and not cls.said and sys.stderr is not None and sys.stderr.isatty():
            timer = threading.Timer(max(cls.patience - cls.spent, 0.0), cls._say)
            timer.daemon = True
            timer.start()
        begin = time.perf_counter()
        try:
            yield
        finally:
            cls._depth -= 1
            if outermost:
                cls.spent += time.perf_counter() - begin
            if timer is not None:
                timer.cancel()

    @classmethod
    def _say(cls) -> None:
        if not cls.said:
            cls.said = True
            print(TEXT, file=sys.stderr, flush=True)


# -- what is looked up once ----------------------------------------------------------------------------------------

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


# -- what is compiled once -----------------------------------------------------------------------------------------

_FRONT = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    GenericRewrites,  # constant indices, which named tuples need
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
)


class _Steps(PassManager):  # type: ignore[misc]
    """Steps whose output is trusted: Numba's checks between them take longer than some of the steps."""

    _ENFORCING = False


class _Lower(Lower):  # type: ignore[misc]
    """Translates a function that only compiled code calls."""

    def emit_environment_object(self) -> None:
        """Leave out the Python objects that the function refers to; an operation that needs them declares them."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):  # type: ignore[misc]
    _name = "alexp_kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What translates."""
        return _Lower


class _NoEngine:
    """A code generator as seen by a function without machine code: there is nowhere to put its environment."""

    def __init__(self, codegen: Internal) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Internal:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Internal) -> None:
        """Leave it to the entry points that link the function."""


class Translated(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that is neither optimised nor made executable by itself."""

    @property
    def codegen(self) -> _NoEngine:
        """What Numba asks for when it wants to make a function executable."""
        return _NoEngine(self._codegen)

    def finalize(self) -> None:
        """Accept no more code."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Zero: no symbol has an address."""
        self._ensure_finalized()
        return 0

    def _optimize_functions(self, module: Internal) -> None:
        """Tidy up only; the thorough passes come when it is linked."""
        _tidy(self._codegen, module, super()._optimize_functions)

    def own_module(self) -> Internal:
        """The code of the function itself, to be linked with that of its callees."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Internal:
        """The function and all it calls, for callers that were compiled in Numba's ordinary way."""
        whole = self.own_module().clone()
        for library in _callers_first(self):
            if library is not self:
                alone = library.own_module() if isinstance(library, Translated) else library._get_module_for_linking()
                whole.link_in(alone, preserve=True)
        return whole


class Compact(Translated):
    """The same, to be optimised for size: short loops are neither vectorised nor unrolled, large callees not copied."""

    def add_ir_module(self, module: Internal) -> None:
        """Take in code as Numba wrote it."""
        _keep_small(module)
        super().add_ir_module(module)


class Polished(Translated):
    """The same, optimised by itself: long loops are vectorised best before they disappear into their callers."""

    def finalize(self) -> None:
        """Accept no more code, and optimise what there is."""
        self._optimize_final_module()
        super().finalize()


class Whole(JITCodeLibrary):  # type: ignore[misc]
    """The code of an entry point and of all it calls."""

    def finalize(self) -> None:
        """Link, optimise and make executable."""
        ordinary = []
        for library in _callers_first(self)[1:]:
            if isinstance(library, Translated):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library.own_module(), preserve=True)
            else:
                ordinary.append(library)
        self._linking_libraries[:] = ordinary
        super().finalize()

    def _optimize_functions(self, module: Internal) -> None:
        """Tidy up only; the thorough passes come with all that is linked."""
        _tidy(self._codegen, module, super()._optimize_functions)

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            if variable.name.startswith("_ZN08NumbaEnv"):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)


class CompactWhole(Whole):
    """The same, itself optimised for size."""

    def add_ir_module(self, module: Internal) -> None:
        """Take in code as Numba wrote it."""
        _keep_small(module)
        super().add_ir_module(module)


def _keep_small(module: Internal) -> None:
    for function in module.functions:
        if not function.is_declaration:
            function.attributes.add("optsize")


def _tidy(codegen: Internal, module: Internal, thoroughly: Callable[[Internal], None]) -> None:
    """Run the cheap passes over the functions of a module."""
    try:
        module.data_layout = codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = codegen._function_pass_manager(opt=1)
                passes.run(function, builder)
    except (TypeError, ValueError):  # an older Numba, whose pass managers are made for a module
        thoroughly(module)


def _callers_first(root: Internal) -> list[Internal]:
    """A library and those it needs, in the order in which to link them: what nothing refers to yet is left out."""
    callees_first: dict[Internal, None] = {}

    def visit(library: Internal) -> None:
        if library not in callees_first:
            if library is root or isinstance(library, Translated):
                for part in reversed(library._linking_libraries):
                    visit(part)
            callees_first[library] = None

    visit(root)
    return list(reversed(callees_first))


class EntryCompiler(Compiler):  # type: ignore[misc]
    """Compiles a function that Python calls."""

    _library: type[JITCodeLibrary] = Whole
    _lowering: type[NativeLowering] = NativeLowering

    def define_pipelines(self) -> list[PassManager]:
        """The steps of compilation."""
        steps = _Steps("alexp")
        for step in (*_FRONT, self._lowering, NoPythonBackend):
            steps.add_pass(step, step.__name__)
        steps.finalize()
        return [steps]

    def _compile_core(self) -> CompileResult:
        state = self.state
        state.flags = QuickFlags(state.flags)
        if state.library is None:
            state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        own = vars(state.targetctx)  # a copy that only this function has
        own["refresh"] = nothing_new
        own["get_abi_sizeof"] = Sizes(state.targetctx.get_abi_sizeof)
        with Notice.while_compiling(), without_collector(), remembered_signatures():
            return super()._compile_core()


class KernelCompiler(EntryCompiler):
    """Compiles a function that only compiled code calls."""

    _library = Translated
    _lowering = _KernelLowering


class CompactEntryCompiler(EntryCompiler):
    """Compiles a function that Python calls and that does not spend its time in loops of its own."""

    _library = CompactWhole


class CompactKernelCompiler(KernelCompiler):
    """Compiles a function that only compiled code calls and that does not spend its time in loops of its own."""

    _library = Compact


class LoopCompiler(KernelCompiler):
    """Compiles a function that only compiled code calls and that spends its time in loops of its own."""

    _library = Polished


PIPELINES: dict[str, type[Compiler]] = {
    "entry": EntryCompiler,
    "kernel": KernelCompiler,
    "loop": LoopCompiler,
    "compact entry": CompactEntryCompiler,
    "compact kernel": CompactKernelCompiler,
}
