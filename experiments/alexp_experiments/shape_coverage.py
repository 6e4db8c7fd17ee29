"""How often certificates from the shape of the noise fail, and what not knowing the size of the noise costs.

``python -m alexp_experiments.shape_coverage`` prints the tables of docs/certificates-results.md. Every run is adaptive
and is looked at after every reward: it has failed if at some moment the true model was ruled out, or the reward of some
candidate was outside the band of the true model. Beside it the same rewards are certified with the noise level and a
bound on the norm stated (1.5 times the true norm).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.decision.widths import model_radii, model_radii_with_constant
from alexp.estimation.factory import posteriors
from alexp.estimation.shape import ShapeLedger
from alexp.problem import ModelClass
from alexp_experiments.alarms import interval

_CANDIDATES, _ROUNDS, _DELTA, _FROM = 100, 60, 0.05, 30
_TRUE = 1  # number of the true model
Noise = Callable[[np.random.Generator, float], float]


@dataclass(frozen=True)
class CoverageProblem:
    """Three maps of random features, the second of them true.

    Attributes
    ----------
    noise : its standard deviation, as a multiple of that of the rewards.
    unit, offset : rewards are unit x (what the model says + offset).
    sizes : numbers of features of the maps.
    twice : whether every map has its columns twice, once as they are and once as sums.
    plate : how many candidates are chosen at once; their rewards come one plate late, in any order.
    adversary : whether each round has new candidates, and is played where the true model is most wrong.
    """

    name: str
    noise: float = 0.3
    unit: float = 1.0
    offset: float = 3.0
    sizes: tuple[int, ...] = (4, 5, 6)
    intercept: bool = True
    twice: bool = False
    plate: int = 1
    adversary: bool = False


PROBLEMS = (
    CoverageProblem("noise .3 of the signal"),
    CoverageProblem("noise .01, rewards times 1e-6", noise=0.01, unit=1e-6),
    CoverageProblem("noise .1, rewards times 1e6, far from zero", noise=0.1, unit=1e6, offset=1e4),
    CoverageProblem("noise as large as the signal", noise=1.0),
    CoverageProblem("noise twice the signal", noise=2.0),
    CoverageProblem("every column twice", twice=True),
    CoverageProblem("wide maps, 15 to 20 features", sizes=(15, 18, 20)),
    CoverageProblem("no intercept", intercept=False, offset=0.0),
    CoverageProblem("plates of 8, rewards late in any order", plate=8),
    CoverageProblem("adversarial contexts", adversary=True),
)


def _gaussian(rng: np.random.Generator, level: float) -> float:
    return float(rng.standard_normal())


OTHER_NOISE: dict[str, Noise] = {
    "Gaussian": _gaussian,
    "Laplace": lambda rng, level: float(rng.laplace(scale=0.5**0.5)),
    "t, 5 degrees of freedom": lambda rng, level: float(rng.standard_t(5.0) / (5.0 / 3.0) ** 0.5),
    "t, 3 degrees of freedom": lambda rng, level: float(rng.standard_t(3.0) / 3.0**0.5),
    "skewed (exponential)": lambda rng, level: float(rng.standard_exponential() - 1.0),
    "variance from 0.1 to 2 between candidates": lambda rng, level: float(
        (0.1 + 1.9 * level) ** 0.5 * rng.standard_normal()
    ),
}


class ShapeRun(NamedTuple):
    """One run: what was lost, when the last wrong model went with the noise unknown and known, and ratios of widths."""

    lost_model: bool
    lost_band: bool
    out: int
    out_known: int
    ratios: list[float]


def run(problem: CoverageProblem, seed: int, noise: Noise = _gaussian) -> ShapeRun:
    """One adaptive run of 60 rewards."""
    rng = np.random.default_rng([31, seed])
    maps = {f"map {d}": rng.standard_normal((_CANDIDATES, d)) for d in problem.sizes}
    theta = rng.standard_normal(problem.sizes[_TRUE])
    spread = float(np.linalg.norm(theta))
    true = list(maps.values())[_TRUE] @ theta / spread + problem.offset
    if problem.twice:
        maps = {name: np.hstack([m, m + np.roll(m, 1, axis=1)]) for name, m in maps.items()}
    models = ModelClass.from_matrices(maps, intercept=problem.intercept)
    table = np.hstack(list(maps.values()))
    levels = rng.random(_CANDIDATES)
    ledger = ShapeLedger(models, None if problem.adversary else table.T)
    bound = 1.5 if not problem.twice else 1.5 * float(np.linalg.norm(_smallest(maps, true, problem)))
    known = posteriors(models, problem.noise / bound)
    gone, gone_known = np.full(3, _ROUNDS + 1), np.full(3, _ROUNDS + 1)
    lost_model = lost_band = False
    ratios: list[float] = []
    waiting: list[int] = []
    for t in range(1, _ROUNDS + 1):
        if problem.adversary:
            fresh = rng.standard_normal((_CANDIDATES, table.shape[1]))
            table, true = fresh, fresh[:, models.groups[_TRUE]] @ theta / spread + problem.offset
            chosen = _worst(ledger, table, true, problem)
        elif problem.plate == 1:
            chosen = _chosen(ledger, table, rng)
        else:
            if not waiting:
                waiting = [_chosen(ledger, table, rng) for _ in range(problem.plate)]
                rng.shuffle(waiting)
            chosen = waiting.pop()
        y = float(true[chosen]) + problem.noise * noise(rng, float(levels[chosen]))
        ledger._see(t, -t if problem.adversary else chosen, problem.unit * y, table[chosen])
        ledger.look(_DELTA)
        known.update(table[chosen], y)
        numbers = problem.noise / bound, problem.noise, bound, _DELTA
        fits = known.residuals(), known.log_determinants()
        squares = (
            model_radii_with_constant(*fits, known.counts, *numbers)
            if problem.intercept
            else model_radii(*fits, *numbers)
        )
        gone_known = np.where((squares < 0.0) & (gone_known > t), t, gone_known)
        if ledger.n_counted < 2:
            continue
        out = np.setdiff1d(np.arange(3), ledger.plausible(_DELTA))
        gone[out] = np.minimum(gone[out], t)
        lost_model |= bool(ledger.largest[_TRUE] > np.log(1.0 / _DELTA))
        lower, upper = ledger.fits(_DELTA).at(_TRUE, table.T, float(ledger.radii(np.array([_TRUE]), _DELTA)[0]))
        slack = 1e-9 * problem.unit * (1.0 + abs(problem.offset))
        lost_band |= bool(np.any((problem.unit * true < lower - slack) | (problem.unit * true > upper + slack)))
        if t >= _FROM and t % 10 == 0:
            half = np.sqrt(max(float(squares[_TRUE]), 0.0)) * known.width(_TRUE, table)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios.append(float(np.median(0.5 * (upper - lower) / problem.unit / half)))
    wrong = np.arange(3) != _TRUE
    return ShapeRun(lost_model, lost_band, int(gone[wrong].max()), int(gone_known[wrong].max()), ratios)


def _smallest(maps: dict[str, FloatArray], true: FloatArray, problem: CoverageProblem) -> FloatArray:
    features = list(maps.values())[_TRUE]
    return np.asarray(np.linalg.lstsq(features, true - problem.offset, rcond=None)[0])


def _chosen(ledger: ShapeLedger, table: FloatArray, rng: np.random.Generator) -> int:
    """The largest estimate under the model that fits best; three in ten, and the first, at random."""
    if ledger.n_told < 13 or rng.random() < 0.3:
        return int(rng.integers(len(table)))
    _, mean = ledger.fits(_DELTA).at(int(np.argmin(ledger.largest)), table.T)
    estimates = np.where(np.isfinite(mean), mean, 0.0)
    return int(np.argmax(estimates + 0.3 * np.std(estimates) * rng.standard_normal(len(table))))


def _worst(ledger: ShapeLedger, table: FloatArray, true: FloatArray, problem: CoverageProblem) -> int:
    """Where the true model's estimate is most wrong: an adversary who knows the truth, and all noise so far."""
    if ledger.n_told < 13:
        return 0
    mean, _ = ledger.fits(_DELTA).at(_TRUE, table.T)
    return int(np.argmax(np.where(np.isfinite(mean), np.abs(mean - problem.unit * true), 0.0)))


def _row(name: str, runs: Sequence[ShapeRun], widths: bool) -> str:
    n = len(runs)
    lost, bands = sum(one.lost_model for one in runs), sum(one.lost_model or one.lost_band for one in runs)
    low, high = interval(bands, n)
    cells = [name, f"{lost}, {bands} of {n}", f"{low:.3f} to {high:.3f}"]
    if widths:
        out, known = (np.median([getattr(one, key) for one in runs]) for key in ("out", "out_known"))
        words = [f"{value:.0f}" if value <= _ROUNDS else "later" for value in (out, known)]
        cells.append(f"{words[0]} ({words[1]})")
        ratios = np.array([one.ratios for one in runs])
        cells += [f"{value:.2f}" if np.isfinite(value) else "-" for value in np.median(ratios, axis=0)[[0, -1]]]
    return "| " + " | ".join(cells) + " |"


def _problem(name: str) -> tuple[CoverageProblem, Noise]:
    """A row of one of the tables: a problem with Gaussian noise, or the first problem with another noise."""
    known = {problem.name: problem for problem in PROBLEMS}
    return (known[name], _gaussian) if name in known else (PROBLEMS[0], OTHER_NOISE[name])


def _run(name: str, seed: int) -> ShapeRun:
    problem, noise = _problem(name)
    return run(problem, seed, noise)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m alexp_experiments.shape_coverage", description=__doc__)
    parser.add_argument("table", choices=("problems", "noise"))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    if chosen.table == "problems":
        names = [problem.name for problem in PROBLEMS]
        head = "| | true model lost; model or band lost | 95% interval | wrong models out at (noise known) | "
        head += "width at 30 | at 60, noise known = 1 |\n|---|---|---|---|---|---|"
    else:
        names = list(OTHER_NOISE)
        head = "| noise | true model lost; model or band lost | 95% interval |\n|---|---|---|"
    print(head, flush=True)
    with ProcessPoolExecutor(chosen.processes) as pool:
        jobs = [[pool.submit(_run, name, seed) for seed in range(chosen.runs)] for name in names]
        for name, runs in zip(names, jobs, strict=True):
            print(_row(name, [one.result() for one in runs], chosen.table == "problems"), flush=True)


if __name__ == "__main__":
    main()
