"""What happens to compiling when the process forks.

A child inherits Numba's lock, and none of the threads. If another thread compiles at that moment, the lock would stay
locked in the child for ever. A fork therefore waits until no thread compiles. Where that takes too long, the child is
refused to compile, with an error that says why, and does not hang.
"""

from __future__ import annotations

import os
import threading
from typing import NoReturn

from numba.core.compiler_lock import global_compiler_lock

PATIENCE = 120.0  # seconds for which a fork waits; everything together compiles in less
_holding = threading.local()


class _Torn:
    """In the place of a lock whose owner does not exist in this process."""

    def acquire(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise RuntimeError(
            f"this process was forked while another thread compiled for more than {PATIENCE:g} s, and cannot compile: "
            "fork before threads use alexp, start workers with multiprocessing's 'spawn', or run `alexp warmup` once"
        )

    def release(self) -> None:
        """Nothing is held."""

    def _is_owned(self) -> bool:
        return False


def _before() -> None:
    _holding.lock = global_compiler_lock._lock.acquire(timeout=PATIENCE)


def _after_in_parent() -> None:
    if _holding.lock:
        global_compiler_lock._lock.release()


def _after_in_child() -> None:
    if _holding.lock:
        global_compiler_lock._lock.release()
    else:
        global_compiler_lock._lock = _Torn()


if hasattr(os, "register_at_fork") and hasattr(global_compiler_lock, "_lock"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
