"""One look for all figures: readable in print and by the colour-blind (Okabe-Ito colours, distinct line styles)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from alexp.common.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31"]
DASHES: list[Any] = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2))]


def new_figure(rows: int = 1, columns: int = 1, width: float = 4.0, height: float = 3.0) -> tuple[Figure, Any]:
    """A figure that draws off screen, and its axes in a (rows, columns) array."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as MatplotlibFigure

    figure = MatplotlibFigure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.5)
    return figure, axes


def save_figure(figure: Figure, path: Path, dpi: int = 150, **options: Any) -> None:
    """Write a figure in the format that the name of the file ends in, as a whole or not at all."""
    with writing(path) as file:
        figure.savefig(file, dpi=dpi, format=path.suffix[1:] or None, **options)
