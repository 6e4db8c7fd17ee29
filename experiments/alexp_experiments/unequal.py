"""Bandits whose arms differ in their noise: how many runs stay with the worst arm for ever, and what care costs.

Three arms: a control of mean 0 and noise 0, 0.05, 0.3 or 1, and two better ones of mean 0.5 and noise 1; 300 rounds,
nothing stated. Before the first ask there is nothing, 20 old rewards of the control, or bad luck: two rewards of the
control, and one reward of -1 of every other arm. Run `python -m alexp_experiments.unequal`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.stats import beta, t

import alexp
from alexp.common.arrays import FloatArray

ARMS, MEANS = ("control", "A", "B"), (0.0, 0.5, 0.5)
NOISES, HISTORIES, FEATURES = (
    (0.0, 0.05, 0.3, 1.0),
    ("none", "20 of the control", "unlucky"),
    ("one-hot", "two", "arms"),
)
ROUNDS, SEEDS, FIRST = 300, 200, 70_000
_FEW = 0.05  # share of the second half in which a locked run plays a better arm, at most


class ThreeArms(NamedTuple):
    """Noise of the control, what is known before the first ask, and features of the arms."""

    noise: float
    history: str
    features: str


def bandit(features: str, seed: int, unequal: bool) -> alexp.EvidenceMixture:
    """A mixture on three arms: one-hot features, a second model that means nothing, or arms with a constant context."""
    if features == "arms":
        models = alexp.ModelClass.per_arm({"one": constant}, arms=3, example=0)
        return alexp.EvidenceMixture(models, alexp.Arms(list(ARMS)), random_state=seed, unequal_noise=unequal)
    maps = {"arm": np.eye(3)} | ({"other": np.array([[0.3], [-1.2], [0.8]])} if features == "two" else {})
    models = alexp.ModelClass.from_matrices(maps)
    return alexp.EvidenceMixture(models, alexp.FiniteSet(ARMS), random_state=seed, unequal_noise=unequal)


def constant(context: object) -> FloatArray:
    """The only feature of an arm."""
    return np.ones(1)


def play(setting: ThreeArms, unequal: bool, seed: int) -> tuple[float, bool]:
    """Regret of a run, and whether it stays with the control."""
    warnings.simplefilter("ignore", alexp.AssumptionWarning)
    opt, rng = bandit(setting.features, seed, unequal), np.random.default_rng([seed, 44])
    noise, context = (setting.noise, 1.0, 1.0), 0 if opt.is_contextual else None

    def observe(arm: int, reward: float) -> None:
        opt.observe(ARMS[arm] if opt.is_contextual else arm, reward, context=context)

    for _ in range({"none": 0, "unlucky": 2}.get(setting.history, 20)):
        observe(0, setting.noise * rng.standard_normal())
    for arm in (1, 2) if setting.history == "unlucky" else ():
        observe(arm, -1.0)
    draws, plays = rng.standard_normal((3, ROUNDS)), []
    for _ in range(ROUNDS):
        trial = opt.ask(context=context)
        plays.append(trial.index)
        opt.tell(trial, MEANS[trial.index] + noise[trial.index] * draws[trial.index, plays.count(trial.index) - 1])
    controls = np.array(plays) == 0
    return max(MEANS) * float(controls.sum()), bool(np.mean(~controls[ROUNDS // 2 :]) < _FEW)


def interval(k: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share k / n, 95 %."""
    return float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0, float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0


def row(setting: ThreeArms, seeds: Sequence[int], pool: ProcessPoolExecutor) -> str:
    """A row of the table."""
    one, own = (list(pool.map(partial(play, setting, unequal), seeds, chunksize=5)) for unequal in (False, True))
    before, after = (np.array([regret for regret, _ in runs]) for runs in (one, own))
    stuck, n = [sum(locked for _, locked in runs) for runs in (one, own)], len(seeds)
    low, high = interval(stuck[1], n)
    more = after - before
    reach = float(t.ppf(0.975, n - 1)) * more.std(ddof=1) / np.sqrt(n)
    ends = [100.0 * (more.mean() + sign * reach) / before.mean() for sign in (-1.0, 1.0)]
    return (
        f"| {setting.features} | {setting.history} | {setting.noise:g} | {stuck[0]} | {stuck[1]} [{100 * low:.1f}, "
        f"{100 * high:.1f}] % | {before.mean():.1f} | {after.mean():.1f} | [{ends[0]:+.0f}, {ends[1]:+.0f}] % |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--features", nargs="+", default=list(FEATURES), choices=FEATURES)
    parser.add_argument("--processes", type=int, default=None)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    print(f"| features | known before | noise of the control | stay, one noise | stay, own noise (of {given.seeds}) "
          "| regret, one noise | own noise | change, 95 % |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(given.processes) as pool:
        for features, history, noise in product(given.features, HISTORIES, NOISES):
            print(row(ThreeArms(noise, history, features), seeds, pool), flush=True)


if __name__ == "__main__":
    main()
