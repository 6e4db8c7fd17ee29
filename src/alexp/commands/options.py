"""What the commands of a study have in common: their arguments, opening a study, writing its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from alexp.study import Study

DEFAULT = "sqlite:///alexp.db"
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([smhd]?)\s*", text)
    if found is None or float(found[1]) == 0.0:
        raise typer.BadParameter(
            f"must be a positive number of seconds, or with a unit: 90s, 15m, 8h, 2d; got {text!r}"
        )
    return float(found[1]) * _UNITS[found[2]]


Name = Annotated[str, typer.Argument(help="Name of the study.")]
Where = Annotated[
    str,
    typer.Option("--storage", envvar="ALEXP_STORAGE", help="sqlite:///file.db or postgresql://user@host/database."),
]
OneTrial = Annotated[str, typer.Argument(help="Number of the trial.")]
Out = Annotated[Path | None, typer.Option(help="File to write; printed if absent.")]
Force = Annotated[bool, typer.Option(help="Write over an existing file.")]
LeaseFor = Annotated[
    float | None,
    typer.Option("--lease", parser=_seconds, metavar="TIME", help="Until then no other worker gets them: 90s, 8h, 2d."),
]
Worker = Annotated[
    str | None, typer.Option("--worker", envvar="ALEXP_WORKER", help="Name of this worker; host:process if absent.")
]


@contextmanager
def opened(name: str, storage: str, worker: str | None = None) -> Iterator[Study]:
    """A study, for the time of a command, whose worker may go by a name."""
    from alexp.study import load_study
    from alexp.study.database.events import acting_as

    with acting_as(worker), load_study(name, storage) as study:
        yield study


def check_out(out: Path | None, force: bool) -> None:
    """Refuse a file that could not be written, or that may hold rewards, before anything is asked for."""
    if out is not None and out.exists() and not force:
        raise FileExistsError(f"{out} exists and may hold rewards; choose another file, or --force to replace it")
    if out is not None and not out.parent.is_dir():
        raise FileNotFoundError(f"the folder {out.parent} does not exist")


def write_lines(out: Path | None, lines: Iterator[list[str]], what: str) -> None:
    """Write lines to a file, or print them."""
    from alexp.common.cells import to_csv
    from alexp.study.tables import write_csv

    if out is None:
        typer.echo(to_csv(lines), nl=False)
    else:
        typer.echo(f"{write_csv(out, lines)} {what} written to {out}")
