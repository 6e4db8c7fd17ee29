"""Figures on dynamics, reward functions and hyper-parameters (4, 5 and 7), with the numbers they are drawn from."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from alexp.common.style import COLOURS, DASHES, new_figure
from alexp.experiments.core.statistics import mean_and_error
from alexp.experiments.core.tasks import SNAPSHOT_ROUND, run_seeds
from alexp.experiments.paper.figures import Drawn
from alexp.experiments.paper.methods import METHODS
from alexp.experiments.paper.results import Results
from alexp.experiments.paper.tuning import LAMBDA_SCENARIOS

SHORT = {"easy": "easy (M = 55)", "hard-printed": "s = 8 (M = 165)", "hard-meant": "s = 9 (M = 55)"}
SHORT |= {"large": "large (M = 165)"}


def figure_4(results: Results) -> Drawn:
    """(a) q_t at t = 20 of one run, the true model starred; (b) models visited; (c) q_t of the true model."""
    figure, (axes,) = new_figure(1, 3, width=4.2, height=3.2)
    tables = [_draw_snapshot(axes[0], results), _draw_visited(axes[1], results), _draw_true(axes[2], results)]
    return figure, pd.concat(tables, ignore_index=True)


def typical_seed(results: Results) -> int:
    """Position of the seed whose regret is the median one: neither the luckiest nor a locked-in run."""
    final = results.final("large", "alexp")
    return int(np.argsort(final)[(final.size - 1) // 2])


def _draw_snapshot(ax: Axes, results: Results) -> pd.DataFrame:
    position = typical_seed(results)
    record = results.runs["large", "alexp"][position]
    q, models = record.snapshot.astype(np.float64), np.arange(record.snapshot.size)
    ax.bar(models, q, width=1.0, color=COLOURS[0])
    ax.plot(record.true_model, q[record.true_model] + 0.03 * q.max(), marker="*", ms=13, color=COLOURS[1], ls="none",
            label="true model")  # fmt: skip
    ax.axhline(1.0 / q.size, color="black", lw=0.8, ls=":", label="uniform")
    ax.set(xlabel="model j", ylabel=f"$q_{{t,j}}$ at t = {SNAPSHOT_ROUND}", title="(a) distribution over models")
    ax.legend(frameon=False, fontsize=8)
    seed = results.scope.seeds[position]
    return pd.DataFrame({"panel": "a", "what": f"q of seed {seed}", "x": models, "mean": q, "error": 0.0})


def _draw_visited(ax: Axes, results: Results) -> pd.DataFrame:
    tables = []
    for method in ("alexp", "corral"):
        look = METHODS[method]
        mean, error = mean_and_error(np.array([r.visited for r in results.runs["large", method]], dtype=np.float64))
        rounds = np.arange(1, mean.size + 1)
        ax.plot(rounds, mean, color=look.colour, ls=look.dashes, label=look.label)
        ax.fill_between(rounds, mean - error, mean + error, color=look.colour, alpha=0.18, lw=0)
        tables.append(pd.DataFrame({"panel": "b", "what": method, "x": rounds, "mean": mean, "error": error}))
    n_models = results.scope.scenario("large").n_models
    ax.axhline(0.1 * n_models, color="black", lw=0.8, ls=":", label="10% of all models")
    ax.axvline(SNAPSHOT_ROUND, color="black", lw=0.8, ls="--")
    ax.set(xlabel="round t", ylabel="models visited $M_t$", title="(b) models that have played")
    ax.legend(frameon=False, fontsize=8)
    return pd.concat(tables)


def _draw_true(ax: Axes, results: Results) -> pd.DataFrame:
    curves = np.array([record.q_true for record in results.runs["large", "alexp"]], dtype=np.float64)
    mean, error = mean_and_error(curves)
    rounds = np.arange(1, mean.size + 1)
    for i, curve in enumerate(curves):
        ax.plot(rounds, curve, color="0.75", lw=0.6, label="single runs" if i == 0 else None)
    ax.plot(rounds, mean, color=COLOURS[0], lw=2.0, label="mean")
    ax.fill_between(rounds, mean - error, mean + error, color=COLOURS[0], alpha=0.25, lw=0)
    ax.axhline(0.25, color="black", lw=0.8, ls=":", label="0.25")
    top = max(0.32, 1.1 * float(curves.max()))  # room for the legend above the line at 0.25
    ax.set(xlabel="round t", ylabel="$q_{t,j^*}$", title="(c) probability of the true model", ylim=(0.0, top))
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncol=3)
    return pd.DataFrame({"panel": "c", "what": "q of the true model", "x": rounds, "mean": mean, "error": error})


def figure_5(results: Results) -> Drawn:
    """Rewards of the first four seeds of the easy, the large and the hard problem."""
    names = ("easy", "large", "hard-meant")
    figure, (axes,) = new_figure(1, 3, width=3.8, height=3.0)
    tables = []
    for ax, name in zip(axes, names, strict=True):
        for i, seed in enumerate(results.scope.seeds[:4]):
            environment = results.scope.scenario(name).environment(run_seeds(seed)[0])
            x, label = environment.domain.points, environment.models.names[environment.true_model]
            ax.plot(x, environment.rewards, color=COLOURS[i], ls=DASHES[i], lw=1.5, label=label)
            thin = slice(None, None, 20)
            tables.append(pd.DataFrame({"scenario": name, "seed": seed, "x": x[thin].round(4),
                                        "reward": environment.rewards[thin].round(5)}))  # fmt: skip
        ax.set(xlabel="x", title=SHORT[name])
        if name != "hard-meant":
            ax.legend(frameon=False, fontsize=7)
    axes[0].set_ylabel("reward r(x)")
    return figure, pd.concat(tables, ignore_index=True)


def figure_7(results: Results) -> Drawn:
    """Mean regret on the tuning seeds for every hyper-parameter that was tried."""
    figure, axes = new_figure(2, 3, width=4.0, height=3.2)
    panels = [
        ("alexp", "lambda", r"ALExp: $\lambda_0$", "log"),
        ("alexp", "eta", r"ALExp: $\eta_0$", "log"),
        ("alexp", "gamma", r"ALExp: $\gamma_0$", "log"),
        ("etc", "n0", "ETC: exploration $n_0$", "linear"),
        ("ets", "n0", "ETS: exploration $n_0$", "linear"),
        ("corral", "eta", r"Corral (shared data): $\eta_0$", "log"),
    ]
    for ax, (method, parameter, title, scale) in zip(axes.ravel(), panels, strict=True):
        _draw_tuning(ax, results, method, parameter)
        ax.set(title=title, xscale=scale, ylim=(0.0, None))
        if parameter == "eta":
            ax.set_xlim(0.9, 110.0)  # whole decades, so that the ticks stay apart
    for ax in axes[:, 0]:
        ax.set_ylabel("mean regret after n rounds")
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=4, frameon=False, fontsize=9)
    return figure, tuning_table(results)


def _draw_tuning(ax: Axes, results: Results, method: str, parameter: str) -> None:
    names = [name for name in SHORT if name in results.scope.grid.scenarios]
    for i, name in enumerate(names):
        attempts = [attempt for attempt in results.tried(method, parameter) if attempt.scenario == name]
        if parameter == "lambda" and name not in LAMBDA_SCENARIOS:
            continue
        attempts.sort(key=lambda attempt: attempt.values[parameter])
        ax.errorbar(
            [attempt.values[parameter] for attempt in attempts],
            [attempt.regret.mean for attempt in attempts],
            yerr=np.nan_to_num([attempt.regret.error for attempt in attempts]),
            color=COLOURS[i], ls=DASHES[i] if parameter in ("lambda", "n0") else "none", marker="osD^"[i], ms=4,
            lw=1.3, elinewidth=0.8, label=SHORT[name],
        )  # fmt: skip


def tuning_table(results: Results) -> pd.DataFrame:
    """One row per setting that was tried."""
    return pd.DataFrame(
        [
            {"scenario": t.scenario, "method": t.method, **t.values, "mean": t.regret.mean, "error": t.regret.error}
            for t in results.attempts
        ]
    ).round(6)
