"""One look for all figures: readable in print and by the colour-blind (Okabe-Ito colours, distinct line styles)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alexp.common.extras import require
from alexp.common.files import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31"]
# One colour per method in every figure, by the name of its algorithm or alias; variants of a method differ in dashes.
METHOD_COLOURS = {
    "alexp": "#0072B2",
    "alexp-released": "#0072B2",
    "evidence-mixture": "#882255",
    "evidence-mixture, ucb": "#CC79A7",
    "mixture-thompson": "#9467BD",
    "lm-ucb": "#332288",
    "oracle": "#000000",
    "naive": "#E69F00",
    "uniform": "#A6A6A6",
    "etc": "#009E73",
    "ets": "#56B4E9",
    "corral": "#D55E00",
    "corral-own": "#CC79A7",
    "corral-released": "#8C6D31",
    "exp4-ix": "#7F7F7F",
    "exp4-ls": "#AA4499",
    "o2cs-ew": "#661100",
    "modcb": "#5D3FD3",
    "lasso-bandit": "#CC6677",
    "sa-lasso": "#44AA99",
    "th-lasso": "#6699CC",
    "dr-lasso": "#999933",
    "estc": "#117733",
    "popart": "#7FB800",
    "coba": "#117733",
    "VW": "#8C6D31",
    "EDBO": "#D55E00",
    "chemists": "#555555",
}
_OTHERS = ["#8C6D31", "#CC6677", "#44AA99", "#117733", "#9467BD", "#661100"]  # for methods without one of their own
DASHES: list[Any] = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2))]


def new_figure(rows: int = 1, columns: int = 1, width: float = 4.0, height: float = 3.0) -> tuple[Figure, Any]:
    """A figure that draws off screen, and its axes in a (rows, columns) array."""
    require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as MatplotlibFigure

    figure = MatplotlibFigure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        uncluttered(ax)
    return figure, axes


def shown_figure(columns: int = 1, width: float = 4.0, height: float = 3.0) -> Any:
    """Axes (columns,) of a figure that notebooks show, and `matplotlib.pyplot.show()`."""
    require("matplotlib")
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, columns, figsize=(width * columns, height), layout="constrained", squeeze=False)
    for ax in axes[0]:
        uncluttered(ax)
    return axes[0]


def uncluttered(ax: Axes) -> None:
    """Leave out what carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.5)


def method_colour(name: str, place: int = 0) -> str:
    """The colour of a method; one that has none gets another by its place among the curves.

    >>> method_colour("alexp"), method_colour("my-own", 1)
    ('#0072B2', '#CC6677')
    """
    return METHOD_COLOURS.get(name, _OTHERS[place % len(_OTHERS)])


def legend_below(ax: Axes, columns: int = 2, fontsize: float = 8) -> None:
    """A legend below the axes and their label, where no curve can be."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=columns, frameon=False, fontsize=fontsize)


def save_figure(figure: Figure, path: Path, dpi: int = 150, metadata: Mapping[str, str | None] | None = None) -> None:
    """Write a figure in the format that the name of the file ends in, as a whole or not at all."""
    with writing(path) as file:
        figure.savefig(file, dpi=dpi, format=path.suffix[1:] or None, metadata=metadata)
