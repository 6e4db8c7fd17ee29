"""The default of `EvidenceMixture` beside that of 1.0.0 where rewards are 0 or 1, or features explain little of them.

``python -m alexp_experiments.contextual.rewards.defaults`` prints a table of docs/clicks.md: the clicks of
`rewards.bernoulli`, and streams of docs/contextual-results.md. Nothing was chosen on its seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from alexp.algorithms.evidence_mixture import RATIOS
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp_experiments.contextual import playing
from alexp_experiments.contextual.rewards import bernoulli
from alexp_experiments.core.runner import spread

FIRST = 300  # seeds from here on
RELEASED: State = {"likelihood": "gaussian", "ratio_grid": RATIOS}  # what was usual in 1.0.0
CLICKS = (0, 1, 4, 5, 6, 7)  # numbers of `bernoulli.PROBLEMS`
STREAMS = ("digits", "wine", "breast cancer", "routing, two models", "new candidates")


def play(name: str, is_new: bool, seed: int) -> float:
    """Regret of a run: on a stream by its name, on clicks by their number."""
    settings: State = {} if is_new else RELEASED
    if name.isdigit():
        return bernoulli.play(bernoulli.PROBLEMS[int(name)], seed, **settings)
    stream = playing.CONTEXT_SCENARIOS[name].stream(seed)
    chooser = playing.make(stream, seed, algorithm="evidence-mixture", **settings)
    return float(playing.play(chooser, stream).regret[-1])


def _play(run: tuple[str, bool, int]) -> float:
    return play(*run)


def table(names: Sequence[str], seeds: int, workers: int | None = None) -> str:
    """One row per problem: regret of both, and their ratio over common seeds."""
    runs = [(name, is_new, FIRST + seed) for name in names for seed in range(seeds) for is_new in (False, True)]
    found = np.reshape(spread(_play, runs, workers), (len(names), seeds, 2))
    lines = [
        f"Regret, means ± standard errors of {seeds} seeds from {FIRST}; ratio of means with 95% bootstrap interval.",
        "",
        "| | 1.0.0 | now | now / 1.0.0 |",
        "|---|---|---|---|",
    ]
    for name, values in zip(names, found, strict=True):
        cells = [_shown(values[:, 0]), _shown(values[:, 1]), bernoulli.ratio(values[:, 1], values[:, 0])]
        lines.append("| " + " | ".join([_title(name), *cells]) + " |")
    return "\n".join(lines)


def _shown(values: FloatArray) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(values.size):.1f}"


def _title(name: str) -> str:
    if not name.isdigit():
        return name
    problem = bernoulli.PROBLEMS[int(name)]
    return f"clicks, rate {problem.rate:g}, {problem.arms} {'fixed ' * problem.fixed}arms"


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    everything = [*map(str, CLICKS), *STREAMS]
    parser = argparse.ArgumentParser(description="Regret of the default, now and in 1.0.0.")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    parser.add_argument("--problems", nargs="*", default=everything, help="names of streams, or numbers of clicks")
    chosen = parser.parse_args(arguments)
    print(table(chosen.problems, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
