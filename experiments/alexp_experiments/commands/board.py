"""`alexp board`: every representation against every rival on tables that nothing was tuned on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def board(
    tables: Annotated[
        list[Path] | None, typer.Option(help="Folders of tables *.npz, beside $ALEXP_TABLES and $ALEXP_BOARD.")
    ] = None,
    players: Annotated[str | None, typer.Option(help="Names separated by semicolons; ours by default.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Other libraries, too, as far as installed.")] = False,
    protocols: Annotated[str, typer.Option(help="What to play; the page has stored runs of others.")] = (
        "sum; coverage; plates"
    ),
    seeds: Annotated[int | None, typer.Option(min=2, help="20 by default; 200 for plates, 3 for slow rivals.")] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Play the tuning tables on other seeds; no page.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds, twelve rounds, few players: a minute.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for page, figures and runs.")] = Path("board"),
    stored: Annotated[bool, typer.Option("--stored", help="Write the page from stored runs, run nothing.")] = False,
    download: Annotated[
        Path | None, typer.Option(help="Fetch tables that no folder has into this one, as far as they are public.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where results are kept; $ALEXP_CACHE or ~/.cache/alexp.")] = None,
) -> None:
    """Play the board: summed reward, coverage, and plates; one page, one figure per protocol.

    Finished runs are kept: stopping loses nothing, and a second call computes only what is missing.

    Example: alexp board --quick --tables tables
    """
    from rich.console import Console

    from alexp.common.validation import one_of
    from alexp_experiments.board import board as playing, memory
    from alexp_experiments.board.tables import listed_tables
    from alexp_experiments.comparison.tables.contest import OURS, UCB, playing_peers
    from alexp_experiments.core.cache import ResultCache
    from alexp_experiments.core.runner import sweep
    from alexp_experiments.core.tasks import Record, Task

    console, store = Console(), None if stored else ResultCache(cache)
    given = [Path(os.environ[name]) for name in ("ALEXP_TABLES", "ALEXP_BOARD") if os.environ.get(name)]
    folders = [*(tables or []), *given]
    entrants = _names(players or "") or list(
        playing.QUICK if quick else [*OURS, UCB, *(playing_peers(typer.echo) if peers else [])]
    )
    size = playing.BoardSize(2, 2, 2, 12) if quick else playing.BoardSize()
    size = size if seeds is None else playing.BoardSize(seeds, min(seeds, size.slow), seeds, size.rounds)

    def run(tasks: list[Task]) -> list[Record]:
        return sweep(tasks, workers=workers, dask=dask, cache=store, title="board")

    try:
        wanted = [one_of("protocol", name, playing.PROTOCOLS) for name in _names(protocols)]
        own = listed_tables("tune" if tune else "report")
        if download is not None:
            folders.append(download)
            for one in own:
                if one.download is not None and one.found_in(folders) is None:
                    console.print(f"{one.fetch(download)}")
        if "memory" in wanted and not stored:
            memory.play_all("tune" if tune else "report", folders, entrants, size.seeds, out, size.rounds, workers)
        if tune:
            for protocol in (playing.SUM, playing.COVERED):
                played = playing.tables_of(protocol, own) if protocol.name in wanted else []
                some = [source for one in played if (source := one.found_in(folders)) is not None]
                for contest in playing.contests(protocol, some, entrants, size, playing.TUNING_SEED):
                    means = playing.run(contest, run).groupby(["table", "entrant", "model"], sort=False)
                    shown = means[["regret", "coverage", "seconds"]].mean()
                    typer.echo(shown.to_string(float_format=lambda value: f"{value:.3g}"))
            return
        if not stored and (missing := playing.play(own, folders, entrants, size, run, out, wanted)):
            console.print(f"left out, because no folder has them: {', '.join(missing)}")
            if public := [one.name for one in own if one.name in missing and one.download is not None]:
                console.print(f"--download FOLDER gets {', '.join(public)}")
        written = list(playing.write_pages(own, out))
    except (ValueError, FileNotFoundError, ImportError) as error:
        raise typer.BadParameter(str(error)) from error
    except KeyboardInterrupt:
        console.print("stopped; finished runs are kept, the same command goes on from here")
        raise typer.Exit(130) from None
    for path in written:
        console.print(f"{path}")


def _names(text: str) -> list[str]:
    """Names that semicolons separate."""
    return [name.strip() for name in text.split(";") if name.strip()]
