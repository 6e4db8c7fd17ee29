"""One line on the terminal when compiling takes noticeable time."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

TEXT = "alexp: compiling for this machine, once; later runs start at once (`alexp warmup` does it ahead)"


class Notice:
    """What this process has spent on compiling, and whether it has said so."""

    patience: ClassVar[float] = 1.0  # seconds of compiling, all together, that need no explanation
    spent: ClassVar[float] = 0.0
    said: ClassVar[bool] = False
    _depth: ClassVar[int] = 0

    @classmethod
    @contextmanager
    def while_compiling(cls) -> Iterator[None]:
        """Count the time of the block (that of the outermost, if nested) and speak up when it gets long."""
        cls._depth += 1  # compilations hold Numba's lock, so no other thread is here
        outermost = cls._depth == 1
        timer = None
        if outermost and not cls.said and sys.stderr is not None and sys.stderr.isatty():
            timer = threading.Timer(max(cls.patience - cls.spent, 0.0), cls._say)
            timer.daemon = True
            timer.start()
        begin = time.perf_counter()
        try:
            yield
        finally:
            cls._depth -= 1
            if outermost:
                cls.spent += time.perf_counter() - begin
            if timer is not None:
                timer.cancel()

    @classmethod
    def _say(cls) -> None:
        if not cls.said:
            cls.said = True
            print(TEXT, file=sys.stderr, flush=True)
