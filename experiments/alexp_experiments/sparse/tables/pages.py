"""What `alexp tables` does: runs are added to the stored ones, page and figure made from all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.files import write_text
from alexp_experiments.core.kept import keep_runs, stored_runs
from alexp_experiments.core.tasks import Record, Task
from alexp_experiments.sparse.tables.contest import KEY, SparseContest
from alexp_experiments.sparse.tables.figure import draw
from alexp_experiments.sparse.tables.report import markdown, measured_1, measured_2, page, printed_1, printed_2

if TYPE_CHECKING:
    import pandas as pd

COMMAND = "alexp tables"
RUNS, FIGURE, PAGE = "tables.csv", "figures/tables.png", "tables.md"


def add_runs(contest: SparseContest, sweep: Callable[[list[Task]], list[Record]], out: Path) -> pd.DataFrame:
    """Run a contest and add its lines to those in `out`."""
    new = contest.run(sweep)
    keep_runs(new, out / RUNS, COMMAND, KEY)
    return new


def write_pages(out: Path) -> Iterator[Path]:
    """Page and figure from the runs in `out`; yields what was written."""
    runs = stored_runs(out / RUNS, COMMAND)
    yield out / RUNS
    draw(runs, out / FIGURE)
    yield out / FIGURE
    write_text(out / PAGE, page(runs, FIGURE))
    yield out / PAGE


def printed(out: Path) -> str:
    """Both tables, as printed and as measured."""
    runs = stored_runs(out / RUNS, COMMAND)
    tables = [printed_1(), measured_1(runs), printed_2(), measured_2(runs)]
    return "\n\n".join(markdown(*table) for table in tables)
