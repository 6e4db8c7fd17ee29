"""Pieces of figures, as the data and layout that Plotly draws."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray, IntArray

Part = dict[str, Any]  # of a figure: Plotly's own JSON

_MOST_POINTS = 4000  # markers drawn; more make the page slow without showing more


def layout(x: str, y: str) -> Part:
    """Axes with these titles, and everything else as it is on all figures."""
    axis = {"zeroline": False, "showline": True, "linecolor": "#888", "gridcolor": "#e6e6e6", "ticks": "outside"}
    return {
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


def numbers(values: FloatArray) -> list[float | None]:
    """JSON has no NaN; Plotly leaves a gap where it finds null."""
    return [None if not np.isfinite(value) else float(value) for value in values]


def text(value: str) -> str:
    """Plotly reads some HTML in labels; a user's name must stay what it is."""
    return escape(value, quote=False)


def thinned(n: int) -> IntArray:
    """Which of n points to draw."""
    return np.arange(0, n, 1 + n // _MOST_POINTS)
