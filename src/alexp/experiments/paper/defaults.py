"""Default schedules: the sweep they were chosen from, and what they achieve on seeds nobody tuned on.

python -m alexp.experiments.paper.defaults sweep       # tuning seeds -> docs/tuning.csv, docs/tuning.md
python -m alexp.experiments.paper.defaults stability   # more tuning seeds, the best learning rates -> docs/stability.*
python -m alexp.experiments.paper.defaults headline    # fresh seeds  -> docs/headline.csv, docs/headline.md

Runs go through the runner of all experiments: finished ones are kept, and Ctrl-C loses nothing. Environment and
algorithm share a seed (`Task.shared_seed`), as they did when these tables were first made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from alexp.common.arrays import BoolArray, FloatArray
from alexp.common.files import write_text
from alexp.decision import Schedules
from alexp.experiments.core.runner import sweep
from alexp.experiments.core.scenarios import Scenario
from alexp.experiments.core.statistics import LOCKED, locked
from alexp.experiments.core.tasks import Record, Task
from alexp.experiments.paper.methods import settings_of

SCENARIOS = {size: Scenario(size=size) for size in (2, 3, 9)}  # the paper's easy, large and hard classes, p = 10
STEPS, RESOLUTION, NOISE = Scenario.steps, Scenario.resolution, Scenario.noise_std
TUNING_SEEDS, REPORTED_SEEDS = range(50_000, 50_020), range(80_000, 80_040)
CHOICES = [
    Schedules(gamma=gamma, eta=eta, lam=lam)
    for gamma, eta, lam in product((0.001, 0.003, 0.01, 0.1), (1.0, 3.0, 5.0, 7.0, 10.0), (0.009, 0.036, 0.144))
]
STABILITY_SEEDS, RATES = range(50_000, 50_160), (3.0, 4.0, 5.0)
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
    locked: BoolArray


def play(contenders: Sequence[Contender], seeds: Sequence[int], run: RunTasks = sweep) -> dict[Contender, Outcome]:
    """Every contender under every seed."""
    records = run([task for contender in contenders for task in contender.tasks(seeds)])
    out = {}
    for i, contender in enumerate(contenders):
        curves = np.array([record.regret for record in records[i * len(seeds) : (i + 1) * len(seeds)]])
        out[contender] = Outcome(curves[:, -1], locked(curves))
    return out


def tuning_table(run: RunTasks = sweep) -> pd.DataFrame:
    """Mean, median and worst regret of every setting of the grid on the tuning seeds, all classes together."""
    played = play([Contender(size, "ALExp", choice) for choice in CHOICES for size in SCENARIOS], TUNING_SEEDS, run)
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
                "locked": sum(int(outcome.locked.sum()) for outcome in own),
                # Equal weight to the three classes, whatever the size of their regret.
                "gmean": np.exp(np.mean([np.log(outcome.regret.mean()) for outcome in own])),
            }
        )
    return pd.DataFrame(rows).sort_values("gmean", ignore_index=True)


def stability_table(run: RunTasks = sweep) -> pd.DataFrame:
    """How often 40 seeds, resampled from the tuning seeds, order the medians as oracle < ALExp < naive, within 4x."""
    choices = {rate: Schedules(eta=rate) for rate in RATES}
    contenders = [Contender(size, "ALExp", choice) for size in SCENARIOS for choice in choices.values()]
    contenders += [Contender(size, name) for size in SCENARIOS for name in ("Oracle UCB", "Naive UCB")]
    played = play(contenders, STABILITY_SEEDS, run)
    resamples = np.random.default_rng(0).integers(0, len(STABILITY_SEEDS), (2000, 40))
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
                "locked": int(stuck.sum()),
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
                "locked": f"{int(stuck.sum())}/{regret.size}",
            }
            for contender, (regret, stuck) in played.items()
        ]
    )


def markdown(table: pd.DataFrame) -> str:
    """The table as Markdown, numbers to three digits."""
    header = "| " + " | ".join(table.columns) + " |\n|" + "---|" * len(table.columns)
    cells = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in row] for row in table.itertuples(index=False)]
    return header + "\n" + "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n"


class Page(NamedTuple):
    """One table: the name of its files, how it is made, what is written above it."""

    name: str
    make: Callable[[], pd.DataFrame]
    title: str
    comment: str


PAGES = {
    "sweep": Page(
        "tuning",
        tuning_table,
        "# Sweep behind the default schedules\n\nSeeds 50000-50019",
        "Sorted by the geometric mean (gmean) of the three classes' mean regret. Learning rates of 3 to 5, whose\n"
        "worst seeds are mild, went into a second stage, [stability.md](stability.md), with lam = 0.009 and gamma =\n"
        "0.003. Defaults were chosen on the first Lasso solver; this is the sweep of the present one, which singles\n"
        "out one minimiser. The rules of both stages lead to the same choice.\n",
    ),
    "stability": Page(
        "stability",
        stability_table,
        "# Second stage: which learning rate orders reliably\n\nSeeds 50000-50159",
        "The first stage alone would have chosen eta = 5 (least gmean without a locked seed). A look at seeds 0-39\n"
        "with it showed ALExp next to the oracle at s = 9; that prompted this stage and its criterion, a reliable\n"
        "order.\n"
        "Chosen: eta = 3. At every rate ALExp's median is below the naive baseline's; larger rates lower it\n"
        "but at s = 9 overtake the oracle on some draws of 40 seeds (it explores nine directions at beta = 2), and\n"
        "lock on slightly more seeds. `ordered` and `within 4x` are frequencies over 2000 resamples of 40 seeds.\n",
    ),
    "headline": Page(
        "headline",
        headline_table,
        "# Default settings on fresh seeds\n\nSeeds 80000-80039",
        "These seeds were first run when the defaults were settled. Seeds 0-39, the first choice for this table, had\n"
        "been looked at for three settings while the learning rate was being chosen, and are not reported for that.\n",
    ),
}


def main(what: str, folder: Path = Path("docs")) -> None:
    """Write one of the tables as CSV and Markdown."""
    page = PAGES[what]
    table = page.make()
    write_text(folder / f"{page.name}.csv", table.to_csv(index=False, float_format="%.6g"))
    note = f"{page.title}, Legendre p = 10, n = {STEPS}, noise {NOISE}, N = {RESOLUTION}; locked: more than {LOCKED}\n"
    note += f"regret per round over the last quarter. Made by `python -m alexp.experiments.paper.defaults {what}`.\n\n"
    write_text(folder / f"{page.name}.md", f"{note}{page.comment}\n{markdown(table)}")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1])
