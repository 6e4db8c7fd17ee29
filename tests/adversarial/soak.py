"""The long passes: `python -m tests.adversarial.soak [--only NAME ...] [--scale 1.0] [--seed 0]`, or `make soak`.

Every module beside this one that has a function `soak(scale, seed)` is run; it returns figures, "tried" and
"violations" among them. The table is printed and, from scale 1 on, written into docs/reliability.md, where the rows of
what was not run stay as they are. The exit status is 1 if anything was violated.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

Figures = dict[str, int | float | str]
Soak = Callable[[float, int], Figures]

PAGE = Path(__file__).parents[2] / "docs/reliability.md"
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
HEAD = "| pass | tried | violations | figures | scale, seed | seconds |\n|---|---:|---:|---|---|---:|"


def passes() -> Iterator[tuple[str, Soak]]:
    """Every pass by the name of its module."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name == "soak" or module.name.startswith("test_"):
            continue
        found = getattr(importlib.import_module(f"tests.adversarial.{module.name}"), "soak", None)
        if found is not None:
            yield module.name, found


def row(name: str, figures: Figures, scale: float, seed: int, seconds: float) -> str:
    """One line of the table."""
    rest = ", ".join(
        f"{what} {_text(figure)}" for what, figure in figures.items() if what not in ("tried", "violations")
    )
    cells = (name, _text(figures["tried"]), _text(figures["violations"]), rest, f"{scale:g}, {seed}", f"{seconds:.0f}")
    return f"| {' | '.join(cells)} |"


def _text(figure: float | str) -> str:
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.4g}" if isinstance(figure, float) else figure


def merged(page: str, rows: dict[str, str]) -> str:
    """The page with new rows in its table, in alphabetical order; those of other passes stay."""
    before, rest = page.split(BEGIN)
    table, after = rest.split(END)
    kept = {line.split("|")[1].strip(): line for line in table.strip().splitlines()[2:]}
    lines = [line for _, line in sorted((kept | rows).items())]
    return "\n".join([before + BEGIN, HEAD, *lines, END + after])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run passes, print and keep their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="passes to run, by module")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the size that the figures in the docs are of")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    found = dict(passes())
    unknown = sorted(set(chosen.only or ()) - set(found))
    if unknown:
        parser.error(f"no such pass: {', '.join(unknown)}; there are {', '.join(sorted(found))}")
    rows, violations = {}, 0
    print(HEAD)
    for name in sorted(chosen.only or found):
        start = time.perf_counter()
        figures = found[name](chosen.scale, chosen.seed)
        rows[name] = row(name, figures, chosen.scale, chosen.seed, time.perf_counter() - start)
        violations += int(figures["violations"])
        print(rows[name], flush=True)
    if chosen.scale >= 1.0:
        PAGE.write_text(merged(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
