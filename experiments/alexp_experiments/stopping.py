"""When to stop: experiments until a rule stops, and how often it stops too early, on synthetic and real tables.

``python -m alexp_experiments.stopping`` prints the table of docs/certificates-results.md. Every run is played to
the end of its budget, and all rules look at it every five experiments:

* the stop report of a run with noise="gaussian": certified for linear models, calibrated for kernels;
* the estimate of the same run without it, which claims nothing;
* PRB, probabilistic regret bounds (Wilson, arXiv 2402.16811): a share 1 - delta / 2 of posterior draws of all rewards
  has its maximum within epsilon of the recommended candidate, by a lower confidence limit at level delta / 2; here with
  draws of the mixture in place of one Gaussian process;
* the rule of Ax's ImprovementGlobalStoppingStrategy with its defaults, implemented here since Ax is not installed: the
  best reward improved by less than a tenth of the rewards' interquartile range over the last five experiments.

A stop is false if the recommended candidate is worse than the best one by more than epsilon, half a standard deviation
of all rewards of the table.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from alexp.algorithms import EvidenceMixture
from alexp.common.arrays import FloatArray
from alexp.problem import FiniteSet, ModelClass
from alexp_experiments.alarms import interval
from alexp_experiments.comparison.tables.data import load_table

_EPSILON, _DELTA, _LOOKS, _FIRST = 0.5, 0.05, 5, 10
_DRAWS = 256  # of PRB
RULES = ("stop report", "estimate", "PRB", "Ax")


@dataclass(frozen=True)
class Case:
    """A problem: rewards of some candidates (standard deviation one) and models of them.

    Attributes
    ----------
    table : file of a real table below $ALEXP_TABLES, or empty for three random linear maps of 200 candidates.
    noise : standard deviation of the noise.
    outside : size of what belongs to no model, as a multiple of the signal.
    budget : experiments.
    """

    name: str
    table: str = ""
    noise: float = 0.3
    outside: float = 0.0
    budget: int = 60


CASES = (
    Case("linear maps, noise .3"),
    Case("linear maps, noise .1", noise=0.1),
    Case("smooth part outside, half the signal", outside=0.5, noise=0.1, budget=90),
    Case("AgNP, kernels", "AgNP", noise=0.0),
    Case("CrossedBarrel, kernels", "CrossedBarrel", noise=0.0),
    Case("Photoswitch, kernels", "Photoswitch", noise=0.0, budget=50),
    Case("FreeSolv, kernels", "FreeSolv", noise=0.0, budget=50),
    Case("direct arylation, kernels", "direct arylation", noise=0.0, budget=50),
)
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
    folder = os.environ.get("ALEXP_TABLES", "")
    table = load_table(case.table if " " in case.table else str(Path(folder) / f"{case.table}.npz"))
    rows = np.sort(rng.permutation(table.n_rows)[:_ROWS])
    scores = table.scores[rows]
    return table.models("maps with kernels", rows), scores / scores.std()


class StopRun(NamedTuple):
    """One run: at how many experiments each rule stopped and whether that was right, and what was seen at each look."""

    stops: dict[str, tuple[int, bool]]
    found: int  # experiments until the recommended candidate was within epsilon
    proved: int | None  # experiments until a certified report was within epsilon
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
    found, widths = case.budget + 1, (np.nan, np.nan)
    for t in range(1, case.budget + 1):
        trial = opt.ask()
        opt.tell(trial, float(rewards[trial.index]) + case.noise * float(rng.standard_normal()))
        if t < _FIRST or t % _LOOKS:
            continue
        report = opt.stop_report(_DELTA, _EPSILON)
        round_, offer = opt._recommended_on(None, {})
        position = opt._best(round_, offer)[1]
        estimate = opt._credible(round_, position, _DELTA)[0]
        gap = float(rewards.max() - rewards[report.index])
        right = gap <= _EPSILON
        found = min(found, t) if right else found
        if report.certified and report.can_stop and proved is None:
            proved = t
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
    alarm = None if models.kernels is not None else opt.check_models(_DELTA).at
    return StopRun(stops, found, proved, alarm, false_look, widths)


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
    cells = [case.name, f"{np.median([one.found for one in runs]):.0f}"]
    for rule in RULES:
        stops = [one.stops[rule] for one in runs if rule in one.stops]
        when = f" at {np.median([t for t, _ in stops]):.0f}" if stops else ""
        cells.append(f"{len(stops)}{when}, {sum(not right for _, right in stops)} false")
    proved = [one.proved for one in runs if one.proved is not None]
    cells.append(f"{len(proved)} at {np.median(proved):.0f}" if proved else "-")
    cells.append(" and ".join(str(sum(one.false_look[kind] for one in runs)) for kind in ("report", "estimate")))
    widths = np.array([one.widths for one in runs])
    report, estimate = np.nanmedian(widths, axis=0) if np.isfinite(widths[:, 0]).any() else (np.nan, np.nan)
    cells.append(f"{report:.2f} and {estimate:.2f}" if np.isfinite(report) else "-")
    alarms = [one.alarm for one in runs if one.alarm is not None]
    cells.append("-" if case.table else f"{len(alarms)} at {np.median(alarms):.0f}" if alarms else "0")
    return f"| {' | '.join(cells)} |"


def closing(runs: int) -> str:
    """What the counts of the table mean."""
    words = ", ".join(
        f"{k} are {100 * low:.0f} to {100 * high:.0f}%"
        for k in sorted({0, runs // 10, runs // 5, 7 * runs // 10})
        for low, high in [interval(k, runs)]
    )
    return f"Counts are of {runs} runs, with their median experiment. 95% intervals: {words}."


def _quiet_play(case: Case, seed: int) -> StopRun:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return play(case, seed)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(prog="python -m alexp_experiments.stopping", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)), help="which problems, from 0")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    names = ["", "good one found at", *RULES, "certified", "report and estimate false at some look"]
    names += ["their epsilon after 40", "alarms"]
    print(f"|{' | '.join(names)} |\n{'|---' * len(names)}|")
    with ProcessPoolExecutor(chosen.processes) as pool:
        cases = [CASES[number] for number in chosen.cases]
        jobs = [[pool.submit(_quiet_play, case, seed) for seed in range(chosen.seeds)] for case in cases]
        for case, runs in zip(cases, jobs, strict=True):
            print(row_of(case, [one.result() for one in runs]), flush=True)
    print("\n" + closing(chosen.seeds))


if __name__ == "__main__":
    main()
