"""The command line: thin faces over the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from alexp.commands.bench import bench
from alexp.commands.careful import Careful
from alexp.commands.compare import compare
from alexp.commands.extras import advice_for
from alexp.commands.preflight import preflight
from alexp.commands.reproduce import reproduce
from alexp.commands.run import run
from alexp.commands.serve import serve
from alexp.commands.tables import tables
from alexp.commands.upkeep import app as study
from alexp.commands.warmup import warmup

app = typer.Typer(
    cls=Careful,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Choose the right model while optimising.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import alexp

        typer.echo(f"alexp {alexp.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Choose the right model while optimising, with guarantees that hold at every moment."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for figure and table.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1, help="Rounds to play.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of problem and algorithms.")] = 8,
) -> None:
    """Play the paper's M = 165 problem beside Oracle UCB and uniform play; print and keep a table, draw a figure."""
    from rich.console import Console

    from alexp.experiments.demo import demo_figure, demo_table, run_demo, store_demo

    result = run_demo(steps, seed)
    console = Console()
    console.print(demo_table(result))
    path = out / "demo.png"
    demo_figure(result, path)
    store_demo(result, out / "demo.csv")
    console.print(f"figure written to {path}")


app.command()(run)
app.command()(reproduce)
app.command()(compare)
app.command()(tables)
app.command()(bench)
app.command()(preflight)
app.command()(serve)
app.command()(warmup)
app.add_typer(study, name="study")


def main() -> None:
    """The command line; a package that is not installed is named in one line, with the extra that brings it."""
    try:
        app()
    except ImportError as error:
        advice = advice_for(error)
        if advice is None:
            raise
        typer.secho(f"error: {advice}", err=True, fg="red")
        sys.exit(1)


if __name__ == "__main__":
    main()
