"""Writing and reading files safely: all or nothing, no links followed, sizes checked.

Everything in the package that writes a file does it here.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from alexp.common.arrays import AnyArray

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_MOST_STREAMED = 256 * 1024 * 1024  # bytes from a pipe or device, which may never end
_MOST_HEADER = 10_000  # characters of the header of an array


@contextmanager
def writing(path: Path, sync: bool = True) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` at the end of the block, or vanishes if the block raises.

    Until then it lies beside `path` under a random name, made in a way that fails if the name is taken,
    by a link for instance. A link at `path` itself is replaced, not followed. An older file passes on its mode.
    Folders are made where they are missing. Devices and pipes (`/dev/stdout`) are written to as they are. With `sync`
    the content has reached the disk before it takes its place.
    """
    if _is_stream(path):
        with path.open("wb") as stream:
            yield stream
        return
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    mode = stat.S_IMODE(path.lstat().st_mode) if path.is_file() and not path.is_symlink() else None
    descriptor = os.open(draft, _FLAGS, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def write_bytes(path: Path, data: bytes, sync: bool = True) -> None:
    """Put a file with this content into place."""
    with writing(path, sync) as file:
        file.write(data)


def write_text(path: Path, text: str) -> None:
    """Put a UTF-8 text into place."""
    write_bytes(path, text.encode())


def read_text(path: Path) -> str:
    """A UTF-8 text, with its line ends as they are; of pipes and devices at most 256 MiB."""
    with path.open("rb") as file:
        return _bytes_of(file, path).decode("utf-8-sig")


def read_bytes(path: Path) -> bytes:
    """The content of a file; of pipes and devices at most 256 MiB."""
    with path.open("rb") as file:
        return _bytes_of(file, path)


def read_array(path: Path) -> AnyArray:
    """The array of an .npy file, if the file is as large as its header says; objects are never loaded."""
    with path.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return _array(BytesIO(data := _bytes_of(file, path)), len(data))
        return _array(file, os.fstat(file.fileno()).st_size)


def _array(file: IO[bytes], size: int) -> AnyArray:
    if file.read(4) == b"PK\x03\x04":
        raise ValueError("this is an .npz archive of several arrays; np.save writes one")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"it has version {version[0]}.{version[1]} of the format; np.save writes 1.0 for numbers")
    try:
        shape, _, dtype = readers[version](file, max_header_size=_MOST_HEADER)
    except MemoryError:
        raise
    except Exception as error:  # headers are Python text, and there is no end of ways to be wrong
        raise ValueError(f"its header cannot be read ({type(error).__name__})") from None
    if dtype.kind not in "biuf":
        raise ValueError(f"it must hold numbers, got {str(dtype)[:40]}")
    if min(shape, default=0) < 0 or any(isinstance(n, bool) for n in shape):
        raise ValueError(f"its header says that its shape is {shape}")
    claimed, there = prod(shape) * dtype.itemsize, size - file.tell()
    if claimed != there:
        raise ValueError(f"its header promises {claimed} bytes of numbers, the file has {there}")
    file.seek(0)
    array: AnyArray = np.lib.format.read_array(file, allow_pickle=False, max_header_size=_MOST_HEADER)
    return array


def _bytes_of(file: BinaryIO, path: Path) -> bytes:
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file.read()
    data = file.read(_MOST_STREAMED + 1)
    if len(data) > _MOST_STREAMED:
        raise ValueError(f"{path} does not end within {_MOST_STREAMED // 2**20} MiB; use a file")
    return data


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
