"""A few algorithms with their default settings on one scenario: tasks, a table, a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from alexp.common.style import DASHES, legend_below, method_colour, new_figure, save_figure
from alexp_experiments.core.scenarios import Scenario, scenario_named
from alexp_experiments.core.statistics import estimate, is_stuck, mean_and_error
from alexp_experiments.core.tasks import Record, Task, algorithm_class


@dataclass(frozen=True)
class Panel:
    """Algorithms on a scenario, seed by seed."""

    scenario: Scenario
    algorithms: tuple[str, ...]
    seeds: int

    @classmethod
    def of(cls, scenario: str, algorithms: Sequence[str], seeds: int, steps: int | None = None) -> Self:
        """Check the names; errors list the valid ones."""
        chosen = scenario_named(scenario)
        if not algorithms:
            raise ValueError("name at least one algorithm")
        for name in algorithms:
            algorithm_class(name) if ":" in name else Task(chosen, name)
        return cls(chosen if steps is None else chosen.with_(steps=steps), tuple(dict.fromkeys(algorithms)), seeds)

    @property
    def tasks(self) -> list[Task]:
        """Every algorithm with every seed."""
        return [Task(self.scenario, name, {}, seed) for name in self.algorithms for seed in range(self.seeds)]

    def _by_algorithm(self, records: Sequence[Record]) -> dict[str, Sequence[Record]]:
        n = self.seeds
        return {name: records[i * n : (i + 1) * n] for i, name in enumerate(self.algorithms)}

    def rows(self, records: Sequence[Record]) -> list[dict[str, str]]:
        """One row per algorithm."""
        out = []
        for name, group in self._by_algorithm(records).items():
            curves = np.array([record.regret for record in group])
            final, n_rounds = curves[:, -1], curves.shape[1]
            summary = estimate(final)
            knows = any(record.recommended >= 0 for record in group)
            out.append(
                {
                    "algorithm": name,
                    "mean regret": f"{summary.mean:.2f}",
                    "s.e.": "-" if np.isnan(summary.error) else f"{summary.error:.2f}",
                    "median": f"{np.median(final):.2f}",
                    "worst": f"{final.max():.2f}",
                    "stuck": f"{int(is_stuck(curves).sum())}/{len(group)}",
                    "true model found": f"{sum(r.recommended == r.true_model for r in group)}/{len(group)}"
                    if knows
                    else "-",
                    "ms per step": f"{1e3 * float(np.median([r.seconds for r in group])) / n_rounds:.2f}",
                }
            )
        return out

    def draw(self, records: Sequence[Record], path: Path) -> None:
        """Mean regret with standard errors."""
        figure, axes = new_figure(1, 1, width=5.2, height=3.8)
        ax = axes[0, 0]
        for i, (name, group) in enumerate(self._by_algorithm(records).items()):
            mean, error = mean_and_error(np.array([record.regret for record in group]))
            rounds, colour = np.arange(1, mean.size + 1), method_colour(name, i)
            ax.plot(rounds, mean, color=colour, ls=DASHES[i % len(DASHES)], label=name)
            ax.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.18, lw=0)
        ax.set(xlabel="round t", ylabel="cumulative regret", title=f"M = {self.scenario.n_models}, {self.seeds} seeds")
        legend_below(ax, min(len(self.algorithms), 4))
        save_figure(figure, path)
