"""`alexp study heartbeat`, `take-over` and `pending`: trials in the hands of many workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from alexp.commands.options import (
    DEFAULT,
    Force,
    LeaseFor,
    Name,
    Out,
    Where,
    Worker,
    check_out,
    opened,
    write_lines,
)

if TYPE_CHECKING:
    from alexp.study import HeldTrial


def heartbeat(
    name: Name,
    trials: Annotated[list[str], typer.Argument(help="Numbers of pending trials.")],
    lease: LeaseFor = None,
    worker: Worker = None,
    storage: Where = DEFAULT,
) -> None:
    """Say that this worker still measures some trials: their leases run anew, for as long as before or for --lease."""
    with opened(name, storage, worker) as study:
        study.heartbeat(trials, lease)
        typer.echo(f"prolonged {len(trials)} leases")


def take_over(
    name: Name,
    trials: Annotated[list[str] | None, typer.Argument(help="Numbers of trials; those that expired if absent.")] = None,
    n: Annotated[int | None, typer.Option("-n", "--number", min=1, help="At most so many.")] = None,
    lease: LeaseFor = None,
    worker: Worker = None,
    out: Out = None,
    force: Force = False,
    storage: Where = DEFAULT,
) -> None:
    """Take over trials of other workers whose lease has expired, as a file for `tell`."""
    from alexp.study.tables import plate

    with opened(name, storage, worker) as study:
        check_out(out, force)
        taken = study.take_over(trials or None, lease=lease, n=n)
        write_lines(out, plate(study, taken), "trials")


def pending(
    name: Name,
    out: Out = None,
    workers: Annotated[
        bool, typer.Option("--workers", help="Print who measures what, since when, until when.")
    ] = False,
    storage: Where = DEFAULT,
) -> None:
    """Trials that await their reward, as a file for `tell`."""
    from alexp.common.redaction import printable
    from alexp.study.labels import labeller
    from alexp.study.tables import plate

    with opened(name, storage) as study:
        trials = study.pending()
        if not workers:
            write_lines(out, plate(study, trials), "pending trials")
            return
        what = labeller(study.algorithm)
        for trial in trials:
            line = f"{trial.id}\t{what(trial.id)}\t{trial.worker}\tasked {_span(trial.age)} ago\t{_lease(trial)}"
            typer.echo(printable(line.replace("\t", "  ")))


def _lease(trial: HeldTrial) -> str:
    if trial.lease is None:
        return "no lease"
    return f"lease expired {_span(-trial.lease)} ago" if trial.expired else f"lease has {_span(trial.lease)} left"


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
