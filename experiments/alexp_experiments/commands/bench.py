"""`alexp bench`: what a step costs, where the time goes, and how that compares."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="startup, step, lasso, growth, memory, floor, study, service, context, wide, routes (all of these by "
            "default); gpu; scale.",
            metavar="NAME",
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the records as a JSON list.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the results into this file.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a page with the tables of all that was measured.")
    ] = None,
    rivals: Annotated[
        Path | None,
        typer.Option(
            help="Python of an environment with more rivals: $ALEXP_RIVALS_PYTHON or that of `make rivals` by default."
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Keep finished benchmarks in this file, and do not measure them again.")
    ] = None,
    stored: Annotated[
        Path | None, typer.Option(help="Measure nothing; write page and figure from a file that --resume kept.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny versions, to see that everything works.")] = False,
) -> None:
    """Measure speed and memory: start-up, steps, the group Lasso beside other solvers, studies, contexts, tables.

    Example: alexp bench step --quick
    """
    from rich.console import Console

    from alexp.common.files import write_text
    from alexp_experiments.bench import scale_page
    from alexp_experiments.bench.page import draw, markdown as page, present, table, verdicts
    from alexp_experiments.bench.scale import AXES
    from alexp_experiments.bench.suite import run_benchmarks, stored_benchmarks

    notes = Console(stderr=True)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    try:
        if stored is not None:
            measured = stored_benchmarks(stored)
        else:
            measured = run_benchmarks(
                names or (),
                quick=quick,
                progress=notes.print,
                rivals_python=rivals,
                resume=resume,
            )
    except (ValueError, FileNotFoundError) as error:
        raise typer.BadParameter(str(error)) from error
    records = [row for rows in measured["records"].values() for row in rows]
    for name in present(records):
        console.print(_rich(name, *table(name, records)))
    if not quick and (judged := verdicts(records))[1]:
        console.print(_rich("targets", *judged))
    if json_file is not None:
        write_text(json_file, json.dumps(records, indent=1))
    if plot is not None:
        draw(records, plot)
    if markdown is not None:
        if present(records)[0] in AXES:
            write_text(markdown, scale_page.markdown(records, measured["machine"]))
            return
        figure = None if plot is None else Path(os.path.relpath(plot, markdown.parent)).as_posix()
        write_text(markdown, page(records, figure, sum(measured["seconds"].values()), measured["machine"]))


def _rich(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table

    out = Table(title=title)
    for k, heading in enumerate(headings):
        out.add_column(heading, justify="left" if k < 2 else "right")
    for row in rows:
        out.add_row(*(cell.strip("*") for cell in row))
    return out
