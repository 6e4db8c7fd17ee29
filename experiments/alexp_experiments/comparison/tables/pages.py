"""What `alexp compare --tables` does: runs are added to the stored ones, and page and figures made from all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.files import write_text
from alexp_experiments.comparison.tables.arylation import arylation_tasks, draw_arylation, run_arylation
from alexp_experiments.comparison.tables.contest import KEY, TableContest
from alexp_experiments.comparison.tables.entrants import TABLE_ENTRANTS
from alexp_experiments.comparison.tables.figure import draw_tables
from alexp_experiments.comparison.tables.report import figure_name, protocols, tables_report
from alexp_experiments.core.kept import keep_runs, store_runs, stored_runs
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd

Sweep = Callable[[list[Task]], list[Record]]
COMMAND = "alexp compare --tables DIR"
RUNS, PLATES, PAGE = "real-tables.csv", "arylation.csv", "real-tables.md"


def add_runs(contest: TableContest, sweep: Sweep, out: Path) -> pd.DataFrame:
    """Run a contest and add its rows to those in `out`."""
    new = contest.run(sweep)
    keep_runs(new, out / RUNS, COMMAND, KEY)
    return new


def add_arylation(seeds: int, first_seed: int, experiments: int, sweep: Sweep, out: Path) -> pd.DataFrame:
    """Run direct arylation in plates; earlier runs in `out` are replaced."""
    runs = run_arylation(arylation_tasks(seeds, first_seed, experiments), sweep)
    store_runs(runs, out / PLATES)
    return runs


def write_pages(out: Path) -> Iterator[Path]:
    """Page and figures from the runs in `out`; yields what was written."""
    plates = stored_runs(out / PLATES, COMMAND) if (out / PLATES).exists() else None
    runs = None if plates is not None and not (out / RUNS).exists() else stored_runs(out / RUNS, COMMAND)
    if runs is not None:
        runs = runs[runs["entrant"].isin(list(TABLE_ENTRANTS))]  # those that are no more are not shown
    for rounds, plate, repeats in [] if runs is None else protocols(runs):
        if not repeats:
            assert runs is not None
            draw_tables(runs, rounds, plate, out / "figures" / figure_name(rounds, plate))
            yield out / "figures" / figure_name(rounds, plate)
    if plates is not None:
        draw_arylation(plates, out / "figures" / "arylation.png")
        yield out / "figures" / "arylation.png"
    write_text(out / PAGE, tables_report(runs, plates))
    yield out / PAGE
