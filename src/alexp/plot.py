"""Figures by one call, and a summary: of an optimiser, a study, a view, simulated runs, values of policies, or bounds.

    opt.plot(), study.plot(), run.plot()    the figures that say most, side by side
    opt.plot("models")                      one of them; the same as alexp.plot.models(opt)

Every function takes `ax`, an axes of Matplotlib to draw into, and returns the axes; `engine="plotly"` returns a figure
of Plotly instead. The figures are those of the report: both engines draw the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import unescape
from re import sub
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.common.extras import require
from alexp.common.notebook import paragraph, table
from alexp.common.style import legend_below, shown_figure
from alexp.common.validation import one_of
from alexp.simulation import Run
from alexp.study import figures
from alexp.study.report import compromise_sentences, fit_sentence, odds_sentence
from alexp.study.view import StudyView
from alexp.study.viewing import view_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from alexp.ope import PolicyValue
    from alexp.study.study import Study
    from alexp.theory import RegretBound

    Source: TypeAlias = Algorithm | Study | StudyView

Engine = Literal["matplotlib", "plotly"]
Pictures: TypeAlias = Mapping[str, figures.Part]  # figures by kind, such as a service sends

__all__ = [
    "bound",
    "coverage",
    "curve",
    "models",
    "odds",
    "overview",
    "pareto",
    "plates",
    "predictions",
    "regret",
    "residuals",
    "rewards",
    "summary",
    "values",
]


def models(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """Weights of the leading models after every reward; bars of the weights now where earlier ones are not known."""
    return _drawn(figures.weights(_view(source)), ax, engine, "there is no reward yet, or the algorithm has no weights")


def rewards(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """Every reward, and the best so far; the mean so far where rounds have contexts."""
    return _named("rewards", source, ax, engine, "there is no reward yet")


def predictions(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """Every reward against what was expected of it from the rewards before."""
    return _named("predictions", source, ax, engine, _NOT_EXPLAINED)


def residuals(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """By how many standard deviations every reward was off; the band is two of them."""
    return _named("residuals", source, ax, engine, _NOT_EXPLAINED)


def odds(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """Odds of the leading model against the runner-up after every reward, in powers of ten."""
    return _named("odds", source, ax, engine, _NOT_EXPLAINED + ", or there is one model only")


def curve(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """The reward on an `Interval`: estimate, bands and rewards."""
    return _named("curve", source, ax, engine, "the domain is no Interval, or there is no reward yet")


def coverage(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """Which share of the rewards lay within predicted bands of every level; on the diagonal, bands are right."""
    seen = _view(source).explanation
    return _drawn(None if seen is None else figures.coverage(seen), ax, engine, _NOT_EXPLAINED)


def pareto(source: Source, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """Measured candidates by their first two objectives, and the best compromises."""
    return _named("pareto", source, ax, engine, "there is one objective only, or there is no reward yet")


def plates(source: Algorithm | Study, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """Rewards plate by plate (trials that were asked for before the next reward came), and the best so far."""
    algorithm = source if isinstance(source, Algorithm) else source.algorithm
    return _drawn(figures.plates(algorithm), ax, engine, "there is no reward yet")


def regret(
    runs: Run | Sequence[Run] | Mapping[str, Run | Sequence[Run]],
    ax: Axes | None = None,
    *,
    engine: Engine = "matplotlib",
) -> Any:
    """Cumulative regret of simulated runs, by name; of several runs under one name the median, and a band of all."""
    if isinstance(runs, Run):
        runs = [runs]
    if not isinstance(runs, Mapping):
        runs = {f"run {k}": run for k, run in enumerate(runs, 1)}
    curves = {name: [one.regret for one in ([run] if isinstance(run, Run) else run)] for name, run in runs.items()}
    return _drawn(figures.regret(curves), ax, engine, "there is no run")


def values(
    results: PolicyValue | Mapping[str, PolicyValue], ax: Axes | None = None, *, engine: Engine = "matplotlib"
) -> Any:
    """Intervals of off-policy estimates after every round, by name; the points are the estimates."""
    named = results if isinstance(results, Mapping) else {results.estimator: results}
    bounded = {name: result for name, result in named.items() if result.bounded}
    missing = "no result has an interval; pass reward_range= to the estimator"
    return _drawn(figures.values(bounded) if bounded else None, ax, engine, missing)


def bound(result: RegretBound, ax: Axes | None = None, *, engine: Engine = "matplotlib") -> Any:
    """A bound on the regret over the rounds, its terms, and the trivial bound; both axes are logarithmic."""
    return _drawn(figures.bound(result.n, result.terms, result.sum, result.trivial), ax, engine, "there is no round")


def draw(
    source: Source | Pictures, name: str | None = None, ax: Axes | None = None, *, engine: Engine = "matplotlib"
) -> Any:
    """The figure of that name, or without a name the overview: what `opt.plot` and `study.plot` draw."""
    if name is None:
        if ax is not None or engine != "matplotlib":
            raise ValueError(f"ax and engine are for one figure: name it, one of {', '.join(_KINDS)}")
        return overview(source)
    one_of("kind", name, tuple(_KINDS))
    if isinstance(source, Mapping):
        return _drawn(source.get(name), ax, engine, "the study has no data for it")
    return _KINDS[name](source, ax, engine=engine)


_KINDS: dict[str, Callable[..., Any]] = {
    figure.__name__: figure
    for figure in (models, rewards, predictions, residuals, odds, curve, coverage, plates, pareto)
}


def pictures(source: Source) -> Pictures:
    """All figures that there is data for, by kind, as data and layout for Plotly."""
    view = _view(source)
    found: dict[str, figures.Part | None] = {**figures.figures(view), "models": figures.weights(view)}
    if view.explanation is not None:
        found["coverage"] = figures.coverage(view.explanation)
    if not isinstance(source, StudyView):
        found["plates"] = figures.plates(source if isinstance(source, Algorithm) else source.algorithm)
    return {kind: figure for kind in _KINDS if (figure := found.get(kind)) is not None}


def overview(source: Source | Pictures) -> Any:
    """An array of axes of Matplotlib: weights, rewards, predictions, and the curve or the residuals, where known."""
    drawn = source if isinstance(source, Mapping) else pictures(source)
    titles = {
        "pareto": "The best compromises",
        "models": "Which model is winning",
        "rewards": "What was found",
        "predictions": "Do the models predict it",
        "curve": "The reward, as estimated",
        "residuals": "Surprises",
    }
    chosen = [name for name in titles if name in drawn][:4]
    if not chosen:
        raise ValueError("there is nothing to draw: there is no reward yet")
    axes = shown_figure(len(chosen), width=4.4, height=3.8)
    for ax, name in zip(axes, chosen, strict=True):
        _draw(drawn[name], ax)
        ax.set_title(titles[name])
    return axes


def summary(source: Source) -> str:
    """How many, which model leads with what odds, best measured, recommended, when to stop, what to worry about."""
    return " ".join(sentences(source).values())


def html(source: Source) -> str:
    """The same for a notebook, one sentence a line."""
    return paragraph(repr(source)) + table(sentences(source).items())


def sentences(source: Source) -> dict[str, str]:
    """The sentences of a summary, by what they are about."""
    return {what: text for what, text in _sentences(_view(source)).items() if text}


_NOT_EXPLAINED = "the algorithm cannot look back, or there are too few rewards"


def _view(source: Source) -> StudyView:
    if isinstance(source, StudyView):
        return source
    if isinstance(source, Algorithm):
        return view_of(source)
    if not hasattr(source, "view"):
        raise TypeError(f"source must be an optimiser, a study or a view of one, got {type(source).__name__}")
    return source.view()


def _named(name: str, source: Source, ax: Axes | None, engine: Engine, missing: str) -> Any:
    return _drawn(figures.figures(_view(source)).get(name), ax, engine, missing)


def _drawn(figure: figures.Part | None, ax: Axes | None, engine: Engine, missing: str) -> Any:
    one_of("engine", engine, ("matplotlib", "plotly"))
    if figure is None:
        raise ValueError(f"there is nothing to draw: {missing}")
    if engine == "plotly":
        if ax is not None:
            raise ValueError("ax is an axes of Matplotlib; leave it out with engine='plotly'")
        require("plotly", subject="engine='plotly'")
        from plotly.graph_objects import Figure

        return Figure(figure)
    if ax is None:
        (ax,) = shown_figure(width=6.0, height=4.2)
    _draw(figure, ax)
    return ax


# -- Matplotlib --------------------------------------------------------------------------------------------------

_LINES = {
    "solid": "-",
    "dash": "--",
    "dashdot": "-.",
    "dot": ":",
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 3, 1, 3)),
}
_SYMBOLS = {"circle": "o", "diamond": "D", "square": "s"}


def _draw(figure: figures.Part, ax: Axes) -> None:
    """Draw what `alexp.study.figures` describes in Plotly's terms."""
    from matplotlib.ticker import MaxNLocator

    layout, below = figure["layout"], np.empty(0)
    for shape in layout.get("shapes", ()):
        _SHAPES[shape["type"]](ax, shape)
    for trace in figure["data"]:
        y = _numbers(trace["y"])
        if trace["type"] == "bar":
            ax.barh([_label(name) for name in trace["y"]], trace["x"], color=trace["marker"]["color"])
            ax.invert_yaxis()
        elif trace.get("fill") == "tonexty":
            colour, opacity = _colour(trace["fillcolor"], ax)
            ax.fill_between(
                trace["x"], below, y, color=colour, alpha=opacity, linewidth=0, label=_label(trace["name"]) or None
            )
        elif trace.get("line", {}).get("width") != 0:
            _scatter(ax, trace, _numbers(trace["x"]), y)
        below = y
    for axis, name in ((ax.xaxis, "xaxis"), (ax.yaxis, "yaxis")):
        axis.set_label_text(layout[name]["title"]["text"])
    if layout["xaxis"].get("type") == "log":
        ax.set(xscale="log", yscale="log")
    if "range" in layout["xaxis"]:
        ax.set_xlim(*layout["xaxis"]["range"])
    if "range" in layout["yaxis"]:
        ax.set_ylim(*layout["yaxis"]["range"])
    for note in layout.get("annotations", ()):
        ax.annotate(note["text"], (note["x"], 0.02), (4, 0), ("data", "axes fraction"), "offset points", fontsize=8)
    if all(isinstance(value, int) for trace in figure["data"] for value in trace["x"]):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(ax.get_legend_handles_labels()[1]) > 1:
        legend_below(ax)


def _scatter(ax: Axes, trace: figures.Part, x: Any, y: Any) -> None:
    label = _label(trace["name"]) if trace.get("showlegend", True) else None
    line, marker = trace.get("line", {}), trace.get("marker", {})
    if "error_x" in trace:
        spread = _numbers(trace["error_x"]["array"])
        ax.errorbar(x, y, xerr=spread, fmt="none", ecolor=trace["error_x"]["color"], elinewidth=0.6, zorder=1)
    if "lines" in trace["mode"]:
        colour = "white" if _is_dark(ax) and line.get("color") == "#000000" else line.get("color")
        style = {"color": colour, "linewidth": line.get("width", 1.5), "label": label}
        where = "steps-post" if line.get("shape") == "hv" else "default"
        ax.plot(x, y, linestyle=_LINES[line.get("dash", "solid")], drawstyle=where, **style)
    if "markers" in trace["mode"]:
        colours = marker.get("color", line.get("color"))
        ramp = {"cmap": _ramp(marker["colorscale"])} if "colorscale" in marker else {}
        size, kind = marker.get("size", 6) ** 2 / 2.5, _SYMBOLS[marker.get("symbol", "circle")]
        label = None if "lines" in trace["mode"] else label
        ax.scatter(x, y, c=colours, s=size, marker=kind, alpha=marker.get("opacity"), label=label, zorder=2, **ramp)


def _label(name: str) -> str:
    """A name as it is: without Plotly's escapes, and without mathematics."""
    return unescape(name).replace("$", r"\$")


def _ramp(colours: Sequence[tuple[float, str]]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ramp", [colour for _, colour in colours])


def _rectangle(ax: Axes, shape: figures.Part) -> None:
    colour, opacity = _colour(shape["fillcolor"], ax)
    ax.axhspan(shape["y0"], shape["y1"], color=colour, alpha=opacity, linewidth=0, zorder=0)


def _line(ax: Axes, shape: figures.Part) -> None:
    style = {"color": shape["line"]["color"], "linewidth": 1.0, "linestyle": _LINES[shape["line"].get("dash", "solid")]}
    if shape["xref"] == "paper":
        ax.axhline(shape["y0"], **style)
    else:
        ax.axvline(shape["x0"], **style)


_SHAPES: dict[str, Callable[[Axes, figures.Part], None]] = {"rect": _rectangle, "line": _line}


def _numbers(values: Sequence[object]) -> Any:
    """Numbers with NaN for None; names as they are."""
    if any(isinstance(value, str) for value in values):
        return values
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _colour(rgba: str, ax: Axes) -> tuple[tuple[float, ...], float]:
    """Colour and opacity of "rgba(0,114,178,0.12)"; dark backgrounds would hide faint bands."""
    *rgb, opacity = (float(part) for part in rgba.removeprefix("rgba(").removesuffix(")").split(","))
    return tuple(part / 255.0 for part in rgb), opacity * (2.5 if _is_dark(ax) else 1.0)


def _is_dark(ax: Axes) -> bool:
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ax.get_facecolor())) < 1.5


# -- in words ----------------------------------------------------------------------------------------------------


def _sentences(view: StudyView) -> dict[str, str]:
    """Sentences by what they are about; empty where there is nothing to say."""
    counts = view.counts
    known = f" of {view.n_candidates:,} candidates" if view.n_candidates and not view.is_contextual else ""
    measured = np.unique(view.trials.index[~np.isnan(view.trials.reward)]).size if known else counts["told"]
    waiting = f"; {counts['pending']} pending" if counts["pending"] else ""
    repeated = f", {counts['told']} rewards in all" if known and counts["told"] > measured else ""
    out = {"measured": f"{measured}{known or ' rounds'} measured{repeated}{waiting}."}
    compromises = {"compromises": " ".join(said)} if (said := compromise_sentences(view)) else {}
    if counts["told"] == 0:
        return out | compromises | {"next": "Next: ask() for a trial, and tell() its reward."}
    facts = compromises | {"rewards": _likelihood(view), "models": _leader(view), "to watch": _worry(view)}
    if view.pareto is None:
        facts |= {"found": _found(view), "stopping": "" if view.stopping is None else f"{view.stopping}."}
    order = ("compromises", "rewards", "models", "found", "stopping", "to watch")
    return out | {name: facts[name] for name in order if name in facts}


def _likelihood(view: StudyView) -> str:
    """What kind of models the rewards have chosen by themselves, where they did."""
    if view.chosen_likelihood != "bernoulli":
        return ""
    return 'All rewards are 0 or 1, so models are logistic regressions (likelihood="bernoulli", chosen by itself).'


def _leader(view: StudyView) -> str:
    standing, seen = view.standing, view.explanation
    if standing is None or view.n_models == 1:
        return ""
    if standing.n_level > 1:
        return f"{standing.n_level} of {view.n_models:,} models share the lead: the rewards do not tell them apart yet."
    first = standing.leaders[0]
    what = "probability" if standing.meaning == "posterior" else "weight"
    text = f'Of {view.n_models:,} models "{first.name}" leads with {what} {first.q:.3f}.'
    odds = "" if seen is None else unescape(sub("</?b>", '"', odds_sentence(seen)))
    return f"{text} {odds}".strip()


def _found(view: StudyView) -> str:
    reward = view.trials.reward
    if view.is_contextual:
        return f"Mean reward {np.nanmean(reward):.4g}."
    at = int(np.nanargmax(reward) if view.direction == "maximize" else np.nanargmin(reward))
    text = f"Best measured: {reward[at]:.4g} ({view.trials.label[at]})."
    if view.best is not None and view.best.index != view.trials.index[at]:
        text += f" Recommended: {view.best.label}, expected {view.best.value:.4g}."
    return text


def _worry(view: StudyView) -> str:
    seen = view.explanation
    if seen is None:
        return ""
    fit = fit_sentence(seen)
    return fit if "may lack" in fit else ""
