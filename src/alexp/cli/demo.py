"""The demonstration: ALExp and EvidenceMixture beside Oracle UCB and uniform play on the paper's M = 165 problem."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alexp.algorithms import ALExp, Algorithm, EvidenceMixture
from alexp.algorithms.assumptions import quietly
from alexp.common.files import write_text
from alexp.common.style import COLOURS, DASHES, legend_below, method_colour, new_figure, save_figure
from alexp.problem import Interval, ModelClass
from alexp.rivals import LinUCB, UniformRandom
from alexp.simulation import Run, SyntheticEnvironment, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

# How the figure names every algorithm, and its colour.
SHOWN = {
    "uniform play": ("chooses at random", "uniform"),
    "ALExp": ("ALExp, 165 models", "alexp"),
    "EvidenceMixture": ("EvidenceMixture, 165 models", "evidence-mixture"),
    "Oracle UCB": ("is given the true model", "oracle"),
}


@dataclass(frozen=True)
class Demo:
    """One environment and the runs of several algorithms on it."""

    environment: SyntheticEnvironment
    algorithms: dict[str, Algorithm]
    runs: dict[str, Run]


def run_demo(steps: int = 100, seed: int = 8) -> Demo:
    """Play 100 rounds on Legendre subsets s = 3, p = 10 with noise 0.01, with progress bars."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    models, domain = ModelClass.legendre(degree=10, size=3), Interval(-1.0, 1.0, resolution=2000)
    environment = SyntheticEnvironment(models, domain, noise_std=0.01, random_state=seed)
    algorithms: dict[str, Algorithm] = {
        "ALExp": ALExp(models, domain, noise_std=0.01, random_state=seed),
        "EvidenceMixture": EvidenceMixture(models, domain, random_state=seed),
        "Oracle UCB": LinUCB(models, domain, model=environment.true_model, noise_std=0.01, random_state=seed),
        "uniform play": UniformRandom(models, domain, noise_std=0.01, random_state=seed),
    }
    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    runs = {}
    with Progress(*columns) as bars:
        for name, algorithm in algorithms.items():
            task = bars.add_task(name, total=steps)
            fresh = SyntheticEnvironment(models, domain, noise_std=0.01, random_state=seed)
            with quietly():  # the paper's settings: no bound is stated
                runs[name] = simulate(
                    algorithm,
                    fresh,
                    steps,
                    progress=lambda done, task=task: bars.update(task, completed=done),  # type: ignore[misc]
                )
    return Demo(environment, algorithms, runs)


def demo_rows(demo: Demo) -> list[dict[str, str]]:
    """Regret, chosen model, true model and time per step of every algorithm."""
    names, rows = demo.environment.models.names, []
    for name, run in demo.runs.items():
        best = demo.algorithms[name].best()
        rows.append(
            {
                "algorithm": name,
                "regret": f"{run.regret[-1]:.2f}",
                "chosen model": "-" if best.model is None else names[best.model],
                "true model": names[demo.environment.true_model],
                "best x": f"{best.x:+.3f}",
                "ms per step": f"{1e3 * float(np.median(run.step_seconds)):.2f}",
            }
        )
    return rows


def demo_table(demo: Demo) -> Table:
    """The rows for a terminal."""
    from rich.table import Table

    table = Table(title=f"{len(next(iter(demo.runs.values())).trials)} rounds, M = {demo.environment.models.n_models}")
    rows = demo_rows(demo)
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "algorithm" else "right")
    for row in rows:
        table.add_row(*row.values())
    return table


def demo_words(demo: Demo, path: Path) -> str:
    """What the table shows, and what to do next."""
    lost = {name: f"{run.regret[-1]:.1f}" for name, run in demo.runs.items()}
    n, m = len(demo.runs["ALExp"].trials), demo.environment.models.n_models
    return (
        f"What happened: a reward function on [-1, 1] was hidden. In each of {n} rounds an algorithm chose x and saw a "
        f"noisy reward. {m} models describe the function, and one of them is true.\n"
        "Regret is the reward lost by not choosing the best x in every round; 0 is perfect.\n"
        f"  {lost['uniform play']:>5}  uniform play: chooses at random\n"
        f"  {lost['ALExp']:>5}  ALExp, of the paper: finds the true model while it chooses\n"
        f"  {lost['EvidenceMixture']:>5}  EvidenceMixture: likewise, and is not given the noise level\n"
        f"  {lost['Oracle UCB']:>5}  Oracle UCB: is given the true model, which is unknown in practice\n"
        f"The figure {path} shows where ALExp looked, what each algorithm lost, and which models ALExp followed.\n"
        "Next: docs/what-to-use.md, for your own problem. With a spreadsheet:\n"
        "  alexp study create my-study --candidates FILE --preview"
    )


def store_demo(demo: Demo, path: Path) -> None:
    """The rows as CSV."""
    rows = demo_rows(demo)
    write_text(path, "".join(",".join(line) + "\n" for line in ([*rows[0]], *([*row.values()] for row in rows))))


def demo_figure(demo: Demo, path: Path) -> None:
    """The reward function with the points ALExp chose; what every algorithm lost; which models ALExp followed."""
    figure, axes = new_figure(1, 3, width=4.6, height=3.8)
    reward_ax, regret_ax, q_ax = axes[0]
    _draw_reward(reward_ax, demo)
    for dash, (name, (label, colour)) in zip(DASHES, SHOWN.items(), strict=False):
        regret = demo.runs[name].regret
        regret_ax.plot(np.arange(1, regret.size + 1), regret, color=method_colour(colour), ls=dash, label=label)
        regret_ax.annotate(f"{regret[-1]:.1f}", (regret.size, regret[-1]), (3, -3), textcoords="offset points")
    _logarithmic(regret_ax)
    regret_ax.set(xlabel="round", ylabel="reward lost so far (regret)", title="2. What each algorithm lost")
    legend_below(regret_ax)
    _draw_probabilities(q_ax, demo)
    save_figure(figure, path)


def _logarithmic(ax: Axes) -> None:
    """A logarithmic axis whose 1, 2 and 5 of every decade are written out, so that values can be read off."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(visible=True, axis="y", lw=0.4, alpha=0.5)


def _draw_probabilities(ax: Axes, demo: Demo) -> None:
    q = demo.runs["ALExp"].probabilities
    assert q is not None
    truth, names = demo.environment.true_model, demo.environment.models.names
    leaders = [int(j) for j in np.argsort(q[-1])[::-1][:5]]
    for i, j in enumerate(leaders if truth in leaders else [*leaders, truth]):
        is_true = j == truth
        style = {"color": COLOURS[i], "ls": DASHES[i], "lw": 2.5 if is_true else 1.5}
        ax.plot(np.arange(1, len(q) + 1), q[:, j], label=f"{names[j]}{' (true)' if is_true else ''}", **style)
    ax.set(xlabel="round", ylabel="probability of following", title="3. Which models ALExp followed")
    legend_below(ax, 3)


def _draw_reward(ax: Axes, demo: Demo) -> None:
    x, run = demo.environment.domain.points, demo.runs["ALExp"]
    played = np.array([trial.x for trial in run.trials])
    ax.plot(x, demo.environment.rewards, color="black", lw=1.2, label="hidden reward function")
    marks = ax.scatter(played, run.rewards, c=np.arange(1, played.size + 1), cmap="viridis", s=18, zorder=3)
    ax.figure.colorbar(marks, ax=ax, label="round")
    best = demo.algorithms["ALExp"].best()
    ax.axvline(best.x, color=COLOURS[1], ls="--", lw=1.0, label="recommended at the end")
    ax.set(xlabel="x", ylabel="reward", title="1. Where ALExp looked")
    legend_below(ax)
