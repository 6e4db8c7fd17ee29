"""How the default schedules were chosen, and what they achieve on seeds nobody tuned on.

python -m alexp.experiments.paper.defaults sweep       # tuning seeds -> docs/tuning.csv, docs/tuning.md
python -m alexp.experiments.paper.defaults stability   # more tuning seeds, the best learning rates -> docs/stability.*
python -m alexp.experiments.paper.defaults headline    # fresh seeds  -> docs/headline.csv, docs/headline.md
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.algorithms import ALExp, Algorithm, LinUCB
from alexp.decision import Schedules
from alexp.experiments.core.environments import SyntheticEnvironment
from alexp.experiments.core.simulation import simulate
from alexp.problem import Interval, ModelClass

if TYPE_CHECKING:
    import pandas as pd

SIZES = (2, 3, 9)  # the paper's easy, large and hard classes, all with p = 10
STEPS, RESOLUTION, NOISE = 100, 2000, 0.01
TUNING_SEEDS, REPORTED_SEEDS = range(50_000, 50_020), range(80_000, 80_040)
GRID = {"gamma": (0.001, 0.003, 0.01, 0.1), "eta": (1.0, 3.0, 5.0, 7.0, 10.0), "lam": (0.009, 0.036, 0.144)}
STABILITY_SEEDS, RATES = range(50_000, 50_160), (3.0, 4.0, 5.0)
LOCKED = 0.1  # mean regret per round over the last quarter above which a run counts as stuck


def play(size: int, seed: int, name: str, schedules: Schedules) -> dict[str, Any]:
    """One run of "ALExp", "Oracle UCB" or "Naive UCB" on Legendre subsets of the given size."""
    models, domain = ModelClass.legendre(degree=10, size=size), Interval(-1.0, 1.0, RESOLUTION)
    environment = SyntheticEnvironment(models, domain, noise_std=NOISE, random_state=seed)
    shared: dict[str, Any] = {"noise_std": NOISE, "random_state": seed}
    algorithm: Algorithm
    if name == "ALExp":
        algorithm = ALExp(models, domain, schedules=schedules, **shared)
    else:
        model = environment.true_model if name == "Oracle UCB" else None
        algorithm = LinUCB(models, domain, model=model, **shared)
    regret = simulate(algorithm, environment, STEPS, record_probabilities=False).regret
    late = STEPS - STEPS // 4
    stuck = (regret[-1] - regret[late - 1]) / (STEPS - late) > LOCKED
    constants = {"gamma": schedules.gamma, "eta": schedules.eta, "lam": schedules.lam}
    return {"s": size, "seed": seed, "algorithm": name, "regret": regret[-1], "locked": stuck, **constants}


def _play(task: tuple[int, int, str, Schedules]) -> dict[str, Any]:
    return play(*task)


def _all(tasks: list[tuple[int, int, str, Schedules]]) -> pd.DataFrame:
    import pandas as pd
    from rich.progress import track

    with ProcessPoolExecutor() as pool:
        rows = list(track(pool.map(_play, tasks, chunksize=20), total=len(tasks), description="runs"))
    return pd.DataFrame(rows)


def sweep() -> pd.DataFrame:
    """Mean, median and worst regret of every setting of the grid on the tuning seeds."""
    settings = [Schedules(**dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())]
    runs = _all([(s, seed, "ALExp", choice) for choice in settings for s in SIZES for seed in TUNING_SEEDS])
    table = runs.groupby(["gamma", "eta", "lam"])["regret"].agg(["mean", "median", "max"])
    table["locked"] = runs.groupby(["gamma", "eta", "lam"])["locked"].sum()
    # Equal weight to the three classes, whatever the size of their regret.
    means = runs.groupby(["gamma", "eta", "lam", "s"])["regret"].mean().unstack()
    table["gmean"] = np.exp(np.log(means).mean(axis=1))
    return table.sort_values("gmean").reset_index()


def stability() -> pd.DataFrame:
    """How often 40 seeds, resampled from the tuning seeds, order the medians as oracle < ALExp < naive, within 4x."""
    contenders = [("ALExp", Schedules(eta=rate)) for rate in RATES]
    baselines = [("Oracle UCB", Schedules()), ("Naive UCB", Schedules())]
    tasks = [(s, seed, *who) for s in SIZES for who in contenders + baselines for seed in STABILITY_SEEDS]
    runs = _all(tasks).pivot_table(index="seed", columns=["s", "algorithm", "eta"], values=["regret", "locked"])
    rng, rows = np.random.default_rng(0), []
    resamples = rng.integers(0, len(STABILITY_SEEDS), (2000, 40))
    for rate, s in product(RATES, SIZES):
        mine = runs["regret"][s]["ALExp"][rate].to_numpy()
        oracle, naive = (runs["regret"][s][name].iloc[:, 0].to_numpy() for name, _ in baselines)
        a, o, n = (np.median(regret[resamples], axis=1) for regret in (mine, oracle, naive))
        rows.append(
            {
                "eta": rate,
                "s": s,
                "median": np.median(mine),
                "mean": mine.mean(),
                "oracle median": np.median(oracle),
                "naive median": np.median(naive),
                "locked": int(runs["locked"][s]["ALExp"][rate].sum()),
                "ordered": np.mean((o < a) & (a < n)),
                "within 4x": np.mean(a <= 4.0 * o),
            }
        )
    import pandas as pd

    return pd.DataFrame(rows)


def headline() -> pd.DataFrame:
    """Oracle, ALExp and Naive with default settings on the reported seeds."""
    names = ("Oracle UCB", "ALExp", "Naive UCB")
    runs = _all([(s, seed, name, Schedules()) for s in SIZES for name in names for seed in REPORTED_SEEDS])
    rows = []
    for s, name in product(SIZES, names):
        regret = runs[(runs["s"] == s) & (runs["algorithm"] == name)]["regret"].to_numpy()
        locked = int(runs[(runs["s"] == s) & (runs["algorithm"] == name)]["locked"].sum())
        rows.append(
            {
                "s": s,
                "M": ModelClass.legendre(10, s).n_models,
                "algorithm": name,
                "median": np.median(regret),
                "mean": regret.mean(),
                "s.e.": regret.std(ddof=1) / np.sqrt(regret.size),
                "worst": regret.max(),
                "locked": f"{locked}/{regret.size}",
            }
        )
    import pandas as pd

    return pd.DataFrame(rows)


def markdown(table: pd.DataFrame) -> str:
    """The table as Markdown, numbers to three digits."""
    header = "| " + " | ".join(table.columns) + " |\n|" + "---|" * len(table.columns)
    cells = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in row] for row in table.itertuples(index=False)]
    return header + "\n" + "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n"


_REPORTS = {
    "sweep": (
        "tuning",
        "# Sweep behind the default schedules\n\nSeeds 50000-50019",
        "The learning rates with the least geometric mean (gmean) of the three classes' mean regret and few locked\n"
        "seeds, 3 to 5, went into a second stage, [stability.md](stability.md), with lam = 0.009 and gamma = 0.003.\n",
    ),
    "stability": (
        "stability",
        "# Second stage: which learning rate orders reliably\n\nSeeds 50000-50159",
        "The first stage alone would have chosen eta = 5 (least gmean without a locked seed). A look at seeds 0-39\n"
        "with it showed ALExp next to the oracle at s = 9; that prompted this stage and its criterion, a reliable\n"
        "order.\n"
        "Chosen: eta = 3. At every rate ALExp's median is below the naive baseline's; larger rates lower it\n"
        "but at s = 9 overtake the oracle on some draws of 40 seeds (it explores nine directions at beta = 2), and\n"
        "lock on slightly more seeds. `ordered` and `within 4x` are frequencies over 2000 resamples of 40 seeds.\n",
    ),
    "headline": (
        "headline",
        "# Default settings on fresh seeds\n\nSeeds 80000-80039",
        "These seeds were first run when the defaults were settled. Seeds 0-39, the first choice for this table, had\n"
        "been looked at for three settings while the learning rate was being chosen, and are not reported for that.\n",
    ),
}


def main(what: str, folder: Path = Path("docs")) -> None:
    """Write one of the tables as CSV and Markdown."""
    name, title, comment = _REPORTS[what]
    result = {"sweep": sweep, "stability": stability, "headline": headline}[what]()
    result.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    note = f"{title}, Legendre p = 10, n = {STEPS}, noise {NOISE}, N = {RESOLUTION}; locked: more than {LOCKED}\n"
    note += f"regret per round over the last quarter. Made by `python -m alexp.experiments.paper.defaults {what}`.\n\n"
    (folder / f"{name}.md").write_text(note + (f"{comment}\n" if comment else "") + markdown(result))
    print(result.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1])
