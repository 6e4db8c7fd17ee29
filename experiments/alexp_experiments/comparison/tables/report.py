"""docs/real-tables.md and its figures, from the stored runs of `alexp compare --tables`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.files import write_text
from alexp.common.style import COLOURS, new_figure, save_figure
from alexp_experiments.comparison.tables.arylation import (
    CHEMISTS,
    EDBO,
    GOOD,
    LATE,
    MARKS,
    after,
    arylation_tasks,
    compared,
    curves,
    draw_arylation,
    reached,
    run_arylation,
    shown,
)
from alexp_experiments.comparison.tables.contest import BOTORCH, KEY, RANDOM, TABLE_ENTRANTS, TableContest
from alexp_experiments.core.cache import keep_runs, store_runs, stored_runs
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.statistics import MeanEstimate, estimate
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_DRAWS = 2000  # of the bootstrap
_SMALLEST = 1e-3  # regret below this counts as this in ratios
BEST_OF_ONE = "the best single map or kernel in hindsight"
DECIDED_BY = {"sum": "regret", "best": "gap"}  # what the best model in hindsight is best in


class Summed(NamedTuple):
    """One entrant on one table: its model, if it played with one at a time, and what its runs reached."""

    model: str
    seeds: int
    regret: MeanEstimate
    median_regret: float
    gap: MeanEstimate
    top: MeanEstimate
    best: MeanEstimate
    seconds: float


def chosen(runs: pd.DataFrame, rounds: int, plate: int, repeats: bool, goal: str) -> pd.DataFrame:
    """Runs under one protocol and with one goal; of who plays one model at a time, the best model in hindsight."""
    own = runs[
        (runs["rounds"] == rounds) & (runs["plate"] == plate) & (runs["repeats"] == repeats) & (runs["goal"] == goal)
    ]
    kept = []
    for _, group in own.groupby(["table", "entrant"], sort=False):
        means = group.groupby("model", sort=False)[DECIDED_BY[goal]].mean()
        kept.append(group[group["model"] == means.index[int(np.argmin(means.to_numpy()))]])
    return own.iloc[:0] if not kept else own.loc[[k for group in kept for k in group.index]]


def summed(group: pd.DataFrame) -> Summed:
    """Means over the seeds of one entrant on one table."""
    return Summed(
        str(group["model"].iloc[0]),
        len(group),
        estimate(group["regret"]),
        float(group["regret"].median()),
        estimate(group["gap"]),
        estimate(group["top"]),
        estimate(group["best"]),
        float(group["seconds"].median()),
    )


def by_table(runs: pd.DataFrame) -> dict[tuple[str, str], Summed]:
    """Entrant and table -> what was reached, for runs as `chosen` returns them."""
    return {
        (str(entrant), str(table)): summed(group)
        for (entrant, table), group in runs.groupby(["entrant", "table"], sort=False)
    }


def entrants_in(runs: pd.DataFrame) -> list[str]:
    """Entrants in the order of the list of them."""
    present = set(runs["entrant"])
    return [name for name in TABLE_ENTRANTS if name in present]


def tables_in(runs: pd.DataFrame) -> list[str]:
    """Tables by name."""
    return sorted(set(runs["table"]), key=str.lower)


def best_of_one(runs: pd.DataFrame) -> pd.DataFrame:
    """Who of ours plays one model at a time and lost least on a table, as an entrant of its own."""
    kept = []
    single = runs["entrant"].map(lambda name: TABLE_ENTRANTS[name].has_one_model).astype(bool)
    for _, own in runs[single].groupby("table", sort=False):
        means = own.groupby("entrant", sort=False)["regret"].mean()
        kept += [own[own["entrant"] == means.index[int(np.argmin(means.to_numpy()))]]]
    return runs.iloc[:0] if not kept else runs.loc[[k for own in kept for k in own.index]].assign(entrant=BEST_OF_ONE)


def regret_ratio(
    runs: pd.DataFrame, entrant: str, tables: Sequence[str], reference: str = RANDOM
) -> MeanEstimate | None:
    """Geometric mean over tables of the ratio of mean regrets, with a 95% interval: seeds drawn again in pairs.

    On the seeds that both have played; None where there are fewer than two of them on one of the tables.
    """
    pairs = []
    for table in tables:
        above, below = (
            runs[(runs["table"] == table) & (runs["entrant"] == name)].set_index("seed")["regret"]
            for name in (entrant, reference)
        )
        both = above.index.intersection(below.index).sort_values()
        if len(both) < 2:
            return None
        pairs.append((above[both].to_numpy(), below[both].to_numpy()))
    if not pairs:
        return None
    rng = np.random.default_rng(0)
    draws = np.array([_log_ratio(pairs, rng) for _ in range(_DRAWS)])
    centre = float(np.exp(_log_ratio(pairs)))
    low, high = np.exp(np.quantile(draws, [0.025, 0.975]))
    return MeanEstimate(centre, centre * float(draws.std()), float(low), float(high))


def _log_ratio(pairs: Sequence[tuple[np.ndarray, np.ndarray]], rng: np.random.Generator | None = None) -> float:
    logs = []
    for above, below in pairs:
        picks = slice(None) if rng is None else rng.integers(above.size, size=above.size)
        logs.append(np.log(max(above[picks].mean(), _SMALLEST)) - np.log(max(below[picks].mean(), _SMALLEST)))
    return float(np.mean(logs))


_MARKERS = "osD^vPX*<>"


def draw_tables(runs: pd.DataFrame, rounds: int, plate: int, path: Path) -> None:
    """Left: mean regret over that of random play, goal "sum", same seeds. Right: top 1% found, goal "best"."""
    ours = {goal: chosen(runs, rounds, plate, False, goal) for goal in ("sum", "best")}
    names = [name for name in entrants_in(runs) if any((own["entrant"] == name).any() for own in ours.values())]
    figure, axes = new_figure(1, 2, width=6.2, height=1.6 + 0.32 * len(names))
    for k, table in enumerate(tables_in(runs)):
        style = {"color": COLOURS[k % len(COLOURS)], "marker": _MARKERS[k % len(_MARKERS)], "ls": "", "ms": 5.0}
        ratios = [(row, regret_ratio(ours["sum"], name, [table])) for row, name in enumerate(names)]
        known = [(row, ratio.mean) for row, ratio in ratios if ratio is not None]
        axes[0, 0].plot([ratio for _, ratio in known], [row for row, _ in known], **style)
        found = by_table(ours["best"])
        rows = [(row, found[name, table]) for row, name in enumerate(names) if (name, table) in found]
        axes[0, 1].plot([own.top.mean for _, own in rows], [row for row, _ in rows], label=table, **style)
    axes[0, 0].set_xscale("log")
    low, high = axes[0, 0].get_xlim()
    ticks = [tick for tick in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20) if low <= tick <= high]
    axes[0, 0].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0, 0].minorticks_off()
    axes[0, 0].axvline(1.0, color="0.5", lw=0.8, zorder=0)
    axes[0, 0].set_title(f"R({rounds}) in units of random play's", fontsize=9)
    axes[0, 1].set_title(f"share of the top 1% found by round {rounds}", fontsize=9)
    label_rows(axes[0, 0], [shown(name) for name in names])
    label_rows(axes[0, 1], [""] * len(names))
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    save_figure(figure, path)


def label_rows(ax: Axes, names: list[str]) -> None:
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    for row in range(0, len(names), 2):
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=-1)


PROSE = Prose("alexp_experiments.comparison.tables", "real-tables.md")
Found = TypeVar("Found")


def tables_report(runs: pd.DataFrame | None, arylation: pd.DataFrame | None, figures: str = "figures") -> str:
    """The page as Markdown."""
    parts = [PROSE.line("introduction", answer="" if runs is None else _answer(runs, arylation))]
    if arylation is not None:
        parts += [_arylation(arylation, figures)]
    for rounds, plate, repeats in [] if runs is None else protocols(runs):
        assert runs is not None
        how = f"n = {rounds}" + (f", plates of {plate}" if plate > 1 else "") + (", with repeats" if repeats else "")
        if not repeats:
            parts += [PROSE.line("figure", figure=f"{figures}/{figure_name(rounds, plate)}", rounds=rounds)]
        for goal, title in (("sum", "Summed reward"), ("best", "The best row soon")):
            own = chosen(runs, rounds, plate, repeats, goal)
            if len(own):
                parts += [f"## {title}, {how}", *_section(own, goal, repeats)]
    parts += [] if runs is None else [PROSE.line("players"), _stored(runs)]
    seconds = "" if runs is None else _seconds(runs)
    return "\n\n".join([*(part for part in parts if part), PROSE.line("end", seconds=seconds)]) + "\n"


OURS = "mixture, kernels"


def _answer(runs: pd.DataFrame, arylation: pd.DataFrame | None) -> str:
    """What the runs of 100 rounds without repeats say; "" where the mixture with kernels has not played them."""
    import pandas as pd

    own, best = (chosen(runs, 100, 1, False, goal) for goal in ("sum", "best"))
    tables, found = tables_in(runs), by_table(best)
    known = pd.concat([own, best_of_one(own)], ignore_index=True)
    single, botorch = (regret_ratio(known, OURS, tables, other) for other in (BEST_OF_ONE, BOTORCH))
    if single is None or any((OURS, table) not in found for table in tables):
        return ""
    solved = sum(found[OURS, table].gap.mean < 5e-4 for table in tables)
    words: dict[str, str | None] = {"edbo": None, "chemists": None}
    if arylation is not None:
        played = curves(arylation)
        words = {key: _word(played, other) for key, other in (("edbo", EDBO), ("chemists", CHEMISTS))}
    return PROSE.line(
        "answer",
        tables=len(tables),
        single=single,
        botorch="" if botorch is None else f", and {botorch} times BoTorch's",
        found=f"finds it within 100 rounds under every seed on {solved} of the {len(tables)} tables",
        **words,
    )


def _word(found: dict[str, FloatArray], other: str) -> str | None:
    """Level, ahead or behind after 25 experiments."""
    ours = next((name for name in found if name not in (CHEMISTS, EDBO)), None)
    said = compared(found, ours, other) if ours is not None else ""
    return said.partition(": *")[2].partition("*")[0] or None


def _seconds(runs: pd.DataFrame) -> str:
    """What a round takes, ours and BoTorch's."""
    own = by_table(chosen(runs, 100, 1, False, "sum"))
    ours, theirs = ([one.seconds for (name, _), one in own.items() if name == who] for who in (OURS, BOTORCH))
    if not ours or not theirs:
        return ""
    said = PROSE.line(
        "seconds", ours=shown(OURS), ours_least=min(ours), ours_most=max(ours), least=min(theirs), most=max(theirs)
    )
    return f"{said} "


def _stored(runs: pd.DataFrame) -> str:
    """Which rows are stored runs of other libraries: version, tables and seeds."""
    libraries = []
    for name in entrants_in(runs):
        own = runs[runs["entrant"] == name]
        if not TABLE_ENTRANTS[name].is_peer:
            continue
        versions = sorted(set(own["library"]) - {""}) if "library" in own else []
        seeds = own.groupby("table")["seed"].nunique()
        numbers = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
        said = ", ".join(versions) or "version not recorded"
        libraries.append(f"{shown(name)} ({said}; {numbers} seeds a table)")
    return PROSE.line("stored", libraries=", ".join(libraries)) if libraries else ""


def figure_name(rounds: int, plate: int) -> str:
    """File of the figure on runs without repeats."""
    usual = (rounds, plate) == (100, 1)
    return "real-tables.png" if usual else f"real-tables-{rounds}-rounds-plates-of-{plate}.png"


def protocols(runs: pd.DataFrame) -> list[tuple[int, int, bool]]:
    """Rounds, plate and repeats of all runs: without repeats first."""
    found = set(runs[["rounds", "plate", "repeats"]].itertuples(index=False, name=None))
    return sorted(((int(n), int(plate), bool(again)) for n, plate, again in found), key=lambda p: (p[2], p[1], p[0]))


def _section(runs: pd.DataFrame, goal: str, repeats: bool) -> list[str]:
    """What is asked for, table by table, and one or two columns over all tables."""
    found, names, tables = by_table(runs), entrants_in(runs), tables_in(runs)
    numbers, sizes = runs["seed"], sorted({own.seeds for own in found.values()})
    seeds = f"{sizes[0]} to {sizes[-1]} seeds" if len(sizes) > 1 else f"{sizes[0]} seeds"
    seeds = f"{seeds} from {int(numbers.min())} to {int(numbers.max())}"
    if goal == "best":
        top: Column = ("top 1%", lambda name: _mean(found, name, tables, lambda own: own.top.mean))
        mean: Column = ("mean", lambda name: _mean(found, name, tables, lambda own: own.gap.mean, 3))
        return [PROSE.line("best", seeds=seeds), grid(found, names, tables, _gap, [mean, top])]
    columns = [_against(runs, tables, reference) for reference in (BEST_OF_ONE, BOTORCH)]
    kept = [column for column in columns if column is not None]
    against = "n times the best reward of the table" if repeats else "the sum of the n best rewards of the table"
    said = PROSE("columns") if kept else ""
    error = "mean" if repeats else "mean ± standard error"
    parts = [PROSE.line("sum", against=against, error=error, seeds=seeds, columns=f" {said.strip()}" if said else "")]
    parts += [grid(found, names, tables, _mean_regret if repeats else _regret, kept)]
    if repeats and (kernels := columns[0] and columns[0][1](OURS)):
        single = by_table(best_of_one(runs))
        pairs = {table: (found[OURS, table].regret.mean, single[BEST_OF_ONE, table].regret.mean) for table in tables}
        worst = max(pairs, key=lambda table: pairs[table][0] / pairs[table][1])
        parts += [PROSE.line("repeats", kernels=kernels, worst=worst, theirs=pairs[worst][0], single=pairs[worst][1])]
    return parts


def _regret(own: Summed) -> str:
    return f"{own.regret.mean:.1f} ± {own.regret.error:.1f}"


def _mean_regret(own: Summed) -> str:
    return f"{own.regret.mean:.1f}"


def _gap(own: Summed) -> str:
    return f"{own.gap.mean:.3f} ± {own.gap.error:.3f}" if own.gap.mean or own.gap.error else "0"


Column = tuple[str, Callable[[str], str]]


def _against(runs: pd.DataFrame, tables: Sequence[str], reference: str) -> Column | None:
    """Geometric means of the ratio of mean regrets to those of a reference; None where it has not played."""
    import pandas as pd

    known = pd.concat([runs, best_of_one(runs)], ignore_index=True)
    if reference not in set(known["entrant"]):
        return None

    def over_all(name: str) -> str:
        if name == reference or TABLE_ENTRANTS[name].has_one_model:
            return ""
        ratio = regret_ratio(known, name, tables, reference)
        return "" if ratio is None else str(ratio)

    return f"× {'best single model' if reference == BEST_OF_ONE else 'BoTorch'}", over_all


def _mean(
    found: dict[tuple[str, str], Summed],
    name: str,
    tables: Sequence[str],
    value: Callable[[Summed], float],
    digits: int = 2,
) -> str:
    own = [value(found[name, table]) for table in tables if (name, table) in found]
    return f"{sum(own) / len(own):.{digits}f}" if len(own) == len(tables) else ""


def grid(
    found: dict[tuple[str, str], Found],
    names: Sequence[str],
    tables: Sequence[str],
    cell: Callable[[Found], str],
    more: Sequence[Column] = (),
) -> str:
    """A Markdown table, entrants by tables, and `more` columns."""
    titles = [*tables, *(title for title, _ in more)]
    lines = ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for name in names:
        cells = [cell(found[name, table]) if (name, table) in found else "" for table in tables]
        cells += [value(name) for _, value in more]
        lines.append(f"| {shown(name)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _arylation(runs: pd.DataFrame, figures: str) -> str:
    """Mean best yield after k experiments, and who has reached a yield of 99."""
    titles = [*(f"after {k}" for k in MARKS), f"{GOOD:.0f} reached by {LATE[-1]}"]
    lines = ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for name, curve in curves(runs).items():
        cells = []
        for k in MARKS:
            mean = after(curve, k)
            cells.append("" if mean is None else f"{mean.mean:.1f} [{mean.low:.1f}, {mean.high:.1f}]")
        share = reached(curve, LATE[-1])
        cells.append("" if share is None else str(share))
        lines.append(f"| {shown(name)} | " + " | ".join(cells) + " |")
    first, last = int(runs["seed"].min()), int(runs["seed"].max())
    said, table = standing(runs) or None, "\n".join(lines)
    return PROSE.line("arylation", standing=said, table=table, first=first, last=last, figures=figures)


def standing(runs: pd.DataFrame) -> str:
    """The first player beside EDBO and the chemists, in words that follow from the intervals."""
    found = curves(runs)
    ours = next((name for name in found if name not in (CHEMISTS, EDBO)), None)
    lines = [
        f"- *{shown(ours)}* beside {other}: {said}."
        for other in (EDBO, CHEMISTS)
        if ours is not None and (said := compared(found, ours, other))
    ]
    if ours is None or not lines:
        return ""
    sizes = {"runs": len(found[ours]), "edbo": len(found[EDBO]), "chemists": len(found[CHEMISTS])}
    n = min(found[one].shape[1] for one in (ours, CHEMISTS))
    behind = np.flatnonzero(found[CHEMISTS][:, :n].mean(axis=0) > found[ours][:, :n].mean(axis=0))
    crossing = int(behind[-1]) + 1 if behind.size and behind[-1] + 1 < n else None
    return PROSE.line("arylation, standing", lines="\n".join(lines), crossing=crossing, **sizes)


Sweep = Callable[[list[Task]], list[Record]]
COMMAND = "alexp compare --tables DIR"
RUNS, PLATES, PAGE = "real-tables.csv", "arylation.csv", "real-tables.md"


def add_runs(contest: TableContest, sweep: Sweep, out: Path) -> pd.DataFrame:
    """Run a contest and add its rows to those in `out`."""
    new = contest.run(sweep)
    keep_runs(new, out / RUNS, COMMAND, KEY)
    return new


def add_arylation(seeds: int, first_seed: int, experiments: int, sweep: Sweep, out: Path) -> pd.DataFrame:
    """Run direct arylation in plates; earlier runs in `out` are replaced."""
    runs = run_arylation(arylation_tasks(seeds, first_seed, experiments), sweep)
    store_runs(runs, out / PLATES)
    return runs


def write_pages(out: Path) -> Iterator[Path]:
    """Page and figures from the runs in `out`; yields what was written."""
    plates = stored_runs(out / PLATES, COMMAND) if (out / PLATES).exists() else None
    runs = None if plates is not None and not (out / RUNS).exists() else stored_runs(out / RUNS, COMMAND)
    if runs is not None:
        runs = runs[runs["entrant"].isin(list(TABLE_ENTRANTS))]  # those that are no more are not shown
    for rounds, plate, repeats in [] if runs is None else protocols(runs):
        if not repeats:
            assert runs is not None
            draw_tables(runs, rounds, plate, out / "figures" / figure_name(rounds, plate))
            yield out / "figures" / figure_name(rounds, plate)
    if plates is not None:
        draw_arylation(plates, out / "figures" / "arylation.png")
        yield out / "figures" / "arylation.png"
    write_text(out / PAGE, tables_report(runs, plates))
    yield out / PAGE
