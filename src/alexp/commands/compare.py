"""`alexp compare`: every algorithm on every scenario, and the page that says which to pick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    scenarios: Annotated[list[str] | None, typer.Argument(help="Scenarios by name; all if none is named.")] = None,
    algorithms: Annotated[str | None, typer.Option(help="Names separated by semicolons; all by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Six scenarios and four seeds: a minute or two.")] = False,
    seeds: Annotated[int | None, typer.Option(min=2, help="Seeds per scenario, 20 by default.")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed; nothing was tuned from 90000 on.")] = 90_000,
    out: Annotated[Path, typer.Option(help="Folder for which-algorithm.md and the rest.")] = Path("compare"),
    stored: Annotated[bool, typer.Option("--stored", help="Write the page from compare.csv, run nothing.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where results are kept; $ALEXP_CACHE or ~/.cache/alexp.")] = None,
) -> None:
    """Compare all algorithms on a planned of scenarios: one table, one figure, and advice.

    Finished runs are kept: stopping loses nothing, and a second call computes only what is missing.
    """
    from rich.console import Console

    from alexp.common.files import write_text
    from alexp.experiments.comparison import contest
    from alexp.experiments.comparison.figure import draw
    from alexp.experiments.comparison.report import report
    from alexp.experiments.core.cache import ResultCache
    from alexp.experiments.core.runner import sweep

    console, path = Console(), out / "compare.csv"
    try:
        if stored:
            table = contest.stored(path)
        else:
            names = None if algorithms is None else [name.strip() for name in algorithms.split(";") if name.strip()]
            number = seeds if seeds is not None else 4 if quick else 20
            planned = contest.Contest.of(scenarios, names, number, first_seed, quick)
            store = ResultCache(cache)
            table = contest.run(
                planned, lambda tasks: sweep(tasks, workers=workers, dask=dask, cache=store, title="comparison")
            )
            contest.store(table, path)
    except (ValueError, FileNotFoundError, ImportError) as error:
        raise typer.BadParameter(str(error)) from error
    except KeyboardInterrupt:
        console.print("stopped; finished runs are kept, the same command goes on from here")
        raise typer.Exit(130) from None
    draw(table, out / "figures" / "compare.png")
    write_text(out / "which-algorithm.md", report(table, "figures/compare.png"))
    typer.echo(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
    for written in (path, out / "figures" / "compare.png", out / "which-algorithm.md"):
        console.print(f"{written}")
