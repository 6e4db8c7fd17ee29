"""The command line: commands over the library, and those of other packages (entry points `alexp.commands`)."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Annotated

import typer

from alexp.cli.doctor import doctor
from alexp.cli.errors import SafeGroup, advice_for
from alexp.cli.preflight import preflight
from alexp.cli.serve import serve
from alexp.cli.study import app as study
from alexp.common.extensions import announced

app = typer.Typer(
    cls=SafeGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
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
    """Choose the right model while optimising, with guarantees that hold at every moment.

    See it work: alexp demo

    Your own table of candidates: alexp study create NAME --candidates FILE, then
    alexp study ask NAME -n 8 --out plate.csv, fill in the rewards, and alexp study tell NAME plate.csv

    What any command does, with an example: alexp COMMAND --help
    """


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for figure and table.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1, help="Rounds to play.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of problem and algorithms.")] = 8,
) -> None:
    """Show what choosing among 165 models costs: a table, a figure, and what they mean.

    Example: alexp demo --steps 200
    """
    from rich.console import Console

    from alexp.cli.demo import demo_figure, demo_table, demo_words, run_demo, store_demo

    result = run_demo(steps, seed)
    console = Console()
    console.print(demo_table(result))
    path = out / "demo.png"
    demo_figure(result, path)
    store_demo(result, out / "demo.csv")
    console.print(demo_words(result, path))


app.command()(doctor)
app.command()(preflight)
app.command()(serve)
app.add_typer(study, name="study")


@app.command()
def warmup() -> None:
    """Compile the code that common problems need, after an installation or in an image: first steps are then fast.

    Example: alexp warmup
    """
    from rich.console import Console

    from alexp.algorithms.warming import Warmed, warm_up_common
    from alexp.common.compiling import cache_folder

    console = Console()

    def show(done: Warmed) -> None:
        console.print(f"{done.seconds:7.2f} s  {done.problem}")

    begin = time.perf_counter()
    warm_up_common(show)
    folder = cache_folder()
    kept = "not stored: set NUMBA_CACHE_DIR" if folder is None else f"stored in {folder}"
    console.print(f"{time.perf_counter() - begin:7.2f} s  in all; {kept}", soft_wrap=True)


def add_commands() -> None:
    """Add the commands of installed packages: functions, or `typer.Typer` groups, under the entry point's name."""
    known = {one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands}
    known |= {one.name for one in app.registered_groups if isinstance(one.name, str)}
    for name, command in announced("alexp.commands"):
        if name in known:
            warnings.warn(f"command {name!r} of an installed package is left out: there is one already", stacklevel=2)
        elif isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        elif callable(command):
            app.command(name)(command)
        known.add(name)


add_commands()


def main() -> None:
    """Run the command line; a missing package, or a lack of memory, is named in one line, with the remedy."""
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"  # without the line of code
    try:
        app()
    except (ImportError, MemoryError) as error:  # also while the command line itself is loaded
        advice = advice_for(error)
        if advice is None:
            raise
        typer.secho(f"error: {advice}", err=True, fg="red")
        sys.exit(1)


if __name__ == "__main__":
    main()
