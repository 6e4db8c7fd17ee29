"""Which code made a result: a hash of the sources behind some modules."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

_OWN = frozenset({"alexp", "alexp_experiments"})
# It imports every kind of component there is. A task names those that it uses, and an algorithm imports its own.
_KNOWS_ALL = "alexp.algorithms.components"


@lru_cache(maxsize=64)
def code_fingerprint(*modules: str) -> str:
    """Hash of the sources of some modules and of all that they import from the library, from here or their own package.

    Results are kept under it, so that a change to the code that made them makes them again, and a change
    elsewhere does not. Imports for type checkers alone make no results.
    """
    seen = sources(*modules)
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name] + b"\0")
    return digest.hexdigest()[:16]


def sources(*modules: str) -> dict[str, bytes]:
    """Sources of some modules and of every module behind them, by name."""
    packages = frozenset({*_OWN, *(name.partition(".")[0] for name in modules)})
    pending, seen = list(modules), dict[str, bytes]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen[name], imported = read_module(name, packages)
            pending += imported if name != _KNOWS_ALL else []
    return seen


@lru_cache(maxsize=1024)
def read_module(name: str, packages: frozenset[str] = _OWN) -> tuple[bytes, list[str]]:
    """Source of a module, and the modules of some packages that it imports; nothing for what is not Python."""
    path, package = _find(name)
    if path is None:
        return b"", []
    source = path.read_bytes()
    return source, list(_imported(ast.parse(source), package, packages))


def _find(name: str) -> tuple[Path | None, str]:
    """Source file of a module, and the package that its relative imports start from."""
    if name in ("__main__", "__mp_main__"):  # a script, which has no specification to be found by
        origin, package = getattr(sys.modules[name], "__file__", None), ""
    else:
        spec = find_spec(name)
        origin, package = (None, "") if spec is None else (spec.origin, spec.parent or "")
    return (Path(origin) if origin is not None and origin.endswith(".py") else None), package


def _imported(tree: ast.Module, package: str, packages: frozenset[str]) -> Iterator[str]:
    """Modules of some packages imported anywhere in a source; `from a import b` may mean the module a.b."""
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in packages)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            if module.partition(".")[0] in packages:
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names if _is_module(module, alias.name))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        unread = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if not unread:
            yield node
            yield from _run(node)


def _is_module(package: str, name: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError, ValueError):
        return find_spec(f"{package}.{name}") is not None
    return False
