"""What the benchmarks are held to, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alexp_experiments.bench.records import Measurement, number
from alexp_experiments.bench.startup import CASES


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
        Target(f"{case}: import and two steps, {cache} cache, CPU ms", "startup", f"{cache} cache, {case}", "process",
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
    Target("UCB sweep at M=4,495: time / floor", "floor", "Legendre s=3, p=30,", "ucb sweep", "ratio", 3.0),
)  # fmt: skip


def verdicts(records: Sequence[Measurement]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: what is asked for, the limit, what was measured, and whether that is good enough."""
    rows = []
    for target in TARGETS:
        value = target.measured(records)
        if value is not None:
            limit = f"{'at least' if target.at_least else 'at most'} {target.limit:,.4g}"
            rows.append([target.text, limit, f"{value:,.3g}" if value < 1000 else f"{value:,.0f}",
                         "yes" if target.met(value) else "**no**"])  # fmt: skip
    return ["target", "limit", "measured", "met"], rows
