"""The three protocols of `alexp board`, its page and its figures.

1. Summed reward: 100 rounds, the first five rows random, no row twice; R(100) as on docs/real-tables.md.
2. Coverage, as GOLLuM (arXiv 2504.06265): ten first rows below the median, fifty single steps; the share of the best
   twentieth of the rows that was found.
3. Plates: direct arylation in plates of five, beside EDBO and fifty chemists.

Runs, rivals and their storage are those of `alexp compare --tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alexp.common.files import write_text
from alexp.common.style import COLOURS, new_figure, save_figure
from alexp_experiments.board import memory
from alexp_experiments.board.tables import ListedTable
from alexp_experiments.comparison.tables import arylation
from alexp_experiments.comparison.tables.contest import (
    BOTORCH,
    FIRST_SEED,
    KEY,
    RANDOM,
    SLOW,
    TABLE_ENTRANTS,
    UCB,
    TableContest,
    found_share,
)
from alexp_experiments.comparison.tables.report import (
    BEST_OF_ONE,
    OURS,
    PLATES,
    Summed,
    Sweep,
    add_arylation,
    best_of_one,
    by_table,
    entrants_in,
    grid,
    label_rows,
    regret_ratio,
    tables_in,
)
from alexp_experiments.core.cache import keep_runs, stored_runs
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.statistics import estimate

if TYPE_CHECKING:
    import pandas as pd

COMMAND, RUNS, PAGE = "alexp board", "board.csv", "board.md"
PROSE = Prose("alexp_experiments.board", "board.md")
TUNING_SEED = 96_000  # first seed of runs on tuning tables
SEEDS, SLOW_SEEDS = 20, 3
QUICK = (OURS, RANDOM)
LOCKED = 2.0  # a run whose regret is more than so many times the median of its table counts as locked
COVERAGE = {"GOLLuM, fine-tuned T5": 0.43, "static embeddings (GOLLuM's paper)": 0.24}  # means of five Buchwald tables
BUCHWALD = "buchwald_"
_COLUMNS = [*KEY, "model", "seed", "regret", "coverage"]  # of runs, as far as the page needs them all


class Protocol(NamedTuple):
    """What is played, and what of it is looked at."""

    name: str
    goal: str
    rounds: int
    first: int
    start: str
    measure: str


PLATES_OF_FIVE = "plates"
SUM = Protocol("sum", "sum", 100, 5, "random", "regret")
COVERED = Protocol("coverage", "best", 60, 10, "poor", "coverage")
PROTOCOLS = (SUM.name, COVERED.name, PLATES_OF_FIVE, "memory")


class BoardSize(NamedTuple):
    """How much is played: seeds, seeds of slow rivals, seeds of plates, and rounds (None for the protocol's own)."""

    seeds: int = SEEDS
    slow: int = SLOW_SEEDS
    plates: int = arylation.SEEDS
    rounds: int | None = None


def tables_of(protocol: Protocol, tables: Sequence[ListedTable]) -> list[ListedTable]:
    """The tables that are played under a protocol."""
    return [table for table in tables if protocol is SUM or table.coverage]


def contests(
    protocol: Protocol, sources: Sequence[str], entrants: Sequence[str], size: BoardSize, first_seed: int = FIRST_SEED
) -> Iterator[TableContest]:
    """The runs of a protocol, slow rivals on fewer seeds."""
    rounds = protocol.rounds if size.rounds is None else size.rounds
    for names, seeds in (
        ([name for name in entrants if name not in SLOW], size.seeds),
        ([name for name in entrants if name in SLOW], size.slow),
    ):
        if names and sources:
            yield TableContest.of(
                sources, names, (protocol.goal,), seeds, first_seed, rounds, first=protocol.first, start=protocol.start
            )


def run(contest: TableContest, sweep: Sweep) -> pd.DataFrame:
    """One row per run, with the share of the best twentieth of the rows that it found."""
    import pandas as pd

    records, rows = iter(sweep(contest.tasks)), list[dict[str, object]]()
    for cell in contest.cells:
        own, table = [next(records) for _ in cell.seeds], cell.scenario.table
        for row, record in zip(cell.rows(own), own, strict=True):
            rows.append(row | {"coverage": found_share(table, record, ceil(table.n_rows / 20))})
    return pd.DataFrame(rows)


def play(
    tables: Sequence[ListedTable],
    folders: Sequence[Path],
    entrants: Sequence[str],
    size: BoardSize,
    sweep: Sweep,
    out: Path,
    protocols: Sequence[str] = PROTOCOLS,
) -> list[str]:
    """Play protocols and add the runs to those in `out`; names of the tables that no folder has."""
    found = {table.name: table.found_in(folders) for table in tables}
    for protocol in (SUM, COVERED):
        own = tables_of(protocol, tables) if protocol.name in protocols else []
        sources = [source for table in own if (source := found[table.name]) is not None]
        for contest in contests(protocol, sources, entrants, size):
            keep_runs(run(contest, sweep), out / RUNS, COMMAND, KEY)
    if PLATES_OF_FIVE in protocols:
        add_arylation(size.plates, FIRST_SEED, size.rounds or arylation.EXPERIMENTS, sweep, out)
    return [name for name, source in found.items() if source is None]


# -- the page --------------------------------------------------------------------------------------------------------


def played(runs: pd.DataFrame, protocol: Protocol, tables: Sequence[str]) -> pd.DataFrame:
    """Runs under a protocol; of entrants that play one model at a time, the best model in hindsight of each table."""
    own = runs[(runs["goal"] == protocol.goal) & runs["table"].isin(list(tables))]
    kept = []
    for _, group in own.groupby(["table", "entrant"], sort=False):
        numbers = group.groupby("model", sort=False)["seed"].nunique()
        whole = group[group["model"].isin(numbers.index[numbers == numbers.max()])]  # runs may have been stopped
        means = whole.groupby("model", sort=False)[protocol.measure].mean()
        best = means.idxmin() if protocol.measure == "regret" else means.idxmax()
        kept.append(group[group["model"] == best])
    return own.iloc[:0] if not kept else own.loc[[k for group in kept for k in group.index]]


def locked(runs: pd.DataFrame, entrant: str) -> tuple[int, int]:
    """Runs with more than twice the median regret of their table, and all runs."""
    own = runs[runs["entrant"] == entrant]
    medians = own.groupby("table")["regret"].transform("median")
    return int((own["regret"] > LOCKED * medians).sum()), len(own)


def board_report(runs: pd.DataFrame, plates: pd.DataFrame | None, tables: Sequence[ListedTable]) -> str:
    """The page as Markdown, with sections of what was played."""
    names = [table.name for table in tables]
    summed, covered = (played(runs, protocol, names) for protocol in (SUM, COVERED))
    parts = [PROSE.line("introduction", bars=_bars(summed, covered, plates))]
    if len(summed):
        parts.append(PROSE.line("sum", seeds=_seeds(summed), table=_sums(summed)))
    if len(covered):
        parts.append(PROSE.line("coverage", seeds=_seeds(covered), table=_coverage(covered)))
    if plates is not None:
        parts.append(PROSE.line("plates", seeds=_span(plates["seed"]), table=_plates(plates)))
    parts += [PROSE.line("rivals"), PROSE.line("tried"), PROSE.line("tables", tables=_sources(tables))]
    return "\n\n".join(parts) + "\n"


def _sums(summed: pd.DataFrame) -> str:
    import pandas as pd

    own_tables = tables_in(summed)
    known = pd.concat([summed, best_of_one(summed)], ignore_index=True)

    def against(reference: str) -> Callable[[str], str]:
        def ratio(name: str) -> str:
            shared = [t for t in own_tables if len(_both_played(known[known["table"] == t], name, reference)) > 1]
            value = None if name == reference else regret_ratio(known, name, shared, reference)
            return "" if value is None else f"{value} on {len(shared)}"

        return ratio

    def locks(name: str) -> str:
        some, all_ = locked(summed, name)
        return f"{some} of {all_}"

    def regret(own: Summed) -> str:
        if np.isnan(own.regret.error):  # of one run
            return f"{own.regret.mean:.1f}"
        return f"{own.regret.mean:.1f} ± {own.regret.error:.1f} ({own.median_regret:.1f})"

    columns = [
        ("× EvidenceMixture", against(OURS)),
        ("× BoTorch", against(BOTORCH)),
        ("× best single model", against(BEST_OF_ONE)),
        ("locked", locks),
        *_made(summed),
    ]
    return grid(by_table(summed), entrants_in(summed), own_tables, regret, columns)


def _bars(summed: pd.DataFrame, covered: pd.DataFrame, plates: pd.DataFrame | None) -> str:
    """The aims of the board beside what was measured, as a Markdown table."""
    lines = ["| aim | measured |", "|---|---|"]
    tables = [t for t in tables_in(summed) if len(_both_played(summed[summed["table"] == t], OURS, BOTORCH)) > 1]
    if (ratio := regret_ratio(summed, OURS, tables, BOTORCH)) is not None:
        each = {table: regret_ratio(summed, OURS, [table], BOTORCH) for table in tables}
        worst = max(tables, key=lambda table: each[table].mean if each[table] is not None else 0.0)  # type: ignore[union-attr]
        lines += [
            f"| R(100) at most .92 of BoTorch's best map in hindsight | {ratio} on {len(tables)} tables |",
            f"| no table above 1.05 of it | {worst}: {each[worst]} |",
        ]
    if (summed["entrant"] == OURS).any():
        some, all_ = locked(summed, OURS)
        lines.append(f"| locked runs at most 2% | {some} of {all_} |")
    for name in (OURS, UCB):
        own = covered[(covered["entrant"] == name) & covered["table"].str.startswith(BUCHWALD)]
        if len(own):
            means = own.groupby("table")["coverage"].mean()
            who = "" if name == OURS else ", with ucb"
            measured = f"{means.mean():.3f} on {len(means)} tables"
            lines.append(f"| coverage of Buchwald-Hartwig at least .52{who} | {measured} |")
    curve = None if plates is None else arylation.curves(plates).get(OURS)
    for k, aim in ((25, 95.6), (50, 99.6)):
        if curve is not None and (after := arylation.after(curve, k)) is not None:
            lines.append(f"| direct arylation after {k}: {aim} | {after} |")
    return "\n".join(lines)


def _coverage(runs: pd.DataFrame) -> str:
    tables = tables_in(runs)
    found = {
        (str(name), str(table)): estimate(group["coverage"])
        for (name, table), group in runs.groupby(["entrant", "table"], sort=False)
    }
    reactions = [table for table in tables if table.startswith(BUCHWALD)]

    def mean(name: str) -> str:
        values = [found[name, table].mean for table in reactions if (name, table) in found]
        return f"{np.mean(values):.3f}" if values and len(values) == len(reactions) else ""

    columns = [("mean of Buchwald", mean), *_made(runs)]
    lines = grid(found, entrants_in(runs), tables, lambda own: f"{own.mean:.3f} ± {own.error:.3f}", columns)
    published = [f"| {name} | " + "| " * len(tables) + f"{value:.2f} | | | |" for name, value in COVERAGE.items()]
    return "\n".join([lines, *published])


def _plates(runs: pd.DataFrame) -> str:
    lines = [
        "| | " + " | ".join(f"after {k}" for k in arylation.MARKS) + " | 99 reached by 25 | by 50 | runs |",
        "|---" * (len(arylation.MARKS) + 4) + "|",
    ]
    for name, curve in arylation.curves(runs).items():
        cells = [arylation.after(curve, k) for k in arylation.MARKS]
        cells += [arylation.reached(curve, k) for k in arylation.LATE]
        texts = ["" if one is None else f"{one.mean:.1f} ± {one.error:.1f}" for one in cells[:-2]]
        texts += ["" if one is None else f"{one.mean:.2f}" for one in cells[-2:]]
        lines.append(f"| {arylation.shown(name)} | " + " | ".join(texts) + f" | {len(curve)} |")
    return "\n".join(lines)


def _seeds(runs: pd.DataFrame) -> str:
    """Seeds of the entrants that have played most."""
    return f"{runs.groupby(['entrant', 'table'])['seed'].nunique().max()} seeds, {_span(runs['seed'])}, or fewer"


def _span(seeds: pd.Series) -> str:
    return f"{int(seeds.min())} to {int(seeds.max())}"


def _both_played(runs: pd.DataFrame, name: str, other: str) -> set[int]:
    """Seeds that two entrants have played."""
    own, theirs = (set(runs[runs["entrant"] == which]["seed"]) for which in (name, other))
    return own & theirs


def _made(runs: pd.DataFrame) -> list[tuple[str, Callable[[str], str]]]:
    """Columns that say how numbers were made: seeds, seconds a round beside other runs, and the library."""

    def seeds(name: str) -> str:
        numbers = runs[runs["entrant"] == name].groupby("table")["seed"].nunique()
        low, high = int(numbers.min()), int(numbers.max())
        return f"{low}" if low == high else f"{low} to {high}"

    def seconds(name: str) -> str:
        return f"{runs[runs['entrant'] == name]['seconds'].median():.2g}"

    def library(name: str) -> str:
        used = sorted({str(one) for one in runs[runs["entrant"] == name]["library"]} - {"", "nan"})
        return ", ".join(used)

    return [("seeds", seeds), ("s a round", seconds), ("library", library)]


def _sources(tables: Sequence[ListedTable]) -> str:
    return "\n".join(f"- *{one.name}*: {one.source}" for one in tables)


def shown_values(runs: pd.DataFrame, protocol: Protocol) -> dict[tuple[str, str], float]:
    """R(100) in units of random play's, or coverage, by entrant and table; without pairs that have too few seeds."""
    out = {}
    for key, own in runs.groupby(["entrant", "table"], sort=False):
        name, table = map(str, key)
        if protocol is COVERED:
            out[name, table] = float(own["coverage"].mean())
        elif (ratio := regret_ratio(runs, name, [table])) is not None:
            out[name, table] = ratio.mean
    return out


def draw(runs: pd.DataFrame, protocol: Protocol, path: Path) -> None:
    """One row per entrant that has a value, one mark per table."""
    values = shown_values(runs, protocol)
    names = [name for name in entrants_in(runs) if any(name == own for own, _ in values)]
    figure, axes = new_figure(1, 1, width=7.4, height=2.0 + 0.32 * len(names))
    ax = axes[0, 0]
    for k, table in enumerate(tables_in(runs)):
        marks = [(values[name, table], row) for row, name in enumerate(names) if (name, table) in values]
        style = {"color": COLOURS[k % len(COLOURS)], "marker": "osD^vPX*<>"[k % 10], "ls": "", "ms": 5.0}
        ax.plot(*np.array(marks).reshape(-1, 2).T, label=table, **style)
    titles = {SUM: "R(100) in units of random play's", COVERED: "share of the top 5% found"}
    ax.set_xlim(left=0.0)
    ax.set_title(titles[protocol], fontsize=9)
    label_rows(ax, [arylation.shown(name) for name in names])
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    save_figure(figure, path)


def write_pages(tables: Sequence[ListedTable], out: Path) -> Iterator[Path]:
    """Page and figures of what was played, from the runs in `out`; yields what was written."""
    import pandas as pd

    others = (out / PLATES).exists() or (out / memory.RUNS).exists()
    is_empty = others and not (out / RUNS).exists()
    runs = pd.DataFrame(columns=_COLUMNS) if is_empty else stored_runs(out / RUNS, COMMAND)
    plates = stored_runs(out / PLATES, COMMAND) if (out / PLATES).exists() else None
    runs = runs[runs["entrant"].isin(list(TABLE_ENTRANTS))]
    runs = runs.assign(coverage=pd.to_numeric(runs["coverage"], errors="coerce"))  # unknown of some rivals
    names = [table.name for table in tables]
    for protocol in (SUM, COVERED):
        if len(own := played(runs, protocol, names)):
            figure = out / "figures" / f"board-{protocol.name}.png"
            draw(own, protocol, figure)
            yield figure
    if plates is not None:
        figure = out / "figures" / "board-plates.png"
        arylation.draw_arylation(plates, figure)
        yield figure
    write_text(out / PAGE, board_report(runs, plates, tables) + memory.section(out))
    yield out / PAGE
