"""docs/benchmarks.md and its figure: records as tables, targets, and what the numbers mean."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.style import COLOURS, DASHES, legend_below, new_figure, save_figure
from alexp_experiments.bench.records import Measurement, number
from alexp_experiments.bench.scale import AXES
from alexp_experiments.bench.startup import CASES
from alexp_experiments.core.prose import Prose

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Column = tuple[str, str, Callable[[object], str]]  # heading, key, format


def _number(digits: int) -> Callable[[object], str]:
    """Numbers to so many significant digits, without an exponent as long as that stays readable.

    >>> _number(3)(1234.5), _number(3)(0.012345), _number(2)(None)
    ('1,234', '0.0123', '')
    """

    def show(value: object) -> str:
        if not isinstance(value, int | float):
            return ""
        if abs(value) >= 10**digits:
            return f"{value:,.0f}"
        return f"{value:.{digits}g}" if value == 0 or abs(value) >= 1e-4 else f"{value:.{digits - 1}e}"

    return show


def _percent(value: object) -> str:
    return f"{100 * value:.0f} %" if isinstance(value, int | float) else ""


def _fixed(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else ""


def _text(value: object) -> str:
    return "" if value is None else str(value)


_MS: Column = ("median ms", "median_ms", _number(3))
_CPU: Column = ("CPU ms", "cpu_ms", _number(3))
_PATH: Column = ("path s", "path_s", _number(3))
_GAP: Column = ("largest gap", "max_gap", _number(2))

COLUMNS: dict[str, list[Column]] = {
    "startup": [_MS, _CPU],
    "step": [_MS, ("fastest ms", "fastest_ms", _number(3)), _CPU, ("share", "share", _percent),
             ("history", "history", _text)],
    "lasso": [_MS, _PATH, _GAP, ("path ratio", "ratio", _number(3)),
              ("ratio, optimum known", "known_ratio", _number(3)), ("steps measured", "steps", _text),
              ("steps that reached 1e-6", "reached_steps", _text)],
    "growth": [("exponent", "exponent", _fixed), ("between the last two", "last_exponent", _fixed),
               ("fixed", "fixed", _text)],
    "memory": [_MS, _CPU, ("peak MB", "peak_mb", _number(3)), ("of it import", "imported_mb", _number(3)),
               ("time ratio", "ratio", _fixed), ("growth MB", "growth_mb", _number(3)),
               ("growth of the log MB", "log_growth_mb", _number(3))],
    "context": [_MS, _CPU, ("time ratio", "ratio", _fixed), ("ratio to", "ratio_of", _text),
                ("slowest CPU ms", "slowest_ms", _number(3)), ("peak MB", "peak_mb", _number(3)),
                ("growth MB", "growth_mb", _number(3))],
    "routes": [_MS, ("chosen / faster", "ratio", _fixed)],
    "wide": [_MS, _CPU, ("product CPU ms", "product_ms", _number(3)), ("step / product", "ratio", _fixed),
             ("mean step / product", "mean_ratio", _fixed), ("slowest CPU ms", "slowest_ms", _number(3)),
             ("peak MB", "peak_mb", _number(4)), ("of it tables", "table_mb", _number(4)),
             ("limit MB", "limit_mb", _number(4))],
    "gpu": [_MS, ("slowest ms", "slowest_ms", _number(3)), ("GB/s", "reached_gb_s", _number(4)),
            ("peak GB/s", "peak_gb_s", _number(4)), ("multiply-adds per ns", "reached_per_ns", _number(3)),
            ("peak per ns", "peak_per_ns", _number(3)), ("of peak", "share", _percent),
            ("device MB", "device_mb", _number(5)), ("CPU of the same machine, ms", "host_ms", _number(3)),
            ("CPU / GPU", "ratio", _number(3)), ("same decisions", "agreement", _number(4)),
            ("remark", "fixed", _text)],
    "floor": [_MS, ("ns per pair", "ns_per_pair", _number(3)),
              ("multiply-adds per pair", "multiply_adds_per_pair", _number(3)),
              ("reached per ns", "reached_per_ns", _number(3)), ("peak per ns", "peak_per_ns", _number(3)),
              ("time / floor", "ratio", _fixed)],
    "study": [_MS, _PATH, ("value / limit", "ratio", _number(3))],
    **{axis: [_CPU, ("peak MB", "peak_mb", _number(3)), ("a second", "per_second", _number(3))] for axis in AXES},
    "service": [_MS, ("95 % ms", "p95_ms", _number(3)), ("the study's own ms", "study_ms", _number(3)),
                ("its 95 % ms", "study_p95_ms", _number(3)), ("added ms", "added_ms", _number(3)),
                ("99 % ms", "p99_ms", _number(3)), ("requests per second", "per_second", _number(3))],
}  # fmt: skip


def table(name: str, records: Sequence[Measurement]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of one benchmark; of growth the exponents only, its points are in the plot."""
    columns = COLUMNS[name]
    rows = [
        [row["instance"], row["subject"], *_cells(row, columns)]
        for row in records
        if row["benchmark"] == name and (name != "growth" or "exponent" in row)
    ]
    return ["instance", "subject", *(heading for heading, _, _ in columns)], rows


def _cells(row: Measurement, columns: Sequence[Column]) -> list[str]:
    """The numbers of a row; of a rival that could not run, why."""
    if "error" in row:
        return [row["error"], *[""] * (len(columns) - 1)]
    return [show(row.get(key)) for _, key, show in columns]


def present(records: Sequence[Measurement]) -> list[str]:
    """Names of the benchmarks that have records, in order."""
    return list(dict.fromkeys(str(row["benchmark"]) for row in records))


@dataclass(frozen=True)
class Target:
    """A limit on one number of one record; `at_least` turns an upper limit into a lower one."""

    text: str
    benchmark: str
    instance: str  # beginning of the record's instance
    subject: str
    key: str
    limit: float
    at_least: bool = False

    def measured(self, records: Sequence[Measurement]) -> float | None:
        """The number in question, or None if it was not measured."""
        for row in records:
            own = row["benchmark"] == self.benchmark and row["subject"] == self.subject
            if own and row["instance"].startswith(self.instance) and (value := number(row, self.key)) is not None:
                return float(value)
        return None

    def met(self, value: float) -> bool:
        """Whether a measured number is within the limit."""
        return value >= self.limit if self.at_least else value <= self.limit


def _celer(instance: str, limit: float) -> Target:
    text = f"Lasso path, {instance}: celer / this"
    return Target(text, "lasso", instance, "celer", "ratio", limit, at_least=True)


TARGETS = (
    *(
        Target(f"{case}: start, {cache} cache, CPU ms", "startup", f"{cache} cache, {case}", "process",
               "cpu_ms", limit)
        for cache, limits in (("cold", (12_000.0, 8_000.0, 8_000.0)), ("warm", (500.0, 500.0, 500.0)))
        for case, limit in zip(CASES.values(), limits, strict=True)
    ),
    Target("ask + tell at M=165, N=2000, t=100, ms", "step", "Legendre s=3, p=10,", "step", "median_ms", 2.0),
    Target("ask + tell at M=1,004,731, ms", "step", "Legendre s=3, p=182,", "step", "median_ms", 4_000.0),
    _celer("Legendre s=2, p=10 (M=55), n=100", 40.0),
    _celer("Legendre s=3, p=10 (M=165), n=100", 300.0),
    _celer("Legendre s=3, p=30 (M=4,495), n=100", 1_000.0),
    _celer("independent d=5, M=100, n=200", 2.0),
    _celer("independent d=5, M=1,000, n=200", 2.0),
    _celer("independent d=5, M=10,000, n=200", 5.0),
    Target(
        "memory at M=1,004,731, MB", "memory", "Legendre s=3, p=182,", "peak resident memory", "peak_mb", 1_000.0
    ),
    Target("step at t=100,000 / step at t=1,000", "memory", "", "step at t=100,000", "ratio", 1.5),
    Target("ask + tell with contexts at M=50, K=10, d=20, ms", "context", "M=50, K=10, d=20", "EvidenceMixture",
           "median_ms", 2.0),
    Target("the same, last thousand of 100,000 rounds / first thousand", "context", "M=50, K=10, d=20, 100,000",
           "EvidenceMixture, last 1,000", "ratio", 1.1),
    Target("ask over HTTP, beyond the study's own, ms", "service", "", "ask", "added_ms", 15.0),
    Target("99% of 10,000 requests of 64 clients, ms", "service", "", "a request, 64 clients", "p99_ms", 1_000.0),
    *(
        Target(f"ask + tell on a GPU at N=1,000,000, d=512 + 1,024 + 2,048, {precision}, ms", "gpu",
               f"N=1,000,000, d=512 + 1,024 + 2,048, six cells, {precision}", "ask + tell", "median_ms", 25.0)
        for precision in ("float16", "float32")
    ),
    *(
        Target(f"ask + tell on a GPU at M={m}, {name}, ms", "gpu", f"M={m} (s=3,", f"{name}, ask + tell", "median_ms",
               limit)
        for m, limit in (("988,260", 20.0), ("99,846,044", 2_000.0)) for name in ("EvidenceMixture", "ALExp")
    ),
    Target("UCB sweep at M=4,495: time / time of its arithmetic at peak", "floor", "Legendre s=3, p=30,", "ucb sweep",
           "ratio", 3.0),
)  # fmt: skip


def verdicts(records: Sequence[Measurement]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: what is asked for, the limit, what was measured, and whether that is good enough."""
    rows = []
    for target in TARGETS:
        value = target.measured(records)
        if value is not None:
            limit = f"{'≥' if target.at_least else '≤'} {target.limit:,g}"
            rows.append([target.text, limit, f"{value:,.3g}" if value < 1000 else f"{value:,.0f}",
                         "yes" if target.met(value) else "**no**"])  # fmt: skip
    return ["target", "limit", "measured", "met"], rows


def draw(records: Sequence[Measurement], path: Path) -> None:
    """Write a figure with one panel per benchmark that has something to draw."""
    names = [name for name in present(records) if name in PANELS]
    if not names:
        raise ValueError(f"nothing to draw: the plot shows {', '.join(PANELS)}")
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    figure, axes = new_figure(rows, columns, width=6.0, height=4.2)
    for ax, name in zip(axes.ravel(), names, strict=False):
        PANELS[name](ax, [row for row in records if row["benchmark"] == name])
    for ax in axes.ravel()[len(names) :]:
        ax.set_visible(False)
    save_figure(figure, path)


def _subjects(rows: Sequence[Measurement]) -> list[str]:
    return list(dict.fromkeys(str(row["subject"]) for row in rows))


def _instances(rows: Sequence[Measurement]) -> list[str]:
    return list(dict.fromkeys(str(row["instance"]) for row in rows))


def _step(ax: Axes, rows: Sequence[Measurement]) -> None:
    for k, subject in enumerate(_subjects(rows)):
        own = [row for row in rows if row["subject"] == subject]
        ax.plot(
            [row["n_models"] for row in own], [row["median_ms"] or np.nan for row in own],
            color=COLOURS[k], linestyle=DASHES[k], marker="o", markersize=3, label=subject,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="number of models M", ylabel="ms", title="One ask + tell, N = 2000")
    legend_below(ax, 5)


def _lasso(ax: Axes, rows: Sequence[Measurement]) -> None:
    instances = _instances(rows)
    rivals = [subject for subject in _subjects([row for row in rows if row["ratio"]]) if subject != "alexp"]
    height = 0.8 / max(len(rivals), 1)
    for k, rival in enumerate(rivals):
        ratio = {row["instance"]: row["ratio"] for row in rows if row["subject"] == rival}
        where = np.arange(len(instances)) + (k - (len(rivals) - 1) / 2) * height
        ax.barh(where, [ratio.get(name) or np.nan for name in instances], height, color=COLOURS[k], label=rival)
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="time of the rival / time of alexp", title="Group Lasso path, equal accuracy")
    ax.set_yticks(np.arange(len(instances)), instances, fontsize=6)
    ax.invert_yaxis()
    legend_below(ax, 3)


def _growth(ax: Axes, rows: Sequence[Measurement]) -> None:
    whole = [row for row in rows if row["subject"] == "step"]
    slopes = {row["axis"]: row["exponent"] for row in whole if "exponent" in row}
    for k, axis in enumerate(slopes):
        points = [row for row in whole if row["axis"] == axis and "value" in row]
        value, cost = (np.array([row[key] for row in points]) for key in ("value", "median_ms"))
        ax.plot(
            value / value[0], cost / cost[0], color=COLOURS[k], linestyle=DASHES[k], marker="o", markersize=3,
            label=f"{axis}: exponent {slopes[axis]:.2f}",
        )  # fmt: skip
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="growth of M, N, t or d",
        ylabel="growth of CPU time",
        title="How a step grows",
    )
    legend_below(ax)


def _floor(ax: Axes, rows: Sequence[Measurement]) -> None:
    labels = [f"{row['instance'].removeprefix('Legendre ')}\n{row['subject']}" for row in rows]
    ax.barh(np.arange(len(rows)), [row["ratio"] or np.nan for row in rows], color=COLOURS[0])
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set(xlabel="time / time of the counted multiply-adds at peak", title="Distance to the floor, one core")
    ax.set_yticks(np.arange(len(rows)), labels, fontsize=6)
    ax.invert_yaxis()


PANELS: dict[str, Callable[[Axes, Sequence[Measurement]], None]] = {
    "step": _step,
    "lasso": _lasso,
    "growth": _growth,
    "floor": _floor,
}


PROSE = Prose("alexp_experiments.bench", "benchmarks.md")
Table = tuple[list[str], list[list[str]]]
_ms, _two = _number(3), _number(2)


def markdown(
    records: Sequence[Measurement], figure: str | None = None, seconds: float | None = None, where: str | None = None
) -> str:
    """The page: what came out, targets, one compact section per benchmark; the records themselves are a file.

    `figure` is the path of the plot seen from the page, `seconds` what all of it took, `where` the machine that it was
    measured on, this one by default.
    """
    names = present(records)
    kind = ", gpu" if names == ["gpu"] else ""
    took = f" All of it took {max(seconds / 60.0, 0.1):.2g} minutes." if seconds else ""
    parts = [PROSE.line(f"introduction{kind}", answer=_answer(records, kind), machine=f"{where or machine()}{took}")]
    if figure is not None:
        parts.append(f"![Time of a step, solvers, growth, distance to the processor's peak]({figure})")
    judged = verdicts(records)
    if judged[1] and not kind:  # on a GPU the tables have the same numbers
        parts += ["## Targets", grid(*judged)]
    for name in names:
        if name not in PANELS or name in ("step", "lasso") or figure is None:
            parts += _section(name, [row for row in records if row["benchmark"] == name])
    return "\n\n".join(part.strip() for part in [*parts, PROSE.line(f"end{kind}")] if part) + "\n"


def _section(name: str, rows: Sequence[Measurement]) -> list[str]:
    """Words and a compact table of one benchmark."""
    if name == "routes":
        return [_routes(rows)]
    if name in ("startup", "memory"):
        return [PROSE.line(name)]  # the targets have their numbers
    if name == "gpu":
        peak = next((row["peak_gb_s"] for row in rows if row.get("peak_gb_s")), float("nan"))
        return [
            PROSE.line("gpu", peak=peak),
            grid(*_gpu_times(rows)),
            *_gpu_decisions(rows),
        ]
    over = sum((row.get("peak_mb") or 0.0) > (row.get("limit_mb") or float("inf")) for row in rows)
    compact = COMPACT[name](rows) if name in COMPACT else table(name, rows)
    return [PROSE.line(name, over=over, n=len(rows)), grid(*compact)]


def _answer(records: Sequence[Measurement], kind: str) -> str:
    """The measured answer, where everything was measured that it speaks of."""
    found = {target.text: value for target in TARGETS if (value := target.measured(records)) is not None}

    def one(benchmark: str, instance: str, subject: str, key: str) -> float | None:
        return Target("", benchmark, instance, subject, key, 0.0).measured(records)

    met = sum(target.met(found[target.text]) for target in TARGETS if target.text in found)
    judged: dict[str, float | None] = {"met": met, "targets": len(found)}
    values: dict[str, float | None]
    if kind:
        table, models = "N=1,000,000, d=512 + 1,024 + 2,048, six cells, ", "M=99,846,044 (s=3,"
        values = {
            "half": one("gpu", f"{table}float16", "ask + tell", "median_ms"),
            "single": one("gpu", f"{table}float32", "ask + tell", "median_ms"),
            "wide": one("gpu", f"{table}float32", "ask + tell, against the CPU", "ratio"),
            "models": one("gpu", models, "EvidenceMixture, ask + tell", "median_ms"),
        } | judged
    else:
        ratios = [row["ratio"] for row in records if row["subject"] == "celer" and row["ratio"] is not None]
        cold = {case: one("startup", f"cold cache, {case}", "process", "median_ms") for case in CASES.values()}
        million = found.get("ask + tell at M=1,004,731, ms")
        warm = one("startup", "warm cache, EvidenceMixture", "process", "median_ms")
        values = {
            "step": found.get("ask + tell at M=165, N=2000, t=100, ms"),
            "million": None if million is None else million / 1e3,
            "warm": None if warm is None else warm / 1e3,
            **{
                key: None if (ms := cold.get(case)) is None else ms / 1e3
                for key, case in (("cold_mixture", "EvidenceMixture, M=165"), ("cold_alexp", "ALExp, M=165"))
            },
            "least": min(ratios, default=None),
            "most": max(ratios, default=None),
            "memory": found.get("memory at M=1,004,731, MB"),
        } | judged
    return "" if None in values.values() else PROSE.line(f"answer{kind}", **values)


def _by_subject(rows: Sequence[Measurement], subjects: Sequence[str]) -> Table:
    """Median ms, instances by subjects."""
    cells = {(row["instance"], row["subject"]): _ms(row["median_ms"]) for row in rows}
    instances = _instances(rows)
    return ["instance", *subjects], [[one, *(cells.get((one, s), "") for s in subjects)] for one in instances]


def _lasso_table(rows: Sequence[Measurement]) -> Table:
    """One row per instance: our time of a step, and the ratio of every rival that is installed."""
    rivals = [name for name in _subjects([row for row in rows if row["ratio"]]) if name != "alexp"]
    found = {(row["instance"], row["subject"]): row for row in rows}

    def cell(instance: str, rival: str) -> str:
        row = found.get((instance, rival))
        if row is None or row["ratio"] is None:
            return ""
        reached, steps = row.get("reached_steps"), row.get("steps")
        return _ms(row["ratio"]) + ("" if reached == steps else f" ({reached} of {steps})")

    lines = [
        [one, _ms(found[one, "alexp"]["median_ms"]), *(cell(one, rival) for rival in rivals)]
        for one in dict.fromkeys(row["instance"] for row in rows)
        if (one, "alexp") in found
    ]
    return ["instance", "alexp, ms per step", *(f"{rival} / alexp" for rival in rivals)], lines


def _only(rows: Sequence[Measurement], columns: Sequence[Column]) -> Table:
    """Some of the columns. An instance is named once; what all rows have in common is not said again."""
    lines = [[row["instance"], row["subject"], *_cells(row, columns)] for row in rows]
    for before, line in reversed(list(pairwise(lines))):
        line[0] = "" if line[0] == before[0] else line[0]
    headings = ["instance", "what", *(heading for heading, _, _ in columns)]
    keep = [k for k in range(len(headings)) if k > 1 or len((_instances, _subjects)[k](rows)) > 1]
    return [headings[k] for k in keep], [[line[k] for k in keep] for line in lines]


def _wide(rows: Sequence[Measurement]) -> Table:
    columns: list[Column] = [
        _MS, ("step / product", "ratio", _fixed), ("slowest CPU ms", "slowest_ms", _ms),
        ("peak MB", "peak_mb", _number(4)), ("limit MB", "limit_mb", _number(4)),
    ]  # fmt: skip
    return _only(rows, columns)


def _context(rows: Sequence[Measurement]) -> Table:
    columns: list[Column] = [_MS, ("slowest CPU ms", "slowest_ms", _ms), ("peak MB", "peak_mb", _ms)]
    long = [row for row in rows if "1,000" in row["subject"] and not row["subject"].startswith("EvidenceMixture")]
    return _only([row for row in rows if row not in long], columns)


def _service(rows: Sequence[Measurement]) -> Table:
    columns: list[Column] = [
        _MS, ("95% ms", "p95_ms", _ms), ("99% ms", "p99_ms", _ms), ("without HTTP, ms", "study_ms", _ms),
        ("per second", "per_second", _ms), ("memory grew by MB", "growth_mb", _ms),
    ]  # fmt: skip
    return _only(rows, columns)


def _routes(rows: Sequence[Measurement]) -> str:
    """How often the chosen implementation is the faster one."""
    ratios = {row["instance"]: row["ratio"] for row in rows if row["ratio"] is not None}
    if not ratios:
        return ""
    where = max(ratios, key=lambda one: ratios[one])
    right = sum(ratio <= 1.1 for ratio in ratios.values())
    return PROSE.line("routes", right=right, cases=len(ratios), worst=ratios[where], where=where)


def _gpu_times(rows: Sequence[Measurement]) -> Table:
    columns: list[Column] = [
        _MS, ("of peak", "share", _percent), ("device MB", "device_mb", _number(5)), ("CPU ms", "host_ms", _ms),
        ("CPU / GPU", "ratio", _ms),
    ]  # fmt: skip
    return _only([row for row in rows if row["median_ms"] is not None], columns)


def _gpu_decisions(rows: Sequence[Measurement]) -> list[str]:
    """How often the GPU decided as the CPU: with the same numbers, and with numbers that were not rounded."""
    own = [row for row in rows if row.get("agreement") is not None]
    rounded = [row["agreement"] for row in own if "not rounded" in row["subject"]]
    same = [row["agreement"] for row in own if "not rounded" not in row["subject"]]
    if not same:
        return []
    least = min(rounded, default=None)
    return [PROSE.line("gpu, decisions", runs=len(same), same=min(same), least=least, most=max(rounded, default=None))]


COMPACT: dict[str, Callable[[Sequence[Measurement]], Table]] = {
    "step": lambda rows: _by_subject(rows, _subjects(rows)),
    "lasso": _lasso_table,
    "wide": _wide,
    "context": _context,
    "service": _service,
    "study": lambda rows: _only(rows, [_MS]),
}


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(grid(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "|" + "|".join(cells) + "|" if cells[0] == "---" else "| " + " | ".join(cells) + " |" for cells in lines
    )


def machine() -> str:
    """What the numbers were measured on, with the versions that matter."""
    parts = [
        f"{_processor()}, {os.cpu_count()} cores",
        f"Python {platform.python_version()}",
        *(f"{title} {version(title.lower())}" for title in ("NumPy", "SciPy", "Numba")),
    ]
    return f"{', '.join(parts)}."


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
