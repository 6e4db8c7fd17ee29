"""Figures of reports and of `alexp.plot`, as data and layout for Plotly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.style import COLOURS
from alexp.study.view import Best, Curve, Explanation, History, Pareto, Standing, StudyView

if TYPE_CHECKING:
    from alexp.ope import PolicyValue

Part = dict[str, Any]  # of a figure: Plotly's own JSON

# From early to late; Plotly and Matplotlib have ramps of the same names that differ.
RAMPS = {"blue": [[0.0, "#c6dbef"], [1.0, "#08519c"]], "orange": [[0.0, "#fdd0a2"], [1.0, "#a63603"]]}
_MOST_POINTS = 4000  # markers drawn; more make the page slow without showing more


def layout(x: str, y: str) -> Part:
    """The layout of all figures, with these axis titles."""
    below = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    axis = {"zeroline": False, "showline": True, "linecolor": "#888", "gridcolor": "#e6e6e6", "ticks": "outside"}
    return {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#222"},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 70, "r": 20, "t": 30, "b": 55},
        "height": 360,
        "hovermode": "closest",
        "legend": below,
        "xaxis": axis | {"title": {"text": x}},
        "yaxis": axis | {"title": {"text": y}},
    }


def numbers(values: FloatArray) -> list[float | None]:
    """A list with None for NaN and infinity, where Plotly leaves a gap."""
    return [None if not np.isfinite(value) else float(value) for value in values]


def text(value: str) -> str:
    """A label with HTML escaped: Plotly renders some HTML in labels."""
    return escape(value, quote=False)


def thinned(n: int) -> IntArray:
    """Positions of at most `_MOST_POINTS` of n points."""
    return np.arange(0, n, 1 + n // _MOST_POINTS)


_DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot"]
_STATES = {  # name in the legend, colour, symbol
    "model": ("chosen by a model", COLOURS[0], "circle"),
    "explored": ("exploration", COLOURS[4], "diamond"),
    "observed": ("external measurement", COLOURS[3], "square"),
}


def figures(view: StudyView) -> dict[str, Part]:
    """All figures that the view has data for, by name."""
    out: dict[str, Part] = {}
    if view.counts["told"] == 0:
        return out
    standing = view.standing
    if standing is not None and (history := standing.history) is not None:
        out["probabilities"] = _probabilities(standing, history)
        if history.behind is not None:
            out["returns"] = _returns(standing, history, history.behind)
    out["rewards"] = _rewards(view)
    if view.pareto is not None:
        out["pareto"] = _pareto(view.pareto)
    if view.is_contextual:
        out["propensities"] = _propensities(view)
    if view.curve is not None:
        out["curve"] = _reward_curve(view, view.curve)
    if view.explanation is not None:
        out |= explanation_figures(view.explanation)
    return out


def _pareto(found: Pareto) -> Part:
    """The first two objectives of all measured candidates, and the best compromises; the third one in words."""
    first, second = list(found.directions)[:2]
    titles = [text(f"{name}, {found.directions[name]}") for name in (first, second)]
    others = {
        "type": "scatter",
        "mode": "markers",
        "name": "other measured candidates",
        "x": numbers(found.others[first]),
        "y": numbers(found.others[second]),
        "marker": {"color": "#9ab", "size": 7, "symbol": "circle"},
        "hovertemplate": "%{x:.4g}, %{y:.4g}<extra></extra>",
    }
    shown = [
        ", ".join(
            [f"trial {trial}: {text(what)}", *(f"{text(name)} {own[k]:.4g}" for name, own in found.values.items())]
        )
        for k, (trial, what) in enumerate(zip(found.trial, found.label, strict=True))
    ]
    front = {
        "type": "scatter",
        "mode": "lines+markers" if len(found.directions) == 2 else "markers",
        "name": "best compromises",
        "x": numbers(found.values[first]),
        "y": numbers(found.values[second]),
        "text": shown,
        "line": {"color": COLOURS[1], "width": 1.5},
        "marker": {"color": COLOURS[1], "size": 10, "symbol": "diamond"},
        "hovertemplate": "%{text}<extra></extra>",
    }
    return {"data": [others, front], "layout": layout(*titles)}


def weights(view: StudyView) -> Part | None:
    """Weights of the leading models after every reward; bars of those now where there is no history of them."""
    standing = view.standing
    if standing is None or view.counts["told"] == 0:
        return None
    if standing.history is not None and standing.history.told.size > 1:
        return _probabilities(standing, standing.history)
    drawn = layout(_meaning(standing), "")
    marker = {"color": [COLOURS[k % len(COLOURS)] for k in range(len(standing.leaders))]}
    names = [text(leader.name) for leader in standing.leaders]
    bars = {"type": "bar", "orientation": "h", "x": [one.q for one in standing.leaders], "y": names, "marker": marker}
    return {"data": [bars], "layout": drawn}


def _meaning(standing: Standing) -> str:
    return "posterior probability" if standing.meaning == "posterior" else "probability q"


def _lines(standing: Standing, history: History, values: FloatArray, form: str) -> list[Part]:
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": text(leader.name),
            "x": history.told.tolist(),
            "y": numbers(values[:, k]),
            "line": {"color": COLOURS[k % len(COLOURS)], "dash": _DASHES[k % len(_DASHES)], "width": 2},
            "hovertemplate": f"%{{fullData.name}}<br>after %{{x}} rewards: %{{y:{form}}}<extra></extra>",
        }
        for k, leader in enumerate(standing.leaders)
    ]


def _probabilities(standing: Standing, history: History) -> Part:
    drawn = layout("rewards", _meaning(standing))
    drawn["yaxis"] |= {"range": [0, min(1.02, 1.15 * float(np.nanmax(history.q, initial=0.0)))]}
    return {"data": _lines(standing, history, history.q, ".3f"), "layout": drawn}


def _returns(standing: Standing, history: History, behind: FloatArray) -> Part:
    drawn = layout("rewards", "return behind the leader")
    return {"data": _lines(standing, history, behind, ".4g"), "layout": drawn}


def _told(view: StudyView) -> IntArray:
    """Positions of the listed trials that have a reward."""
    return np.flatnonzero(~np.isnan(view.trials.reward))


def _rewards(view: StudyView) -> Part:
    trials, told = view.trials, _told(view)
    number, reward = trials.id[told], trials.reward[told]
    if view.is_contextual:  # the best reward of all contexts says little
        name, shape, line = "mean", "linear", np.cumsum(reward) / np.arange(1, told.size + 1)
        turns = thinned(told.size)
    else:
        name, shape = "best", "hv"
        line = np.maximum.accumulate(reward) if view.direction == "maximize" else np.minimum.accumulate(reward)
        turns = np.unique(np.r_[np.flatnonzero(np.diff(line)) + 1, 0, told.size - 1]) if told.size else told
    labels = np.array([text(trials.label[k]) for k in told], dtype=object)
    data = [
        {"x": number[shown].tolist(), "y": numbers(reward[shown]), "text": labels[shown].tolist()}
        | _markers(key, "trial %{x}: %{text}<br>reward %{y:.4g}")
        for key, shown in _by_origin(view, told).items()
    ]
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"{name} so far",
            "x": number[turns].tolist(),
            "y": numbers(line[turns]),
            "line": {"color": COLOURS[1], "width": 2, "shape": shape},
            "hovertemplate": f"{name} up to trial %{{x}}: %{{y:.4g}}<extra></extra>",
        }
    )
    return {"data": data, "layout": layout("trial", "reward")}


def _propensities(view: StudyView) -> Part:
    trials, everything = view.trials, np.arange(view.trials.id.size)
    data = [
        {"x": trials.id[shown].tolist(), "y": numbers(trials.propensity[shown])}
        | {"text": [text(trials.label[k]) for k in shown]}
        | _markers(key, "trial %{x}: %{text}<br>propensity %{y:.4g}")
        for key, shown in _by_origin(view, everything).items()
    ]
    drawn = layout("trial", "propensity")
    drawn["yaxis"] |= {"range": [0, 1.05]}
    return {"data": data, "layout": drawn}


def _by_origin(view: StudyView, told: IntArray) -> dict[str, IntArray]:
    """Positions within `told` of the trials to draw, by origin."""
    explored = np.array(view.trials.explored, dtype=bool)[told]
    observed = np.array([view.trials.state[k] == "observed" for k in told], dtype=bool)
    drawn = thinned(told.size)
    groups = {"model": ~explored & ~observed, "explored": explored & ~observed, "observed": observed}
    shown = {key: drawn[mask[drawn]] for key, mask in groups.items()}
    return {key: positions for key, positions in shown.items() if positions.size}


def _markers(key: str, hover: str) -> Part:
    name, colour, symbol = _STATES[key]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {"color": colour, "symbol": symbol, "size": 7, "opacity": 0.7},
        "hovertemplate": hover + "<extra></extra>",
    }


def _reward_curve(view: StudyView, curve: Curve) -> Part:
    x = curve.points.tolist()
    data: list[Part] = []
    if curve.lower is not None and curve.upper is not None and view.certificates is not None:
        name = f"certified band ({100 * (1 - view.certificates.delta):g} %)"
        data += _band(x, curve.lower, curve.upper, name, "rgba(0,114,178,0.12)")
    if curve.estimate is not None and curve.spread is not None:
        ends = curve.estimate - 2.0 * curve.spread, curve.estimate + 2.0 * curve.spread
        if (known := view.settings.get("reward_range")) is not None:
            ends = np.clip(ends[0], *known), np.clip(ends[1], *known)
        data += _band(x, *ends, "± 2 standard deviations", "rgba(0,114,178,0.28)")
    if curve.estimate is not None:
        line = {"color": COLOURS[0], "width": 2.5}
        estimate = {"type": "scatter", "mode": "lines", "x": x, "y": numbers(curve.estimate), "line": line}
        data.append(estimate | {"name": "estimated reward", "hovertemplate": "x = %{x:.4g}: %{y:.4g}<extra></extra>"})
    told = _told(view)
    shown = told[thinned(told.size)]
    number = view.trials.id[shown]
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "rewards (darker is later)",
            "x": curve.played[shown].tolist(),
            "y": numbers(view.trials.reward[shown]),
            "text": [str(trial) for trial in number],
            "marker": {"color": number.tolist(), "colorscale": RAMPS["orange"], "size": 7, "line": {"width": 0.5}},
            "hovertemplate": "trial %{text}: x = %{x:.4g}, reward %{y:.4g}<extra></extra>",
        }
    )
    drawn = layout("x", "reward")
    _focus(drawn, view.trials.reward[told], curve.estimate)
    if view.best is not None:
        _mark(drawn, view.best)
    return {"data": data, "layout": drawn}


def _band(x: Sequence[float], lower: FloatArray, upper: FloatArray, name: str, colour: str) -> list[Part]:
    edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip"}
    filled = {"y": numbers(upper), "fill": "tonexty", "fillcolor": colour, "name": name, "showlegend": bool(name)}
    return [edge | {"y": numbers(lower), "showlegend": False}, edge | filled]


def _focus(drawn: Part, rewards: FloatArray, estimate: FloatArray | None) -> None:
    """Scale the axis to rewards and estimate; the band can be very wide in early rounds."""
    values = rewards if estimate is None else np.r_[rewards, estimate]
    if values.size:
        low, high = float(values.min()), float(values.max())
        margin = 0.25 * (high - low) or 1.0
        drawn["yaxis"] |= {"range": [low - margin, high + margin]}


def _mark(drawn: Part, best: Best) -> None:
    """Mark the recommendation."""
    at = float(best.x)
    line = {"color": COLOURS[2], "dash": "dash", "width": 1.5}
    ends = {"x0": at, "x1": at, "y0": 0, "y1": 1}
    drawn["shapes"] = [{"type": "line", "xref": "x", "yref": "paper", "line": line} | ends]
    note = {"x": at, "y": 0, "xref": "x", "yref": "paper", "yanchor": "bottom", "xanchor": "left", "xshift": 4}
    drawn["annotations"] = [note | {"text": "recommended", "showarrow": False, "font": {"color": COLOURS[2]}}]


def plates(algorithm: Algorithm) -> Part | None:
    """Rewards by plate, and the best so far: a plate are the trials that were asked for between two rewards."""
    steps, trials = algorithm.log.events.as_arrays()
    reward = np.array(algorithm.log.reward, dtype=np.float64)
    if algorithm.n_told == 0:
        return None
    asks = steps == "ask"
    plate = np.cumsum(asks & ~np.r_[False, asks[:-1]])[asks]  # a new one where an ask follows something else
    known = ~np.isnan(reward[trials[asks]])
    plate, values = plate[known], reward[trials[asks]][known]
    if not values.size:  # all rewards were observed
        return None
    best = np.maximum.accumulate(values) if algorithm.direction == "maximize" else np.minimum.accumulate(values)
    last = np.r_[plate[1:] != plate[:-1], True]
    marks = {"x": plate.tolist(), "y": numbers(values)} | _markers("model", "plate %{x}: %{y:.4g}")
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "best so far",
        "x": plate[last].tolist(),
        "y": numbers(best[last]),
        "line": {"color": COLOURS[1], "width": 2, "shape": "hv"},
    }
    drawn = layout("plate", "reward")
    drawn["xaxis"] |= {"dtick": 1 + int(plate[-1]) // 12}
    return {"data": [marks | {"name": "one trial"}, line], "layout": drawn}


def bound(n: FloatArray, terms: Mapping[str, FloatArray], total: FloatArray, trivial: FloatArray) -> Part | None:
    """A bound on the regret after n rounds, the trivial one, and the terms of the sum, on logarithmic axes."""
    if n.size == 0:
        return None
    at = np.unique(np.geomspace(1, n.size, min(n.size, 400)).astype(np.int64)) - 1
    drawn = layout("round", "bound on the regret")
    for axis in ("xaxis", "yaxis"):
        drawn[axis] |= {"type": "log"}
    curves = {"sum of all terms": total, "trivial bound": trivial, **terms}
    data = [
        {"type": "scatter", "mode": "lines", "name": text(name), "x": n[at].tolist(), "y": numbers(values[at])}
        | {"line": {"color": COLOURS[k % len(COLOURS)], "dash": _DASHES[k % len(_DASHES)], "width": 1.5 + (k == 0)}}
        for k, (name, values) in enumerate(curves.items())
    ]
    return {"data": data, "layout": drawn}


def regret(curves: Mapping[str, Sequence[FloatArray]]) -> Part | None:
    """Cumulative regret by round: the median of the runs of every name, and a band from the least to the largest."""
    data: list[Part] = []
    for k, (name, runs) in enumerate(curves.items()):
        steps = min(run.size for run in runs)
        stacked, x = np.array([run[:steps] for run in runs]), list(range(1, steps + 1))
        if len(runs) > 1:
            data += _band(x, stacked.min(axis=0), stacked.max(axis=0), "", _faint(COLOURS[k % len(COLOURS)]))
        line = {"color": COLOURS[k % len(COLOURS)], "dash": _DASHES[k % len(_DASHES)], "width": 2}
        y = numbers(np.median(stacked, axis=0))
        data.append({"type": "scatter", "mode": "lines", "name": text(name), "x": x, "y": y, "line": line})
    return {"data": data, "layout": layout("round", "cumulative regret")} if data else None


def values(results: Mapping[str, PolicyValue]) -> Part:
    """Bounds of every result after each round, and its estimate."""
    data: list[Part] = []
    for k, (name, result) in enumerate(results.items()):
        colour, shown = COLOURS[k % len(COLOURS)], thinned(result.running_lower.size)
        x, bounds = (shown + 1).tolist(), (result.running_lower[shown], result.running_upper[shown])
        data += _band(x, *bounds, "", _faint(colour))
        style = {"type": "scatter", "mode": "lines", "name": text(name), "x": x}
        line = {"color": colour, "dash": _DASHES[k % len(_DASHES)], "width": 1.5}
        for bound, is_named in zip(bounds, (True, False), strict=True):
            data.append(style | {"y": numbers(bound), "line": line, "showlegend": is_named})
        estimate = {"x": [x[-1]], "y": [result.value], "mode": "markers", "marker": {"color": colour, "size": 9}}
        data.append(style | estimate | {"showlegend": False})
    drawn = layout("rounds of the log", "reward per round")
    last = [bound for result in results.values() for bound in result.interval]
    margin = 0.6 * (max(last) - min(last)) or 1.0  # the first intervals are as wide as the range of the rewards
    drawn["yaxis"] |= {"range": [min(last) - margin, max(last) + margin]}
    return {"data": data, "layout": drawn}


def _faint(colour: str) -> str:
    """A colour of the palette for bands.

    >>> _faint("#0072B2")
    'rgba(0,114,178,0.12)'
    """
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.12)"


# -- explanation -----------------------------------------------------------------------------------------------

MISFIT = 2.0  # standard deviations beyond which a prediction counts as missed
_MOST_ODDS = 300.0  # decades drawn


def explanation_figures(seen: Explanation) -> dict[str, Part]:
    """Figures by name: predicted against measured, residuals, odds."""
    known = np.flatnonzero(np.isfinite(seen.expected))
    shown = known[thinned(known.size)]
    out = {}
    if shown.size:
        out["predictions"] = _predictions(seen, shown)
        out["residuals"] = _residuals(seen, shown)
    if seen.odds is not None:
        out["odds"] = _odds(seen, seen.odds)
    return out


def _labels(seen: Explanation, shown: IntArray) -> list[str]:
    return [f"trial {seen.trial[k]}: {text(seen.label[k])}" for k in shown]


def _predictions(seen: Explanation, shown: IntArray) -> Part:
    expected, reward, spread = seen.expected[shown], seen.reward[shown], seen.spread[shown]
    low, high = float(min(expected.min(), reward.min())), float(max(expected.max(), reward.max()))
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": "rewards (darker is later)",
        "x": numbers(expected),
        "y": numbers(reward),
        "text": _labels(seen, shown),
        "marker": {"color": shown.tolist(), "colorscale": RAMPS["blue"], "size": 8}
        | {"line": {"width": 0.5, "color": "#345"}},
        "error_x": {"type": "data", "array": numbers(2.0 * spread), "thickness": 0.6, "width": 0, "color": "#9ab"},
        "hovertemplate": "%{text}<br>expected %{x:.4g}, measured %{y:.4g}<extra></extra>",
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "as expected",
        "x": [low, high],
        "y": [low, high],
        "line": {"color": COLOURS[1], "width": 1.5},
        "hoverinfo": "skip",
    }
    drawn = layout("expected (± 2 standard deviations)", "measured")
    margin = 0.15 * (high - low) or 1.0
    for axis in ("xaxis", "yaxis"):
        drawn[axis] |= {"range": [low - margin, high + margin]}
    return {"data": [line, marks], "layout": drawn}


def _residuals(seen: Explanation, shown: IntArray) -> Part:
    scaled = standardised(seen)[shown]
    marks = {
        "type": "scatter",
        "mode": "markers",
        "x": (shown + 1).tolist(),
        "y": numbers(scaled),
        "text": _labels(seen, shown),
        "marker": {"color": [COLOURS[1] if abs(z) > MISFIT else COLOURS[0] for z in scaled], "size": 7},
        "hovertemplate": "%{text}<br>%{y:.2f} standard deviations off<extra></extra>",
        "showlegend": False,
    }
    drawn = layout("rewards", "standard deviations off")
    drawn["shapes"] = [
        {"type": "rect", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": -MISFIT, "y1": MISFIT}
        | {"fillcolor": "rgba(0,114,178,0.10)", "line": {"width": 0}, "layer": "below"}
    ]
    reach = max(3.0, 1.1 * float(np.abs(scaled).max()))
    drawn["yaxis"] |= {"range": [-reach, reach]}
    return {"data": [marks], "layout": drawn}


def _odds(seen: Explanation, odds: FloatArray) -> Part:
    told = np.arange(odds.size)
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": told.tolist(),
        "y": numbers(np.clip(odds, -_MOST_ODDS, _MOST_ODDS)),
        "line": {"color": COLOURS[0], "width": 2, "shape": "hv"},
        "marker": {"size": 4},
        "hovertemplate": "after %{x} rewards: 10^%{y:.2f} to 1<extra></extra>",
        "showlegend": False,
    }
    drawn = layout("rewards", "odds of the leader, powers of ten")
    drawn["shapes"] = [
        {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": {"color": "#888"}}
    ]
    return {"data": [line], "layout": drawn}


def coverage(seen: Explanation) -> Part | None:
    """Share of the rewards within the predicted band of every level, and the diagonal."""
    from scipy.stats import norm  # slow to import, and needed here only

    scaled = standardised(seen)
    scaled = np.abs(scaled[np.isfinite(scaled)])
    if scaled.size == 0:
        return None
    level = np.linspace(0.0, 0.99, 100)
    share = (scaled[:, None] <= norm.ppf(0.5 + level / 2.0)).mean(axis=0)
    curve = {"type": "scatter", "mode": "lines", "line": {"color": COLOURS[0], "width": 2, "shape": "hv"}}
    ideal = {"type": "scatter", "mode": "lines", "line": {"color": "#888", "width": 1, "dash": "dash"}}
    drawn = layout("level of the band", "share of rewards within it")
    drawn["yaxis"] |= {"range": [0, 1.02]}
    return {
        "data": [
            curve | {"name": f"{scaled.size} rewards", "x": level.tolist(), "y": share.tolist()},
            ideal | {"name": "right", "x": [0.0, 1.0], "y": [0.0, 1.0]},
        ],
        "layout": drawn,
    }


def standardised(seen: Explanation) -> FloatArray:
    """(measured - expected) / spread, shape (t,)."""
    return np.asarray((seen.reward - seen.expected) / seen.spread)
