"""Sparse rewards on a ball, with noise in the parameters: what SL-UCB is for, and its regret beside LinUCB's.

`python -m alexp_experiments.sparse.ball` prints the table "ball" of docs/algorithms.md: regret at n = 250, ..., 4000.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from math import sqrt

import numpy as np

from alexp.algorithms.base import Algorithm, RandomState
from alexp.algorithms.log import Trial
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.validation import count, one_of, positive
from alexp.decision.agents import UCB
from alexp.problem.domains import Ball
from alexp.problem.models import ModelClass
from alexp.rivals.linucb import LinUCB
from alexp.rivals.sl_ucb import SLUCB
from alexp.simulation import NOISE, PROBLEM, EnvironmentRound, RoundEnvironment, simulate
from alexp_experiments.core.runner import spread

HORIZONS = (250, 500, 1000, 2000, 4000)
PLAYERS = ("sl-ucb", "linucb", "told")
ROWS: dict[str, tuple[str, State]] = {
    "`SLUCB`": ("sl-ucb", {}),
    "`SLUCB(scale=0.5)`": ("sl-ucb", {"scale": 0.5}),
    "`LinUCB`, all coordinates": ("linucb", {}),
    "`LinUCB` on the support": ("told", {}),
}


class BallEnvironment(RoundEnvironment):
    """y = <x, theta + eta_t> on the ball of R^dim, theta of `sparsity` coefficients +-norm/sqrt(sparsity).

    Parameters
    ----------
    noise_std : the norm of eta_t, whose dim coordinates are +-noise_std/sqrt(dim), each sign alike; with
        `noise="rewards"` y = <x, theta> + e instead, e Gaussian with this standard deviation.

    Attributes
    ----------
    theta : (dim,) the coefficients; support : (sparsity,) which of them are not zero.

    >>> env = BallEnvironment(50, sparsity=3, random_state=0)
    >>> env.support.size, round(env.best_value, 6)
    (3, 1.0)
    """

    domain: Ball

    def __init__(
        self,
        dim: int,
        sparsity: int,
        *,
        noise_std: float = 0.1,
        norm: float = 1.0,
        noise: str = "parameters",
        radius: float = 1.0,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(noise_std, random_state)
        self.domain, self.models = Ball(dim, radius), ModelClass.coordinates(dim)
        self.noise_in = one_of("noise", noise, ("parameters", "rewards"))
        if count("sparsity", sparsity) > dim:
            raise ValueError(f"sparsity must be at most dim = {dim}, got {sparsity}")
        rng = self._streams.generator(PROBLEM)
        self.support = np.sort(rng.choice(dim, sparsity, replace=False))
        self.theta = np.zeros(dim)
        self.theta[self.support] = positive("norm", norm) / sqrt(sparsity) * (2.0 * rng.integers(0, 2, sparsity) - 1.0)

    @property
    def best_value(self) -> float:
        """radius ||theta||."""
        return self.domain.radius * float(np.linalg.norm(self.theta))

    def round(self, t: int) -> EnvironmentRound:
        """There is nothing to pass, and no list of values."""
        return EnvironmentRound({}, np.empty(0))

    def outcome(self, t: int, round_: EnvironmentRound, trial: Trial, sign: float) -> tuple[float, float]:
        """Noisy reward and regret of the point of a trial."""
        value = float(trial.x @ self.theta)
        if self.noise_in == "rewards":
            return value + self.noise(t), self.best_value - sign * value
        dim = self.domain.dim
        signs = 2.0 * self._streams.generator(NOISE, t).integers(0, 2, dim) - 1.0
        return value + self.noise_std / sqrt(dim) * float(trial.x @ signs), self.best_value - sign * value


def player(name: str, environment: BallEnvironment, n: int, seed: int, **settings: object) -> Algorithm:
    """Who plays n rounds: SL-UCB, LinUCB on all coordinates, or LinUCB that was told which of them matter."""
    ball, noise = environment.domain, environment.noise_std
    norm = float(np.linalg.norm(environment.theta))
    shared: State = {"noise_std": noise, "norm_bound": norm, "random_state": seed, "log_features": "none"}
    if one_of("name", name, PLAYERS) == "sl-ucb":
        arguments: State = {"horizon": n} | shared | settings
        return SLUCB(environment.models, ball, **arguments)
    agent = UCB(beta="theory", ridge=noise / norm, delta=0.05)
    dictionary = environment.models.dictionary
    models = ModelClass(dictionary, [environment.support if name == "told" else range(ball.dim)])
    own: State = {"agent": agent, "model": 0} | shared | settings
    return LinUCB(models, ball, **own)


def run(
    n: int,
    p: int,
    seed: int,
    algorithm: str = "sl-ucb",
    *,
    sparsity: int = 3,
    noise_std: float = 0.1,
    noise: str = "parameters",
    **settings: object,
) -> FloatArray:
    """Cumulative regret (n,) of one run of n rounds in dimension p; `settings` are the algorithm's."""
    environment = BallEnvironment(p, sparsity, noise_std=noise_std, noise=noise, random_state=seed)
    return simulate(player(algorithm, environment, n, seed, **settings), environment, n).regret


def main(arguments: Sequence[str] | None = None) -> None:
    """Print final regrets, mean and standard error over seeds, for every horizon."""
    parser = argparse.ArgumentParser(description="Regret on a ball at n = 250, ..., 4000.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--sparsity", type=int, default=3)
    parser.add_argument("--horizons", type=int, nargs="+", default=HORIZONS)
    parser.add_argument("--noise", choices=("parameters", "rewards"), default="parameters")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    given = parser.parse_args(arguments)
    final = partial(_final, dim=given.dim, sparsity=given.sparsity, noise=given.noise)
    runs = [(row, n, seed) for row in ROWS for n in given.horizons for seed in range(given.seeds)]
    ends = np.reshape(spread(final, runs, given.workers), (len(ROWS), len(given.horizons), given.seeds))
    means, errors = ends.mean(axis=2), ends.std(axis=2, ddof=1) / sqrt(given.seeds)
    print(f"P = {given.dim}, s = {given.sparsity}, noise in the {given.noise}.", end=" ")
    print(f"Mean ± standard error of {given.seeds} seeds.")
    print("\n| | " + " | ".join(map(str, given.horizons)) + " |\n" + "|---|" + "---|" * len(given.horizons))
    for row, mean, error in zip(ROWS, means, errors, strict=True):
        cells = [f"{one:.1f} ± {other:.1f}" for one, other in zip(mean, error, strict=True)]
        print(f"| {row} | " + " | ".join(cells) + " |")


def _final(task: tuple[str, int, int], dim: int, sparsity: int, noise: str) -> float:
    """Regret after the last round of one run: row of the table, rounds and seed."""
    row, n, seed = task
    name, settings = ROWS[row]
    return float(run(n, dim, seed, name, sparsity=sparsity, noise=noise, **settings)[-1])


if __name__ == "__main__":
    main()
