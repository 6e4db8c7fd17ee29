"""Records as tables: which numbers of each benchmark are shown, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from alexp_experiments.bench.records import Measurement

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
    "lasso": [_MS, _PATH, _GAP, ("path ratio", "ratio", _number(3)), ("ratio if told", "told_ratio", _number(3)),
              ("steps measured", "steps", _text), ("steps that reached 1e-6", "reached_steps", _text)],
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
    "service": [_MS, ("95 % ms", "p95_ms", _number(3)), ("the study's own ms", "study_ms", _number(3)),
                ("its 95 % ms", "study_p95_ms", _number(3)), ("added ms", "added_ms", _number(3)),
                ("pairs per second", "per_second", _number(3))],
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
