"""When to stop: experiments until a rule stops, and how often it stops too early, on synthetic and real tables.

``python -m alexp_experiments.stopping`` prints the table of docs/certificates-results.md. Every run is played to
the end of its budget, and all rules look at it every other experiment from the eighth on (with kernels, where draws
take long, every fifth from the tenth on):

* the stop report of a run with noise="gaussian": certified for linear models, calibrated for kernels;
* the estimate of the same run without it, which claims nothing;
* PRB, probabilistic regret bounds (Wilson, arXiv 2402.16811): a share 1 - delta / 2 of posterior draws of all rewards
  has its maximum within epsilon of the recommended candidate, by a lower confidence limit at level delta / 2; here with
  draws of the mixture in place of one Gaussian process;
* for linear models, what would be possible with the best model and the size of its residuals known: an ellipsoid
  around least squares that is valid at all times, of squared radius sigma^2 (2 log(1/delta) + d log(1 + n));
* the rule of Ax's ImprovementGlobalStoppingStrategy with its defaults, implemented here since Ax is not installed: the
  best reward improved by less than a tenth of the rewards' interquartile range over the last five experiments.

A stop is false if the recommended candidate is worse than the best one by more than epsilon, half a standard deviation
of all rewards of the table. Rewards of real tables have no noise: what a linear model leaves is what it counts as such.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from alexp.algorithms import EvidenceMixture
from alexp.algorithms.log import TrialLog
from alexp.common.arrays import FloatArray
from alexp.problem import FiniteSet, ModelClass
from alexp_experiments.alarms import interval
from alexp_experiments.comparison.tables.data import load_table

_EPSILON, _DELTA = 0.5, 0.05
_DRAWS = 256  # of PRB
RULES = ("stop report", "estimate", "PRB", "Ax")


@dataclass(frozen=True)
class Case:
    """A problem: rewards of some candidates (standard deviation one) and models of them.

    Attributes
    ----------
    table : file of a real table below $ALEXP_TABLES or $ALEXP_BOARD, or empty for three random linear maps of 200
        candidates.
    kernels : whether the models of a table have kernels; linear ones otherwise, see `linear_maps`.
    noise : standard deviation of the noise.
    outside : size of what belongs to no model, as a multiple of the signal.
    budget : experiments.
    runs : how many are played, each with a seed of its own.
    """

    name: str
    table: str = ""
    kernels: bool = True
    noise: float = 0.3
    outside: float = 0.0
    budget: int = 60
    runs: int = 20


CASES = (
    Case("linear maps, noise .3", runs=100),
    Case("linear maps, noise .1", noise=0.1, runs=100),
    Case("smooth part outside, half the signal", outside=0.5, noise=0.1, budget=90, runs=100),
    *(
        Case(f"{name}, linear", name, False, noise=0.0, budget=90)
        for name in ("lnp3", "colors_bob", "minerva_suzuki_i", "FreeSolv")  # R^2 of .76 to .91
    ),
    *(
        Case(f"{name}, linear", name, False, noise=0.0, budget=90)
        for name in ("AgNP", "CrossedBarrel", "Photoswitch", "direct arylation")  # .58 to .72
    ),
    *(
        Case(f"{name}, kernels", name, noise=0.0)
        for name in ("AgNP", "CrossedBarrel", "Photoswitch", "direct arylation", "buchwald_a")
    ),
)
_NARROW, _SQUARED, _LEADING = 40, 7, 10  # columns of a map that is taken as it is; with squares; principal components
_ROWS = 150  # of a real table that take part, drawn anew for every seed


def problem_of(case: Case, seed: int) -> tuple[ModelClass, FloatArray]:
    """Models and rewards."""
    rng = np.random.default_rng([77, seed])
    if not case.table:
        maps = {name: rng.standard_normal((200, d)) for name, d in {"a": 3, "b": 4, "c": 5}.items()}
        signal = maps["b"] @ rng.standard_normal(4)
        beyond = np.cos(2.0 * maps["a"][:, 0]) + np.cos(2.0 * maps["b"][:, 1])
        rewards = signal / signal.std() + case.outside * (beyond - beyond.mean()) / beyond.std()
        return ModelClass.from_matrices(maps), rewards / rewards.std()
    table = load_table(case.table if " " in case.table else str(table_file(case.table)))
    rows = np.sort(rng.permutation(table.n_rows)[:_ROWS])
    scores = table.scores[rows]
    if case.kernels:
        models = table.models("maps with kernels", rows)
    else:
        models = ModelClass.from_matrices({name: m[rows] for name, m in linear_maps(table.matrices).items()})
    return models, scores / scores.std()


def table_file(table: str) -> Path:
    """Where a table lies below $ALEXP_TABLES or $ALEXP_BOARD."""
    paths = [Path(os.environ.get(key, "")) / f"{table}.npz" for key in ("ALEXP_TABLES", "ALEXP_BOARD")]
    return next((path for path in paths if path.exists()), paths[0])


def linear_maps(matrices: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Maps of few columns: as they are, with squares and products where few columns are; else principal components."""
    out: dict[str, FloatArray] = {}
    for name, features in matrices.items():
        spread = features.std(axis=0)
        scaled = (features - features.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
        d = scaled.shape[1]
        if d > _NARROW:
            left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
            scaled = left[:, :_LEADING] * sizes[:_LEADING]
        out[name] = scaled
        if d <= _SQUARED:
            pairs = [scaled[:, i] * scaled[:, k] for i in range(d) for k in range(i, d)]
            out[f"{name} with products"] = np.column_stack([scaled, *pairs])
    return out


class StopRun(NamedTuple):
    """One run: at how many experiments each rule stopped and whether that was right, and what was seen at each look."""

    stops: dict[str, tuple[int, bool]]
    found: int  # experiments until the best row was measured
    proved: int | None  # experiments until a certified report was within epsilon
    ideal: int | None  # the same with model and noise known
    alarm: int | None
    false_look: dict[str, bool]  # by kind: whether a report was false at some look
    widths: tuple[float, float]  # epsilon of the report and of the estimate after 40 experiments


def play(case: Case, seed: int) -> StopRun:
    """One run to the end of its budget."""
    models, rewards = problem_of(case, seed)
    rng = np.random.default_rng([78, seed])
    domain = FiniteSet(list(range(rewards.size)))
    opt = EvidenceMixture(models, domain, goal="best", repeats=False, noise="gaussian", random_state=seed)
    stops: dict[str, tuple[int, bool]] = {}
    false_look = {"report": False, "estimate": False}
    proved: int | None = None
    ideal: int | None = None
    linear = models.kernels is None
    best = best_linear(models, domain, rewards) if linear else None
    found, widths = case.budget + 1, (np.nan, np.nan)
    for t in range(1, case.budget + 1):
        trial = opt.ask()
        opt.tell(trial, float(rewards[trial.index]) + case.noise * float(rng.standard_normal()))
        found = min(found, t) if trial.index == int(np.argmax(rewards)) else found
        if t < (8 if linear else 10) or t % (2 if linear else 5):
            continue
        report = opt.stop_report(_DELTA, _EPSILON)
        round_, offer = opt._recommended_on(None, {})
        position = opt._best(round_, offer)[1]
        estimate = opt._credible(round_, position, _DELTA)[0]
        gap = float(rewards.max() - rewards[report.index])
        right = gap <= _EPSILON
        if report.certified and report.can_stop and proved is None:
            proved = t
        if best is not None and ideal is None and best.gap(opt.log, report.index, case.noise) <= _EPSILON:
            ideal = t
        if report.kind != "estimate":
            false_look["report"] |= gap > report.epsilon + 1e-9
        false_look["estimate"] |= gap > estimate + 1e-9
        if t == 40:
            widths = report.epsilon if report.kind != "estimate" else np.nan, estimate
        says = {
            "stop report": report.can_stop,
            "estimate": estimate <= _EPSILON,
            "PRB": "PRB" not in stops and _prb(opt, position, rng),
            "Ax": _ax(np.array(opt.log.reward, dtype=np.float64)),
        }
        for rule, stop in says.items():
            if stop and rule not in stops:
                stops[rule] = t, right
    alarm = opt.check_models(_DELTA).at if linear else None
    return StopRun(stops, found, proved, ideal, alarm, false_look, widths)


class KnownModel(NamedTuple):
    """A linear model that is known to be the best: its features (N, d) with a constant, and how far it is off."""

    features: FloatArray
    off: float

    def gap(self, log: TrialLog, index: int, noise: float) -> float:
        """By how much another candidate may beat this one, at all times with probability 1 - delta."""
        told = self.features[np.array(log.index)]
        n, d = told.shape
        if n <= d or np.linalg.matrix_rank(told) < d:
            return np.inf
        theta = np.linalg.lstsq(told, np.array(log.reward))[0]
        radius = np.sqrt((self.off**2 + noise**2) * (2.0 * np.log(1.0 / _DELTA) + d * np.log1p(n)))
        apart = self.features - self.features[index]
        widths = np.linalg.norm(apart @ np.linalg.pinv(told), axis=1)  # ||x - b|| in the inverse sums of products
        return float((apart @ theta + radius * widths).max())


def best_linear(models: ModelClass, domain: FiniteSet, rewards: FloatArray) -> KnownModel:
    """The model whose residuals on all candidates are smallest for its number of coefficients."""
    known = []
    for j in range(models.n_models):
        features = models.features(j, np.array(domain.points))
        left, sizes, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
        left = left[:, sizes > 1e-9 * sizes[0]]
        features = np.column_stack([left, np.full(rewards.size, rewards.size**-0.5)])
        rest = rewards - features @ (features.T @ rewards)
        known.append(KnownModel(features, float(np.sqrt(rest @ rest / (rewards.size - features.shape[1])))))
    return min(known, key=lambda one: one.off)


def _prb(opt: EvidenceMixture, position: int, rng: np.random.Generator) -> bool:
    """Whether the share of draws within epsilon is above 1 - delta / 2, at level delta / 2."""
    round_, _ = opt._recommended_on(None, {})
    within = 0
    for _ in range(_DRAWS):
        drawn = opt.belief.sample(round_, rng)
        within += bool(drawn.max() - drawn[position] <= _EPSILON)
    return within > 0 and float(beta.ppf(_DELTA / 2.0, within, _DRAWS - within + 1)) >= 1.0 - _DELTA / 2.0


def _ax(rewards: FloatArray, window: int = 5, bar: float = 0.1) -> bool:
    """Whether the best reward has improved by less than `bar` interquartile ranges over the last `window`."""
    best = np.maximum.accumulate(rewards)
    spread = float(np.subtract(*np.percentile(rewards, [75, 25])))
    return bool(best[-1] - best[-1 - window] < bar * spread)


def row_of(case: Case, runs: Sequence[StopRun]) -> str:
    """One line of the table."""
    found = float(np.median([one.found for one in runs]))
    cells = [case.name, str(len(runs)), f"{found:.0f}" if found <= case.budget else "later"]
    for rule in RULES:
        stops = [one.stops[rule] for one in runs if rule in one.stops]
        when = f" at {np.median([t for t, _ in stops]):.0f}" if stops else ""
        cells.append(f"{len(stops)}{when}, {sum(not right for _, right in stops)} false")
    proved = [one.proved for one in runs if one.proved is not None]
    cells.append(f"{len(proved)} at {np.median(proved):.0f}" if proved else "0")
    ideal = [one.ideal for one in runs if one.ideal is not None]
    cells.append(f"{len(ideal)} at {np.median(ideal):.0f}" if ideal else "0")
    cells.append(" and ".join(str(sum(one.false_look[kind] for one in runs)) for kind in ("report", "estimate")))
    widths = np.array([one.widths for one in runs])
    report, estimate = np.nanmedian(widths, axis=0) if np.isfinite(widths[:, 0]).any() else (np.nan, np.nan)
    cells.append(f"{report:.2f} and {estimate:.2f}" if np.isfinite(report) else "-")
    alarms = [one.alarm for one in runs if one.alarm is not None]
    linear = not (case.table and case.kernels)
    cells.append(f"{len(alarms)} at {np.median(alarms):.0f}" if alarms else "0" if linear else "-")
    return f"| {' | '.join(cells)} |"


def closing(runs: Sequence[int]) -> str:
    """What the counts of the table mean."""
    words = ", ".join(
        f"{k} of {n} are {100 * low:.0f} to {100 * high:.0f}%"
        for n in sorted(set(runs))
        for k in sorted({0, n // 20, n // 5})
        for low, high in [interval(k, n)]
    )
    return f"Counts of runs, with their median experiment. 95% intervals: {words}."


def _quiet_play(case: Case, seed: int) -> StopRun:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return play(case, seed)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(prog="python -m alexp_experiments.stopping", description=__doc__)
    parser.add_argument("--seeds", type=int, help="runs of every problem, if not as many as it says")
    parser.add_argument("--first", type=int, default=200, help="the first seed")
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)), help="which problems, from 0")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    names = [
        "",
        "runs",
        "best row measured at",
        *RULES,
        "certified",
        "model and noise known",
        "report and estimate false at some look",
    ]
    names += ["their epsilon after 40", "alarms"]
    print(f"|{' | '.join(names)} |\n{'|---' * len(names)}|")
    with ProcessPoolExecutor(chosen.processes) as pool:
        cases = [CASES[number] for number in chosen.cases]
        jobs = [
            [pool.submit(_quiet_play, case, chosen.first + k) for k in range(chosen.seeds or case.runs)]
            for case in cases
        ]
        for case, runs in zip(cases, jobs, strict=True):
            print(row_of(case, [one.result() for one in runs]), flush=True)
    print("\n" + closing([chosen.seeds or case.runs for case in cases]))


if __name__ == "__main__":
    main()
