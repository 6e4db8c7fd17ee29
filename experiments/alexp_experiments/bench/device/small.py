"""Many small models on the GPU: all subsets of three columns, enumerated there, against the CPU of the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import comb
from types import ModuleType
from typing import NamedTuple

import numpy as np

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.assumptions import quietly
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.common.arrays import FloatArray
from alexp.decision.agents import Greedy
from alexp.estimation.mixture.mixture import Mixture
from alexp.gpu.cupy_backend import cupy
from alexp.problem.domains import FiniteSet
from alexp.problem.matrices import Matrices
from alexp.problem.models import ModelClass
from alexp.rules import IDS, UCB
from alexp_experiments.bench.records import Details, Measurement, median_ms, record

Run = EvidenceMixture | ALExp

_SIZE, _NOISE, _FIRST = 3, 0.1, 3  # columns of a model; noise of the rewards; rounds before the clock starts
_CHAIN = """extern "C" __global__ void chain(double *out, int rounds) {
    double x[8];
    for (int i = 0; i < 8; ++i) x[i] = threadIdx.x + i;
    for (int k = 0; k < rounds; ++k)
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = x[i] * 0.999 + 0.001;
    double sum = 0.0;
    for (int i = 0; i < 8; ++i) sum += x[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""  # the fastest multiply-adds in double precision, without tensor cores, which no small model can use


class SparseRewards(NamedTuple):
    """Rewards of three columns out of P on N candidates, with noise."""

    table: FloatArray
    rewards: FloatArray

    @classmethod
    def make(cls, n: int, p: int, seed: int = 0) -> SparseRewards:
        """Columns of random numbers."""
        rng = np.random.default_rng(seed)
        table = rng.standard_normal((n, p))
        return cls(table, table[:, 1] - table[:, 3] + 0.5 * table[:, p - 2])

    def models(self, device: str | None, intercept: bool = False) -> ModelClass:
        """All subsets of three columns."""
        return ModelClass.subsets(Matrices({"x": self.table}), _SIZE, intercept=intercept, device=device)

    @property
    def domain(self) -> FiniteSet:
        """The candidates by number."""
        return FiniteSet(np.arange(len(self.table)))


def mixture(models: ModelClass, domain: FiniteSet) -> Run:
    """Default settings: nothing is stated, five ratios."""
    return EvidenceMixture(models, domain, random_state=0)


def sweeping(models: ModelClass, domain: FiniteSet) -> Run:
    """One UCB agent for every model, and the group Lasso."""
    return ALExp(models, domain, noise_std=_NOISE, reward_bound=5.0, random_state=0)


def bench_small_models(quick: bool = False) -> list[Measurement]:
    """A whole ask + tell at a million models and at a hundred million, and whether decisions are the CPU's."""
    xp = cupy()
    peak = _peak(xp)
    out = []
    for p, n, steps, listed in ((30, 200, 3, 2),) if quick else ((182, 2000, 30, 4), (844, 2000, 12, 0)):
        problem = SparseRewards.make(n, p)
        for name, make, work in (("EvidenceMixture", mixture, _mixture_work), ("ALExp", sweeping, _sweep_work)):
            out.append(_step(xp, problem, name, make, work(p, n), peak, steps, listed))
    if not quick:  # ten times as many: what the card still does in less than a second
        problem = SparseRewards.make(2000, 1819)
        out.append(_step(xp, problem, "EvidenceMixture", mixture, _mixture_work(1819, 2000), peak, 3, 0, False))
    out += [_agreement(kind, 20 if quick else 1000) for kind in RULES]
    return out


def _step(
    xp: ModuleType,
    problem: SparseRewards,
    name: str,
    make: Callable[[ModelClass, FiniteSet], Run],
    work: float,
    peak: float,
    steps: int,
    listed: int,
    beside: bool = True,
) -> Measurement:
    """Rounds of one algorithm on the card, and some of them on the CPU, where models are listed if they fit."""
    pool, (n, p) = xp.get_default_memory_pool(), problem.table.shape
    pool.free_all_blocks()
    seconds = _rounds(make(problem.models("cuda"), problem.domain), problem, steps)
    used = pool.total_bytes() / 1e6
    host = None
    if listed:
        host = _rounds(make(problem.models(None), problem.domain), problem, listed)
    elif beside and name == "EvidenceMixture":  # a sweep by the CPU takes minutes
        host = _rounds(make(problem.models("cpu"), problem.domain), problem, 1, 0)
    reached = work / (1e9 * float(np.median(seconds)))
    measured: Details = {
        "slowest_ms": 1e3 * max(seconds), "device_mb": used, "reached_per_ns": reached, "peak_per_ns": peak,
        "share": reached / peak,
    }  # fmt: skip
    if host is not None:
        measured["host_ms"] = median_ms(host)
    if host is not None and not listed:
        measured["fixed"] = "the CPU enumerates, too: there is no room for a list"
    return record(
        "gpu", f"M={comb(p, _SIZE):,} (s=3, P={p}), N={n:,}", f"{name}, ask + tell",
        median_ms=median_ms(seconds),
        ratio=None if host is None else float(np.median(host) / np.median(seconds)), **measured,
    )  # fmt: skip


def _rounds(run: Run, problem: SparseRewards, steps: int, first: int = _FIRST) -> list[float]:
    """Seconds of some rounds after the first few; tells wait for the device because asks do."""
    rng, out = np.random.default_rng(1), []
    with quietly():
        for k in range(first + steps):
            begin = time.perf_counter()
            trial = run.ask()
            middle = time.perf_counter()
            reward = float(problem.rewards[trial.index] + _NOISE * rng.standard_normal())
            again = time.perf_counter()
            run.tell(trial, reward)
            if k >= first:
                out.append(middle - begin + time.perf_counter() - again)
    return out


def _mixture_work(p: int, n: int) -> float:
    """Multiply-adds of a decision: 20 for each of five components of a subset, seen four times; products (N, P, P)."""
    return 20.0 * 5 * 4 * comb(p, _SIZE) + 2.0 * n * p * p


def _sweep_work(p: int, n: int) -> float:
    """Multiply-adds of a sweep: 12 for each subset and candidate."""
    return 12.0 * n * comb(p, _SIZE)


def _peak(xp: ModuleType) -> float:
    """Multiply-adds in double precision per nanosecond."""
    blocks, threads, rounds = 132 * 16, 256, 20_000
    out, kernel = xp.empty(blocks * threads), xp.RawKernel(_CHAIN, "chain")
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        kernel((blocks,), (threads,), (out, np.int32(rounds)))
        xp.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - begin)
    return 8.0 * rounds * blocks * threads / (1e9 * best)


# -- the same decisions ----------------------------------------------------------------------------------------------


def _ucb(models: ModelClass, domain: FiniteSet) -> Run:
    return EvidenceMixture(models, domain, rule="ucb", noise_std=_NOISE, reward_bound=3.0, random_state=0)


def _unrepeated(models: ModelClass, domain: FiniteSet) -> Run:
    return EvidenceMixture(models, domain, repeats=False, random_state=0)


def _greedy(models: ModelClass, domain: FiniteSet) -> Run:
    return ALExp(models, domain, agents=Greedy(), noise_std=_NOISE, reward_bound=5.0, random_state=0)


RULES: dict[str, Callable[[ModelClass, FiniteSet], Run]] = {
    "mixture, noise and bound not given": mixture,
    "mixture, noise and bound given, ucb": _ucb,
    "mixture, no repeats, intercept": _unrepeated,
    "ALExp, UCB agents": sweeping,
    "ALExp, greedy agents": _greedy,
}


def _agreement(kind: str, rounds: int, device: str = "cuda") -> Measurement:
    """Rounds in which the device decides as the listed models do on the CPU, given the same rewards.

    `max_gap` is the largest difference of the scores of two actions where they differ, in widths.
    """
    problem, make = SparseRewards.make(1200, 16, seed=len(kind)), RULES[kind]
    intercept = "intercept" in kind
    ours, theirs = (make(problem.models(where, intercept), problem.domain) for where in (device, None))
    rng, same, gap = np.random.default_rng(2), 0, 0.0
    with quietly():
        for _ in range(rounds):
            mine, other = ours.ask(), theirs.ask()
            reward = float(problem.rewards[other.index] + _NOISE * rng.standard_normal())
            if mine.index == other.index:
                same += 1
                ours.tell(mine, reward)
            else:
                gap = max(gap, _apart(theirs, mine.index, other.index))
                ours.abandon(mine)
                ours.observe(other.x, reward)
            theirs.tell(other, reward)
    return record("gpu", f"{rounds:,} rounds: {kind}", "decisions as on the CPU", agreement=same / rounds, max_gap=gap)


def _apart(run: Run, one: int, two: int) -> float:
    """Difference of two actions' scores under a mixture, in widths; of two draws of ALExp there is none."""
    if not isinstance(run, EvidenceMixture) or not isinstance(run.belief.mixture, Mixture):
        return np.inf
    (first, width), (second, other) = run.predict(one), run.predict(two)
    assert isinstance(run.rule, IDS | UCB)
    beta = run.rule.width(run.n_told + 1)
    return float(abs(first + beta * width - second - beta * other) / max(width, other))
