"""Whether a device decides as the CPU does in double precision: five problems, a thousand rounds each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

import numpy as np

from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.common.arrays import AnyArray
from alexp.problem.domains import FiniteSet
from alexp.problem.models import ModelClass
from alexp.rules import IDS, UCB, ExpectedImprovement, RuleName


class Settings(TypedDict, total=False):
    """Of a mixture."""

    noise_std: float
    reward_bound: float
    norm_bound: float
    repeats: bool
    goal: Literal["sum", "best"]
    rule: RuleName


@dataclass(frozen=True)
class Duel:
    """N candidates with features of two maps, the second of which is true, and settings of the mixture."""

    text: str
    n: int
    sizes: tuple[int, int]
    settings: Settings


DUELS = (
    Duel("nothing stated", 2000, (64, 96), {}),
    Duel("noise and bound stated, six cells", 2000, (64, 96), {"noise_std": 0.1, "reward_bound": 4.0}),
    Duel("without repeats", 4000, (48, 160), {"repeats": False}),
    Duel("the best one soon", 2000, (64, 96), {"goal": "best"}),
    Duel("upper confidence, more candidates", 10_000, (32, 48), {"rule": "ucb"}),
)


@dataclass
class Agreement:
    """Of `rounds`, in how many the same candidate was chosen; otherwise how far apart the two are at most.

    `gap` is by how much the mean of the one that the device chose would have to rise to be as good a choice as the
    CPU's, in units of beta times its deviation, all of it as the CPU knows it; `error` the largest difference of means
    or deviations at the end, in units of the largest deviation.
    """

    rounds: int = 0
    same: int = 0
    gap: float = 0.0
    error: float = 0.0


def duel(case: Duel, precision: str, rounds: int, device: str, rounded: bool = True, seed: int = 0) -> Agreement:
    """Play as the CPU decides in double precision, and ask the device every time what it would have done.

    Tables are in this `precision` on the device. The CPU has the same numbers, or, unless they are to be `rounded`,
    those in double precision that they were made from.
    """
    rng = np.random.default_rng(seed)
    tables: dict[str, AnyArray] = {
        name: rng.standard_normal((case.n, d)) / np.sqrt(d) for name, d in zip("ab", case.sizes, strict=True)
    }
    truth = tables["b"] @ rng.standard_normal(case.sizes[1])
    narrow = {name: table.astype(precision) for name, table in tables.items()}
    plain = {name: narrow[name].astype(np.float64) if rounded else tables[name] for name in tables}
    domain, settings = FiniteSet(np.arange(case.n)), case.settings
    here = EvidenceMixture(ModelClass.from_matrices(plain), domain, random_state=seed, **settings)
    there = EvidenceMixture(ModelClass.from_matrices(narrow, device=device), domain, random_state=seed, **settings)
    out = Agreement()
    for _ in range(rounds):
        one, other = here.ask(), there.ask()
        here.abandon(one)
        there.abandon(other)
        out.rounds, out.same = out.rounds + 1, out.same + (one.index == other.index)
        if one.index != other.index:
            out.gap = max(out.gap, _gap(here, one.index, other.index))
        reward = float(truth[one.index]) + 0.1 * float(rng.standard_normal())
        here.observe(one.index, reward)
        there.observe(one.index, reward)
    outlooks = [opt.belief.moments(opt._everything) for opt in (here, there)]
    known, found = (np.stack([np.asarray(view.mean), np.asarray(view.std)]) for view in outlooks)
    out.error = float(np.abs(known - found).max() / known[1].max())
    return out


def _gap(opt: EvidenceMixture, chosen: int, other: int) -> float:
    """By how much the mean of `other` would have to rise to be as good a choice as the one that was `chosen`."""
    everything = opt._everything
    places = [int(np.flatnonzero(everything.indices == index)[0]) for index in (chosen, other)]
    outlook = opt.belief.moments(everything)
    mean, std = (values[places] for values in outlook)
    if isinstance(opt.rule, ExpectedImprovement):
        gains = opt.belief.expected_improvement(everything, opt.rule.width)[places]
        return abs(float(gains[0]) - float(gains[1])) / (max(opt.rule.width, 0.5) * float(std[1]))
    assert isinstance(opt.rule, IDS | UCB)
    beta = opt.rule.width(opt.n_told + 1)
    unit = max(beta, 0.5) * float(std[1])
    if isinstance(opt.rule, UCB):
        return abs(float((mean + beta * std)[0] - (mean + beta * std)[1])) / unit
    regret = float((outlook.mean + beta * outlook.std).max()) - mean
    information = np.log1p(std**2 / opt.belief.noise_variance)
    return abs(float(regret[1] - regret[0] * np.sqrt(information[1] / information[0]))) / unit
