"""The long passes: `python -m tests.adversarial.soak [--only NAME ...] [--scale 1.0] [--seed 0]`, or `make soak`.

Every module beside this one that has a function `soak(scale, seed)` is run, each in a process of its own; it returns
counts, "tried" and "violations" among them. The table that is printed is the part "soak" of docs/reliability.md. With
`--into docs/reliability.md` rows of the passes that have run are replaced there and the others stay, so that a long run
can be made in parts; `python tools/pages.py stamp soak` after the last one. The exit status is 1 if anything was
violated.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

Figures = dict[str, int | float | str]
Soak = Callable[[float, int], Figures]

COLUMNS = "| pass | tried | violations | figures |\n|---|---:|---:|---|"


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


def ended(names: Sequence[str], scale: float, seed: int, workers: int) -> Iterator[tuple[str, Figures]]:
    """Figures of each pass as soon as it has ended. One that raises is a violation, and the others go on."""
    play = partial(run, scale=scale, seed=seed)
    if workers == 1 or len(names) == 1:
        for name in names:
            yield name, _figures(partial(play, name))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1) as pool:
        running = {pool.submit(play, name): name for name in names}
        for future in as_completed(running):
            yield running[future], _figures(future.result)


def _figures(result: Callable[[], Figures]) -> Figures:
    try:
        return result()
    except Exception as error:
        traceback.print_exc()
        return {"tried": 0, "violations": 1, "first": f"{type(error).__name__}: {error}"}


def stored_rows(page: Path, head: str) -> dict[str, str]:
    """Rows in a page by pass; none if they are of another scale or seed, or have other columns."""
    part = _part(page)[2]
    lines = part.removeprefix(head).splitlines() if part.startswith(head) else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def store(page: Path, table: str) -> None:
    """Put the table between its marks."""
    found = _part(page)
    text = found.string[: found.start(2)] + table + "\n" + found.string[found.end(2) :]
    page.write_text(text, encoding="utf-8")


def _part(page: Path) -> re.Match[str]:
    found = re.search(r"(<!-- soak: begin[^\n]*-->\n)(.*?)<!-- soak: end -->", page.read_text(encoding="utf-8"), re.S)
    if found is None:
        raise SystemExit(f"{page} has no part between <!-- soak: begin --> and <!-- soak: end -->")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run passes and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="passes to run, by module")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the size that the figures in the docs are of")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="passes at a time; as many as cores")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="store every row there as soon as its pass has ended")
    chosen = parser.parse_args(arguments)
    found = dict(passes())
    unknown = sorted(set(chosen.only or ()) - set(found))
    if unknown:
        parser.error(f"no such pass: {', '.join(unknown)}; there are {', '.join(sorted(found))}")
    head = f"Scale {chosen.scale:g}, seed {chosen.seed}.\n\n{COLUMNS}\n"
    stored = {} if chosen.into is None else stored_rows(chosen.into, head)
    rows = {name: line for name, line in stored.items() if name in found}
    names, violations = sorted(chosen.only or found), 0
    for name, figures in ended(names, chosen.scale, chosen.seed, chosen.workers):
        rows[name], violations = row(name, figures), violations + int(figures["violations"])
        print(rows[name], file=sys.stderr, flush=True)
        table = head + "\n".join(rows[one] for one in sorted(rows))
        if chosen.into is not None:
            store(chosen.into, table)
    print(table)
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
