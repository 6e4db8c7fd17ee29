"""Commands that end in one line when something is wrong, without a password in it."""

from __future__ import annotations

import errno
import os
from typing import Any

import typer
from typer.core import TyperGroup

from alexp.common.memory import OutOfMemoryError, is_lack_of_memory, out_of_memory
from alexp.common.redaction import printable, redact
from alexp.study.errors import StudyError

_EXPECTED = (StudyError, ValueError, TypeError, OSError, ArithmeticError, MemoryError, RecursionError)
_LONGEST = 4000  # characters of a message


class Careful(TyperGroup):
    """A group of commands; ALEXP_TRACEBACK=1 shows where an error came from."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except typer.Exit:
            raise
        except Exception as error:
            if hasattr(error, "format_message"):  # the command line itself was wrong
                error.message = redact(str(getattr(error, "message", "")))  # type: ignore[attr-defined]
                raise
            is_closed = isinstance(error, OSError) and error.errno == errno.EPIPE  # nobody reads on: no matter
            is_expected = isinstance(error, _EXPECTED) or is_lack_of_memory(error)
            if is_closed or not is_expected or os.environ.get("ALEXP_TRACEBACK") == "1":
                raise
            typer.secho(f"error: {explain(error)}", err=True, fg="red")
            raise typer.Exit(1) from None


def explain(error: BaseException) -> str:
    """An error in words that can be shown to anybody, on any terminal."""
    text = printable(redact(str(error).strip()[: 2 * _LONGEST] or type(error).__name__))
    if is_lack_of_memory(error) and not isinstance(error, OutOfMemoryError):
        text = str(out_of_memory(f"for this ({text})"))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
