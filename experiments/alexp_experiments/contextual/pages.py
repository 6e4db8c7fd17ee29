"""What `alexp compare --contextual` does: runs are added to the stored ones, page and figure made from all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.files import write_text
from alexp_experiments.contextual.contest import KEY, ContextContest
from alexp_experiments.contextual.figure import draw_streams
from alexp_experiments.contextual.report import context_report
from alexp_experiments.core.kept import keep_runs, stored_runs
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd

COMMAND = "alexp compare --contextual"
RUNS, FIGURE, PAGE = "contextual-results.csv", "figures/contextual.png", "contextual-results.md"


def add_context_runs(contest: ContextContest, sweep: Callable[[list[Task]], list[Record]], out: Path) -> pd.DataFrame:
    """Run a contest and add its rows to those in `out`."""
    new = contest.run(sweep)
    keep_runs(new, out / RUNS, COMMAND, KEY)
    return new


def write_context_pages(out: Path) -> Iterator[Path]:
    """Page and figure from the runs in `out`; yields what was written."""
    runs = stored_runs(out / RUNS, COMMAND)
    yield out / RUNS
    draw_streams(runs, out / FIGURE)
    yield out / FIGURE
    write_text(out / PAGE, context_report(runs, FIGURE))
    yield out / PAGE
