"""`alexp warmup`: compile now instead of at the first step."""

from __future__ import annotations

import time


def warmup() -> None:
    """Compile what common problems need, so that first steps do not wait: after an installation, or in an image."""
    from rich.console import Console

    from alexp.algorithms.warming import Warmed, warm_up_common
    from alexp.common.compiling import cache_folder

    console = Console()

    def show(done: Warmed) -> None:
        console.print(f"{done.seconds:7.2f} s  {done.problem}")

    begin = time.perf_counter()
    warm_up_common(show)
    folder = cache_folder()
    kept = "nothing could be kept: set NUMBA_CACHE_DIR" if folder is None else f"kept in {folder}"
    console.print(f"{time.perf_counter() - begin:7.2f} s  in all; {kept}", soft_wrap=True)
