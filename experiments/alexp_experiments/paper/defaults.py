"""Default schedules: the sweep they were chosen from, and what they achieve on other seeds.

python -m alexp_experiments.paper.defaults sweep       # tuning seeds -> docs/tuning.csv, docs/tuning.md
python -m alexp_experiments.paper.defaults stability   # more tuning seeds, three learning rates -> docs/stability.*
python -m alexp_experiments.paper.defaults headline    # fresh seeds  -> docs/headline.csv, docs/headline.md

`--seeds N` plays the first N seeds only, `--rounds N` fewer rounds; `--out` names another folder than docs; `--stored`
writes the page from its CSV file. Runs go
through the runner of all experiments: finished ones are kept, and Ctrl-C loses nothing. Environment and algorithm share
a seed (`Task.shared_seed`), as they did when these tables were first made.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from alexp.common.arrays import BoolArray, FloatArray
from alexp.common.files import write_text
from alexp.decision import Schedules
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.core.statistics import STUCK, is_stuck
from alexp_experiments.core.tasks import Record, Task
from alexp_experiments.paper.tuning import settings_of

PROSE = Prose("alexp_experiments.paper", "defaults.md")
SCENARIOS = {size: Scenario(size=size) for size in (2, 3, 9)}  # the paper's easy, large and hard classes, p = 10
STEPS = Scenario.steps
TUNING_SEEDS, REPORTED_SEEDS = range(50_000, 50_020), range(80_000, 80_040)
CHOICES = [
    Schedules(gamma=gamma, eta=eta, lam=lam)
    for gamma, eta, lam in product((0.001, 0.003, 0.01, 0.1), (1.0, 3.0, 5.0, 7.0, 10.0), (0.009, 0.036, 0.144))
]
STABILITY_SEEDS, RATES = range(50_000, 50_160), (3.0, 4.0, 5.0)
SHOWN = 5  # best settings of the sweep that its page shows
DRAWS, RESAMPLED = 2000, 40  # resamples of the stability table, and seeds in each
NAMES = {"Oracle UCB": "oracle", "ALExp": "alexp", "Naive UCB": "naive"}

RunTasks = Callable[[Sequence[Task]], list[Record]]


class Contender(NamedTuple):
    """One entrant on one class of models: the size of its models, its name in the table, and ALExp's schedules."""

    size: int
    name: str
    schedules: Schedules = Schedules()

    def tasks(self, seeds: Sequence[int]) -> list[Task]:
        """One run per seed."""
        scenario, used = SCENARIOS[self.size], self.schedules
        constants = {"gamma": used.gamma, "eta": used.eta, "lambda": used.lam}
        settings = settings_of("alexp", constants, scenario) if self.name == "ALExp" else {}
        return [Task(scenario, NAMES[self.name], settings, seed, shared_seed=True) for seed in seeds]


class Outcome(NamedTuple):
    """Regret of every seed after the last round, and whether the run was still stuck then."""

    regret: FloatArray
    stuck: BoolArray


def play(contenders: Sequence[Contender], seeds: Sequence[int], run: RunTasks = sweep) -> dict[Contender, Outcome]:
    """Every contender under every seed."""
    records = run([task for contender in contenders for task in contender.tasks(seeds)])
    out = {}
    for i, contender in enumerate(contenders):
        curves = np.array([record.regret for record in records[i * len(seeds) : (i + 1) * len(seeds)]])
        out[contender] = Outcome(curves[:, -1], is_stuck(curves))
    return out


def tuning_table(run: RunTasks = sweep, seeds: Sequence[int] = TUNING_SEEDS) -> pd.DataFrame:
    """Mean, median and worst regret of every setting of the grid on the tuning seeds, all classes together."""
    played = play([Contender(size, "ALExp", choice) for choice in CHOICES for size in SCENARIOS], seeds, run)
    rows = []
    for choice in CHOICES:
        own = [played[Contender(size, "ALExp", choice)] for size in SCENARIOS]
        regret = np.concatenate([outcome.regret for outcome in own])
        rows.append(
            {
                "gamma": choice.gamma,
                "eta": choice.eta,
                "lam": choice.lam,
                "mean": regret.mean(),
                "median": np.median(regret),
                "max": regret.max(),
                "stuck": sum(int(outcome.stuck.sum()) for outcome in own),
                # Equal weight to the three classes, whatever the size of their regret.
                "gmean": np.exp(np.mean([np.log(outcome.regret.mean()) for outcome in own])),
            }
        )
    return pd.DataFrame(rows).sort_values("gmean", ignore_index=True)


def stability_table(run: RunTasks = sweep, seeds: Sequence[int] = STABILITY_SEEDS) -> pd.DataFrame:
    """How often 40 seeds, resampled from the tuning seeds, order the medians as oracle < ALExp < naive, within 4x."""
    choices = {rate: Schedules(eta=rate) for rate in RATES}
    contenders = [Contender(size, "ALExp", choice) for size in SCENARIOS for choice in choices.values()]
    contenders += [Contender(size, name) for size in SCENARIOS for name in ("Oracle UCB", "Naive UCB")]
    played = play(contenders, seeds, run)
    resamples = np.random.default_rng(0).integers(0, len(seeds), (DRAWS, RESAMPLED))
    rows = []
    for (rate, choice), size in product(choices.items(), SCENARIOS):
        mine, stuck = played[Contender(size, "ALExp", choice)]
        oracle, naive = (played[Contender(size, name)].regret for name in ("Oracle UCB", "Naive UCB"))
        a, o, n = (np.median(regret[resamples], axis=1) for regret in (mine, oracle, naive))
        rows.append(
            {
                "eta": rate,
                "s": size,
                "median": np.median(mine),
                "mean": mine.mean(),
                "oracle median": np.median(oracle),
                "naive median": np.median(naive),
                "stuck": int(stuck.sum()),
                "ordered": np.mean((o < a) & (a < n)),
                "within 4x": np.mean(a <= 4.0 * o),
            }
        )
    return pd.DataFrame(rows)


def headline_table(run: RunTasks = sweep, seeds: Sequence[int] = REPORTED_SEEDS) -> pd.DataFrame:
    """Oracle, ALExp and Naive with default settings on the reported seeds."""
    played = play([Contender(size, name) for size in SCENARIOS for name in NAMES], seeds, run)
    return pd.DataFrame(
        [
            {
                "s": contender.size,
                "M": SCENARIOS[contender.size].n_models,
                "algorithm": contender.name,
                "median": np.median(regret),
                "mean": regret.mean(),
                "s.e.": regret.std(ddof=1) / np.sqrt(regret.size),
                "worst": regret.max(),
                "stuck": f"{int(stuck.sum())}/{regret.size}",
            }
            for contender, (regret, stuck) in played.items()
        ]
    )


def markdown(table: pd.DataFrame) -> str:
    """The table as Markdown, numbers to three digits."""
    header = "| " + " | ".join(table.columns) + " |\n|" + "---|" * len(table.columns)
    cells = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in row] for row in table.itertuples(index=False)]
    return header + "\n" + "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n"


# -- pages -------------------------------------------------------------------------------------------------------


def about_tuning(table: pd.DataFrame) -> str:
    """What the sweep says, in the order of its table: the best row, the best without a stuck seed, the defaults."""
    default = Schedules()
    own = table[(table["gamma"] == default.gamma) & (table["eta"] == default.eta) & (table["lam"] == default.lam)]
    sound = table[table["stuck"] == 0]
    return PROSE.line(
        "tuning",
        sound=sound.iloc[0]["eta"] if len(sound) else None,
        default=default,
        rank=own.index[0] + 1 if len(own) else None,
        rows=len(table),
        gmean=own.iloc[0]["gmean"] if len(own) else None,
        stuck=int(own.iloc[0]["stuck"]) if len(own) else None,
        rates=", ".join(f"{rate:g}" for rate in RATES),
    )


def about_stability(table: pd.DataFrame) -> str:
    """Which learning rate orders most reliably, where the order fails, and what larger rates do."""
    least = table.groupby("eta")["ordered"].min()
    best = float(least.index[int(np.argmax(least.to_numpy()))])
    below = bool((table["median"] < table["naive median"]).all())
    stuck = table.groupby("eta")["stuck"].sum()
    return PROSE.line(
        "stability",
        draws=DRAWS,
        resampled=RESAMPLED,
        best=best,
        least=least[best],
        default=Schedules(),
        below="below" if below else "not always below",
        every=", ".join(f"{int(number)} at eta = {rate:g}" for rate, number in stuck.items()),
    )


def about_headline(table: pd.DataFrame) -> str:
    """How ALExp's median lies between the two baselines."""
    medians = {(int(row["s"]), str(row["algorithm"])): float(row["median"]) for _, row in table.iterrows()}
    ratios = [
        f"{medians[size, 'ALExp'] / medians[size, 'Oracle UCB']:.2f} times the oracle's and "
        f"{medians[size, 'ALExp'] / medians[size, 'Naive UCB']:.2f} times the naive baseline's at s = {size}"
        for size in SCENARIOS
    ]
    return PROSE.line("headline", ratios="; ".join(ratios))


def best_and_default(table: pd.DataFrame) -> pd.DataFrame:
    """The first rows of the sweep, and that of the defaults."""
    default = Schedules()
    own = (table["gamma"] == default.gamma) & (table["eta"] == default.eta) & (table["lam"] == default.lam)
    return table[own | (table.index < SHOWN)]


class Page(NamedTuple):
    """One table: name of its files, how it is made, its seeds, its title, what is said above it, the part shown."""

    name: str
    make: Callable[[RunTasks, Sequence[int]], pd.DataFrame]
    seeds: range
    title: str
    about: Callable[[pd.DataFrame], str]
    shown: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table


PAGES = {
    "sweep": Page(
        "tuning", tuning_table, TUNING_SEEDS, "# How the defaults were tuned", about_tuning, best_and_default
    ),
    "stability": Page(
        "stability",
        stability_table,
        STABILITY_SEEDS,
        "# Which learning rate",
        about_stability,
        lambda table: table.drop(columns=["mean", "oracle median", "naive median"]),
    ),
    "headline": Page("headline", headline_table, REPORTED_SEEDS, "# Default settings", about_headline),
}


def shortened(tasks: Sequence[Task], run: RunTasks, rounds: int) -> list[Record]:
    """The same tasks with fewer rounds, through a runner."""
    return run([replace(task, scenario=task.scenario.with_(steps=rounds)) for task in tasks])


def write(
    what: str, folder: Path, run: RunTasks = sweep, n_seeds: int | None = None, stored: bool = False
) -> pd.DataFrame:
    """Make one of the tables, or read it, and write it as CSV and Markdown."""
    page = PAGES[what]
    seeds, path = page.seeds[:n_seeds], folder / f"{page.name}.csv"
    if stored and not path.exists():
        raise SystemExit(f"there is no table {path}; leave out --stored to make it")
    table = pd.read_csv(path) if stored else page.make(run, seeds)
    write_text(path, table.to_csv(index=False, float_format="%.6g"))
    note = PROSE.line(
        "note", first=seeds[0], last=seeds[-1], scenario=SCENARIOS[2], stuck=STUCK, what=what, file=page.name
    )
    parts = [page.title, page.about(table), markdown(page.shown(table)) + "\n" + note + "\n"]
    write_text(folder / f"{page.name}.md", "\n\n".join(parts))
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(PAGES))
    parser.add_argument("--seeds", type=int, help="only the first seeds; all by default")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the page and its table")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    parser.add_argument("--rounds", type=int, help=f"fewer rounds than {STEPS}, for a quick look at the numbers")
    parser.add_argument("--stored", action="store_true", help="write the page from its table, run nothing")
    given = parser.parse_args(arguments)
    run: RunTasks = partial(sweep, workers=given.workers, title=given.what)
    if given.rounds is not None:
        run = partial(shortened, run=run, rounds=given.rounds)
    print(write(given.what, given.out, run, given.seeds, given.stored).to_string(index=False))


if __name__ == "__main__":
    main()
