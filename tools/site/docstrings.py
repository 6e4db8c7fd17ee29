"""Docstrings as Markdown: lists of parameters become lists, doctests become code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_TITLE = re.compile(r"^(Parameters|Attributes|Returns|Example|Examples|Notes|Raises)\n-{3,}$", re.M)
_ITEM = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.*))?$")


def _items(lines: list[str]) -> list[str]:
    """`name : text`, or `name` with the text in the lines below, as a list; ends where neither is there."""
    out: list[str] = []
    for at, line in enumerate(lines):
        found = _ITEM.match(line)
        if not found and line.strip() and not line.startswith("    "):
            return [*out, *lines[at:]]
        if found:
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            out.append(f"- {names}: {found[2] or ''}".rstrip())
        elif out and line.startswith("    "):
            out.append("    " + line.strip())
        else:
            out.append(line)
    return out


def _doctests(lines: list[str]) -> list[str]:
    """Examples in a fence of their own; they end at an empty line."""
    out: list[str] = []
    inside = False
    for line in [*lines, ""]:
        if not inside and line.lstrip().startswith(">>> "):
            out += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line if inside else _escaped(line))
    return out[:-1]


def _escaped(text: str) -> str:
    """An inner product <x, z> is no tag."""
    outside = re.split(r"(`+[^`]+`+)", text)
    outside[::2] = [part.replace("<", "&lt;") for part in outside[::2]]
    return "".join(outside)


def markdown(text: str) -> str:
    """A docstring of this library as Markdown."""
    parts = _TITLE.split(text)
    out = [parts[0]]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        out += [f"**{title}**", "", *_items(body.strip("\n").splitlines()), ""]
    return "\n".join(_doctests("\n".join(out).splitlines()))


class Ours(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """One object."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
