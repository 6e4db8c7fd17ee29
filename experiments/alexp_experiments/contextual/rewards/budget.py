"""What a budget per round earns: the curve of reward against cost, and whether the budget is kept at every moment.

``python -m alexp_experiments.contextual.rewards.budget`` prints the table "budget" of docs/budgets.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from alexp.algorithms import EvidenceMixture
from alexp.common.arrays import FloatArray
from alexp.problem import Arms, ModelClass
from alexp.problem.candidates import Round
from alexp_experiments.core.runner import spread

_SETS, _SIZE, _NOISE = 5, 3, 0.5  # feature sets, columns of each, noise


@dataclass(frozen=True)
class BudgetProblem:
    """Arms with costs; the first gives nothing, the reward of each other is linear in the first of five sets."""

    costs: tuple[float, ...]
    budget: float
    rounds: int = 1000

    @property
    def name(self) -> str:
        """Costs and budget."""
        return f"costs {', '.join(f'{cost:g}' for cost in self.costs)}; budget {self.budget:g}"


class PurseOnly(EvidenceMixture):
    """What can be paid is played, without a price."""

    name: ClassVar[str] = "purse-only"

    def _price(self, round_: Round) -> FloatArray:
        return np.zeros(len(round_))


class BudgetRun(NamedTuple):
    """Of one run: rewards beyond the cheapest arm's, the most that any policy within the budget gets, and the same of
    arms drawn whatever the context; cost per round; whether it ever was above the budget."""

    earned: float
    most: float
    blind: float
    spent: float
    broken: bool


def play(problem: BudgetProblem, priced: bool, seed: int) -> BudgetRun:
    """One run; all see the same contexts."""
    rng, k = np.random.default_rng([12, seed]), len(problem.costs)
    arms = Arms([f"arm {i}" for i in range(k)])
    sets = {f"set {i}": list(range(_SIZE * i, _SIZE * (i + 1))) for i in range(_SETS)}
    kind = EvidenceMixture if priced else PurseOnly
    opt = kind(ModelClass.per_arm(sets, arms), arms, cost=problem.costs, budget=problem.budget, random_state=seed)
    contexts = rng.standard_normal((problem.rounds, _SETS * _SIZE))
    theta, level = rng.standard_normal((k, _SIZE)) / sqrt(_SIZE), np.sqrt(np.array(problem.costs))
    values = contexts[:, :_SIZE] @ theta.T * level + 0.5 * level
    values -= values[:, :1]
    noise = _NOISE * rng.standard_normal(problem.rounds)
    earned, spent, broken = 0.0, 0.0, False
    for t, context in enumerate(contexts):
        trial = opt.ask(context=context)
        earned, spent = earned + values[t, trial.index], spent + problem.costs[trial.index]
        broken = broken or spent > problem.budget * (t + 1) * (1.0 + 1e-9)
        opt.tell(trial, float(values[t, trial.index] + noise[t]))
    return BudgetRun(
        earned, most_within(values, problem), most_within(values.mean(axis=0)[None], problem) * problem.rounds,
        spent / problem.rounds, broken,
    )  # fmt: skip


def most_within(values: FloatArray, problem: BudgetProblem) -> float:
    """The largest sum of values (T, K) of a policy that knows them and keeps the budget on average, by duality."""
    costs = np.array(problem.costs)

    def dual(price: float) -> float:
        return float((values - price * costs).max(axis=1).sum() + price * problem.budget * len(values))

    found = minimize_scalar(
        dual, bounds=(0.0, float(np.abs(values).max()) / costs[costs > 0.0].min()), method="bounded"
    )
    return min(float(found.fun), dual(0.0))


PROBLEMS = (
    *(BudgetProblem((0.0, 1.0), budget) for budget in (0.05, 0.2, 0.5)),
    *(BudgetProblem((0.1, 1.0, 5.0), budget) for budget in (0.3, 1.0, 2.5)),
)


def table(problems: Sequence[BudgetProblem], seeds: int, workers: int | None = None) -> str:
    """One row per problem: shares of what is possible, mean ± standard error, and whether budgets were kept."""
    runs = [(problem, priced, seed) for problem in problems for priced in (True, False) for seed in range(seeds)]
    found = np.array(spread(_play, runs, workers), dtype=np.float64).reshape(len(problems), 2, seeds, 5)
    lines = [
        f"Share of what is possible; mean ± standard error of {seeds} seeds.",
        "",
        "| | with the price | without it | whatever the context | spent of the budget | runs ever above it |",
        "|---|---|---|---|---|---|",
    ]
    for problem, row in zip(problems, found, strict=True):
        shares = row[:, :, 0] / row[:, :, 1]
        cells = [f"{own.mean():.2f} ± {own.std(ddof=1) / sqrt(seeds):.2f}" for own in shares]
        cells.append(f"{(row[0, :, 2] / row[0, :, 1]).mean():.2f}")
        cells.append(f"{row[0, :, 3].mean() / problem.budget:.2f}")
        lines.append(f"| {problem.name} | {' | '.join(cells)} | {int(row[:, :, 4].sum())} of {2 * seeds} |")
    return "\n".join(lines)


def _play(run: tuple[BudgetProblem, bool, int]) -> BudgetRun:
    return play(*run)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="What a budget per round earns.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, help="other numbers of rounds")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    problems = [replace(problem, rounds=chosen.rounds or problem.rounds) for problem in PROBLEMS]
    print(table(problems, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
