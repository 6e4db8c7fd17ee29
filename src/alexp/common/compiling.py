"""Compilation: how functions are marked for it, and where their code is kept.

`checked` and `ieee` differ in what division by zero does, an exception or infinity and NaN.  `compact` is `ieee` for
functions whose own loops are short: made for size, their code takes half the time to compile and is no slower.  Long
loops belong in functions that these call.  Each has three decorators:

* ``entry``: Python may call it.  Its code, with that of all it calls, is kept on disk.
* ``kernel``: only compiled code calls it.
* ``leaf``: a kernel that makes no arrays.  It does without reference counts, which Numba otherwise keeps for every
  slice and which cost as much as the work on a small model.

Nothing here needs attention when a kernel changes: kept code is valid for the sources it was made of.  A folder holds
the code of one state of the sources: its name is a hash of every file of this library that holds compiled functions,
and of the versions of Numba, llvmlite and Python.  Each function and signature is one file, which begins with a hash of
what follows.  Files are written under another name and renamed, so that processes may share a folder; a file that is
damaged counts as missing and is written again.

``NUMBA_CACHE_DIR`` names the place of such folders.  Without it they are beside the sources and in the user's cache
folder: both are read, the first that can be written to is written to.  If there is none, a private folder for temporary
files takes its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import llvmlite
import numba
from llvmlite.binding import parse_bitcode
from numba import njit
from numba.core import config
from numba.core.caching import _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from alexp.common.files import write_bytes
from alexp.common.memory import is_lack_of_memory

Internal = Any  # Numba's and LLVM's own objects are typed in part, and differently by every version

# The first and the last version of Numba whose inner workings were tried; others compile the same code, slowly.
_TRIED = ((0, 63), (0, 68))

PIPELINES: dict[str, type[Internal]] = {}
if _TRIED[0] <= tuple(int(part) for part in numba.__version__.split(".")[:2]) <= _TRIED[1]:
    from alexp.common._numba_pipeline import PIPELINES

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

    def _entry(self, function: Function, fastmath: set[str] | None = None) -> Function:
        options: dict[str, Any] = {} if fastmath is None else {"fastmath": fastmath}
        options["no_cfunc_wrapper"] = True  # for calls from C, of which there are none
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


# -- code on disk ---------------------------------------------------------------------------------------------------

PACKAGE = Path(__file__).resolve().parents[1]
_MARK = b"alexp.common.compiling"  # what a file with compiled functions imports
_PREFIX = "alexp-code-"
_DIGEST = 32
_SHARED = {Path("/tmp"), Path("/var/tmp")}  # folders for temporary files, also when they are the working directory
_FORGOTTEN = 60 * 86_400.0  # seconds after which the code of other sources is thrown away


def kernel_files(package: Path = PACKAGE) -> list[Path]:
    """The files that decide what compiled code does, in a fixed order."""
    compilers = {package / "common" / name for name in ("compiling.py", "_numba_pipeline.py")}
    return sorted(path for path in package.rglob("*.py") if path in compilers or _MARK in path.read_bytes())


@cache
def source_stamp(package: Path = PACKAGE) -> str:
    """Hash of all kernel sources and of the tools that compile them; that a file was touched does not matter."""
    tools = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag)
    total = hashlib.sha256(repr(tools).encode())
    for path in kernel_files(package):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(package).as_posix()} {content}\n".encode())
    return total.hexdigest()[:24]


def _places() -> Iterator[Path]:
    """Where a folder may be, the best place first.

    What is read from there is executed, so that no place depends on the working directory. Without a home, AppDirs
    names one below the relative path "~".
    """
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
        return
    yield PACKAGE / "__pycache__"
    with contextlib.suppress(RuntimeError, OSError, KeyError):  # a user without a home
        yield Path(AppDirs(appname="alexp", appauthor=False).user_cache_dir)


class _Folders:
    """The folders of this process, looked for when code is first wanted."""

    def __init__(self) -> None:
        name = _PREFIX + source_stamp()
        self.read = [place / name for place in _places() if place.is_absolute()]
        if config.CACHE_DIR and not Path(config.CACHE_DIR).is_absolute():
            warnings.warn(
                f"NUMBA_CACHE_DIR must be an absolute path for alexp to use it, got {config.CACHE_DIR!r}: code is not "
                "read from the working directory",
                RuntimeWarning,
                stacklevel=2,
            )
        self.write = next((folder for folder in self.read if _writable(folder)), None)
        if self.write is None:
            self.write = _private_folder(name)
            if self.write is None:
                told = "it is compiled again by every process"
            else:
                self.read.append(self.write)
                told = f"it goes to {self.write.parent}"
            warnings.warn(
                f"alexp found no folder to keep compiled code in; {told}. Set NUMBA_CACHE_DIR to a folder that can be "
                "written to.",
                RuntimeWarning,
                stacklevel=2,
            )
        else:
            _forget_others(self.write)


@cache
def _folders() -> _Folders:
    return _Folders()


def cache_folder() -> Path | None:
    """Where compiled code is kept, or None if it cannot be."""
    return _folders().write


def _writable(folder: Path) -> bool:
    """Whether files can be made there; makes the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _private_folder(name: str) -> Path | None:
    """A folder for temporary files that no other user can write to, or None.

    What is read from there is executed.  A folder that others own or may enter, or a link, is therefore not used.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    place = Path(tempfile.gettempdir())
    if place == Path.cwd() and place not in _SHARED:  # where Python goes if there is nothing better
        return None
    own = place / f"alexp-code-of-{user}"
    try:
        with contextlib.suppress(FileExistsError):
            own.mkdir(mode=0o700)
        found = own.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
            return None
        if hasattr(os, "getuid") and found.st_uid != user:
            return None
    except OSError:
        return None
    return own / name if _writable(own / name) else None


def _forget_others(folder: Path) -> None:
    """Mark this folder as used, and remove its neighbours that no process has used for long."""
    with contextlib.suppress(OSError):
        os.utime(folder)
        for other in folder.parent.glob(_PREFIX + "*"):
            if other != folder and time.time() - other.stat().st_mtime > _FORGOTTEN:
                shutil.rmtree(other, ignore_errors=True)


class CodeCache(_Cache):  # type: ignore[misc]
    """The compiled signatures of one function, as Numba's dispatchers ask for them."""

    def __init__(self, function: Callable[..., Internal]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._function = function
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """Where new code goes."""
        folder = _folders().write
        return None if folder is None else str(folder)

    def load_overload(self, signature: Internal, target: Internal) -> Internal:
        """The compiled function for a signature, or None.

        Numba would first load all it knows about types and operators, as for compiling, which takes longer than the
        rest of a start.  Code that is there already needs the allocator of arrays only.
        """
        rtsys.initialize(target)
        if not self._enabled:
            return None
        name = self._file(signature, target.codegen())
        for folder in _folders().read:
            data = _read(folder / name)
            if data is not None:
                try:
                    return _rebuilt(target, pickle.loads(data))
                except Exception as error:  # the code is of something that has gone: compiling it again helps
                    if is_lack_of_memory(error):
                        raise
                    _discard(folder / name)
        return None

    def save_overload(self, signature: Internal, compiled: Internal) -> None:
        """Keep a compiled function; where that fails the next process compiles it again."""
        folder = _folders().write
        if not self._enabled or folder is None:
            return
        if compiled.library.has_dynamic_globals:  # addresses of this process
            warnings.warn(f"the code of {self._name} cannot be kept", RuntimeWarning, stacklevel=2)
            return
        data = dumps(compiled._reduce())
        with contextlib.suppress(OSError):
            _write(folder / self._file(signature, compiled.codegen), data)

    def enable(self) -> None:
        """Use the cache."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write."""
        self._enabled = False

    def flush(self) -> None:
        """Forget the code of this function."""
        folder = _folders().write
        if folder is not None:
            for path in folder.glob(f"{self._name}-*.nbc"):
                _discard(path)

    def _file(self, signature: Internal, codegen: Internal) -> str:
        key = repr((signature, codegen.magic_tuple(), int(config.OPT), config.BOUNDSCHECK))
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc"


class _Kept(JITCodeLibrary):  # type: ignore[misc]
    """Code from disk.  The form of it that other code can be made of is read only when that is asked for."""

    _shared_module: Internal

    def __init__(self, codegen: Internal, name: str, machine_code: bytes, bitcode: bytes) -> None:
        super().__init__(codegen, name)
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._bitcode = bitcode
        self._finalize_final_module()

    def _get_module_for_linking(self) -> Internal:
        if self._shared_module is None:
            self._shared_module = parse_bitcode(self._bitcode)
        return self._shared_module


class _Loader:
    """A target that, asked for a library of code, makes it from what was kept."""

    def __init__(self, target: Internal, function: Internal) -> None:
        self._target = target
        self._function = function

    def __getattr__(self, name: str) -> Internal:
        return getattr(self._target, name)

    def codegen(self) -> _Loader:
        """What Numba asks for a library."""
        return self

    def unserialize_library(self, state: Internal) -> _Kept:
        """The library, of which only the function itself can be called by name."""
        name, _, (machine_code, bitcode) = state
        codegen = self._target.codegen()
        library = _Kept(codegen, name, machine_code, bitcode)
        names = self._function.llvm_func_name, self._function.llvm_cpython_wrapper_name
        codegen._engine._defined_symbols.update(names)
        return library


def _rebuilt(target: Internal, state: Internal) -> Internal:
    """The compiled function of which this is the ``_reduce``."""
    loader = _Loader(target, state[1])
    return CompileResult._rebuild(loader, *state)._replace(target_context=target)


def _read(path: Path) -> bytes | None:
    """What was kept there, or None; a damaged file is removed."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
        _discard(path)
        return None
    return content[_DIGEST:]


def _write(path: Path, data: bytes) -> None:
    """Put a file into place at once, also while others write it; one that a crash has damaged is noticed."""
    write_bytes(path, hashlib.sha256(data).digest() + data, sync=False)


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


# -- forks ----------------------------------------------------------------------------------------------------------
# A child inherits Numba's lock, and none of the threads. If another thread compiles at that moment, the lock would stay
# locked in the child for ever. A fork therefore waits until no thread compiles. Where that takes too long, compiling in
# the child raises an error that says why, and does not hang.

PATIENCE = 120.0  # seconds for which a fork waits; everything together compiles in less
_holding = threading.local()


class _Torn:
    """In the place of a lock whose owner does not exist in this process."""

    def acquire(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise RuntimeError(
            f"this process was forked while another thread compiled for more than {PATIENCE:g} s, and cannot compile: "
            "fork before threads use alexp, start workers with multiprocessing's 'spawn', or run `alexp warmup` once"
        )

    def release(self) -> None:
        """Nothing is held."""

    def _is_owned(self) -> bool:
        return False


def _before() -> None:
    _holding.lock = global_compiler_lock._lock.acquire(timeout=PATIENCE)


def _after_in_parent() -> None:
    if _holding.lock:
        global_compiler_lock._lock.release()


def _after_in_child() -> None:
    if _holding.lock:
        global_compiler_lock._lock.release()
    else:
        global_compiler_lock._lock = _Torn()


if hasattr(os, "register_at_fork") and hasattr(global_compiler_lock, "_lock"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


checked = Decorators("python")
ieee = Decorators("numpy")
compact = Decorators("numpy", "compact ")
