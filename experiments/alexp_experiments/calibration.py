"""How often calibrated stop reports are false, on tables that their one constant was not chosen on, and what they cost.

``python -m alexp_experiments.calibration`` prints the table of docs/certificates-results.md. A run is false if at any
look some candidate is better than the recommended one by more than its report says. `EARLY` of `estimation.calibrated`
decides how wide reports are, and every run has a smallest `EARLY` with which none of its reports would be false. So it
can be chosen on some tables, such that at most `TARGET` of their runs are false, and tried on another one: for each
table, the column "others' constant" is chosen on the runs of all other tables, each table with the same weight.

Four of five runs have kernels, the others linear models (`stopping.linear_maps`). Half of the runs see rewards as they
are in the table, a quarter with noise of .1, a quarter with noise of .3, in standard deviations of the rewards; so are
epsilons. 150 candidates take part, in every third run 400.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from alexp.algorithms import EvidenceMixture
from alexp.common.arrays import BoolArray, FloatArray
from alexp.estimation.calibrated import EARLY, PriorLedger, Tails
from alexp.problem import FiniteSet, ModelClass
from alexp_experiments.alarms import interval
from alexp_experiments.comparison.tables.data import ARYLATION, RealTable, load_table
from alexp_experiments.stopping import linear_maps, table_file

TARGET = 0.04  # a point below what reports promise, since the constant is chosen on few tables
BEFORE = 20.0  # `EARLY` of version 1.0.0
EPSILONS = (0.5, 0.3, 0.1)
_DELTA = 0.05
_LARGEST = 1e4  # of `EARLY`
_HALVINGS = 12
_LOOKS = (6, 7, 8, 10, 12, 14, 17, 20, 23, 26, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90, 105, 120)
_WIDTH_AT = 40

TABLES: Mapping[str, Sequence[str]] = {  # files, and other targets of them
    "AgNP": ["AgNP"],
    "CrossedBarrel": ["CrossedBarrel"],
    "FreeSolv": ["FreeSolv"],
    "Photoswitch": ["Photoswitch"],
    ARYLATION: [ARYLATION],
    "Buchwald-Hartwig": ["aryl_halide", "buchwald_a", "buchwald_b", "buchwald_c"],
    "colors_bob": ["colors_bob"],
    "dye_lasers": ["dye_lasers", "dye_lasers:y2", "dye_lasers:y3"],
    "lnp3": ["lnp3", "lnp3:y2", "lnp3:y3"],
    "minerva_suzuki_i": ["minerva_suzuki_i", "minerva_suzuki_i:y2"],
    "oer_plate_3851": ["oer_plate_3851"],
}
MADE = ("smooth", "a draw of the prior", "steps", "a ridge", "heavy tails", "two rows far above")
LINEAR = ("linear, noise .1", "linear, noise .3")


@dataclass(frozen=True)
class TableRun:
    """One run: which rewards, models ("maps", "kernels" or "linear"), noise, candidates and experiments."""

    group: str
    source: str
    models: str
    noise: float
    size: int
    budget: int
    seed: int


def settings(first: int, seeds: int) -> list[TableRun]:
    """All runs, of `seeds` seeds from `first` on."""
    out, number = list[TableRun](), 0
    for group, sources in TABLES.items():
        for source in sources:
            for k in range(seeds):
                models = ("maps", "maps", "kernels", "maps", "linear")[(k + number) % 5]
                noise, size = (0.0, 0.1, 0.0, 0.3)[k % 4], (150, 150, 400)[k % 3]
                budget = 120 if noise and size == 150 else 60
                out.append(TableRun(group, source, models, noise, size, budget, first + k))
            number += 1
    for name in MADE:
        out += [TableRun(name, "", "maps", (0.0, 0.1, 0.3)[k % 3], 150, 60, first + k) for k in range(seeds)]
    for name, noise in zip(LINEAR, (0.1, 0.3), strict=True):
        out += [TableRun(name, "", "linear", noise, 200, 120, first + k) for k in range(seeds)]
    return out


def problem_of(setting: TableRun) -> tuple[ModelClass, FloatArray]:
    """Models, and rewards with mean 0 and standard deviation 1."""
    rng = np.random.default_rng([177, setting.seed])
    if not setting.source:
        models, rewards = _made(setting.group, setting.size, rng)
    else:
        table = _table(setting.source)
        rows = np.sort(rng.permutation(table.n_rows)[: setting.size])
        rewards = table.scores[rows]
        if setting.models == "linear":
            models = ModelClass.from_matrices({name: m[rows] for name, m in linear_maps(table.matrices).items()})
        else:
            models = table.models({"maps": "maps with kernels"}.get(setting.models, setting.models), rows)
    return models, (rewards - rewards.mean()) / rewards.std()


def _table(source: str) -> RealTable:
    name, _, target = source.partition(":")
    table = load_table(name if name == ARYLATION else str(table_file(name)))
    if not target:
        return table
    with np.load(table_file(name), allow_pickle=False) as stored:
        return RealTable(source, np.asarray(stored[target], dtype=np.float64), table.matrices)


def _made(group: str, n: int, rng: np.random.Generator) -> tuple[ModelClass, FloatArray]:
    if group in LINEAR:
        maps = {name: rng.standard_normal((n, d)) for name, d in {"a": 3, "b": 4, "c": 5}.items()}
        return ModelClass.from_matrices(maps), maps["b"] @ rng.standard_normal(4)
    x = rng.uniform(-1.0, 1.0, (n, 3))
    if group == "smooth":
        rewards = np.cos(2.0 * x[:, 0]) + x[:, 1] * x[:, 2] - x[:, 1] ** 2
    elif group == "a draw of the prior":
        gram = np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=2) / 0.7**2) + 1e-9 * np.eye(n)
        rewards = np.linalg.cholesky(gram) @ rng.standard_normal(n)
    elif group == "steps":
        rewards = np.sign(x[:, 0]) * (x[:, 1] > 0.2) + 0.7 * np.floor(3.0 * x[:, 2]) / 3.0 + np.sin(9.0 * x[:, 0])
    elif group == "a ridge":
        direction = rng.standard_normal(3)
        across = x @ (direction / np.linalg.norm(direction)) - 0.3
        rewards = 3.0 * np.exp(-((across / 0.15) ** 2)) + 0.5 * x[:, 0]
    elif group == "heavy tails":
        rewards = np.cos(2.0 * x[:, 0]) + x[:, 1] + 0.4 * rng.standard_t(3, n)
    else:
        rewards = 0.6 * x[:, 0] + 4.0 * (rng.random(n) < 2.0 / n) + 0.1 * rng.standard_normal(n)
    return ModelClass.from_matrices({"all": x, "first": x[:, :1], "others": x[:, 1:]}, kernels="auto"), rewards


Stop = tuple[int, bool]


class LookedAt(NamedTuple):
    """What was seen in one run.

    Attributes
    ----------
    needed : the smallest `EARLY` with which no calibrated report is false; infinite where it is above `_LARGEST`.
    false_estimate : whether an estimate was false at some look.
    stops : by kind, experiments until epsilon was small enough, for each of `EPSILONS`, and whether that was right;
        None if it never was.
    widths : epsilons after `_WIDTH_AT` experiments: with `BEFORE`, with `EARLY`, by the estimate.
    """

    group: str
    noise: float
    needed: float
    false_estimate: bool
    stops: dict[str, list[Stop | None]]
    widths: tuple[float, float, float]


KINDS = ("certified", "calibrated", "estimate")


def play(setting: TableRun) -> LookedAt:
    """One run to the end of its budget."""
    models, rewards = problem_of(setting)
    rng = np.random.default_rng([178, setting.seed])
    domain = FiniteSet(list(range(rewards.size)))
    opt = EvidenceMixture(models, domain, goal="best", repeats=False, noise="gaussian", random_state=setting.seed)
    ledger = PriorLedger(models, opt._listed)
    needed, false_estimate, widths = 0.0, False, (np.nan, np.nan, np.nan)
    stops: dict[str, list[Stop | None]] = {kind: [None] * len(EPSILONS) for kind in KINDS}
    for t in range(1, min(setting.budget, rewards.size - 1) + 1):
        trial = opt.ask()
        opt.tell(trial, float(rewards[trial.index]) + setting.noise * float(rng.standard_normal()))
        if t not in _LOOKS:
            continue
        ledger.catch_up(opt._rewards_told())
        report = opt.stop_report(_DELTA)
        round_, offer = opt._recommended_on(None, {})
        position = opt._best(round_, offer)[1]
        gap = float(rewards.max() - rewards[report.index])
        said = {"estimate": opt._credible(round_, position, _DELTA)[0]}
        false_estimate |= gap > said["estimate"] + 1e-9
        if report.certified:
            said["certified"] = report.epsilon
        if ledger.is_ready and (tails := ledger.tails(round_.choices, position, _DELTA)) is not None:
            said["calibrated"] = tails.gap(_DELTA)
            if report.kind == "calibrated" and gap > 1e-9:
                needed = _needed(tails, gap, needed)
            if t == _WIDTH_AT:
                widths = tails.gap(_DELTA, BEFORE), said["calibrated"], said["estimate"]
        for kind, epsilon in said.items():
            now = zip(EPSILONS, stops[kind], strict=True)
            stops[kind] = [(t, gap <= target) if at is None and epsilon <= target else at for target, at in now]
    return LookedAt(setting.group, setting.noise, needed, false_estimate, stops, widths)


def _needed(tails: Tails, gap: float, low: float) -> float:
    """The smallest `EARLY`, from `low` on, with which a report is at least the true gap."""
    if tails.chance(gap, low) > _DELTA:
        return low
    high = max(2.0 * low, 10.0)
    while tails.chance(gap, high) <= _DELTA:
        low, high = high, 2.0 * high
        if high > _LARGEST:
            return np.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if tails.chance(gap, middle) > _DELTA else (middle, high)
    return high


def chosen(needed: Mapping[str, FloatArray]) -> float:
    """The smallest `EARLY` with which at most `TARGET` of the runs are false, each table with the same weight."""
    values = np.concatenate(list(needed.values()))
    weights = np.concatenate([np.full(own.size, 1.0 / own.size) for own in needed.values()])
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(below, 1.0 - TARGET)])


def _share(false: BoolArray) -> str:
    low, high = interval(int(false.sum()), false.size)
    return f"{false.sum()} of {false.size}: {100 * false.mean():.1f}% ({100 * low:.1f} to {100 * high:.1f}%)"


def lines(runs: Sequence[LookedAt]) -> list[str]:
    """The two tables, and what they come to."""
    groups = {name: [one for one in runs if one.group == name] for name in (*TABLES, *MADE, *LINEAR)}
    needed = {name: np.array([one.needed for one in own]) for name, own in groups.items() if own}
    real = {name: values for name, values in needed.items() if name in TABLES}
    out = [
        "| | runs | false at some look, 1.0.0 | others' constant | false with it | false now | estimates false "
        f"| epsilon after {_WIDTH_AT}: 1.0.0, now, estimate |",
        "|---" * 8 + "|",
    ]
    held_out = list[BoolArray]()
    for name, values in needed.items():
        if name in LINEAR:
            continue
        others = {other: known for other, known in real.items() if other != name} if name in real else {}
        own = chosen(others) if others else None
        if own is not None:
            held_out.append(values > own)
        widths = np.array([one.widths for one in groups[name]])
        cells = [name, str(values.size), str((values > BEFORE).sum())]
        cells += ["-", "-"] if own is None else [f"{own:.0f}", str((values > own).sum())]
        cells += [str((values > EARLY).sum()), str(sum(one.false_estimate for one in groups[name]))]
        cells.append(", ".join(f"{width:.2f}" for width in np.nanmedian(widths, axis=0)))
        out.append(f"| {' | '.join(cells)} |")
    if held_out:
        together = np.concatenate(list(real.values()))
        out += [
            "",
            "Real tables together, false at some look: "
            f"by the constant of the other tables {_share(np.concatenate(held_out))}; "
            f"with {BEFORE:g}, as in 1.0.0, {_share(together > BEFORE)}; "
            f"with {EARLY:g}, as it is now, {_share(together > EARLY)}. All tables would choose {chosen(real):.0f}.",
        ]
    within = ", ".join(map(str, EPSILONS))
    out += ["", f"| | runs | {' | '.join(f'{kind}: within {within}' for kind in KINDS)} |", "|---" * 5 + "|"]
    costs = {name: groups[name] for name in (*LINEAR, *MADE[:2])}
    for noise in (0.0, 0.1, 0.3):
        costs[f"real tables, noise {noise:g}"] = [one for one in runs if one.group in TABLES and one.noise == noise]
    for name, played in costs.items():
        if not played:
            continue
        cells = [name, str(len(played))]
        for kind in KINDS:
            cells.append("; ".join(_stops([one.stops[kind][k] for one in played]) for k in range(len(EPSILONS))))
        out.append(f"| {' | '.join(cells)} |")
    return out


def _stops(stops: Sequence[Stop | None]) -> str:
    made = [stop for stop in stops if stop is not None]
    if not made:
        return "0"
    false = sum(not right for _, right in made)
    return f"{len(made)} at {np.median([t for t, _ in made]):.0f}" + (f", {false} false" if false else "")


def _quiet_play(setting: TableRun) -> LookedAt:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return play(setting)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(prog="python -m alexp_experiments.calibration", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="runs of every table, of every target")
    parser.add_argument("--first", type=int, default=5000, help="the first seed; 1000 for the runs of the choice")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--made", action="store_true", help="without real tables")
    asked = parser.parse_args()
    played = [one for one in settings(asked.first, asked.seeds) if one.source == "" or not asked.made]
    with ProcessPoolExecutor(asked.processes) as pool:
        print("\n".join(lines(list(pool.map(_quiet_play, played)))))


if __name__ == "__main__":
    main()
