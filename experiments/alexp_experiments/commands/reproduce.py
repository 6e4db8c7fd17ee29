"""`alexp reproduce`: the paper's figures and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(help="Figures to make, 1 to 8; all if none is named.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three seeds and a thinner grid, in minutes.")] = False,
    seeds: Annotated[int | None, typer.Option(min=2, help="Number of seeds, 40 by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the pages and figures/.")] = Path("reproduction"),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where results are kept; $ALEXP_CACHE or ~/.cache/alexp.")] = None,
    beyond: Annotated[bool, typer.Option("--beyond", help="Also the second set, with EvidenceMixture.")] = False,
    skip_tuning: Annotated[
        bool, typer.Option("--skip-tuning", help="Use the stored choice of constants: about a third of the time.")
    ] = False,
    store: Annotated[Path | None, typer.Option(help="Keep the sweep of hyper-parameters in this CSV file.")] = None,
) -> None:
    """Make the paper's figures again, and a page that says claim by claim what holds.

    Finished runs are kept: stopping loses nothing, and a second call computes only what is missing. Constants are
    chosen anew when all figures are made, and for figure 7; --skip-tuning and single figures use the stored choice.

    Example: alexp reproduce 1 2 --seeds 10 --out reproduction
    """
    from collections.abc import Sequence
    from dataclasses import replace

    from rich.console import Console

    from alexp_experiments.core.cache import ResultCache
    from alexp_experiments.core.runner import Record, Task, sweep
    from alexp_experiments.paper.reproduce import check_figures, reproduce as make
    from alexp_experiments.paper.results import FIRST_SEED, Scope

    console = Console()
    try:
        wanted = check_figures(figures or [])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    scope = Scope.quick() if quick else Scope()
    if seeds is not None:
        scope = replace(scope, seeds=tuple(range(FIRST_SEED, FIRST_SEED + seeds)))
    kept = ResultCache(cache)

    def run(tasks: Sequence[Task], title: str) -> list[Record]:
        return sweep(tasks, workers=workers, dask=dask, cache=kept, title=title)

    try:
        written = make(wanted, scope, out, run, store, skip_tuning)
        if beyond:
            written += make(wanted, replace(scope, beyond=True), out, run, stored=skip_tuning)
    except KeyboardInterrupt:
        console.print("stopped; finished runs are kept, the same command goes on from here")
        raise typer.Exit(130) from None
    for path in written:
        console.print(f"{path}")
