"""The figures of the paper, each with the numbers it is drawn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from alexp.common.arrays import AnyArray, FloatArray
from alexp.common.style import COLOURS, DASHES, legend_below, new_figure
from alexp.simulation import ModelEnvironment
from alexp_experiments.core.scenarios import SCALING_DEGREES
from alexp_experiments.core.statistics import mean_and_error
from alexp_experiments.core.tasks import SNAPSHOT_ROUND, run_seeds
from alexp_experiments.paper.claims import true_rank
from alexp_experiments.paper.results import Results
from alexp_experiments.paper.tuning import LONGER, MAIN_SCENARIOS, METHODS, MIXTURES

TITLES = {
    "easy": "Easy: s = 2, p = 10, M = 55",
    "hard-printed": "Hard as printed: s = 8, p = 10, M = 165",
    "hard-meant": "Hard as meant: s = 9, p = 10, M = 55",
    "large": "Large class: s = 3, p = 10, M = 165",
}

FLOOR = 0.5  # regret below this is not worth a decade of a logarithmic axis

Drawn = tuple[Figure, pd.DataFrame]


def figure_1(results: Results) -> Drawn:
    """Easy and hard problems; Figure 6 shows whole the curves that leave a panel."""
    return _regret_panels(results, MAIN_SCENARIOS[:3], results.scope.methods)


def figure_2(results: Results) -> Drawn:
    """The large class."""
    return _regret_panels(results, ("large",), results.scope.methods)


def figure_6(results: Results) -> Drawn:
    """All problems and all variants in full, on a logarithmic scale."""
    methods = [name for name in METHODS if ("large", name) in results.runs]
    return _regret_panels(results, MAIN_SCENARIOS, methods, full=True)


def _regret_panels(results: Results, scenarios: Sequence[str], methods: Sequence[str], full: bool = False) -> Drawn:
    columns = 2 if full else len(scenarios)
    rows = len(scenarios) // columns
    figure, axes = new_figure(rows, columns, width=4.4, height=3.6)
    tables = []
    for ax, name in zip(axes.ravel(), scenarios, strict=True):
        tops = []
        for method in methods:
            mean, error = mean_and_error(results.curves(name, method))
            _draw_curve(ax, method, mean, error, floor=FLOOR if full else None)
            tables.append(_table(name, method, mean, error))
            if method != "corral":
                tops.append((mean + error)[-1])
        ax.set(xlabel="round t", ylabel="cumulative regret", title=TITLES[name], xlim=(1, mean.size))
        if full:
            ax.set(yscale="log", ylim=(FLOOR, None))
        else:
            ax.set_ylim(0.0, 1.15 * max(tops))  # Corral may leave the panel, as in the paper
    legend_under(figure, axes, columns=_legend_columns(len(methods), columns))
    return figure, pd.concat(tables, ignore_index=True)


def figure_8(results: Results) -> Drawn:
    """Longer runs on the four problems, of the methods whose constants do not depend on the number of rounds."""
    figure, (axes,) = new_figure(1, len(MAIN_SCENARIOS), width=3.6, height=3.2)
    tables = []
    for ax, name in zip(axes, MAIN_SCENARIOS, strict=True):
        for method in results.scope.anytime:
            mean, error = mean_and_error(results.curves(f"{name}{LONGER}", method))
            _draw_curve(ax, method, mean, error)
            tables.append(_table(f"{name}{LONGER}", method, mean, error)[::4])
        ax.axvline(results.scope.scenario(name).steps, color="0.6", lw=0.8, ls=":")
        ax.set(xlabel="round t", title=SHORT[name], ylim=(0.0, None), xlim=(1, mean.size))
    axes[0].set_ylabel("cumulative regret")
    legend_under(figure, axes[None], columns=len(results.scope.anytime))
    return figure, pd.concat(tables, ignore_index=True)


def _legend_columns(n_methods: int, panels: int) -> int:
    """As many columns as fit below the panels, in rows that are about full."""
    most = 2 * panels if n_methods <= 6 else (4 * panels + 2) // 3
    rows = -(-n_methods // most)
    return -(-n_methods // rows)


def _draw_curve(ax: Axes, method: str, mean: FloatArray, error: FloatArray, floor: float | None = None) -> None:
    look, rounds = METHODS[method], np.arange(1, mean.size + 1)
    low = mean - error if floor is None else np.maximum(mean - error, floor)
    ax.plot(rounds, mean, color=look.colour, ls=look.dashes, lw=1.8, label=look.label)
    ax.fill_between(rounds, low, mean + error, color=look.colour, alpha=0.18 if floor is None else 0.1, lw=0)


def _table(scenario: str, method: str, mean: FloatArray, error: FloatArray) -> pd.DataFrame:
    rounds = np.arange(1, mean.size + 1)
    return pd.DataFrame(
        {"scenario": scenario, "method": method, "t": rounds, "mean": mean.round(5), "error": error.round(5)}
    )


def legend_under(figure: Figure, axes: AnyArray, columns: int) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.ravel()[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=columns, frameon=False, fontsize=9)


def figure_3(results: Results) -> Drawn:
    """Regret curves of each method as M grows from 45 to 91, and regret after 100 rounds for larger M."""
    names, methods = list(results.sizes)[: len(SCALING_DEGREES)], results.scope.methods
    figure, axes = new_figure(2, len(methods) // 2 + 1, width=3.6, height=3.0)
    tables = []
    for ax, method in zip(axes.ravel(), methods, strict=False):
        for i, name in enumerate(names):
            mean, error = mean_and_error(results.curves(name, method))
            rounds = np.arange(1, mean.size + 1)
            ax.plot(rounds, mean, color=COLOURS[i], ls=DASHES[i], lw=1.6, label=f"M = {results.sizes[name]}")
            ax.fill_between(rounds, mean - error, mean + error, color=COLOURS[i], alpha=0.15, lw=0)
            tables.append(_table(name, method, mean, error))
        ax.set(title=METHODS[method].label, xlabel="round t", ylim=(0.0, None))
    for ax in axes[:, 0]:
        ax.set_ylabel("cumulative regret")
    far, key = axes.ravel()[len(methods) :]
    key.axis("off")
    tables.append(_draw_scaling(far, results))
    handles, labels = far.get_legend_handles_labels()
    key.legend(handles, labels, frameon=False, loc="center left", fontsize=9, title="all methods, larger M")
    legend_under(figure, axes, columns=len(names))
    return figure, pd.concat(tables, ignore_index=True)


def _draw_scaling(ax: Axes, results: Results) -> pd.DataFrame:
    names, sizes = list(results.sizes), list(results.sizes.values())
    tables = []
    for method in results.scope.methods:
        look, final = METHODS[method], [results.final(name, method)[:, None] for name in names]
        mean, error = (np.array(part).ravel() for part in zip(*(mean_and_error(f) for f in final), strict=True))
        ax.errorbar(
            sizes, mean, yerr=error, color=look.colour, ls=look.dashes, marker="o", ms=3, lw=1.4, label=look.label
        )
        tables.append(pd.DataFrame({"scenario": names, "method": method, "t": "final", "mean": mean, "error": error}))
    ax.set(title="All methods, larger M", xlabel="number of models M", xscale="log", yscale="log")
    return pd.concat(tables, ignore_index=True)


SHORT = {"easy": "easy (M = 55)", "hard-printed": "s = 8 (M = 165)", "hard-meant": "s = 9 (M = 55)"}
SHORT |= {"large": "large (M = 165)"}


def figure_4(results: Results) -> Drawn:
    """(a) q_t at t = 20 of one run, models sorted by it; (b) models visited; (c) q_t of the true model.

    Beyond the paper (b) is q_t of the mixture in the same run, since a mixture follows no single model.
    """
    figure, (axes,) = new_figure(1, 3, width=4.2, height=3.5)
    tables = [_draw_snapshot(axes[0], results, "alexp", "(a)")]
    if results.scope.beyond:
        tables += [_draw_snapshot(axes[1], results, "mixture", "(b)"), _draw_both(axes[2], results)]
    else:
        tables += [_draw_visited(axes[1], results), _draw_true(axes[2], results)]
    return figure, pd.concat(tables, ignore_index=True)


def _draw_snapshot(ax: Axes, results: Results, method: str, panel: str) -> pd.DataFrame:
    position, look = results.typical, METHODS[method]
    record = results.runs["large", method][position]
    q, models = record.snapshot.astype(np.float64), np.arange(record.snapshot.size)
    order = np.argsort(-q, kind="stable")
    place = int(np.flatnonzero(order == record.true_model)[0])
    ax.bar(models + 1, q[order], width=1.0, color=look.colour)
    ax.bar([place + 1], q[[record.true_model]], width=1.0, color=COLOURS[1])
    ax.annotate(
        f"true model, rank {true_rank(record)} of {q.size}", (place + 1, q[record.true_model]), (0.45, 0.8),
        textcoords="axes fraction", color=COLOURS[1], fontsize=8, arrowprops={"arrowstyle": "->", "color": COLOURS[1]},
    )  # fmt: skip
    ax.axhline(1.0 / q.size, color="black", lw=0.8, ls=":", label="uniform")
    title = f"{panel} {look.label}" if results.scope.beyond else f"{panel} distribution over models"
    ax.set(xlabel="models, sorted by q", ylabel=f"$q_{{t,j}}$ at t = {SNAPSHOT_ROUND}", title=title)
    legend_below(ax)
    what = f"q of {method}, seed {results.scope.seeds[position]}"
    return pd.DataFrame({"panel": panel[1], "what": what, "x": models, "mean": q, "error": 0.0})


def _draw_visited(ax: Axes, results: Results) -> pd.DataFrame:
    tables = []
    for method in ("alexp", "corral"):
        visited = np.array([r.visited for r in results.runs["large", method]], dtype=np.float64)
        tables.append(_draw_mean(ax, method, visited, "b", method))
    n_models = results.scope.scenario("large").n_models
    ax.axhline(0.1 * n_models, color="black", lw=0.8, ls=":", label="10% of all models")
    ax.axvline(SNAPSHOT_ROUND, color="black", lw=0.8, ls="--")
    ax.set(xlabel="round t", ylabel="models visited $M_t$", title="(b) models that have played")
    legend_below(ax, 1 if results.scope.beyond else 3, 7)
    return pd.concat(tables)


def _draw_mean(ax: Axes, method: str, curves: FloatArray, panel: str, what: str) -> pd.DataFrame:
    look = METHODS[method]
    mean, error = mean_and_error(curves)
    rounds = np.arange(1, mean.size + 1)
    ax.plot(rounds, mean, color=look.colour, ls=look.dashes, label=look.label)
    ax.fill_between(rounds, mean - error, mean + error, color=look.colour, alpha=0.18, lw=0)
    return pd.DataFrame({"panel": panel, "what": what, "x": rounds, "mean": mean, "error": error})


def _draw_true(ax: Axes, results: Results) -> pd.DataFrame:
    curves = np.array([record.q_true for record in results.runs["large", "alexp"]], dtype=np.float64)
    mean, error = mean_and_error(curves)
    rounds = np.arange(1, mean.size + 1)
    for i, curve in enumerate(curves):
        ax.plot(rounds, curve, color="0.75", lw=0.6, label="single runs" if i == 0 else None)
    ax.plot(rounds, mean, color=COLOURS[0], lw=2.0, label="mean")
    ax.fill_between(rounds, mean - error, mean + error, color=COLOURS[0], alpha=0.25, lw=0)
    ax.axhline(0.25, color="black", lw=0.8, ls=":", label="0.25")
    ax.set(xlabel="round t", ylabel="$q_{t,j^*}$", title="(c) probability of the true model", ylim=(0.0, None))
    legend_below(ax, 3)
    return pd.DataFrame({"panel": "c", "what": "q of the true model", "x": rounds, "mean": mean, "error": error})


def _draw_both(ax: Axes, results: Results) -> pd.DataFrame:
    tables = []
    for method in ("alexp", *MIXTURES):
        curves = np.array([record.q_true for record in results.runs["large", method]], dtype=np.float64)
        tables.append(_draw_mean(ax, method, curves, "c", f"q of the true model, {method}"))
    ax.set(xlabel="round t", ylabel="$q_{t,j^*}$", title="(c) probability of the true model", ylim=(0.0, 1.0))
    legend_below(ax, 1 if results.scope.beyond else 3, 7)
    return pd.concat(tables)


def figure_5(results: Results) -> Drawn:
    """Rewards of the first four seeds of the easy, the large and the hard problem.

    Beyond the paper the reward of the first seed alone, with what ALExp and the mixture measured in 20 rounds.
    """
    names, beyond = ("easy", "large", "hard-meant"), results.scope.beyond
    figure, (axes,) = new_figure(1, 3, width=3.8, height=3.0)
    tables = []
    for ax, name in zip(axes, names, strict=True):
        for i, seed in enumerate(results.scope.seeds[: 1 if beyond else 4]):
            environment = results.scope.scenario(name).environment(run_seeds(seed)[0])
            x, label = environment.domain.points, "reward" if beyond else f"seed {seed}"
            colour = COLOURS[6] if beyond else COLOURS[i]
            ax.plot(x, environment.rewards, color=colour, ls=DASHES[i], lw=1.5, label=label)
            thin = slice(None, None, 20)
            tables.append(pd.DataFrame({"scenario": name, "seed": seed, "x": x[thin].round(4),
                                        "reward": environment.rewards[thin].round(5)}))  # fmt: skip
            tables += _draw_measured(ax, results, name, environment) if beyond else []
        ax.set(xlabel="x", title=SHORT[name])
    axes[0].set_ylabel("reward r(x)")
    legend_under(figure, axes, columns=4)
    return figure, pd.concat(tables, ignore_index=True)


def _draw_measured(ax: Axes, results: Results, name: str, environment: ModelEnvironment) -> list[pd.DataFrame]:
    """What ALExp (below the curve) and the mixture (above it) measured in the first rounds of the first seed."""
    height, tables = 0.12 * float(np.ptp(environment.rewards)), []
    for method, marker, shift in (("alexp", "^", -height), ("mixture", "v", height)):
        chosen = results.runs[name, method][0].chosen[:SNAPSHOT_ROUND]
        x, look = environment.domain.points[chosen], METHODS[method]
        values = environment.rewards[chosen]
        ax.plot(x, values + shift, marker=marker, ls="none", ms=5, alpha=0.55, color=look.colour, label=look.label)
        tables.append(pd.DataFrame({"scenario": name, "seed": results.scope.seeds[0], "method": method,
                                    "t": np.arange(1, len(x) + 1), "x": x, "reward": values}))  # fmt: skip
    return tables


def figure_7(results: Results) -> Drawn:
    """Mean regret on the tuning seeds for every hyper-parameter that was tried."""
    panels = [
        ("alexp", "grid", "eta", r"ALExp: $\eta_0$", "log"),
        ("alexp", "grid", "gamma", r"ALExp: $\gamma_0$", "log"),
        ("alexp", "lambda", "lambda", r"ALExp: $\lambda_0$ (not chosen)", "log"),
        ("alexp", "width", "beta", r"ALExp: width $\beta$", "log"),
        ("oracle", "grid", "ridge", r"Oracle UCB: $\tilde\lambda$", "log"),
        ("oracle", "width", "beta", r"Oracle UCB: width $\beta$", "log"),
        ("naive", "grid", "ridge", r"Naive UCB: $\tilde\lambda$", "log"),
        ("naive", "width", "beta", r"Naive UCB: width $\beta$", "log"),
        ("etc", "grid", "n0", "ETC: exploration $n_0$", "linear"),
        ("ets", "grid", "n0", "ETS: exploration $n_0$", "linear"),
        ("corral", "grid", "eta", r"Corral (shared data): $\eta_0$", "log"),
        ("exp4-ix", "grid", "eta", r"EXP4-IX: $\eta_0$", "log"),
    ]
    figure, axes = new_figure(3, 4, width=3.4, height=2.8)
    for ax, (method, stage, parameter, title, scale) in zip(axes.ravel(), panels, strict=True):
        _draw_tuning(ax, results, method, stage, parameter)
        ax.set(title=title, xscale=scale, ylim=(0.0, None))
        if parameter == "beta":
            ax.set_xticks([0.125, 0.25, 0.5, 1.0, 2.0], ["1/8", "1/4", "1/2", "1", "2"], minor=False)
            ax.minorticks_off()
        if parameter == "eta" and method != "exp4-ix":
            ax.set_xlim(0.9, 110.0)  # whole decades, so that the ticks stay apart
    for ax in axes[:, 0]:
        ax.set_ylabel("mean regret after n rounds")
    legend_under(figure, axes, columns=4)
    return figure, tuning_table(results)


def _draw_tuning(ax: Axes, results: Results, method: str, stage: str, parameter: str) -> None:
    names = [name for name in MAIN_SCENARIOS if name in results.scope.grid.scenarios]
    for i, name in enumerate(names):
        for one in results.unstated:
            if (one.tried.scenario, one.tried.method) == (name, "mixture"):
                label = f"EvidenceMixture, {SHORT[name]}"
                ax.axhline(one.regret.mean, color=COLOURS[i], lw=1.0, ls=(0, (1, 1)), label=label)
        tried = sorted(results.tried(method, stage, name), key=lambda one: one.tried.values[parameter])
        if not tried:
            continue
        ax.errorbar(
            [one.tried.values[parameter] for one in tried],
            [one.regret.mean for one in tried],
            yerr=np.nan_to_num([one.regret.error for one in tried]),
            color=COLOURS[i], ls="none" if parameter in ("eta", "gamma") and method != "exp4-ix" else DASHES[i],
            marker="osD^"[i], ms=3.5, lw=1.2, elinewidth=0.7, label=SHORT[name],
        )  # fmt: skip


def tuning_table(results: Results) -> pd.DataFrame:
    """One row per setting that was tried."""
    return pd.DataFrame(
        [
            {
                "stage": one.tried.stage,
                "scenario": one.tried.scenario,
                "method": one.tried.method,
                **one.tried.values,
                "mean": one.regret.mean,
                "error": one.regret.error,
                "median": one.median,
                "stuck": one.stuck,
            }
            for one in (*results.attempts, *results.unstated)
        ]
    ).round(6)
