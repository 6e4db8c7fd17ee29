"""The command line: thin faces over the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from alexp.commands.bench import bench
from alexp.commands.compare import compare
from alexp.commands.preflight import preflight
from alexp.commands.reproduce import reproduce
from alexp.commands.run import run
from alexp.commands.study import app as study
from alexp.commands.warmup import warmup

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Choose the right model while optimising.")


@app.callback()
def main() -> None:
    """Choose the right model while optimising, with guarantees that hold at every moment."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1, help="Rounds to play.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of problem and algorithms.")] = 8,
) -> None:
    """Run ALExp on the paper's M = 165 problem beside Oracle UCB and uniform play; print a table, draw a figure."""
    from rich.console import Console

    from alexp.experiments.demo import demo_figure, demo_table, run_demo

    result = run_demo(steps, seed)
    console = Console()
    console.print(demo_table(result))
    path = out / "demo.png"
    demo_figure(result, path)
    console.print(f"figure written to {path}")


app.command()(run)
app.command()(reproduce)
app.command()(compare)
app.command()(bench)
app.command()(preflight)
app.command()(warmup)
app.add_typer(study, name="study")


if __name__ == "__main__":
    app()
