"""docs/real-tables.md, from stored runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from alexp_experiments.comparison.tables.arylation import GOOD, LATE, MARKS, after, curves, reached, standing
from alexp_experiments.comparison.tables.entrants import BOTORCH, TABLE_ENTRANTS, YARDSTICK
from alexp_experiments.comparison.tables.reading import (
    BEST_OF_ONE,
    Summed,
    best_of_one,
    by_table,
    chosen,
    entrants_in,
    regret_ratio,
    tables_in,
)
from alexp_experiments.comparison.tables.text import ARYLATION, ENTRANTS, MADE_BY, PROTOCOL

if TYPE_CHECKING:
    import pandas as pd

Found = TypeVar("Found")


def tables_report(runs: pd.DataFrame | None, arylation: pd.DataFrame | None, figures: str = "figures") -> str:
    """The page as Markdown."""
    parts = ["# Real tables", PROTOCOL, "## Who plays", ENTRANTS, *([] if runs is None else [_stored(runs)])]
    for rounds, plate, repeats in [] if runs is None else protocols(runs):
        assert runs is not None
        how = f"n = {rounds}" + (f", plates of {plate}" if plate > 1 else "") + (", with repeats" if repeats else "")
        for goal, title in (("sum", "Summed reward"), ("best", "The best row soon")):
            own = chosen(runs, rounds, plate, repeats, goal)
            if len(own):
                parts += [f"## {title}, {how}", *_section(own, goal, repeats)]
        if not repeats:
            parts += [f"![Regret and top 1% found, table by table]({figures}/{figure_name(rounds, plate)})"]
    if arylation is not None:
        parts += ["## Direct arylation, in plates of five", ARYLATION, standing(arylation), _arylation(arylation)]
        parts += [f"![Best yield after k experiments]({figures}/arylation.png)"]
    return "\n\n".join([*(part for part in parts if part), "## How this page is made", MADE_BY]) + "\n"


def _stored(runs: pd.DataFrame) -> str:
    """Which rows are stored runs of other libraries: version, tables and seeds."""
    lines = []
    for name in entrants_in(runs):
        own = runs[runs["entrant"] == name]
        if not TABLE_ENTRANTS[name].is_peer:
            continue
        versions = sorted(set(own["library"]) - {""}) if "library" in own else []
        seeds = own.groupby("table")["seed"].nunique()
        numbers = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
        said = ", ".join(versions) or "version not recorded"
        first, last = int(own["seed"].min()), int(own["seed"].max())
        lines.append(f"- *{name}*: {said}; {numbers} seeds a table, from {first} to {last}.")
    if not lines:
        return ""
    head = (
        "**Rows that were not made anew.** Other libraries take hours, so their rows are stored runs of an earlier "
        "time; the command of this page makes ours alone."
    )
    return "\n".join([head, "", *lines])


def figure_name(rounds: int, plate: int) -> str:
    """File of the figure on runs without repeats."""
    usual = (rounds, plate) == (100, 1)
    return "real-tables.png" if usual else f"real-tables-{rounds}-rounds-plates-of-{plate}.png"


def protocols(runs: pd.DataFrame) -> list[tuple[int, int, bool]]:
    """Rounds, plate and repeats of all runs: without repeats first."""
    found = set(runs[["rounds", "plate", "repeats"]].itertuples(index=False, name=None))
    return sorted(((int(n), int(plate), bool(again)) for n, plate, again in found), key=lambda p: (p[2], p[1], p[0]))


def _section(runs: pd.DataFrame, goal: str, repeats: bool) -> list[str]:
    found, names, tables = by_table(runs), entrants_in(runs), tables_in(runs)
    numbers, sizes = runs["seed"], sorted({own.seeds for own in found.values()})
    seeds = f"{sizes[0]} to {sizes[-1]} seeds" if len(sizes) > 1 else f"{sizes[0]} seeds"
    note = f"{seeds} from {int(numbers.min())} to {int(numbers.max())}; mean ± standard error"
    if goal == "sum":
        against = "the best row in every round" if repeats else "the best n rows"
        parts = [
            f"R(n) against {against}. {note} (median).",
            _grid(found, names, tables, _regret, None if repeats else _ratio_column(runs, names, tables)),
            *_against(runs, names, tables, BEST_OF_ONE),
            *_against(runs, names, tables, BOTORCH),
        ]
    else:
        parts = [
            f"Gap to the best row after n rounds. {note}.",
            _grid(found, names, tables, _gap, _mean_column(found, names, tables)),
        ]
    top = ("mean", lambda name: _mean(found, name, tables, lambda own: own.top.mean))
    parts += ["Share of the top 1% found:", _grid(found, names, tables, lambda own: f"{own.top.mean:.2f}", top)]
    parts += [
        "Best reward found, in the table's unit:",
        _grid(found, names, tables, lambda own: f"{own.best.mean:.4g}"),
    ]
    parts += ["Seconds per round:", _grid(found, names, tables, lambda own: f"{own.seconds:.2g}")]
    hindsight = [name for name in names if TABLE_ENTRANTS[name].each]
    if hindsight:
        parts += ["Best in hindsight:", _grid(found, hindsight, tables, lambda own: own.model)]
    return parts


def _regret(own: Summed) -> str:
    return f"{own.regret.mean:.1f} ± {own.regret.error:.1f} ({own.median_regret:.1f})"


def _gap(own: Summed) -> str:
    return f"{own.gap.mean:.3f} ± {own.gap.error:.3f}"


Column = tuple[str, Callable[[str], str]]


def _ratio_column(runs: pd.DataFrame, names: Sequence[str], tables: Sequence[str]) -> Column:
    def ratio(name: str) -> str:
        found = regret_ratio(runs, name, tables) if name != YARDSTICK else None
        return "" if found is None else str(found)

    return "× 0.1.0, geometric mean", ratio


def _against(runs: pd.DataFrame, names: Sequence[str], tables: Sequence[str], reference: str) -> list[str]:
    """Ratios of mean regrets to those of a reference, table by table, where it has played."""
    import pandas as pd

    known = pd.concat([runs, best_of_one(runs)], ignore_index=True)
    judged = [name for name in names if name != reference and not TABLE_ENTRANTS[name].is_told]
    ratios = {(name, table): regret_ratio(known, name, [table], reference) for name in judged for table in tables}
    found = {where: ratio for where, ratio in ratios.items() if ratio is not None}
    if not found:
        return []

    def over_all(name: str) -> str:
        ratio = regret_ratio(known, name, tables, reference)
        return "" if ratio is None else str(ratio)

    sizes = known[known["entrant"] == reference].groupby("table")["seed"].nunique()
    seeds = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    return [
        f"Times the regret of {reference} ({seeds} seeds), on the seeds that both have played:",
        _grid(found, judged, tables, lambda ratio: f"{ratio.mean:.2f}", ("geometric mean", over_all)),
    ]


def _mean_column(found: dict[tuple[str, str], Summed], names: Sequence[str], tables: Sequence[str]) -> Column:
    return "mean", lambda name: _mean(found, name, tables, lambda own: own.gap.mean, 3)


def _mean(
    found: dict[tuple[str, str], Summed],
    name: str,
    tables: Sequence[str],
    value: Callable[[Summed], float],
    digits: int = 2,
) -> str:
    own = [value(found[name, table]) for table in tables if (name, table) in found]
    return f"{sum(own) / len(own):.{digits}f}" if len(own) == len(tables) else ""


def _grid(
    found: dict[tuple[str, str], Found],
    names: Sequence[str],
    tables: Sequence[str],
    cell: Callable[[Found], str],
    last: Column | None = None,
) -> str:
    """A Markdown table, entrants by tables; `last` is one more column."""
    titles = [*tables, *([] if last is None else [last[0]])]
    lines = ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for name in names:
        cells = [cell(found[name, table]) if (name, table) in found else "" for table in tables]
        cells += [] if last is None else [last[1](name)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _arylation(runs: pd.DataFrame) -> str:
    """Mean best yield after k experiments, and who has reached a yield of 99."""
    titles = [*(str(k) for k in MARKS), *(f"{GOOD:.0f} reached by {k}" for k in LATE)]
    lines = ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for name, curve in curves(runs).items():
        cells = []
        for k in MARKS:
            mean = after(curve, k)
            cells.append("" if mean is None else f"{mean.mean:.1f} [{mean.low:.1f}, {mean.high:.1f}]")
        for k in LATE:
            share = reached(curve, k)
            cells.append("" if share is None else str(share))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    seeds = runs["seed"]
    note = f"Mean best yield after k experiments with 95% intervals; seeds {int(seeds.min())} to {int(seeds.max())}."
    return "\n".join(lines) + "\n\n" + note
