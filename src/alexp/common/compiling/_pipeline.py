"""How Numba is made to compile this library: every function is translated once and optimised once.

Left to itself Numba optimises a function, emits machine code for it, and does both again inside each caller, at every
level of the call tree.  Functions that only compiled code calls are therefore left as translated; their code is linked
into the entry points that reach them, which alone are optimised and made executable.  Steps of Numba's front end that
these functions have no use for are left out: object mode, closures, array expressions, branches on None.
"""

from __future__ import annotations

from collections.abc import Callable

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.lowering import Lower
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

from alexp.common.compiling._internals import Internal
from alexp.common.compiling._notice import Notice
from alexp.common.compiling._shortcuts import QuickFlags, Sizes, nothing_new, remembered_signatures, without_collector

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
