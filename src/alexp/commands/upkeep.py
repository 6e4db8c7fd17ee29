"""`alexp study check` and `alexp study salvage`: what is damaged, and saving what is not."""

from __future__ import annotations

from typing import Annotated

import typer

from alexp.commands.options import DEFAULT, Where
from alexp.commands.study import app
from alexp.common.redaction import printable

__all__ = ["app"]


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="Name of the study; all of them if absent.")] = None,
    storage: Where = DEFAULT,
) -> None:
    """Verify everything that is stored, replay the log from its start, and compare; exit status 1 if it is damaged."""
    from alexp.study import check as check_study
    from alexp.study import list_studies

    names = [study.name for study in list_studies(storage)] if name is None else [name]
    reports = [check_study(each, storage) for each in names]
    for report in reports:
        typer.echo(printable(str(report)))
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


@app.command()
def salvage(
    source: Annotated[str, typer.Argument(help="The damaged storage: a file, or postgresql://user@host/database.")],
    target: Annotated[str, typer.Argument(help="A new storage for what is intact.")],
) -> None:
    """Copy what is intact of all studies into a new storage, and say what was lost."""
    from alexp.study import salvage as salvage_studies

    for report in salvage_studies(source, target):
        typer.echo(printable(str(report)))
