"""`alexp reproduce`: the paper's figures and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(help="Figures to make, 1 to 7; all if none is named.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three seeds and a thinner grid, in minutes.")] = False,
    seeds: Annotated[int | None, typer.Option(min=2, help="Number of seeds, 20 in the paper.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for reproduction.md and figures/.")] = Path("reproduction"),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where results are kept; $ALEXP_CACHE or ~/.cache/alexp.")] = None,
    tune: Annotated[Path | None, typer.Option(help="Choose hyper-parameters anew and store them in this file.")] = None,
) -> None:
    """Regenerate the paper's figures and a report that says claim by claim what holds.

    Finished runs are kept: stopping loses nothing, and a second call computes only what is missing.
    """
    from dataclasses import replace

    from rich.console import Console

    from alexp.experiments.core.cache import ResultCache
    from alexp.experiments.core.runner import sweep
    from alexp.experiments.paper.reproduce import check_figures
    from alexp.experiments.paper.reproduce import reproduce as make
    from alexp.experiments.paper.results import Scope

    console = Console()
    try:
        wanted = check_figures(figures or [])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    scope = Scope.quick() if quick else Scope()
    if seeds is not None:
        scope = replace(scope, seeds=tuple(range(seeds)))
    store = ResultCache(cache)
    try:
        written = make(
            wanted, scope, out,
            lambda tasks, title: sweep(tasks, workers=workers, dask=dask, cache=store, title=title), tune,
        )  # fmt: skip
    except KeyboardInterrupt:
        console.print("stopped; finished runs are kept, the same command goes on from here")
        raise typer.Exit(130) from None
    for path in written:
        console.print(f"{path}")
