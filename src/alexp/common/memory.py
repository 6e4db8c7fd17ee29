"""A lack of memory, in whichever words it is reported."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import zlib
from math import inf

_WORDS = re.compile(
    r"cannot allocate memory|can't allocate memory|unable to allocate|out of memory|failed to map segment"
    r"|can't start new thread|SQLITE_IOERR_SHMMAP|Error -4 while",
    re.IGNORECASE,
)
_TALKING = (ImportError, OSError, sqlite3.Error, zlib.error)  # whose text is their own, and no user's
_LONGEST = 8  # causes of causes that are looked at
REMEDY = "Free memory or raise the limit of this process (ulimit -v, that of its container), and try again"


class OutOfMemoryError(MemoryError):
    """Memory was short. What is stored is as it was; nothing is damaged by it."""


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is a lack of memory.

    Libraries report it in many ways: the import of a compiled module as an ImportError, SQLite's shared memory as an
    input/output error, zlib as one of its own.

    >>> is_lack_of_memory(ImportError("libx.so: failed to map segment")), is_lack_of_memory(OSError())
    (True, False)
    """
    for _ in range(_LONGEST):
        if error is None:
            return False
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        told = getattr(error, "orig", error)  # SQLAlchemy's errors quote what users wrote; the driver's do not
        speaks = isinstance(told, _TALKING) or type(told) is RuntimeError
        if speaks and _WORDS.search(f"{getattr(told, 'sqlite_errorname', '')} {told}"):
            return True
        error = error.__cause__ or error.__context__
    return False


def out_of_memory(while_doing: str) -> OutOfMemoryError:
    """The error that says what could not be done for want of memory, and what helps."""
    return OutOfMemoryError(f"not enough memory {while_doing}. {REMEDY}")


def exceeds_memory(error: BaseException) -> bool:
    """Whether one array of NumPy would take more than all memory of the machine, so that trying again cannot help."""
    size = getattr(error, "_total_size", 0) if isinstance(error, MemoryError) else 0
    return bool(size) and size > physical_memory()


def physical_memory() -> float:
    """Bytes of memory of the machine; infinite where the system does not say (Windows)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return inf
