"""Prose of pages: Markdown with places for numbers, in files beside the modules that fill them."""

from __future__ import annotations

import re
import textwrap
from functools import cached_property
from importlib.resources import files
from string import Formatter

_NAME = re.compile(r"^<!-- ([^>]+) -->\n", re.MULTILINE)
_OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)


class Prose:
    """The passages of a Markdown file of a package, by name.

    A line ``<!-- NAME -->`` begins a passage. Places are those of `str.format`. What stands in ``[[...]]`` is left out
    if a value in it is None: it was not measured.
    """

    def __init__(self, package: str, file: str) -> None:
        self._package, self._file = package, file

    @cached_property
    def _passages(self) -> dict[str, str]:
        text = files(self._package).joinpath(self._file).read_text(encoding="utf-8")
        _, *parts = _NAME.split(text)
        return {name: body.strip("\n") for name, body in zip(parts[::2], parts[1::2], strict=True)}

    def __call__(self, name: str, **values: object) -> str:
        """A passage with its places filled."""
        return fill(self._passages[name], **values)

    def line(self, name: str, **values: object) -> str:
        """The same with every paragraph and every point of a list on one line."""
        return reflow(self(name, **values))

    def flow(self, name: str, **values: object) -> str:
        """The same in lines of at most 118 characters."""
        return reflow(self(name, **values), 118)

    @property
    def names(self) -> list[str]:
        """All passages, in the order of the file."""
        return list(self._passages)


def fill(text: str, **values: object) -> str:
    """A text with its places filled.

    >>> fill("{a:.1f}[[, {b} times]].", a=1.0, b=None), fill("{a:.1f}[[, {b} times]].", a=1.0, b=2)
    ('1.0.', '1.0, 2 times.')
    """

    def optional(match: re.Match[str]) -> str:
        places = {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(match[1]) if name}
        return "" if any(values[name] is None for name in places) else match[1]

    return _OPTIONAL.sub(optional, text).format(**values)


def reflow(text: str, width: int | None = None) -> str:
    """Paragraphs and points of lists in lines of at most `width` characters, or one line each; tables as they are."""
    return "\n\n".join(_reflowed(block, width) for block in text.split("\n\n"))


def _reflowed(block: str, width: int | None) -> str:
    if block.startswith(("#", "|", "!")):
        return block
    ends = r"\n(?=\d+\. )" if block.startswith("1. ") else r"\n(?=- )"
    points = [" ".join(point.split()) for point in re.split(ends, block)]
    if width is None:
        return "\n".join(points)
    return "\n".join(
        textwrap.fill(point, width, subsequent_indent="  " * point.startswith("- "), break_on_hyphens=False)
        for point in points
    )
