"""The page of `alexp tables`: what the paper prints, what was measured, and whether the one goes with the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from alexp_experiments.core.statistics import MeanEstimate, estimate
from alexp_experiments.sparse.tables.entrants import ENTRANTS
from alexp_experiments.sparse.tables.figure import CONTEXTS, VECTOR_SETS
from alexp_experiments.sparse.tables.known import MASTER_ROUNDS, MASTERS, MASTERS_KNOWN, released
from alexp_experiments.sparse.tables.measures import Exponent, in_rounds, in_width, promised, verdict
from alexp_experiments.sparse.tables.printed import CORRECTIONS, TABLE_1, TABLE_2, PrintedRow
from alexp_experiments.sparse.tables.text import GROWTH, HOW, INTRODUCTION, MASTERS_TEXT, READING, RELEASED_TEXT

if TYPE_CHECKING:
    import pandas as pd

_EVEN = {"contexts": "even play, contexts", "vectors": "even play"}
_PARTS = {
    "n": "growth in n",
    "p": "growth in p",
    "masters": "masters",
    "released": "where released code was run, see the table",
}
Line = Sequence[str]


def page(runs: pd.DataFrame, figure: str) -> str:
    """The whole page, from the lines of all runs."""
    parts = [
        INTRODUCTION,
        "## Table 2 as printed",
        markdown(*printed_2()),
        "\n".join(f"{number}. {text}" for number, text in CORRECTIONS.items()),
        "## Table 2, measured",
        markdown(*measured_2(runs)),
        READING,
        f"![Regret against n and against p]({figure})",
        loud_points(runs),
        "## Table 1, with what was measured",
        markdown(*printed_1()),
        markdown(*measured_1(runs)),
        GROWTH,
        "## Yardsticks",
        markdown(*yardsticks(runs)),
        HOW,
        MASTERS_TEXT,
        markdown(*masters_beside(runs)),
        RELEASED_TEXT,
        markdown(*released_beside(runs)),
        seeds_text(runs),
        f"All runs together took {core_minutes(runs):.0f} minutes of one core.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def core_minutes(runs: pd.DataFrame) -> float:
    """Time of all runs: a run that is looked at several times counts once, one that is told n counts for every n."""
    apart = runs["entrant"].map(lambda name: name in ENTRANTS and ENTRANTS[name].told_horizon)
    once = runs[~apart].sort_values("n").drop_duplicates(["entrant", "part", "p", "seed"], keep="last")
    return sum(float((own["ms"] * own["n"]).sum()) for own in (runs[apart], once)) / 60e3


def loud_points(runs: pd.DataFrame) -> str:
    """Points of the figure whose mean is made by a few runs: more than twice the median over seeds."""
    loud = []
    for name in dict.fromkeys((*CONTEXTS, *VECTOR_SETS)):
        own = runs[(runs["entrant"] == name) & runs["part"].isin(["n", "p"])]
        for (part, p, n), cell in own.groupby(["part", "p", "n"]):
            mean, median = float(cell["regret"].mean()), float(cell["regret"].median())
            if mean > 2.0 * median:
                far = int((cell["regret"] > 2.0 * median).sum())
                where = f"n = {n}" if part == "n" else f"p = {p}"
                runs_above = f"{far} of {len(cell)} runs above twice it"
                loud.append(f"{name} at {where} (mean {mean:.1f}, median {median:.1f}; {runs_above})")
    return f"Points that a few runs make, with a mean of more than twice the median: {'; '.join(loud)}." if loud else ""


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
        "row", "who", "on", "exponent in n", "printed", "kept", "exponent in p", "printed", "kept",
        "R at the grid's end", "remark",
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
        row.key, name, ENTRANTS[name].family, _exponent(slope), _number(allowed), _judged(slope, allowed),
        _exponent(growth), _number(allowed_p), _judged(growth, allowed_p), _last(slope), remark,
    )  # fmt: skip


def measured_1(runs: pd.DataFrame) -> tuple[Line, list[Line]]:
    """Masters and, in one line for each, the rows of Table 2 by what matters in Table 1: growth with the models."""
    head = (
        "class", "who", "on", "exponent in p", "regret at p", "exponent in n", "R at the grid's end", "of even play's",
    )  # fmt: skip
    sparse = [name for name in _playing(runs) if ENTRANTS[name].row in ("T2.4", "T2.5", "T2.6", "T2.7", "T2.8", "T2.9")]
    masters = [name for name in _playing(runs) if ENTRANTS[name].row == "T1.black-box"]
    ours = [name for name in _playing(runs) if ENTRANTS[name].row == "T2.10"]
    lines: list[Line] = []
    for title, names in (("sparse", sparse), ("black box", masters), ("ours", ours)):
        for name in names:
            slope, growth = in_rounds(runs, name), in_width(runs, name)
            where = ENTRANTS[name].family
            share = _share(slope, in_rounds(runs, _EVEN[where]) if where in _EVEN else None)
            lines.append((title, name, where, _exponent(growth), _ends(growth), _exponent(slope), _last(slope), share))
    return head, lines


def yardsticks(runs: pd.DataFrame) -> tuple[Line, list[Line]]:
    """Those that no row is about."""
    head = ("who", "on", "exponent in n", "exponent in p", "regret at p", "R at the grid's end", "remark")
    lines: list[Line] = []
    for name in _playing(runs):
        if ENTRANTS[name].row == "":
            slope, growth = in_rounds(runs, name), in_width(runs, name)
            where, note = ENTRANTS[name].family, ENTRANTS[name].note
            lines.append((name, where, _exponent(slope), _exponent(growth), _ends(growth), _last(slope), note))
    return head, lines


def masters_beside(runs: pd.DataFrame) -> tuple[Line, list[Line]]:
    """Masters on nested models, beside one run of released code."""
    own, lines = runs[runs["part"] == "masters"], list[Line]()
    for name in (name for name in MASTERS if name in set(own["entrant"])):
        rows = own[own["entrant"] == name]
        found = [estimate(rows.loc[rows["n"] == n, "regret"]) for n in MASTER_ROUNDS]
        theirs = " / ".join(map(str, MASTERS_KNOWN[name])) if name in MASTERS_KNOWN else "-"
        lines.append((name, " / ".join(f"{one.mean:.0f}" for one in found), f"{found[-1].error:.0f}", theirs))
    return ("who", "regret at 500 / 1000 / 2500", "s.e.", "released code, one run"), lines


def released_beside(runs: pd.DataFrame) -> tuple[Line, list[Line]]:
    """The six instances of the sparse literature."""
    head = ("instance", "method", "seeds", "regret at 100 / 500 / 1000", "released code", "ratio", "in the band")
    lines: list[Line] = []
    for one in released(runs):
        ours, theirs = (" / ".join(f"{value:.0f}" for value in values) for values in (one.means, one.known.regret))
        lines.append((
            one.title, one.method, str(one.seeds), f"{ours} +-{one.error:.0f}", f"{theirs} +-{one.known.error:.0f}",
            f"{one.ratio:.2f}", _yes(one.within),
        ))  # fmt: skip
    return head, lines


def seeds_text(runs: pd.DataFrame) -> str:
    """Which seeds the page is made from, and how many of them: part by part, and who has others than most."""
    seeds = {(str(name), str(part)): rows["seed"].nunique() for (name, part), rows in runs.groupby(["entrant", "part"])}
    first, last = runs["seed"].min(), runs["seed"].max()
    lines = [
        f"**Seeds** {first} to {last}; no constant was chosen on them. Every seed has its own coefficients, contexts",
        "or vectors, and noise. How many of them:",
        "",
    ]
    for part, title in _PARTS.items():
        own = {key: n for key, n in seeds.items() if key[1].split()[0] == part}
        counts = [n for n, _ in Counter(own.values()).most_common()]
        names = {n: "; ".join(dict.fromkeys(name for (name, _), m in own.items() if m == n)) for n in counts[1:]}
        if own:
            lines.append(f"- {title}: {counts[0]}" + "".join(f"; but {n} for: {who}" for n, who in names.items()))
    return "\n".join(lines)


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


def _ends(found: Exponent | None) -> str:
    if found is None:
        return "-"
    return f"{found.means[0]:.0f} at {found.x[0]:.0f}, {found.means[-1]:.0f} at {found.x[-1]:.0f}"
