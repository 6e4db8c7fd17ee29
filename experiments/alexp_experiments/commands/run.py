"""`alexp run`: any algorithms on any scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table


def run(
    scenario: Annotated[str, typer.Option(help="Name of a problem, e.g. easy or large.")] = "large",
    algorithms: Annotated[
        str, typer.Option(help="Names separated by commas; `module:Class` is an algorithm of your own.")
    ] = "alexp,oracle,naive",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, counted from 0.")] = 5,
    steps: Annotated[int | None, typer.Option(min=1, help="Rounds; the scenario's own by default.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the regret curves into this file.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where results are kept; $ALEXP_CACHE or ~/.cache/alexp.")] = None,
) -> None:
    """Run algorithms on a problem with their default settings; prints a table of their regret.

    An algorithm of your own is `module:Class`; modules are looked for in the current folder, too.

    Example: alexp run --scenario large --algorithms alexp,evidence-mixture,mine:MyAlgorithm --seeds 10
    """
    from rich.console import Console

    from alexp_experiments.core.cache import ResultCache
    from alexp_experiments.core.panel import Panel
    from alexp_experiments.core.runner import sweep

    names = [name.strip() for name in algorithms.split(",") if name.strip()]
    if any(":" in name for name in names) and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does; processes of the sweep inherit it
    try:
        panel = Panel.of(scenario, names, seeds, steps)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    console = Console()
    store = ResultCache(cache)
    try:
        records = sweep(panel.tasks, workers=workers, dask=dask, cache=store, title=f"{scenario}, {seeds} seeds")
    except KeyboardInterrupt:
        console.print("stopped; finished runs are kept, the same command goes on from here")
        raise typer.Exit(130) from None
    console.print(_table(panel.rows(records), f"{scenario}, {seeds} seeds"))
    if plot is not None:
        panel.draw(records, plot)
        console.print(f"figure written to {plot}")


def _table(rows: list[dict[str, str]], title: str) -> Table:
    from rich.table import Table

    table = Table(title=title)
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "algorithm" else "right")
    for row in rows:
        table.add_row(*row.values())
    return table
