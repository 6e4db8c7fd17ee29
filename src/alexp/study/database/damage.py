"""Words for damage: every way in which a database can have been changed ends in a `StorageError` made here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.common.memory import is_lack_of_memory
from alexp.study.errors import StorageError

_ILLEGIBLE = ("decode", "utf-8", "string or blob too big", "datatype mismatch")


def damaged(what: str, intact: int | None = None) -> StorageError:
    """The error that says what is damaged, and how many events before it are not."""
    left = (
        "" if intact is None else f" The {intact} events before it are intact." if intact else " It is the first one."
    )
    error = StorageError(
        f"the database is damaged: {what}.{left} Restore it from a backup, or copy what is intact into a new one with "
        "`alexp study salvage SOURCE TARGET`"
    )
    error.intact = intact
    return error


def is_unreadable(error: Exception, connection: Connection) -> bool:
    """Whether it is about single values of a file: then others can be read, and the first that cannot can be named."""
    is_about_values = "no such" not in str(error) and "locked" not in str(error) and not is_lack_of_memory(error)
    return connection.dialect.name == "sqlite" and is_about_values


@contextmanager
def legible(what: str, intact: int | None = None) -> Iterator[None]:
    """Values of a kind that was never written are damage, whoever stumbles over them; a lack of memory is none."""
    try:
        yield
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        if is_lack_of_memory(error):
            raise
        raise damaged(f"{what} cannot be read ({type(error).__name__})", intact) from error
    except sa.exc.DBAPIError as error:
        if any(word in str(error.orig).lower() for word in _ILLEGIBLE):
            raise damaged(f"{what} cannot be read (it is no text)", intact) from error
        raise
