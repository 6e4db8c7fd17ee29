"""The long passes: `python -m tests.adversarial.soak [--only NAME ...] [--scale 1.0] [--seed 0]`, or `make soak`.

Every module beside this one that has a function `soak(scale, seed)` is run, each in a process of its own; it returns
figures, "tried" and "violations" among them. The table that is printed is the part "soak" of docs/reliability.md. The
exit status is 1 if anything was violated.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

Figures = dict[str, int | float | str]
Soak = Callable[[float, int], Figures]

HEAD = "| pass | tried | violations | figures |\n|---|---:|---:|---|"


def passes() -> Iterator[tuple[str, Soak]]:
    """Every pass by the name of its module."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name == "soak" or module.name.startswith("test_"):
            continue
        found = getattr(importlib.import_module(f"tests.adversarial.{module.name}"), "soak", None)
        if found is not None:
            yield module.name, found


def row(name: str, figures: Figures) -> str:
    """One line of the table."""
    rest = ", ".join(
        f"{what} {_text(figure)}" for what, figure in figures.items() if what not in ("tried", "violations")
    )
    return f"| {name} | {_text(figures['tried'])} | {_text(figures['violations'])} | {rest} |"


def _text(figure: float | str) -> str:
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.4g}" if isinstance(figure, float) else figure


def run(name: str, scale: float, seed: int) -> Figures:
    """Figures of one pass."""
    return dict(passes())[name](scale, seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run passes and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="passes to run, by module")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the size that the figures in the docs are of")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="passes at a time; as many as cores")
    chosen = parser.parse_args(arguments)
    found = dict(passes())
    unknown = sorted(set(chosen.only or ()) - set(found))
    if unknown:
        parser.error(f"no such pass: {', '.join(unknown)}; there are {', '.join(sorted(found))}")
    names = sorted(chosen.only or found)
    play = partial(run, scale=chosen.scale, seed=chosen.seed)
    if chosen.workers == 1 or len(names) == 1:
        figures = [play(name) for name in names]
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(chosen.workers, mp_context=context, max_tasks_per_child=1) as pool:
            figures = list(pool.map(play, names))
    print(f"Scale {chosen.scale:g}, seed {chosen.seed}.\n")
    print(HEAD, *map(row, names, figures), sep="\n")
    return int(any(int(one["violations"]) for one in figures))


if __name__ == "__main__":
    sys.exit(main())
