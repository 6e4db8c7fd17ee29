"""docs/scale.md: the axes as tables, and the large day computed from them."""

from __future__ import annotations

from collections.abc import Sequence

from alexp_experiments.bench import scale
from alexp_experiments.bench.page import grid
from alexp_experiments.bench.records import Measurement, number
from alexp_experiments.core.prose import Prose

PROSE = Prose("alexp_experiments.bench", "scale.md")
_HEADINGS = {
    "cpu_ms": "CPU ms", "open_ms": "opening, CPU ms", "first_ms": "first view, CPU ms", "view_ms": "later view, CPU ms",
    "made_ms": "creating, CPU ms", "per_second": "a second", "bytes_each": "bytes each", "each_mb": "MB each",
    "best_ms": "goal \"best\", CPU ms", "peak_mb": "peak MB",
}  # fmt: skip
_AXES = {"scale-studies": {"view_ms": "listing all, CPU ms"}, "scale-workers": {"per_second": "pairs a second"}}
_AXES["scale-requests"] = {"per_second": "requests a second"}


def markdown(records: Sequence[Measurement], where: str) -> str:
    """The page, from the points of all axes."""
    points = {axis: [row for row in records if row["benchmark"] == axis] for axis in scale.AXES}
    found = {axis: rows for axis, rows in points.items() if rows}
    if missing := [axis for axis in scale.AXES if axis not in found]:
        raise ValueError(f"the page needs all axes, and {missing[0]} was not measured: `alexp bench scale`")
    needs = scale.needs(found)
    first, second = needs[:2]
    answer = (
        f"On a large day, {first.part} breaks first: {first.words}, {first.servers:,.0f} large servers. "
        f"Next is {second.part}: {second.words}."
    )
    parts = [PROSE.line("introduction", answer=answer, machine=where)]
    given = {"maps": scale.MAPS, "columns": scale.COLUMNS, "pairs": scale.PAIRS}
    for axis, rows in found.items():
        parts += [PROSE.line(axis.removeprefix("scale-"), **given), grid(*_table(axis, rows))]
        if axis in ("scale-pending-ids", "scale-corrections"):
            parts.append(f"Ratio: {float(rows[-1]['cpu_ms']) / float(rows[0]['cpu_ms']):.2f}.")
        elif axis not in ("scale-workers", "scale-requests", "scale-studies"):
            parts.append(f"Exponent: {scale.exponent(rows):.2f}.")
    parts.append(PROSE.line("day", cores=scale.MACHINE_CORES, gigabytes=scale.MACHINE_MB / 1e3))
    lines = [[need.part, need.words, f"{need.servers:,.2g}" if need.servers < 100 else f"{need.servers:,.0f}"]
             for need in needs]  # fmt: skip
    parts.append(grid(["part", "needs", "servers, or files"], lines))
    return "\n\n".join(parts) + "\n"


def _table(axis: str, rows: Sequence[Measurement]) -> tuple[list[str], list[list[str]]]:
    keys = [key for key in _HEADINGS if key in rows[0]]
    own = _HEADINGS | _AXES.get(axis, {})
    cells = [[row["instance"], *(f"{number(row, key) or 0.0:,.3g}" if (number(row, key) or 0.0) < 1e3 else
              f"{number(row, key):,.0f}" for key in keys)] for row in rows]  # fmt: skip
    return [axis.removeprefix("scale-"), *(own[key] for key in keys)], cells
