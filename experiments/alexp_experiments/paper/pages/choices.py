"""How constants were chosen: the rule, the numbers of settings, and the choice."""

from __future__ import annotations

from alexp_experiments.paper.grids import LASSO_SCALES, MAIN_SCENARIOS, WIDTHS
from alexp_experiments.paper.methods import METHODS, SIGNS, Values
from alexp_experiments.paper.pages.captions import flow
from alexp_experiments.paper.results import Results
from alexp_experiments.paper.tuning import Attempt, choose


def shown(values: Values) -> str:
    """Constants as text.

    >>> shown({"gamma": 0.01234, "eta": 12.0}), shown({"n0": 14.0, "beta": 0.5})
    ('gamma_0 = 0.0123, eta_0 = 12', 'n_0 = 14, beta = 0.5')
    """
    return ", ".join(f"{SIGNS[name]} = {value:.3g}" for name, value in values.items())


def choices(results: Results) -> str:
    """The section on tuning."""
    by_mean, by_median = choose(results.attempts), choose(results.attempts, lambda one: one.median)
    other = sum(by_median[key] != tried for key, tried in by_mean.items())
    grid, n = results.scope.grid, results.scope.grid.size
    lines = [
        "## How constants were chosen",
        "",
        flow(
            f"""On seeds {grid.seeds[0]} to {grid.seeds[-1]}, which nothing else uses, every method had {n} settings on
            every problem, along the axes of the paper's appendix: (gamma_0, eta_0) of ALExp and Corral drawn from
            [1e-4, 1e-1] x [1, 100] (the paper: 20 draws for ALExp, 10 for Corral), n_0 of ETC and ETS from 2 to 80 (the
            paper: 10 values), lambda~ of Oracle and Naive UCB from 0.001 to 1 (the paper: 0.01, 0.1 and 0.5, which are
            among them), eta of EXP4-IX from 0.1 to 100. lambda_0 is the paper's 0.009 for ALExp, ETC and ETS; a sweep
            of it is shown in Figure 7, and nothing was taken from it. The least mean regret was chosen. Every UCB,
            alone or as an agent, has the paper's width beta = 2."""
        ),
        "",
        flow(
            f"""Then, on the four problems, {grid.n_widths} values of what the paper holds fixed were tried around that
            choice: beta from {WIDTHS[0]} to {WIDTHS[-1]:g} for every method with a UCB in it, and for ETC, which has
            none, lambda_0 from {LASSO_SCALES[0]:.0e} to {LASSO_SCALES[-1]:g}."""
        ),
        "",
        flow(
            f"""Means choose, as in the paper: a locked run is part of what a setting costs, and a median would take
            rates that lock up to half of the runs. With {len(grid.seeds)} seeds that choice is noisy; medians would
            have made {other} of the {len(by_mean)} choices otherwise. Sizes beyond p = 13 use what was chosen at p =
        13."""
        ),
        "",
        "| problem | method | chosen | mean | median | locked | width chosen as well | mean | median | locked |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    found = {(one.key, tuple(one.tried.values.items())): one for one in results.attempts}

    def cells(stage: str, name: str, method: str) -> str:
        tried = by_mean.get((stage, name, method))
        if tried is None:
            return "- | - | - | -"
        one: Attempt = found[(stage, name, method), tuple(tried.values.items())]
        own = tried.values if stage == "grid" else dict(list(tried.values.items())[-1:])
        return f"{shown(own)} | {one.regret.mean:.2f} | {one.median:.2f} | {one.locked}"

    for name in grid.scenarios:
        for method in grid.methods(name):
            both = f"{cells('grid', name, method)} | {cells('width', name, method)}"
            lines.append(f"| {name} | {METHODS[method].label} | {both} |")
    return "\n".join(lines)


def chosen_width(results: Results, name: str, method: str) -> str:
    """The constant that the second stage chose, as a label says it."""
    values = results.tuned.values(method, name, wide=True)
    key = "lambda" if method == "etc" else "beta"
    return shown({key: values[key]}) if key in values and name in MAIN_SCENARIOS else ""
