"""docs/tables.md and its figure: what the paper prints, what was measured, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.files import write_text
from alexp.common.style import DASHES, METHOD_COLOURS, new_figure, save_figure
from alexp_experiments.core.cache import keep_runs, stored_runs
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.statistics import MeanEstimate, estimate
from alexp_experiments.core.tasks import Record, Task
from alexp_experiments.sparse.tables.contest import ENTRANTS, GRID, KEY, SIZES, VECTORS, WIDE, SparseContest
from alexp_experiments.sparse.tables.known import MASTER_ROUNDS, MASTERS, MASTERS_KNOWN, released
from alexp_experiments.sparse.tables.measures import (
    FLAT,
    TABLE_1,
    TABLE_2,
    Exponent,
    PrintedRow,
    in_rounds,
    in_width,
    log_slope,
    promised,
    verdict,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


CONTEXTS = (
    "even play, contexts", "LASSO Bandit", "Li 2022", "ModCB", "DR Lasso", "LinUCB, all columns, contexts",
    "ALExp, contexts", "SA Lasso", "TH Lasso", "Corral", "mixture, contexts", "oracle, contexts",
)  # fmt: skip
VECTOR_SETS = (
    "even play", "ESTC", "PopArt", "O2CS-EW, width x .05", "Corral, vectors", "EXP4-LS, vectors",
    "LinUCB, all columns", "ALExp", "mixture", "oracle",
)  # fmt: skip


def draw(runs: pd.DataFrame, path: Path) -> None:
    """Two panels for contexts and two for the fixed set."""
    figure, axes = new_figure(2, 2, width=6.2, height=4.2)
    for names, (left, right), title in (
        (CONTEXTS, axes[0], "contexts"),
        (VECTOR_SETS, axes[1], "fixed set of vectors"),
    ):
        for k, name in enumerate(one for one in names if one in ENTRANTS):
            _curve(left, in_rounds(runs, name), name, k)
            _curve(right, in_width(runs, name), name, k)
        left.set(title=title, xlabel="rounds n", ylabel="mean regret")
        right.set(title=f"{title}, growth", xlabel="columns p")
        right.legend(
            *left.get_legend_handles_labels(), frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5)
        )
    save_figure(figure, path)


def label(name: str) -> str:
    """What a row is called where a column, or the panel, says what it plays on.

    >>> label("mixture, contexts"), label("even play"), label("Corral, vectors")
    ('EvidenceMixture', 'random play', 'Corral')
    """
    plain = name.removesuffix(", contexts").removesuffix(", vectors")
    return _LABELS.get(plain, plain)


def colour_of(name: str) -> str:
    """The colour of the algorithm behind a row: the same on contexts and on vectors, and in every other figure."""
    one = ENTRANTS[name]
    told = {"linucb": "oracle" if "model" in one.settings else "naive"}
    return METHOD_COLOURS[told.get(one.algorithm, one.algorithm)]


def _curve(ax: Axes, found: Exponent | None, name: str, k: int) -> None:
    from matplotlib.ticker import NullLocator

    if found is not None:
        dash, marker = DASHES[k % len(DASHES)], ".v"[k // len(DASHES) % 2]
        ax.loglog(found.x, found.means, color=colour_of(name), ls=dash, marker=marker, ms=5, label=label(name))
        ax.set_xticks(found.x, [f"{x:.0f}" for x in found.x])
        ax.xaxis.set_minor_locator(NullLocator())


PROSE = Prose("alexp_experiments.sparse.tables", "tables.md")
VARIANTS = ("EXP3.P, smoothed", *(name for name in ENTRANTS if name.endswith(", doubling")))  # in tables.csv only
_LABELS = {"even play": "random play", "mixture": "EvidenceMixture"}
_EVEN = {"contexts": "even play, contexts", "vectors": "even play"}
_PARTS = {
    "n": "growth in n",
    "p": "growth in p",
    "masters": "nested models",
    "released": "the comparison with authors' code",
}
Line = Sequence[str]


def page(runs: pd.DataFrame, figure: str) -> str:
    """The whole page, from the lines of all runs."""
    main = runs[~runs["entrant"].isin(VARIANTS)]
    text = PROSE.line(
        "page",
        answer=_answer(main),
        figure=figure,
        corrections=PROSE.line("corrections").replace("\n\n", "\n"),
        measured_1=markdown(*measured_1(main, black_box=True)),
        measured_2=markdown(*measured_2(main)),
        grid=", ".join(map(str, GRID)),
        flat=FLAT,
        loud=loud_points(runs),
        contexts=_log_growth(WIDE, SIZES["contexts"][0]),
        vectors=_log_growth(VECTORS, SIZES["vectors"][0]),
        yardsticks=markdown(*yardsticks(runs)),
        masters=markdown(*masters_beside(runs)),
        released_summary=_released_summary(runs),
        first=runs["seed"].min(),
        last=runs["seed"].max(),
        seeds=seeds_text(runs),
        minutes=core_minutes(runs),
    )
    return text + "\n"


def _answer(runs: pd.DataFrame) -> str | None:
    """What came out, in a few sentences; None without ALExp, black-box methods and random play."""
    ours = [name for name in ("ALExp", "ALExp, contexts") if in_rounds(runs, name) and in_width(runs, name)]
    lines = [line for line in _lines_2(runs) if line[5] != "-"]
    shares = [
        float(line[-1]) for line in measured_1(runs, black_box=True)[1] if line[0] == "black box" and line[-1] != "-"
    ]
    if len(ours) < 2 or not shares:
        return ""
    row = next(row for row in TABLE_2 if row.key == "T2.10")
    slopes, growths = [in_rounds(runs, name) for name in ours], [in_width(runs, name) for name in ours]
    bounds = [promised(row.bound, one, name, "p") for one, name in zip(growths, ours, strict=True) if one is not None]
    return PROSE.line(
        "answer",
        alexp_n=" and ".join(f"{one.slope.mean:.2f}" for one in slopes if one is not None),
        alexp_p=" and ".join(f"{one.slope.mean:.2f}" for one in growths if one is not None),
        alexp_bound=" and ".join(f"{one:.2f}" for one in bounds if one is not None),
        kept=sum(line[5] in ("yes", "flat") for line in lines),
        judged=len(lines),
        least=min(shares),
        most=max(shares),
    )


def _released_summary(runs: pd.DataFrame) -> str:
    """How near final regret is to that of the authors' code."""
    beside = list(released(runs))
    ratios = [one.ratio for one in beside]
    within = sum(one.within for one in beside)
    return PROSE.line("released", n=len(beside), within=within, least=min(ratios), most=max(ratios)) if beside else ""


def _log_growth(widths: Sequence[int], size: int) -> str:
    """The exponent of log M in p over the widths that growth is measured on, with the numbers of models."""
    models = np.array(widths, dtype=np.float64) / size
    return f"{float(log_slope(models, np.log(models))):.2f} (M = {models[0]:.0f} .. {models[-1]:.0f})"


def core_minutes(runs: pd.DataFrame) -> float:
    """Time of all runs: a run that is looked at several times counts once, one that is told n counts for every n."""
    apart = runs["entrant"].map(lambda name: name in ENTRANTS and ENTRANTS[name].told_horizon)
    once = runs[~apart].sort_values("n").drop_duplicates(["entrant", "part", "p", "seed"], keep="last")
    return sum(float((own["ms"] * own["n"]).sum()) for own in (runs[apart], once)) / 60e3


def loud_points(runs: pd.DataFrame) -> str | None:
    """Curves of the figure with points that a few runs make: a mean of more than twice the median over seeds."""
    loud = []
    for name in dict.fromkeys((*CONTEXTS, *VECTOR_SETS)):
        own = runs[(runs["entrant"] == name) & runs["part"].isin(["n", "p"])]
        cells = {
            f"n = {n}" if part == "n" else f"p = {p}": cell["regret"]
            for (part, p, n), cell in own.groupby(["part", "p", "n"])
        }
        far = {where: cell for where, cell in cells.items() if cell.mean() > 2.0 * cell.median()}
        if far:
            where, cell = max(far.items(), key=lambda one: one[1].mean() / one[1].median())
            above = int((cell > 2.0 * cell.median()).sum())
            loud.append(
                f"{label(name)} at {', '.join(far)} (at {where} mean {cell.mean():.1f}, median {cell.median():.1f}, "
                f"{above} of {len(cell)} runs above twice it)"
            )
    return PROSE.line("loud", points="; ".join(loud)) if loud else None


def printed_2() -> tuple[Line, list[Line]]:
    """Table 2 as it is printed; numbers refer to the corrections."""
    head = ("row", "A_t", "data-poor", "adaptive", "anytime", "policy", "selects by", "assumes", "regret")
    return head, [
        (
            f"{row.key} {row.title}", row.sets, _yes(row.data_poor), _yes(row.adaptive), _yes(row.anytime),
            row.policy, row.selects_by, row.assumes, row.regret + _notes(row),
        )
        for row in TABLE_2
    ]  # fmt: skip


def printed_1() -> tuple[Line, list[Line]]:
    """Table 1 as it is printed."""
    head = ("class", "technique", "regret", "guarantee", "adaptive", "anytime")
    return head, [
        (one.title, one.technique, one.growth, _yes(one.guarantee), _yes(one.adaptive), _yes(one.anytime))
        for one in TABLE_1
    ]


def measured_2(runs: pd.DataFrame) -> tuple[Line, list[Line]]:
    """A line for every entrant of every row of Table 2; rows without one say why."""
    head = (
        "row", "method", "on", "exponent in n", "bound", "kept", "exponent in p", "bound", "kept",
        "last regret", "remark",
    )  # fmt: skip
    return head, list(_lines_2(runs))


def _lines_2(runs: pd.DataFrame) -> Iterator[Line]:
    for row in TABLE_2:
        found = [name for name in _playing(runs) if ENTRANTS[name].row == row.key]
        for name in found:
            yield _line_2(runs, row, name)
        if not found:
            who = [name for name, one in ENTRANTS.items() if one.row == row.key]
            where = ENTRANTS[who[0]].family if who else "-"
            yield (row.key, who[0] if who else "-", where, *("-" for _ in range(7)), "not measured")


def _line_2(runs: pd.DataFrame, row: PrintedRow, name: str) -> Line:
    slope, beyond, growth = in_rounds(runs, name), in_rounds(runs, name, beyond=True), in_width(runs, name)
    allowed = None if slope is None else promised(row.bound, slope, name, "n")
    allowed_p = None if growth is None else promised(row.bound, growth, name, "p")
    remark = ENTRANTS[name].note
    if beyond is not None:
        further = promised(row.bound, beyond, name, "n")
        remark += f"; n = {beyond.x[0]:.0f}..{beyond.x[-1]:.0f}: {_exponent(beyond)}, {_judged(beyond, further)}"
    return (
        row.key, label(name), ENTRANTS[name].family, _exponent(slope), _number(allowed), _judged(slope, allowed),
        _exponent(growth), _number(allowed_p), _judged(growth, allowed_p), _last(slope), remark,
    )  # fmt: skip


def measured_1(runs: pd.DataFrame, black_box: bool = False) -> tuple[Line, list[Line]]:
    """Growth with the models, by class of Table 1; with `black_box` without the sparse rows, which Table 2 has."""
    head = ("method", "on", "exponent in p", "exponent in n", "last regret", "of random play's")
    sparse = [name for name in _playing(runs) if ENTRANTS[name].row in ("T2.4", "T2.5", "T2.6", "T2.7", "T2.8", "T2.9")]
    masters = [name for name in _playing(runs) if ENTRANTS[name].row == "T1.black-box"]
    ours = [name for name in _playing(runs) if ENTRANTS[name].row == "T2.10"]
    lines: list[Line] = []
    for name in [*([] if black_box else sparse), *masters, *ours]:
        slope, growth = in_rounds(runs, name), in_width(runs, name)
        where = ENTRANTS[name].family
        share = _share(slope, in_rounds(runs, _EVEN[where]) if where in _EVEN else None)
        lines.append((label(name), where, _exponent(growth), _exponent(slope), _last(slope), share))
    return head, lines


def yardsticks(runs: pd.DataFrame) -> tuple[Line, list[Line]]:
    """Those that no row is about."""
    head = ("method", "on", "exponent in n", "exponent in p", "last regret")
    lines: list[Line] = []
    for name in _playing(runs):
        if ENTRANTS[name].row == "":
            slope, growth = in_rounds(runs, name), in_width(runs, name)
            lines.append((label(name), ENTRANTS[name].family, _exponent(slope), _exponent(growth), _last(slope)))
    return head, lines


def masters_beside(runs: pd.DataFrame) -> tuple[Line, list[Line]]:
    """Masters on nested models, beside one run of released code."""
    own, lines = runs[runs["part"] == "masters"], list[Line]()
    for name in (name for name in MASTERS if name in set(own["entrant"])):
        rows = own[own["entrant"] == name]
        last = estimate(rows.loc[rows["n"] == MASTER_ROUNDS[-1], "regret"])
        theirs = str(MASTERS_KNOWN[name][-1]) if name in MASTERS_KNOWN else "-"
        lines.append((label(name), f"{last.mean:.0f} ± {last.error:.0f}", theirs))
    return ("method", f"regret after {MASTER_ROUNDS[-1]:,} rounds", "released code, one run"), lines


def seeds_text(runs: pd.DataFrame) -> str:
    """Numbers of seeds, part by part."""
    seeds = {(str(name), str(part)): rows["seed"].nunique() for (name, part), rows in runs.groupby(["entrant", "part"])}
    found = []
    for part, title in _PARTS.items():
        own = sorted({n for key, n in seeds.items() if key[1].split()[0] == part}, reverse=True)
        if own:
            found.append(f"{' or '.join(map(str, own))} for {title}")
    return "; ".join(found)


def markdown(head: Line, lines: Sequence[Line]) -> str:
    """A table as Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _playing(runs: pd.DataFrame) -> list[str]:
    there = set(runs.loc[runs["part"].isin(["n", "p"]), "entrant"])
    return [name for name in ENTRANTS if name in there]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _notes(row: PrintedRow) -> str:
    return "".join(f" [{number}]" for number in row.corrections)


def _exponent(found: Exponent | None) -> str:
    return "-" if found is None else _interval(found.slope)


def _interval(value: MeanEstimate) -> str:
    return f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _judged(found: Exponent | None, allowed: float | None) -> str:
    return "-" if found is None or allowed is None else verdict(found, allowed)


def _last(found: Exponent | None) -> str:
    return "-" if found is None else f"{found.means[-1]:.0f}"


def _share(found: Exponent | None, even: Exponent | None) -> str:
    if found is None or even is None or found.x[-1] != even.x[-1]:
        return "-"
    return f"{found.means[-1] / even.means[-1]:.2f}"


COMMAND = "alexp tables"
RUNS, FIGURE, PAGE = "tables.csv", "figures/tables.png", "tables.md"


def add_runs(contest: SparseContest, sweep: Callable[[list[Task]], list[Record]], out: Path) -> pd.DataFrame:
    """Run a contest and add its lines to those in `out`."""
    new = contest.run(sweep)
    keep_runs(new, out / RUNS, COMMAND, KEY)
    return new


def write_pages(out: Path) -> Iterator[Path]:
    """Page and figure from the runs in `out`; yields what was written."""
    runs = stored_runs(out / RUNS, COMMAND)
    yield out / RUNS
    draw(runs, out / FIGURE)
    yield out / FIGURE
    write_text(out / PAGE, page(runs, FIGURE))
    yield out / PAGE


def printed(out: Path) -> str:
    """Both tables, as printed and as measured."""
    runs = stored_runs(out / RUNS, COMMAND)
    tables = [printed_1(), measured_1(runs), printed_2(), measured_2(runs)]
    return "\n\n".join(markdown(*table) for table in tables)
