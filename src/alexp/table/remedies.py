"""What settles a doubt about a file: a keyword of reading and its value, in the words of the door that was used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Self

_OPTIONS = {"kinds": "--kind"}  # the others are called as the keyword
OPEN = "..."  # what the user has to write


@dataclass(frozen=True)
class Remedy:
    """A keyword of reading, and a value that settles the doubt."""

    keyword: str
    value: Any


Words = Callable[[Remedy], str]
Part = str | Remedy
Text = tuple[Part, ...]


def in_python(remedy: Remedy) -> str:
    """As a keyword argument.

    >>> in_python(Remedy("kinds", {"x": "number"})), in_python(Remedy("replace", {"<5": OPEN}))
    ("kinds={'x': 'number'}", "replace={'<5': ...}")
    """
    return f"{remedy.keyword}={_plain(repr(remedy.value))}"


def in_json(remedy: Remedy) -> str:
    """As a field of a request.

    >>> in_json(Remedy("ignore", ["made"]))
    '"ignore": ["made"]'
    """
    return f'"{remedy.keyword}": {json.dumps(remedy.value, ensure_ascii=False)}'


def on_the_command_line(remedy: Remedy) -> str:
    """As options of a command.

    >>> on_the_command_line(Remedy("kinds", {"T (K)": "number"})), on_the_command_line(Remedy("skip", [6, 7]))
    ("--kind 'T (K)=number'", '--skip 6 --skip 7')
    >>> on_the_command_line(Remedy("partial", True))
    '--partial'
    """
    option, value = _OPTIONS.get(remedy.keyword, f"--{remedy.keyword}"), remedy.value
    if value is True:
        return option
    if isinstance(value, Mapping):
        values: Iterable[str] = (f"{key}={one}" for key, one in value.items())
    else:
        values = map(str, value) if isinstance(value, Sequence) and not isinstance(value, str) else [str(value)]
    return " ".join(f"{option} {quote(one)}" for one in values)


def worded(text: Iterable[Part], words: Words = in_python) -> str:
    """Text and remedies, in the words of a door."""
    return "".join(part if isinstance(part, str) else words(part) for part in text)


def _plain(text: str) -> str:
    return text.replace(f"'{OPEN}'", OPEN)


class FileError(ValueError):
    """A file has errors; the message names the file and the lines.

    Attributes
    ----------
    args : the message, in parts: text and remedies. `str(error)` has these as Python has them, `worded` as any door.
    assuming : remedies to suppose in order to look for further problems of the file; empty where there are none.
    each : the problems, where there are several.
    is_of_description : whether the file describes candidates: its remedies are keywords of `Table.describe`, for which
        other doors have no words.
    """

    is_of_description = False

    def __init__(self, *parts: Part, assuming: Sequence[Remedy] = (), each: Sequence[FileError] = ()) -> None:
        super().__init__(*parts)
        self.assuming, self.each = tuple(assuming), tuple(each) or (self,)

    @classmethod
    def joined(cls, found: Sequence[FileError], path: object) -> FileError:
        """All problems of a file as one error."""
        each = [one for error in found for one in error.each]
        if len(each) == 1:
            return each[0]
        parts = [part for one in each for part in ("\n- ", *one.args)]
        return cls(
            f"{path}: {len(each)} problems:",
            *parts,
            assuming=[one for error in found for one in error.assuming],
            each=each,
        )

    def of_description(self) -> Self:
        """The same of a file that describes candidates."""
        self.is_of_description = True
        return self

    def under(self, name: str) -> FileError:
        """The same with a name before the message."""
        out = FileError(f"{name}: ", *self.args, assuming=self.assuming)
        out.is_of_description = self.is_of_description
        return out

    def worded(self, words: Words) -> str:
        """The message in the words of a door."""
        if not self.is_of_description or words is in_python:
            return worded(self.args, words)
        return f"{worded(self.args)}; options of descriptions are keywords of Table.describe, in Python"

    def __str__(self) -> str:
        return self.worded(in_python)


class EmptyFileError(FileError):
    """A file has no table, or what is supposed of it leaves none."""


def all_or_error(found: Sequence[FileError], path: object) -> None:
    """Raise what was found in a file, if anything was."""
    if found:
        raise FileError.joined(found, path)
