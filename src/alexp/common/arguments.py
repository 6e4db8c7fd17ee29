"""Keyword arguments: full signatures of constructors, and errors that name the nearest right keyword."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import NamedTuple, NoReturn, ParamSpec, TypeVar

from alexp.common.validation import nearest

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)


class Accepted(NamedTuple):
    """An object that an argument takes, and the keywords that construct it."""

    argument: str
    name: str  # as a user writes it
    keywords: Collection[str]


@cache
def constructor(kind: type) -> Signature:
    """The signature of a constructor, with the keywords that it hands on to those of its base classes.

    A class that lists its `settings` has no keyword that only those of its base classes list.

    >>> class Base:
    ...     def __init__(self, *, size: int = 1): ...
    >>> class Derived(Base):
    ...     def __init__(self, name: str, **more): super().__init__(**more)
    >>> str(constructor(Derived))
    "(name: 'str', *, size: 'int' = 1)"
    """
    found: dict[str, Parameter] = {}
    for ancestor in kind.__mro__[:-1]:
        if "__init__" in vars(ancestor):
            own = list(signature(vars(ancestor)["__init__"]).parameters.values())[1:]
            for one in own:
                found.setdefault(one.name, one)
            if not any(one.kind is Parameter.VAR_KEYWORD for one in own):
                break
            found = {name: one for name, one in found.items() if one.kind is not Parameter.VAR_KEYWORD}
    inherited = {name for ancestor in kind.__mro__ for name in getattr(ancestor, "settings", ())}
    for name in inherited.difference(getattr(kind, "settings", ())):
        found.pop(name, None)
    return Signature(sorted(found.values(), key=lambda one: one.kind))


class FullSignature:
    """`__signature__` of classes whose constructors hand keywords on: `inspect.signature` shows all of them.

    `more` names the keywords that are passed to an object inside, and can be any.
    """

    def __init__(self, more: str = "") -> None:
        self._more = more

    def __get__(self, instance: object, owner: type) -> Signature:
        found = constructor(owner)
        more = [Parameter(self._more, Parameter.VAR_KEYWORD)] if self._more else []
        return found.replace(parameters=[*found.parameters.values(), *more])


def check_keywords(
    what: str, given: Mapping[str, object], known: Collection[str], parts: Iterable[Accepted] = ()
) -> None:
    """Raise TypeError if `what` takes no keyword of some name: with the nearest one, or the part that takes it."""
    for name in given:
        if name not in known:
            _refuse(what, name, given[name], known, list(parts))


def _refuse(what: str, name: str, value: object, known: Collection[str], parts: list[Accepted]) -> NoReturn:
    inside = {keyword: part for part in reversed(parts) for keyword in part.keywords}
    meant = name if name in inside else nearest(name, [*inside, *known])
    shown = repr(value) if isinstance(value, bool | int | float | str | None) and len(repr(value)) <= 40 else "..."
    if meant is None:
        remedy = f"; it takes {', '.join(known)}"
    elif meant in known:
        remedy = f"; did you mean {meant!r}?"
    else:
        asked = "" if meant == name else f"; did you mean {meant!r}?"
        belongs = f"{inside[meant].argument}={inside[meant].name}({meant}={shown})"
        remedy = f"{asked} Pass {belongs}" if asked else f": pass {belongs}"
    raise TypeError(f"{what} has no argument {name!r}{remedy}")


def explained(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function with an error that names the nearest right keyword in place of a wrong one."""
    parameters = signature(function).parameters.values()
    known = [one.name for one in parameters if one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    shown = known[1:] if known[:1] in (["self"], ["cls"]) else known
    what = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        check_keywords(what, kwargs, shown)
        return function(*args, **kwargs)

    return call


def explains_keywords(kind: _C) -> _C:
    """A class whose constructors, `__init__` and public class methods, are `explained`."""
    for name, value in list(vars(kind).items()):
        if name == "__init__":
            setattr(kind, name, explained(value))
        elif isinstance(value, classmethod) and not name.startswith("_"):
            setattr(kind, name, classmethod(explained(value.__func__)))
    return kind
