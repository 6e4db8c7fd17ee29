"""How often each "for all t" statement of `alexp.theory` fails in simulation, and how much room it leaves.

``python -m alexp_experiments.coverage`` prints the table of docs/theory.md.

Each process simulates many paths side by side, with an adversary that sees the past, and returns a `Watch` for every
statement: the largest and the last value of statistic / bound on each path. A ratio of one or more is a violation. All
draws come from one generator, so that a report is reproducible from its seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from alexp.common.arrays import FloatArray
from alexp.theory import boundaries, confidence, eigenvalues, model_radii, ucb_width
from alexp_experiments._coverage_kernels import ucb_path, worst_model_path

Watches = dict[str, "Watch"]


class Watch:
    """Running maximum and last value of statistic / bound on each path, for several delta; shapes (deltas, paths)."""

    def __init__(self, n_deltas: int, paths: int) -> None:
        self.largest = np.full((n_deltas, paths), -np.inf)
        self.last = np.zeros((n_deltas, paths))

    def add(self, statistic: FloatArray, bounds: Sequence[FloatArray | float]) -> None:
        """Add one step: statistic (paths,) and one bound per delta."""
        for k, bound in enumerate(bounds):
            np.divide(statistic, bound, out=self.last[k])
        np.maximum(self.largest, self.last, out=self.largest)

    def add_path(self, path: int, statistic: FloatArray, bounds: Sequence[FloatArray]) -> None:
        """Add one whole path: statistic (steps,) and one curve per delta."""
        for k, bound in enumerate(bounds):
            ratio = statistic / bound
            self.largest[k, path], self.last[k, path] = ratio.max(), ratio[-1]


def random_walk(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """Gaussian steps whose size, 1 or 1/2, depends on the sign of the sum so far."""
    quarters = 0.25 * np.arange(4 * steps + 1)  # every value the variance can take
    curves: dict[str, list[FloatArray]] = {
        "stitched boundary, c = 0": [boundaries.stitched_boundary(quarters, d) for d in deltas],
        "paper's simplification, c = 0": [boundaries.paper_boundary(quarters, d) for d in deltas],
        "valid simplification, c = 0": [boundaries.simplified_boundary(quarters, d) for d in deltas],
        "normal mixture (two-sided)": [
            boundaries.normal_mixture_boundary(quarters, d, boundaries.normal_mixture_rho(steps / 10.0, d))
            for d in deltas
        ],
    }
    watches = {name: Watch(len(deltas), paths) for name in curves}
    total, variance = np.zeros(paths), np.zeros(paths, dtype=np.int64)
    for _ in range(steps):
        large = total > 0.0
        total += np.where(large, 1.0, 0.5) * rng.standard_normal(paths)
        variance += np.where(large, 4, 1)
        for name, watch in watches.items():
            statistic = np.abs(total) if name.startswith("normal") else total
            watch.add(statistic, [curve[variance] for curve in curves[name]])
    return watches


def bounded_differences(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """Fair coin flips of size B or B/2, B = 0.01, larger while the sum is positive."""
    watch, total, bound = Watch(len(deltas), paths), np.zeros(paths), 0.01
    curves = [boundaries.azuma_boundary(np.arange(1, steps + 1), bound, d) for d in deltas]
    for t in range(steps):
        size = np.where(total > 0.0, bound, 0.5 * bound)
        total += size * (2.0 * rng.integers(2, size=paths) - 1.0)
        watch.add(total, [curve[t] for curve in curves])
    return {"time-uniform Azuma-Hoeffding": watch}


def exploration_coins(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """Exploration coins with gamma_t = t^(-1/4), halved while more than expected have come up."""
    names = ("Bernoulli, Hoeffding (two-sided)", "Bernoulli, Bernstein (two-sided)", "number of explored rounds")
    watches = {name: Watch(len(deltas), paths) for name in names}
    excess, variance, expected = np.zeros(paths), np.zeros(paths), np.zeros(paths)
    curves = [boundaries.bernoulli_boundary(np.arange(1, steps + 1), d) for d in deltas]
    for t in range(steps):
        gamma = (t + 1.0) ** -0.25 * np.where(excess > 0.0, 0.5, 1.0)
        excess += (rng.random(paths) < gamma) - gamma
        variance += gamma * (1.0 - gamma)
        expected += gamma
        size = np.abs(excess)
        watches[names[0]].add(size, [curve[t] for curve in curves])
        watches[names[1]].add(size, [boundaries.bernoulli_bernstein_boundary(variance, d) for d in deltas])
        watches[names[2]].add(size, [boundaries.exploration_count_radius(expected, d) for d in deltas])
    return watches


def squared_noise(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """sum (xi^2 - 1) v with Gaussian xi and v = 1 or 1/2, larger while the sum is positive."""
    quarters = 0.25 * np.arange(4 * steps + 1)
    curves: dict[str, list[FloatArray]] = {
        "Bernstein for squared noise, sharp": [boundaries.squared_noise_boundary(quarters, 1.0, d) for d in deltas],
        "Bernstein for squared noise, printed": [
            boundaries.squared_noise_boundary(quarters, 1.0, d, "printed") for d in deltas
        ],
        "stitched boundary, c = 2": [boundaries.stitched_boundary(2.0 * quarters, d, c=2.0) for d in deltas],
        "valid simplification, c = 2": [boundaries.simplified_boundary(2.0 * quarters, d, c=2.0) for d in deltas],
    }
    watches = {name: Watch(len(deltas), paths) for name in curves}
    total, squares = np.zeros(paths), np.zeros(paths, dtype=np.int64)
    for _ in range(steps):
        large = total > 0.0
        total += np.where(large, 1.0, 0.5) * (rng.standard_normal(paths) ** 2 - 1.0)
        squares += np.where(large, 4, 1)
        for name, watch in watches.items():
            watch.add(total, [curve[squares] for curve in curves[name]])
    return watches


def ridge_agent(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """UCB on 12 directions of the plane: the self-normalised bound and both ridge sets."""
    names = ("self-normalised vector bound", "ridge set, sum of squares (w_t)", "ridge set, triangle inequality")
    watches = {name: Watch(len(deltas), paths) for name in names}
    angles = np.linspace(0.0, np.pi, 12, endpoint=False)
    actions, theta = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.array([0.6, 0.8])
    statistic, error, level = np.empty(steps), np.empty(steps), np.empty(steps)
    noise_std, ridge_ = 0.5, 1.0
    for path in range(paths):
        noise = noise_std * rng.standard_normal(steps)
        ucb_path(noise, actions, theta, ridge_**2, statistic, error, level)
        bounds = [boundaries.self_normalised_boundary(level, noise_std, d) for d in deltas]
        watches[names[0]].add_path(path, statistic, bounds)
        watches[names[1]].add_path(path, error, [ucb_width(level, ridge_, noise_std, 1.0, d) for d in deltas])
        wide = [confidence.triangle_width(level, ridge_, noise_std, 1.0, d) for d in deltas]
        watches[names[2]].add_path(path, error, wide)
    return watches


def lasso_event(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """Event A for 6 models of size 2 on 12 actions; the adversary plays what feeds the worst model's noise."""
    n_models, times = 6, np.arange(1, steps + 1)
    features = rng.standard_normal((12, n_models, 2))
    features /= np.linalg.norm(features, axis=2, keepdims=True)
    names = (
        "event A, lambda_t as printed",
        "event A, lambda_t with repaired constants",
        "event A, self-normalised lambda_t",
    )
    watches = {name: Watch(len(deltas), paths) for name in names}
    printed = [confidence.printed_lambda(times, 1.0, n_models, 2, d) for d in deltas]
    repaired = [confidence.corrected_lambda(times, 1.0, n_models, 2, d) for d in deltas]
    levels = np.array([2.0 * np.log(n_models / d) for d in deltas])
    norms, worst = np.empty(steps), np.empty((steps, len(deltas)))
    for path in range(paths):
        worst_model_path(rng.standard_normal(steps), features, 2.0, levels, norms, worst)
        statistic = 2.0 * norms / times
        watches[names[0]].add_path(path, statistic, printed)
        watches[names[1]].add_path(path, statistic, repaired)
        watches[names[2]].add_path(path, statistic, list((2.0 * np.sqrt(worst) / times[:, None]).T))
    return watches


def explored_rows(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """Rows (1, x), x = -1, 0, 1, drawn in explored rounds with gamma_t = t^(-1/4)."""
    names = ("lambda_min of explored rows", "entries of explored rows", "entries of the empirical covariance")
    watches = {name: Watch(len(deltas), paths) for name in names}
    points = np.array([-1.0, 0.0, 1.0])
    expected = eigenvalues.expected_explorations(steps, 1.0)
    slack = [eigenvalues.explored_lambda_min_slack(expected, 1.0, 2, np.sqrt(2.0), d) for d in deltas]
    entries = [eigenvalues.explored_entries_radius(expected, 2, 1.0, d) for d in deltas]
    samples = [eigenvalues.covariance_entries_radius(np.arange(1, steps + 1), 2, 1.0, d) for d in deltas]
    count, cross, square = np.zeros(paths), np.zeros(paths), np.zeros(paths)
    all_cross, all_square = np.zeros(paths), np.zeros(paths)
    for t in range(steps):
        x = points[rng.integers(3, size=paths)]
        explored = rng.random(paths) < (t + 1.0) ** -0.25
        count, cross, square = count + explored, cross + explored * x, square + explored * x * x
        all_cross, all_square = all_cross + x, all_square + x * x
        lowest = 0.5 * (count + square) - np.sqrt(0.25 * (count - square) ** 2 + cross**2)
        watches[names[0]].add(expected[t] * 2.0 / 3.0 - lowest, [curve[t] for curve in slack])
        worst = np.maximum(np.abs(count - expected[t]), np.abs(cross))
        worst = np.maximum(worst, np.abs(square - expected[t] * 2.0 / 3.0))
        watches[names[1]].add(worst, [curve[t] for curve in entries])
        drift = np.maximum(np.abs(all_cross), np.abs(all_square - (t + 1.0) * 2.0 / 3.0)) / (t + 1.0)
        watches[names[2]].add(drift, [curve[t] for curve in samples])
    return watches


def plausible_models(rng: np.random.Generator, paths: int, steps: int, deltas: Sequence[float]) -> Watches:
    """Three models of size one, the first is true; in each round one of them plays greedily or (1 in 4) blindly."""
    watch, ridge_, noise_std, theta = Watch(len(deltas), paths), 0.5, 0.4, 1.0
    features = rng.uniform(-1.0, 1.0, size=(15, 3))
    highest, lowest = np.argmax(features, axis=0), np.argmin(features, axis=0)
    gram, moment, squares = np.full((paths, 3), ridge_**2), np.zeros((paths, 3)), np.zeros(paths)
    rows = np.arange(paths)
    for _ in range(steps):
        model = rng.integers(3, size=paths)
        greedy = np.where(moment[rows, model] > 0.0, highest[model], lowest[model])
        played = features[np.where(rng.random(paths) < 0.25, rng.integers(15, size=paths), greedy)]
        reward = played[:, 0] * theta + noise_std * rng.standard_normal(paths)
        gram, moment, squares = gram + played**2, moment + reward[:, None] * played, squares + reward**2
        losses, levels = squares[:, None] - moment**2 / gram, np.log(gram / ridge_**2)
        error = np.abs(moment[:, 0] / gram[:, 0] - theta) * np.sqrt(gram[:, 0])
        radii = [model_radii(losses, levels, ridge_, noise_std, theta, d)[:, 0] for d in deltas]
        watch.add(error, [np.sqrt(np.maximum(r, 1e-300)) for r in radii])
    return {"plausible models keep the true one": watch}


PROCESSES: dict[str, Callable[[np.random.Generator, int, int, Sequence[float]], Watches]] = {
    "random walk": random_walk,
    "bounded differences": bounded_differences,
    "exploration coins": exploration_coins,
    "squared noise": squared_noise,
    "ridge agent": ridge_agent,
    "lasso event": lasso_event,
    "explored rows": explored_rows,
    "plausible models": plausible_models,
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
        f"slack, delta = {deltas[0]:g}",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for statement, part in table.groupby("statement", sort=False):
        by_delta = part.set_index("delta")
        cells = [
            str(statement),
            *(f"{by_delta.loc[d, 'violated']:.4f}" for d in deltas),
            f"{by_delta.loc[deltas[0], 'slack']:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    paths, steps = int(table["paths"].iloc[0]), int(table["steps"].iloc[0])
    return "\n".join(lines) + f"\n\n{paths:,} paths of {steps:,} steps each, every step checked."


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m alexp_experiments.coverage", description=__doc__)
    parser.add_argument("--paths", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    print(to_markdown(coverage(paths=chosen.paths, steps=chosen.steps, seed=chosen.seed)))


if __name__ == "__main__":
    main()
