"""The report's section on why a model leads: predictions against measurements, odds, and what decided."""

from __future__ import annotations

from html import escape

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.style import COLOURS
from alexp.study.report.plotly import Part, layout, numbers, text, thinned
from alexp.study.view import Explanation

_DECISIVE = 6  # experiments listed
_LEAST_SHIFT = 0.05  # decades of the odds below which an experiment decided nothing
_MISFIT = 2.0  # standard deviations beyond which a prediction counts as missed
_MOST_ODDS = 300.0  # decades drawn: larger odds say nothing more


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
        "marker": {"color": shown.tolist(), "colorscale": "Blues", "reversescale": True, "size": 8}
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
        "marker": {"color": [COLOURS[1] if abs(z) > _MISFIT else COLOURS[0] for z in scaled], "size": 7},
        "hovertemplate": "%{text}<br>%{y:.2f} standard deviations off<extra></extra>",
        "showlegend": False,
    }
    drawn = layout("rewards told", "standard deviations off")
    drawn["shapes"] = [
        {"type": "rect", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": -_MISFIT, "y1": _MISFIT}
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
    drawn = layout("rewards told", "odds of the leader, powers of ten")
    drawn["shapes"] = [
        {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": {"color": "#888"}}
    ]
    return {"data": [line], "layout": drawn}


def standardised(seen: Explanation) -> FloatArray:
    """(measured - expected) / spread, shape (t,)."""
    return np.asarray((seen.reward - seen.expected) / seen.spread)


def fit_sentence(seen: Explanation) -> str:
    """How well the rewards were foreseen, in words."""
    scaled = standardised(seen)
    scaled = scaled[np.isfinite(scaled)]
    if scaled.size < 5:
        return "Too few rewards to say how well they were foreseen."
    missed = int(np.sum(np.abs(scaled) > _MISFIT))
    fair = 0.05 * scaled.size
    verdict = (
        "about as often as it should"
        if missed <= fair + 2.0 * np.sqrt(fair) + 1.0
        else "more often than the 1 in 20 that it should: the models may lack something"
    )
    return f"{missed} of {scaled.size} rewards lay outside the band of two standard deviations, {verdict}."


def decisive(seen: Explanation) -> list[list[str]]:
    """The experiments that moved the odds most: trial, candidate, measured, expected by both, and the factor."""
    if seen.odds is None or seen.by_runner_up is None:
        return []
    shift = np.diff(seen.odds)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    ranked = [int(k) for k in np.argsort(-np.abs(shift), kind="stable")[:_DECISIVE] if abs(shift[k]) > _LEAST_SHIFT]
    return [
        [
            str(seen.trial[k]),
            seen.label[k],
            f"{seen.reward[k]:.4g}",
            _number(seen.by_leader[k]),
            _number(seen.by_runner_up[k]),
            f"{10.0 ** min(abs(shift[k]), 99.0):.3g} : 1 for {seen.leader if shift[k] > 0.0 else seen.runner_up}",
        ]
        for k in ranked
    ]


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "-"


def odds_sentence(seen: Explanation) -> str:
    """What the rewards say of the two leading models, as HTML."""
    if seen.odds is None or seen.runner_up is None:
        return ""
    now, leader, second = float(seen.odds[-1]), escape(seen.leader), escape(seen.runner_up)
    if not np.isfinite(now):
        return f"<b>{leader}</b> is ahead of {second} beyond all doubt, given these models."
    if abs(now) < np.log10(3.0):
        return f"The rewards do not yet tell <b>{leader}</b> and {second} apart: odds of {10.0**now:.2g} to 1."
    return f"The rewards favour <b>{leader}</b> over {second} by {_factor(now)} to 1."


def _factor(decades: float) -> str:
    return f"{10.0**decades:.3g}" if decades < 6.0 else f"10^{decades:.0f}"
