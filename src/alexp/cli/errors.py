"""One-line, redacted command-line errors; a missing package is named with the extra that installs it."""

from __future__ import annotations

import errno
import os
from typing import Any

import typer
from typer.core import TyperGroup

from alexp.common.extras import EXTRAS, advice
from alexp.common.memory import OutOfMemoryError, is_lack_of_memory, out_of_memory
from alexp.common.redaction import printable, redact
from alexp.study.errors import StudyError
from alexp.table.remedies import FileError, on_the_command_line

_EXPECTED = (StudyError, ValueError, TypeError, OSError, ArithmeticError, MemoryError, RecursionError)
_LONGEST = 4000  # characters of a message


class SafeGroup(TyperGroup):
    """A group of commands with one-line errors; ALEXP_TRACEBACK=1 shows tracebacks."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except typer.Exit:
            raise
        except Exception as error:
            if hasattr(error, "format_message"):  # the command line itself was wrong
                error.message = redact(str(getattr(error, "message", "")))  # type: ignore[attr-defined]
                raise
            is_closed = isinstance(error, OSError) and error.errno == errno.EPIPE  # the reader has closed the pipe
            is_expected = isinstance(error, _EXPECTED) or is_lack_of_memory(error)
            if is_closed or not is_expected or os.environ.get("ALEXP_TRACEBACK") == "1":
                raise
            typer.secho(f"error: {explain(error)}", err=True, fg="red")
            raise typer.Exit(1) from None


def explain(error: BaseException) -> str:
    """An error message, redacted, printable and of limited length."""
    said = error.worded(on_the_command_line) if isinstance(error, FileError) else str(error)
    text = printable(redact(said.strip()[: 2 * _LONGEST] or type(error).__name__))
    if is_lack_of_memory(error) and not isinstance(error, OutOfMemoryError):
        text = str(out_of_memory(f"for this ({text})"))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


def advice_for(error: ImportError | MemoryError) -> str | None:
    """What to install, or that memory is short, in one line; None if the missing module is none of ours.

    >>> advice_for(ModuleNotFoundError("No module named 'cvxpy'", name="cvxpy.settings"))
    "this needs cvxpy, which is not installed: pip install 'alexp[design]'"
    """
    if is_lack_of_memory(error):  # a compiled module that cannot be mapped is installed
        return explain(error)
    if "alexp[" in str(error):  # raised by this library, with the remedy
        return str(error)
    package = (getattr(error, "name", None) or "").partition(".")[0]
    return advice(package) if package in EXTRAS else None
