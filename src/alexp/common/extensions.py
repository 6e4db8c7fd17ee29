"""Classes by name: registries that import what they lack, and classes of other packages.

A package announces what it adds by entry points of the group `alexp.algorithms`; an entry names a class, or a module
whose import is enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, MutableMapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from alexp.common.memory import is_lack_of_memory

GROUP = "alexp.algorithms"
_T = TypeVar("_T")


class Registry(MutableMapping[str, type[Any]]):
    """Classes by name. A missing name, or a listing, first imports the modules `providers`, which add theirs."""

    def __init__(self) -> None:
        self.providers: list[str] = []
        self._classes: dict[str, type[Any]] = {}

    def _complete(self) -> dict[str, type[Any]]:
        for module in self.providers:
            import_module(module)
        return self._classes

    def __getitem__(self, name: str) -> type[Any]:
        return self._classes[name] if name in self._classes else self._complete()[name]

    def __setitem__(self, name: str, kind: type[Any]) -> None:
        self._classes[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._complete()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._complete())

    def __len__(self) -> int:
        return len(self._complete())


def announced(group: str) -> Iterator[tuple[str, object]]:
    """Name and object of every entry point of a group; one that cannot be imported is named in a warning."""
    for point in entry_points(group=group):
        try:
            found = point.load()
        except Exception as error:  # another package must not stop this one
            if is_lack_of_memory(error):
                raise
            what = group.rpartition(".")[2].removesuffix("s")
            warnings.warn(f"{what} {point.name!r} of {point.value} cannot be loaded: {error!r}", stacklevel=2)
        else:
            yield point.name, found


@cache
def load_installed() -> None:
    """Import what installed packages announce, once."""
    for _ in announced(GROUP):
        pass


def stored_name(kind: type) -> str:
    """The name under which a class of another package is stored: its module and its name there."""
    return f"{kind.__module__}.{kind.__qualname__}"


def subclasses(base: type[_T]) -> Iterator[type[_T]]:
    """All subclasses of a class that are imported, a class before its own subclasses."""
    waiting = base.__subclasses__()
    while waiting:
        kind = waiting.pop(0)
        yield kind
        waiting += kind.__subclasses__()


def class_stored_as(base: type[_T], name: str) -> type[_T] | None:
    """The subclass of `base` that is stored under a name, of two the later; None if no imported module defines it.

    Nothing is imported but what installed packages announce.
    """
    found = {stored_name(kind): kind for kind in subclasses(base)}
    if name not in found:
        load_installed()
        found = {stored_name(kind): kind for kind in subclasses(base)}
    return found.get(name)
