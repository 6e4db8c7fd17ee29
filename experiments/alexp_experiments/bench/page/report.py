"""Benchmarks as a page of documentation."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from alexp_experiments.bench.page.tables import present, table
from alexp_experiments.bench.page.targets import verdicts
from alexp_experiments.bench.records import Measurement

INTRODUCTION = """# Benchmarks

`alexp bench --markdown docs/benchmarks.md --plot docs/figures/bench.png` writes this page and its figure as a whole;
nothing on it is typed by hand. `alexp bench step` (or another name) runs one part; `--json FILE` stores the records,
`--resume FILE` keeps what is finished and goes on from there, `--quick` shows what a part does in a few seconds. On
another machine the milliseconds differ; the ratios are of two times from the same run. What runs on a GPU is on
[a page of its own](benchmarks-gpu.md).

Rival solvers come with the extra `bench` of experiments/, except adelie: it wants NumPy below 2, so `make rivals`
gives it an environment of its own, .venv-rivals. Its process solves the same problems and takes its own time, so that
neither its start nor the transfer counts. `--rivals PYTHON` or `$ALEXP_RIVALS_PYTHON` names another such
environment; a rival that is nowhere is listed as not installed.
"""

ON_A_GPU = """# Benchmarks on a GPU

`alexp bench gpu --markdown docs/benchmarks-gpu.md` writes this page on a machine with a GPU; nothing on it is typed by
hand. The rest is in [benchmarks.md](benchmarks.md).
"""

SECTIONS = {
    "startup": """## Start-up

Fresh processes: the import, construction with two asks and tells, and the whole process. Loops are compiled once per
machine and kept next to the source (or in `$NUMBA_CACHE_DIR`): the cold rows are what the first run after an
installation or an upgrade waits for, unless `alexp warmup` went before it, the warm rows every run after it. A new
number of models, candidates or rounds compiles nothing again. pandas, matplotlib and scikit-learn are not imported
before something needs them.""",
    "step": """## One ask + tell

Around round 100 at N = 2000, on all cores: wall time, the fastest step, and the CPU time of all threads together. The
group Lasso is timed with taking in its row, "posterior" is the rank-one update of all ridge posteriors, "sweep" the
search for every agent's best candidate. "Observed" histories were taken in without asking, to get to round 100
sooner.""",
    "lasso": """## The group Lasso path

A row arrives, lambda_t of the paper changes, the whole problem is solved again; one core, CPU time. Rows are drawn
evenly from the candidates, or, where it says so, are those that ALExp plays. Every solver starts a step from the
certified solution of the step before. Accuracy means a certified relative duality gap of 1e-6. A rival runs with the
loosest tolerance of its own for which such a gap is certified: by itself (celer) or by the rescaled residual of its
answer, which is the certificate of `alexp`, too. Only that run counts, not the search for the tolerance nor expanding
shared columns, which it needs and we do not. An answer may be that good before anyone can tell: "ratio if told" takes
the first run whose answer is within 1e-6 of the optimum, known from a dual bound solved to 1e-9. Rivals that are slow
were measured on some steps, evenly over the path: "steps measured" says on how many, "path s" is scaled up to all of
them, and the ratios compare the same steps. Where a rival did not reach the accuracy on every step, its time is that
of its last attempt and the ratio too low.""",
    "growth": """## How cost grows

Exponents of the best power law through CPU times, and between the two largest values. The group Lasso depends on P
and on the data, hardly on M, N or t; the sweep is what grows.""",
    "memory": """## Memory, and a long study

Peak resident memory of fresh processes (10^6 bytes per MB), with the time of their first few steps, which are slower:
the sweep starts from the last winners, and those still move a lot. For the long study, the state of round 1,000 is
kept and continued at the end, in turns with the old one. Growth is resident memory at the end minus that of round
1,000; the trial log is the part that has to grow.""",
    "floor": """## Distance to the floor

A score needs s multiply-adds for the mean and s (s + 1)/2 more for the quadratic form of UCB. The peak is a loop of
independent multiply-adds in registers, measured in turns with the sweep on the same core. Loads, the comparison that
finds the winner and square roots are on top of what is counted. The sweep screens candidates in single precision,
where a core does twice as many, and scores in double precision what may win; the floor counts all in double.""",
    "context": """## Rounds with contexts

K arms, a context of 100 columns, M feature sets of d columns each with coefficients of their own for every arm; one
core. Everybody meets the same contexts, subjects take turns, ratios are of the time of the calling thread. coba and
Vowpal Wabbit have no sets: they get all 100 columns, as `LinUCB, all columns` does. Of long runs the first thousand
rounds (after a hundred) are compared with the last thousand; growth is resident memory in between, the log with its
rows of features included.""",
    "wide": """## Wide tables

Three maps of N candidates with d features each, nothing stated, no candidate twice: what an ask and a tell of the
mixture take, against one product of each table with a vector in the same run, in CPU time. With 64 features the rounds
go on until values have been made anew, which is the slowest step. The limit of memory is 1.3 times the tables, 60 MB
for every million values kept (candidates, maps and ridges), and what importing took. The largest case is measured
where the machine has room for it.""",
    "gpu": """## On a GPU

See [gpu.md](gpu.md) for what is computed where. Times are on the wall, the device waited for. "Peak" is what a copy
within the device's memory reaches, bytes read and written; "GB/s" counts every table once, in the precision it is
stored in. Of many small models the multiply-adds in double precision are counted that their formulas have, without
logarithms, exponentials and divisions, against a loop of nothing else. The CPU of the same machine does the same with
all its cores. "Slowest" is the slowest of the first 70 steps, among them one that makes all values anew and, of what is
measured first, one that loads what runs on the card.""",
    "routes": """## Which fits where

Packed factors against the two other ways to keep posteriors: one pass over the table for every reward (a mixture at
five ridges), and predictions from the points told (agents). The ratio is that of the way the library chooses to the
faster one. One core. Agents play a hundred steps here; the library reckons with more, where points told cost more.""",
    "study": """## Durable studies

What writing everything to a database adds.""",
    "service": """## The service

The same rounds, turn by turn, in a study of this process and in its twin behind an `alexp serve` on the same machine;
then several clients at once at one study, each with a connection of its own. Asks and tells of one study happen one
after the other, so that a crowd gets done what one study can.""",
}


def markdown(records: Sequence[Measurement], figure: str | None = None, seconds: float | None = None) -> str:
    """The page: machine, targets, one section per benchmark.

    `figure` is the path of the plot seen from the page, `seconds` what all of it took.
    """
    names = present(records)
    took = "" if seconds is None else f" All of it took {max(seconds / 60.0, 0.1):.2g} minutes."
    parts = [ON_A_GPU if names == ["gpu"] else INTRODUCTION, f"Measured on {machine()}{took}"]
    headings, rows = verdicts(records)
    if rows:
        parts += ["## Targets", grid(headings, rows)]
    if figure is not None:
        parts.append(f"![Benchmarks]({figure})")
    for name in names:
        parts += [SECTIONS[name], grid(*table(name, records))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


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
