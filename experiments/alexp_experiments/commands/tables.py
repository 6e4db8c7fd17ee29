"""`alexp tables`: the paper's two tables, with a measured column for every row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def tables(
    rows: Annotated[str | None, typer.Option(help="Names of rows separated by semicolons; all by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Four seeds and 200 rounds: a minute or two.")] = False,
    seeds: Annotated[int | None, typer.Option(min=2, help="Seeds of every cell; 10 or 20 by default.")] = None,
    first_seed: Annotated[int | None, typer.Option(min=0, help="98000; no constant was chosen there.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for page, figure and runs.")] = Path("tables"),
    stored: Annotated[bool, typer.Option("--stored", help="Write the page from stored runs, run nothing.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where results are kept; $ALEXP_CACHE or ~/.cache/alexp.")] = None,
) -> None:
    """Measure the rows of the paper's tables: exponents of regret in rounds and in models, with intervals.

    Finished runs are kept: stopping loses nothing, and a second call computes only what is missing.

    Example: alexp tables --quick --rows "SA Lasso; ALExp, contexts"
    """
    from rich.console import Console

    from alexp_experiments.core.cache import ResultCache
    from alexp_experiments.core.runner import sweep
    from alexp_experiments.core.tasks import Record, Task
    from alexp_experiments.sparse.tables import contest, report

    console, store = Console(), None if stored else ResultCache(cache)
    names = None if rows is None else [name.strip() for name in rows.split(";") if name.strip()]

    def run(tasks: list[Task]) -> list[Record]:
        return sweep(tasks, workers=workers, dask=dask, cache=store, title="tables")

    try:
        if not stored:
            start = contest.FIRST_SEED if first_seed is None else first_seed
            report.add_runs(contest.SparseContest.of(names, seeds, start, quick), run, out)
        written = list(report.write_pages(out))
    except (ValueError, FileNotFoundError, ImportError) as error:
        raise typer.BadParameter(str(error)) from error
    except KeyboardInterrupt:
        console.print("stopped; finished runs are kept, the same command goes on from here")
        raise typer.Exit(130) from None
    typer.echo(report.printed(out))
    for path in written:
        console.print(f"{path}")
