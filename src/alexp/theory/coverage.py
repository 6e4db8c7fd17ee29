"""How often each "for all t" statement fails in simulation, and how much room it leaves.

``python -m alexp.theory.coverage`` prints the table of docs/theory.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from alexp.theory import _coverage_paths as processes

__all__ = ["PROCESSES", "coverage", "to_markdown"]

PROCESSES: dict[str, Callable[[np.random.Generator, int, int, Sequence[float]], processes.Watches]] = {
    "random walk": processes.random_walk,
    "bounded differences": processes.bounded_differences,
    "exploration coins": processes.exploration_coins,
    "squared noise": processes.squared_noise,
    "ridge agent": processes.ridge_agent,
    "lasso event": processes.lasso_event,
    "explored rows": processes.explored_rows,
    "plausible models": processes.plausible_models,
}


def coverage(
    names: Sequence[str] | None = None,
    paths: int = 2000,
    steps: int = 10_000,
    deltas: Sequence[float] = (0.05, 0.2),
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate the named processes (all by default) and compare every statement with its promise, at every step.

    Returns
    -------
    One row per statement and delta: ``violated``, the fraction of paths that cross at any t <= steps;
    ``standard_error`` of a fraction delta; ``slack``, by what factor the whole curve could shrink before 5% of
    the paths cross it; ``slack_at_end``, bound over the 95% quantile of the statistic at the last step.
    """
    rows = []
    for name in PROCESSES if names is None else names:
        rng = np.random.default_rng([seed, list(PROCESSES).index(name)])
        for statement, watch in PROCESSES[name](rng, paths, steps, deltas).items():
            for k, delta in enumerate(deltas):
                rows.append(
                    {
                        "process": name,
                        "statement": statement,
                        "delta": delta,
                        "violated": float(np.mean(watch.largest[k] >= 1.0)),
                        "standard_error": float(np.sqrt(delta * (1.0 - delta) / paths)),
                        "slack": float(1.0 / np.quantile(watch.largest[k], 0.95)),
                        "slack_at_end": float(1.0 / np.quantile(watch.last[k], 0.95)),
                        "paths": paths,
                        "steps": steps,
                    }
                )
    return pd.DataFrame(rows)


def to_markdown(table: pd.DataFrame) -> str:
    """The table as Markdown, one row per statement with both values of delta side by side."""
    deltas = sorted(table["delta"].unique())
    head = [
        "statement",
        *(f"violated, delta = {d:g}" for d in deltas),
        *(f"slack, delta = {d:g}" for d in deltas),
        f"slack at the end, delta = {deltas[0]:g}",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for statement, part in table.groupby("statement", sort=False):
        by_delta = part.set_index("delta")
        cells = [
            str(statement),
            *(f"{by_delta.loc[d, 'violated']:.4f}" for d in deltas),
            *(f"{by_delta.loc[d, 'slack']:.2f}" for d in deltas),
            f"{by_delta.loc[deltas[0], 'slack_at_end']:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    paths, steps = int(table["paths"].iloc[0]), int(table["steps"].iloc[0])
    return "\n".join(lines) + f"\n\n{paths:,} paths of {steps:,} steps each, every step checked."


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m alexp.theory.coverage", description=__doc__)
    parser.add_argument("--paths", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    print(to_markdown(coverage(paths=chosen.paths, steps=chosen.steps, seed=chosen.seed)))


if __name__ == "__main__":
    main()
