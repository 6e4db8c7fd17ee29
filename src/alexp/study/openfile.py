"""Whether the SQLite file at a path is the one that a connection has open.

SQLite keeps writing to a file that was renamed, removed or replaced, and to a write-ahead log that was truncated or
overwritten; such commits are lost with the process. Three things are compared:

- device and inode of the database, of its `-wal` and of its `-shm` file with those that were opened;
- the last frame that the `-shm` file knows with that frame in the `-wal` file. Its checksum covers the whole log before
  it. Formats: https://www.sqlite.org/walformat.html;
- time and size of the database: in WAL mode only checkpoints may change them. When SQLite opens an empty database, it
  deletes the log.

The files are read through SQLite's own descriptors: POSIX drops all locks of a process on a file as soon as the process
closes any descriptor of it. They are found by trying numbers, lowest first: chroots and containers may have no /dev/fd.
Where SQLite has no descriptors (Windows), inodes alone are compared.
"""

from __future__ import annotations

import os
import struct
from enum import Enum
from typing import NamedTuple

_GAP = 4096  # unused descriptors in a row, after which none is expected: the lowest free one is always taken
_INDEX_SIZE = 136  # bytes of the header of a -shm file
_VERSION = 3_007_000  # of its format, the same since SQLite 3.7
_WAL_HEADER, _FRAME_HEADER = 32, 24
_ATTEMPTS = 100  # how often the index may change while the log is compared with it

Inode = tuple[int, int]


class Condition(Enum):
    """How the files at the path compare with those that are open."""

    SAME = "the same"
    TOUCHED = "changed by another program"  # perhaps only its time
    MOVED = "renamed, removed or replaced"
    OVERWRITTEN = "overwritten"  # or its -wal or -shm file removed, truncated or replaced


class _Index(NamedTuple):
    """The header of a -shm file."""

    page: int
    last: int  # frame that was committed; 0 if the log is empty
    checksum: bytes
    salt: bytes
    checkpointed: int
    attempted: int  # up to which a checkpoint has begun to write to the database


_State = tuple[tuple[int, int] | None, _Index | None]  # time and size of the database, if it is there; the index


class OpenFile:
    """The files that one connection has open. Create it after the connection has read from the database.

    Parameters
    ----------
    path
        The database, with links resolved.
    inode
        That of the database before it was opened.
    is_wal
        Whether the connection has a -wal and a -shm file open.
    """

    def __init__(self, path: str, inode: Inode | None, is_wal: bool) -> None:
        self.path, self.inode, self.is_wal = path, inode, is_wal
        self._beside = [inode_of(path + suffix) for suffix in ("-wal", "-shm")] if is_wal else []
        self._descriptors = _descriptors(self._beside)
        self._state = self._look()

    def is_moved(self) -> bool:
        """Whether another file, or none, is at the path; a file without a log counts as another one if it changes."""
        if inode_of(self.path) != self.inode:
            return True
        return not self.is_wal and (self._look() != self._state or bool(_size(self.path + "-wal")))

    def condition(self) -> Condition:
        """How the files at the path compare with those that are open; takes microseconds."""
        if self.is_moved():
            return Condition.MOVED
        if not self.is_wal:
            return Condition.SAME
        state = self._look()
        is_empty = state[0] is not None and state[0][1] == 0
        beside = [inode_of(self.path + suffix) for suffix in ("-wal", "-shm")]
        if is_empty or beside != self._beside or not self._agrees(state[1]):
            return Condition.OVERWRITTEN
        before, self._state = self._state, state
        return Condition.TOUCHED if _is_foreign(before, state) else Condition.SAME

    def _look(self) -> _State:
        """Time and size of the database, then the index: a checkpoint updates the index before it writes."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None, None
        return (found.st_mtime_ns, found.st_size), self._index()

    def _index(self) -> _Index | None:
        if self._descriptors is None:
            return None
        if [inode_of(descriptor) for descriptor in self._descriptors] != self._beside:  # reused for another file
            self._descriptors = _descriptors(self._beside)
            if self._descriptors is None:
                return None
        for _ in range(_ATTEMPTS):
            header = os.pread(self._descriptors[1], _INDEX_SIZE, 0)
            if header[:48] == header[48:96]:  # else a commit is under way
                return _index_of(header)
        return None

    def _agrees(self, index: _Index | None) -> bool:
        """Whether the log ends with the frame that the index names as the last one."""
        for _ in range(_ATTEMPTS):
            if index is None or index.last == 0 or self._descriptors is None:
                return True
            log = self._descriptors[0]
            start = os.pread(log, _WAL_HEADER, 0)
            frame = os.pread(log, _FRAME_HEADER, _WAL_HEADER + (index.last - 1) * (_FRAME_HEADER + index.page))
            if start[16:24] == frame[8:16] == index.salt and frame[16:24] == index.checksum:
                return True
            before, index = index, self._index()
            if before == index:  # else the log was begun anew in between
                return False
        return True


def _is_foreign(before: _State, now: _State) -> bool:
    """Whether the database has changed although no checkpoint was made or is being made."""
    (main, old), (main_now, new) = before, now
    if main == main_now or old is None or new is None:
        return False
    is_checkpointing = old.checkpointed != old.attempted
    progress = (old.salt, old.checkpointed, old.attempted) != (new.salt, new.checkpointed, new.attempted)
    return not (is_checkpointing or progress)


def _index_of(header: bytes) -> _Index | None:
    if len(header) < _INDEX_SIZE:
        return None
    version, page, last, first, second = struct.unpack_from("=I10xHI4xII", header)
    checkpointed, attempted = (struct.unpack_from("=I", header, place)[0] for place in (96, 128))
    if version != _VERSION:
        return None
    size = (page & 0xFE00) + ((page & 1) << 16)  # 65,536 is written as 1
    return _Index(size, last, struct.pack(">II", first, second), header[32:40], checkpointed, attempted)


def inode_of(file: str | int) -> Inode | None:
    """Device and inode of a file, by its path or descriptor; None if there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _descriptors(wanted: list[Inode | None]) -> list[int] | None:
    """Descriptors of this process for some files; None unless there is one for each."""
    if not wanted or None in wanted or not hasattr(os, "pread"):  # not on Windows
        return None
    missing, found = set(wanted), dict[Inode | None, int]()
    number = unused = 0
    while missing and unused < _GAP:
        if (inode := inode_of(number)) in missing:
            found[inode] = number
            missing.remove(inode)
        unused = unused + 1 if inode is None else 0
        number += 1
    return None if missing else [found[inode] for inode in wanted]
