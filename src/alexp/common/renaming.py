"""Arguments that have got a better name and still answer to the old one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def renamed(**names: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Let a function take keywords by their former names.

    >>> @renamed(size="length")
    ... def double(length):
    ...     return 2 * length
    >>> double(size=3), double(length=3), double(3)
    (6, 6, 6)
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            for old, new in names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f"{function.__name__}() takes {new} or, by its former name, {old}; not both")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
