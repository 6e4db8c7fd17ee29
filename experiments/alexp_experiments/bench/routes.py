"""Packed factors against one pass per reward, and points told: which is faster where, and is the choice right."""

from __future__ import annotations

import time

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.estimation.factory import Extent, prefers_one_pass, prefers_points
from alexp.estimation.onepass.grid import OnePassGrid
from alexp.estimation.onepass.processes import Processes
from alexp.estimation.posteriors import PosteriorGrid, Posteriors
from alexp.estimation.ridge.bank import RidgeBank, RidgeGrid
from alexp.problem import CandidateTable, FiniteSet, ModelClass
from alexp_experiments.bench.records import Measurement, one_blas_thread, record

RIDGES = (0.01, 0.03, 0.1, 0.3, 0.7)
CASES = tuple((m, d, n) for n in (200, 2000, 20_000) for m in (1, 3, 20) for d in (4, 16, 32, 64) if m * d * n < 2e7)
QUICK = ((2, 4, 50), (2, 40, 50))
AGENTS = ((1, 64, 600), (1, 256, 600), (1, 512, 600), (1, 1024, 600), (3, 128, 600), (3, 512, 600), (1, 512, 5000))


def bench_routes(quick: bool = False) -> list[Measurement]:
    """CPU time of a step, update and moments, on both routes; `ratio` is that of the chosen one to the faster one."""
    with one_blas_thread():  # threads that wait for each other would count as time
        return [*_mixtures(quick), *_masters(quick)]


def _mixtures(quick: bool) -> list[Measurement]:
    out = []
    for m, d, n in QUICK if quick else CASES:
        packed, one = _measured(m, d, n, 4 if quick else 12)
        chosen = one if prefers_one_pass(Extent(m, d, m * d, len(RIDGES), n)) else packed
        label = f"M={m}, d={d}, N={n:,}"
        out.append(record("routes", label, "packed factors", median_ms=packed, ratio=chosen / min(packed, one)))
        out.append(record("routes", label, "one pass", median_ms=one, ratio=chosen / min(packed, one)))
    return out


def _masters(quick: bool) -> list[Measurement]:
    out = []
    for m, d, n in QUICK[1:] if quick else AGENTS:
        packed, points = _agents(m, d, n, 4 if quick else 100)
        chosen = points if prefers_points(np.full(m, float(d))) else packed
        label = f"agents, M={m}, d={d}, N={n:,}"
        out.append(record("routes", label, "packed factors", median_ms=packed, ratio=chosen / min(packed, points)))
        out.append(record("routes", label, "points told", median_ms=points, ratio=chosen / min(packed, points)))
    return out


def _agents(m: int, d: int, n: int, steps: int) -> tuple[float, float]:
    """Milliseconds of a step of UCB agents, argmax and update, on packed factors, and from the points told."""
    rng = np.random.default_rng(0)
    models = ModelClass.from_matrices({f"m{k}": rng.standard_normal((n, d)) for k in range(m)})
    table = CandidateTable(models, FiniteSet(np.arange(n)), rng.permutation(n))
    ridges, choices, laps = np.full(m, 0.1), table.everything.choices, []
    packed = RidgeBank(models.columns_flat, models.offsets, ridges, models.intercept)
    fits: tuple[Posteriors, ...] = (packed, Processes(models.groups, [None] * m, ridges, models.intercept))
    for one in fits:
        own = []
        for t in range(steps + 2):
            begin = time.process_time()
            index = int(choices.indices[one.argmax_ucb(choices, 1.0)[t % m]]) if choices.indices is not None else 0
            one.update(table.row(index), float(t % 7))
            own.append(time.process_time() - begin)
        laps.append(1e3 * float(np.mean(own[2:])))  # later steps cost more: a run's mean counts
    return laps[0], laps[1]


def _measured(m: int, d: int, n: int, steps: int) -> tuple[float, float]:
    """Milliseconds of a step on packed factors, and with one pass."""
    rng = np.random.default_rng(0)
    models = ModelClass.from_matrices({f"m{k}": rng.standard_normal((n, d)) for k in range(m)})
    table = CandidateTable(models, FiniteSet(np.arange(n)), rng.permutation(n))
    ridges = [np.full(m, ridge) for ridge in RIDGES]
    packed = RidgeGrid(models.n_columns, models.columns_flat, models.offsets, ridges, models.intercept)
    rewards = rng.standard_normal(steps + 2)
    grids: tuple[PosteriorGrid, ...] = (packed, OnePassGrid(table.models(models), ridges, models.intercept))
    first, second = (_milliseconds(grid, table, m, rewards) for grid in grids)
    return first, second


def _milliseconds(grid: PosteriorGrid, table: CandidateTable, m: int, rewards: FloatArray) -> float:
    weights, noises = np.full((len(RIDGES), m), 1.0 / (len(RIDGES) * m)), np.ones((len(RIDGES), m))
    laps = []
    for t, y in enumerate(rewards.tolist()):
        begin, index = time.process_time(), 7 * t % table.n_candidates
        grid.update(table.row(index), y, index)
        grid.residuals()
        grid.moments(weights, noises, table.everything.choices)
        laps.append(time.process_time() - begin)
    return 1e3 * float(np.median(laps[2:]))
