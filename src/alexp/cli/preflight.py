"""`alexp preflight`: check models and candidates before the first experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alexp.cli.tables import (
    DecimalSign,
    FeatureFiles,
    HeaderLine,
    IdColumn,
    Ignore,
    KindOf,
    Missing,
    Replace,
    Sheet,
    Skip,
    read_table,
)

if TYPE_CHECKING:
    from alexp.theory.preflight import Preflight
    from alexp.theory.table_check import TableCheck


def preflight(
    candidates: Annotated[
        Path | None, typer.Option(help="CSV, .xlsx or Parquet file with one candidate per line.")
    ] = None,
    features: FeatureFiles = None,
    id: IdColumn = None,
    sheet: Sheet = None,
    kind: KindOf = None,
    ignore: Ignore = None,
    missing: Missing = None,
    decimal: DecimalSign = None,
    replace: Replace = None,
    header: HeaderLine = None,
    skip: Skip = None,
    reward: Annotated[str | None, typer.Option(help="Column of the results.")] = None,
    degree: Annotated[int, typer.Option(min=0, help="Without files: Legendre polynomials up to this degree,")] = 10,
    size: Annotated[int, typer.Option(min=1, help="... in all subsets of this size,")] = 3,
    resolution: Annotated[int, typer.Option(min=1, help="... on this many points of [-1, 1].")] = 401,
    noise_std: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 0.1,
    reward_bound: Annotated[float, typer.Option(help="Largest size of a noiseless reward.")] = 1.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report to this file.")] = None,
) -> None:
    """Check a table before the first experiment: near-duplicates, constant columns, how many experiments to expect.

    Without a table the problem is the paper's: rank, duplicate models, feature norms, lambda_min of exploration
    designs, and the schedules' constants.

    Example: alexp preflight --candidates reactions.xlsx
    """
    import json

    from rich.console import Console

    from alexp.common.files import write_text
    from alexp.problem import Interval, ModelClass
    from alexp.theory import preflight as look

    console = Console()
    if candidates is None and features:
        raise ValueError("--features describe --candidates, which are missing")
    if candidates is not None:
        reading = (id, sheet, kind, ignore, missing, decimal, replace, header, skip, reward)
        table = read_table(candidates, features, *reading)
        report: Preflight | TableCheck = look(table)
    else:
        problem = ModelClass.legendre(degree, size), Interval(-1.0, 1.0, resolution)
        report = look(*problem, noise_std=noise_std, reward_bound=reward_bound)
    console.print(str(report) if candidates is not None else report)
    if json_file is not None:
        write_text(json_file, json.dumps(report.to_dict(), indent=1))
        console.print(f"report written to {json_file}")
