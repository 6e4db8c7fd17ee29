"""Everything public has a docstring: the names of the public modules, and methods and properties of their classes."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

PUBLIC = ["alexp", "alexp.extend", "alexp.kernels", "alexp.rules", "alexp.ope", "alexp.theory", "alexp.study"]


def undocumented(name, value):
    if inspect.ismodule(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
        return
    if not inspect.getdoc(value):
        yield name
    if not inspect.isclass(value) or not value.__module__.startswith("alexp"):
        return
    for member, kind in inspect.getmembers(value):
        function = kind.fget if isinstance(kind, property) else kind
        own = getattr(function, "__module__", None) or ""
        if not member.startswith("_") and callable(function) and own.startswith("alexp") and not inspect.getdoc(kind):
            yield f"{name}.{member}"


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_api_has_docstrings(module):
    found = import_module(module)
    names = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
    assert [missing for name in names for missing in undocumented(name, getattr(found, name))] == []


@pytest.mark.parametrize("module", ["alexp", *(name for name in PUBLIC[2:] if name != "alexp.study"), "alexp.testing"])
def test_the_reference_has_every_public_name(module):
    """`alexp.extend` and `alexp.study` have pages of their own that leave out what is internal to their rooms."""
    pages = (Path(__file__).parent.parent / "docs").rglob("*.md")
    named = {line for page in pages for line in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)}
    last = {line.rpartition(".")[2] for line in named}
    found = import_module(module)
    names = getattr(found, "__all__", None) or [name for name in dir(found) if not name.startswith("_")]
    missing = [name for name in names if not inspect.ismodule(getattr(found, name)) and name not in last]
    assert module in named or missing == []
