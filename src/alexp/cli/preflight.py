"""`alexp preflight`: check models and candidates before the first experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from alexp.problem import Domain, ModelClass


def preflight(
    candidates: Annotated[Path | None, typer.Option(help="CSV file with one candidate per line.")] = None,
    features: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE, a CSV or NPY file with one line per candidate; repeat.")
    ] = None,
    degree: Annotated[int, typer.Option(min=0, help="Without files: Legendre polynomials up to this degree,")] = 10,
    size: Annotated[int, typer.Option(min=1, help="... in all subsets of this size,")] = 3,
    resolution: Annotated[int, typer.Option(min=1, help="... on this many points of [-1, 1].")] = 401,
    noise_std: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 0.1,
    reward_bound: Annotated[float, typer.Option(help="Largest size of a noiseless reward.")] = 1.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report to this file.")] = None,
) -> None:
    """Report rank, duplicate models, feature norms, lambda_min of exploration designs, and the schedules' constants."""
    import json

    from rich.console import Console

    from alexp.common.files import write_text
    from alexp.theory import preflight as look

    models, domain = _problem(candidates, features, degree, size, resolution)
    report = look(models, domain, noise_std=noise_std, reward_bound=reward_bound)
    console = Console()
    console.print(report)
    if json_file is not None:
        write_text(json_file, json.dumps(report.to_dict(), indent=1))
        console.print(f"report written to {json_file}")


def _problem(
    candidates: Path | None, features: list[str] | None, degree: int, size: int, resolution: int
) -> tuple[ModelClass, Domain]:
    from alexp.problem import FiniteSet, Interval, ModelClass
    from alexp.study.tables import read_candidates, read_features

    if (candidates is None) != (not features):
        raise ValueError("--candidates and --features go together")
    if candidates is None or not features:
        return ModelClass.legendre(degree, size), Interval(-1.0, 1.0, resolution)
    table = read_candidates(candidates)
    pairs = [text.partition("=") for text in features]
    if not all(name and file for name, _, file in pairs):
        raise ValueError("--features must look like NAME=FILE")
    matrices = {name: read_features(Path(file), table) for name, _, file in pairs}
    return ModelClass.from_matrices(matrices), FiniteSet(table)
