"""Numba's cache must notice every change of a kernel, also of one in another file."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

import pytest

import alexp.estimation

FOLDER = Path(alexp.estimation.__file__).parent
PREFIX = "alexp.estimation."
SOURCES = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
COMPILED = {name for name, text in SOURCES.items() if re.search(r"^@(njit|leaf|kernel)", text, re.MULTILINE)}
CACHED = {name for name, text in SOURCES.items() if re.search(r"^@njit\(.*cache=True", text, re.MULTILINE)}
STAMP = re.compile(r'^INGREDIENTS = "(\w*)"$', re.MULTILINE)


def imported_kernels(name):
    """Modules with compiled functions that this one imports."""
    nodes = [node for node in ast.walk(ast.parse(SOURCES[name])) if isinstance(node, ast.ImportFrom)]
    modules = {node.module.removeprefix(PREFIX) for node in nodes if node.module and node.module.startswith(PREFIX)}
    return {module for module in modules if module in COMPILED}


def ingredients(name):
    """All of them, and those they import in turn."""
    found, waiting = set(), imported_kernels(name)
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= imported_kernels(module) - found
    return found


def fingerprint(entry):
    """What its ingredients are, apart from their own stamps."""
    sources = "".join(STAMP.sub("", SOURCES[module]) for module in sorted(ingredients(entry)))
    return hashlib.sha256(sources.encode()).hexdigest()[:12]


def test_the_modules_are_found():
    assert "_lasso_cone" in ingredients("_lasso_subset_kernels")
    assert ingredients("_sweep_kernels") == {"_screen_kernels", "_block_kernels", "_ridge_kernels"}
    assert not ingredients("_ridge_kernels")


@pytest.mark.parametrize("entry", sorted(name for name in CACHED if ingredients(name)))
def test_a_changed_kernel_invalidates_the_caches_of_those_that_use_it(entry):
    """Numba compares the time stamp of one file only, so a file says what it was compiled from."""
    stamp = STAMP.search(SOURCES[entry])
    assert stamp, f'{entry}.py needs a line INGREDIENTS = "{fingerprint(entry)}"'
    assert stamp[1] == fingerprint(entry), f"run: python {Path(__file__).relative_to(Path.cwd())}"


if __name__ == "__main__":
    for entry in CACHED:
        (FOLDER / f"{entry}.py").write_text(STAMP.sub(f'INGREDIENTS = "{fingerprint(entry)}"', SOURCES[entry]))
