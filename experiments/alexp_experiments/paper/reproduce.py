"""The paper, reproduced: runs, figures with their data, and a report that says claim by claim what holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from alexp.common.files import write_text
from alexp.common.style import save_figure
from alexp_experiments.core.tasks import code_fingerprint
from alexp_experiments.paper import figures
from alexp_experiments.paper.pages import stem, write_beyond, write_report
from alexp_experiments.paper.results import FIGURES, Results, Scope, collect, needed_runs
from alexp_experiments.paper.tuning import Sweep, save_sweep

DRAW: dict[str, Callable[[Results], figures.Drawn]] = {
    "1": figures.figure_1,
    "2": figures.figure_2,
    "3": figures.figure_3,
    "4": figures.figure_4,
    "5": figures.figure_5,
    "6": figures.figure_6,
    "7": figures.figure_7,
    "8": figures.figure_8,
}


def check_figures(names: Sequence[str]) -> tuple[str, ...]:
    """Figure names as given (all if none), or an error that lists the valid ones.

    >>> check_figures(["3", "1"])
    ('1', '3')
    """
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise ValueError(f"there is no figure {unknown[0]!r}; the figures are {', '.join(FIGURES)}")
    return tuple(name for name in FIGURES if name in names) if names else FIGURES


def reproduce(
    names: Sequence[str], scope: Scope, out: Path, sweep: Sweep, store: Path | None = None, stored: bool = False
) -> list[Path]:
    """Run what is missing, draw the figures into out/figures, and with all figures write the page.

    A scope that goes beyond the paper has figures of its own, beyond-*, and the page out/beyond.md; otherwise they are
    figure-*, out/reproduction.md and its tables, out/reproduction-*.csv. `store` has the sweep run in any case and
    writes it there, with what was chosen; `stored` takes the sweep that was written before. Returns the files written
    or found up to date.
    """
    wanted = check_figures(names)
    results = collect(wanted, scope, sweep, store is not None, stored)
    if store is not None:
        save_sweep(results.attempts, store)
    written = [path for name in wanted for path in _draw(name, results, out / "figures")]
    if wanted == FIGURES:
        written += write_beyond(results, out) if scope.beyond else write_report(results, out)
    return written


def _draw(name: str, results: Results, folder: Path) -> list[Path]:
    """PNG, SVG and CSV of one figure; nothing is drawn again if its runs are the ones it was drawn from."""
    title = stem(name, results.scope.beyond)
    paths = [folder / f"{title}.{kind}" for kind in ("png", "svg", "csv")]
    stamps = folder / "drawn-from.json"
    known = json.loads(stamps.read_text()) if stamps.exists() else {}
    stamp = _stamp(name, results)
    if known.get(title) == stamp and all(path.exists() for path in paths):
        return paths
    figure, data = DRAW[name](results)
    save_figure(figure, paths[0], dpi=110)
    figure.set_layout_engine("none")  # everything has its place now; finding it again takes half of the time
    # Without a date and with a fixed salt the same runs give the same file.
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "alexp", "svg.fonttype": "none"}):
        save_figure(figure, paths[1], metadata={"Date": None})
    write_text(paths[2], data.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    write_text(stamps, json.dumps(known | {title: stamp}, indent=1, sort_keys=True) + "\n")
    return paths


def _stamp(name: str, results: Results) -> str:
    """Content hash of everything a figure shows, and of the code that draws it."""
    digest = hashlib.sha256(code_fingerprint(DRAW[name].__module__).encode())
    digest.update(repr((results.scope.seeds, results.scope.grid.shrink)).encode())
    for pair in needed_runs([name], results.scope):
        for record in results.runs[pair]:
            digest.update(
                repr(pair).encode() + record.regret.tobytes() + record.q_true.tobytes() + record.chosen.tobytes()
            )
    if name == "7":
        digest.update(repr((results.attempts, results.unstated)).encode())
    return digest.hexdigest()[:16]
