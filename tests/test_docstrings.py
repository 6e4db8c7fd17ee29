"""Everything public has a docstring: the names of the public modules, and methods and properties of their classes."""

import inspect
from importlib import import_module

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
