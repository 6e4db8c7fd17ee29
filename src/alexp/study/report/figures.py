"""Figures of the report, as the data and layout that Plotly draws."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from alexp.common.style import COLOURS
from alexp.study.report.report import DELTA, Report, Standing

Figure = dict[str, Any]

_DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot"]
_MOST_POINTS = 4000  # markers drawn; more make the page slow without showing more
_STATES = {  # name in the legend, colour, symbol
    "model": ("chosen by a model", COLOURS[0], "circle"),
    "explored": ("exploration", COLOURS[4], "diamond"),
    "observed": ("measured elsewhere", COLOURS[3], "square"),
}


def figures(report: Report) -> dict[str, Figure]:
    """All figures the study gives reason for, by name."""
    out: dict[str, Figure] = {}
    if report.standing is not None and report.counts["told"] > 0:
        out["probabilities"] = _probabilities(report, report.standing)
        if report.standing.behind is not None:
            out["returns"] = _returns(report, report.standing)
    if report.counts["told"] > 0:
        out["rewards"] = _rewards(report)
    if report.curve is not None:
        out["curve"] = _reward_curve(report)
    return out


def _layout(x: str, y: str, **more: Any) -> dict[str, Any]:
    axis = {"zeroline": False, "showline": True, "linecolor": "#888", "gridcolor": "#e6e6e6", "ticks": "outside"}
    layout = {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#222"},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 70, "r": 20, "t": 10, "b": 55},
        "height": 360,
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": axis | {"title": {"text": x}},
        "yaxis": axis | {"title": {"text": y}},
    }
    return layout | more


def _numbers(values: Any) -> list[float | None]:
    """JSON has no NaN; Plotly leaves a gap where it finds null."""
    return [None if not np.isfinite(value) else float(value) for value in np.asarray(values, dtype=np.float64)]


def _text(value: Any) -> str:
    """Plotly reads some HTML in labels; a user's name must stay what it is."""
    return escape(str(value), quote=False)


def _lines(report: Report, standing: Standing, values: Any, form: str) -> list[dict[str, Any]]:
    names = report.algorithm.models.names
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": _text(names[j]),
            "x": standing.told.tolist(),
            "y": _numbers(values[:, k]),
            "line": {"color": COLOURS[k], "dash": _DASHES[k], "width": 2},
            "hovertemplate": f"%{{fullData.name}}<br>after %{{x}} rewards: %{{y:{form}}}<extra></extra>",
        }
        for k, j in enumerate(standing.leaders)
    ]


def _probabilities(report: Report, standing: Standing) -> Figure:
    layout = _layout("rewards told", "probability q")
    layout["yaxis"] |= {"range": [0, min(1.02, 1.15 * float(np.nanmax(standing.q_history)))]}
    return {"data": _lines(report, standing, standing.q_history, ".3f"), "layout": layout}


def _returns(report: Report, standing: Standing) -> Figure:
    layout = _layout("rewards told", "return behind the leader")
    return {"data": _lines(report, standing, standing.behind_history, ".4g"), "layout": layout}


def _rewards(report: Report) -> Figure:
    frame = report.trials
    told = np.flatnonzero(frame["reward"].notna().to_numpy())
    reward = frame["reward"].to_numpy()[told]
    best = np.maximum.accumulate(reward) if report.algorithm.direction == "maximize" else np.minimum.accumulate(reward)
    changes = np.flatnonzero(np.r_[True, np.diff(best) != 0.0])
    line = np.unique(np.r_[changes, told.size - 1])
    labels = np.array([_text(text) for text in report.labels], dtype=object)[told]
    data = [
        {"x": told[shown].tolist(), "y": _numbers(reward[shown]), "text": labels[shown].tolist()}
        | _markers(key, "trial %{x}: %{text}<br>reward %{y:.4g}")
        for key, shown in _by_origin(report, told).items()
    ]
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "best so far",
            "x": told[line].tolist(),
            "y": _numbers(best[line]),
            "line": {"color": COLOURS[1], "width": 2, "shape": "hv"},
            "hovertemplate": "best up to trial %{x}: %{y:.4g}<extra></extra>",
        }
    )
    return {"data": data, "layout": _layout("trial", "reward")}


def _by_origin(report: Report, told: Any) -> dict[str, Any]:
    """Positions within `told` of the trials to draw, by what chose them."""
    explored = report.trials["explored"].to_numpy()[told]
    observed = report.trials["state"].to_numpy()[told] == "observed"
    drawn = np.arange(told.size) % (1 + told.size // _MOST_POINTS) == 0
    groups = {"model": ~explored & ~observed, "explored": explored & ~observed, "observed": observed}
    return {key: np.flatnonzero(mask & drawn) for key, mask in groups.items() if np.any(mask & drawn)}


def _markers(key: str, hover: str) -> dict[str, Any]:
    name, colour, symbol = _STATES[key]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {"color": colour, "symbol": symbol, "size": 7, "opacity": 0.7},
        "hovertemplate": hover + "<extra></extra>",
    }


def _reward_curve(report: Report) -> Figure:
    curve = report.curve
    assert curve is not None
    x = curve.points.tolist()
    data: list[dict[str, Any]] = []
    if curve.lower is not None and curve.upper is not None:
        edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip"}
        data.append(edge | {"y": _numbers(curve.lower), "showlegend": False})
        name = f"certified band ({100 * (1 - DELTA):g} %)"
        band = {"y": _numbers(curve.upper), "fill": "tonexty", "fillcolor": "rgba(0,114,178,0.15)", "name": name}
        data.append(edge | band)
    if curve.estimate is not None:
        line = {"color": COLOURS[0], "width": 2.5}
        estimate = {"type": "scatter", "mode": "lines", "x": x, "y": _numbers(curve.estimate), "line": line}
        data.append(estimate | {"name": "estimated reward", "hovertemplate": "x = %{x:.4g}: %{y:.4g}<extra></extra>"})
    frame = report.trials
    told = np.flatnonzero(frame["reward"].notna().to_numpy())
    shown = told[np.arange(told.size) % (1 + told.size // _MOST_POINTS) == 0]
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "rewards (darker is later)",
            "x": curve.points[frame["index"].to_numpy()[shown]].tolist(),
            "y": _numbers(frame["reward"].to_numpy()[shown]),
            "text": [str(i) for i in shown],
            "marker": {"color": shown.tolist(), "colorscale": "Oranges", "size": 7, "line": {"width": 0.5}},
            "hovertemplate": "trial %{text}: x = %{x:.4g}, reward %{y:.4g}<extra></extra>",
        }
    )
    layout = _layout("x", "reward")
    _focus(layout, report, curve.estimate, frame["reward"].to_numpy()[told])
    return {"data": data, "layout": layout}


def _focus(layout: dict[str, Any], report: Report, estimate: Any, rewards: Any) -> None:
    """Scale to rewards and estimate (a band can be very wide early on), and mark the recommendation."""
    values = rewards if estimate is None else np.r_[rewards, estimate]
    low, high = float(values.min()), float(values.max())
    margin = 0.25 * (high - low) or 1.0
    layout["yaxis"] |= {"range": [low - margin, high + margin]}
    if report.best is not None:
        at = float(report.best.x)
        line = {"color": COLOURS[2], "dash": "dash", "width": 1.5}
        ends = {"x0": at, "x1": at, "y0": 0, "y1": 1}
        layout["shapes"] = [{"type": "line", "xref": "x", "yref": "paper", "line": line} | ends]
        note = {"x": at, "y": 0, "xref": "x", "yref": "paper", "yanchor": "bottom", "xanchor": "left", "xshift": 4}
        layout["annotations"] = [note | {"text": "recommended", "showarrow": False, "font": {"color": COLOURS[2]}}]
