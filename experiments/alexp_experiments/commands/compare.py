"""`alexp compare`: every algorithm on every scenario or real table, and the pages that say which to pick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from alexp_experiments.core.tasks import Record, Task


def compare(
    scenarios: Annotated[list[str] | None, typer.Argument(help="Problems by name; all if none is named.")] = None,
    algorithms: Annotated[str | None, typer.Option(help="Names separated by semicolons; all by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Six problems and four seeds: a minute or two.")] = False,
    seeds: Annotated[int | None, typer.Option(min=2, help="40; tables 20, arylation 200, contexts 10.")] = None,
    first_seed: Annotated[int | None, typer.Option(min=0, help="90000; tables 95000, contexts 97000; untuned.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the pages and the rest.")] = Path("compare"),
    tables: Annotated[Path | None, typer.Option(help="A folder of real tables *.npz to play on instead.")] = None,
    arylation: Annotated[bool, typer.Option("--arylation", help="Play direct arylation in plates of five.")] = False,
    contextual: Annotated[bool, typer.Option("--contextual", help="Play rounds with contexts instead.")] = False,
    peers: Annotated[bool, typer.Option("--peers", help="Tables, contexts: other libraries, too.")] = False,
    goal: Annotated[str, typer.Option(help='Tables: "sum", "best" or "both".')] = "both",
    rounds: Annotated[int | None, typer.Option(min=2, help="Rounds per run; tables 100, arylation 50.")] = None,
    plate: Annotated[int, typer.Option(min=1, help="Tables: rounds that are asked for at a time.")] = 1,
    repeats: Annotated[bool, typer.Option("--repeats", help="Tables: a row may be measured again.")] = False,
    tune: Annotated[
        Path | None, typer.Option(help="Try settings of all algorithms on the tuning seeds instead, into this file.")
    ] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Write the page from stored runs, run nothing.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where results are kept; $ALEXP_CACHE or ~/.cache/alexp.")] = None,
) -> None:
    """Compare all algorithms on many problems: one table, one figure, and which to use.

    With --tables or --arylation the problems are real tables, and the page is real-tables.md; with --contextual they
    are streams of contexts, and the page is contextual-results.md.

    Where algorithms or problems are named, their rows are added to the table that is there. --tune tries eight settings
    of every algorithm's own constants on other seeds; the rows "tuned" play with the best of them.

    Finished runs are kept: stopping loses nothing, and a second call computes only what is missing.

    Example: alexp compare "s=3 σ=.1" --algorithms "alexp; evidence-mixture" --seeds 10
    """
    from rich.console import Console

    from alexp_experiments.core.cache import ResultCache
    from alexp_experiments.core.runner import sweep

    console, store = Console(), None if stored else ResultCache(cache)
    names = None if algorithms is None else [name.strip() for name in algorithms.split(";") if name.strip()]

    def run(tasks: list[Task]) -> list[Record]:
        return sweep(tasks, workers=workers, dask=dask, cache=store, title="comparison")

    try:
        if tune is not None:
            written = _tuned(names, run, tune)
        elif contextual:
            written = _on_contexts(scenarios, names, quick, peers, seeds, first_seed, stored, run, out)
        elif tables is not None or arylation:
            how = (goal, rounds, plate, repeats)
            written = _on_tables(tables, arylation, names, peers, seeds, first_seed, how, stored, run, out)
        else:
            written = _on_scenarios(scenarios, names, quick, seeds, first_seed, stored, run, out)
    except (ValueError, FileNotFoundError, ImportError) as error:
        raise typer.BadParameter(str(error)) from error
    except KeyboardInterrupt:
        console.print("stopped; finished runs are kept, the same command goes on from here")
        raise typer.Exit(130) from None
    for path in written:
        console.print(f"{path}")


Run: TypeAlias = "Callable[[list[Task]], list[Record]]"


def _tuned(names: list[str] | None, run: Run, path: Path) -> list[Path]:
    """The sweep over the constants of all algorithms."""
    from alexp_experiments.comparison import tuning

    sweep = tuning.tune(run, names)
    tuning.add_sweep(sweep, path)
    for name, constants in tuning.chosen(sweep).items():
        scores = tuning.scores(sweep, name)
        best, default = scores[tuning.written(constants)], scores[tuning.written({})]
        typer.echo(f"{name}: {default:.3g} with its defaults, {best:.3g} with {tuning.written(constants)}")
    return [path]


def _on_scenarios(
    scenarios: list[str] | None,
    names: list[str] | None,
    quick: bool,
    seeds: int | None,
    first_seed: int | None,
    stored: bool,
    run: Run,
    out: Path,
) -> list[Path]:
    """The grid of scenarios."""
    from alexp.common.files import write_text
    from alexp_experiments.comparison import contest
    from alexp_experiments.comparison.report import draw, report
    from alexp_experiments.comparison.tuning import stored_sweep

    path, figure, page = out / "compare.csv", out / "figures" / "compare.png", out / "which-algorithm.md"
    if stored:
        table = contest.stored(path)
    else:
        number = seeds if seeds is not None else 4 if quick else contest.SEEDS
        start = contest.FIRST_SEED if first_seed is None else first_seed
        table = contest.run(contest.Contest.of(scenarios, names, number, start, quick), run)
        table = contest.store(table, path, add=scenarios is not None or names is not None)
    draw(table, figure)
    write_text(page, report(table, stored_sweep(), "figures/compare.png"))
    typer.echo(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
    return [path, figure, page]


def _on_tables(
    tables: Path | None,
    arylation: bool,
    names: list[str] | None,
    peers: bool,
    seeds: int | None,
    first_seed: int | None,
    how: tuple[str, int | None, int, bool],
    stored: bool,
    run: Run,
    out: Path,
) -> list[Path]:
    """Real tables, and direct arylation in plates."""
    from alexp_experiments.comparison.tables import arylation as reactions, contest, report
    from alexp_experiments.comparison.tables.data import table_sources

    start = contest.FIRST_SEED if first_seed is None else first_seed
    goal, rounds, plate, repeats = how
    if tables is not None and not stored:
        goals = contest.GOALS if goal == "both" else (goal,)
        wanted = names or [*contest.OURS, *(contest.playing_peers(typer.echo) if peers else [])]
        planned = contest.TableContest.of(
            table_sources(tables), wanted, goals, 20 if seeds is None else seeds, start, rounds or 100, plate, repeats
        )
        new = report.add_runs(planned, run, out)
        typer.echo(contest.overview(new).to_string(float_format=lambda value: f"{value:.3g}"))
    if arylation and not stored:
        experiments = rounds or reactions.EXPERIMENTS
        report.add_arylation(reactions.SEEDS if seeds is None else seeds, start, experiments, run, out)
    return list(report.write_pages(out))


def _on_contexts(
    scenarios: list[str] | None,
    names: list[str] | None,
    quick: bool,
    peers: bool,
    seeds: int | None,
    first_seed: int | None,
    stored: bool,
    run: Run,
    out: Path,
) -> list[Path]:
    """Rounds with contexts."""
    from alexp_experiments.contextual import contest, report

    if not stored:
        wanted = names or [*contest.OWN, *(contest.playing_libraries(typer.echo) if peers else [])]
        number = seeds if seeds is not None else 2 if quick else 10
        start = contest.FIRST_SEED if first_seed is None else first_seed
        planned = contest.ContextContest.of(scenarios, wanted, number, start, 60 if quick else None)
        new = report.add_context_runs(planned, run, out)
        means = new.groupby(["scenario", "entrant", "set"], sort=False)[["regret", "late", "ms"]].mean()
        typer.echo(means.to_string(float_format=lambda value: f"{value:.3g}"))
    return list(report.write_context_pages(out))
