"""Names of the figures' files, and what stands below them."""

from __future__ import annotations

import textwrap

from alexp_experiments.paper.claims.dynamics import shown_run
from alexp_experiments.paper.claims.regret import stands_out
from alexp_experiments.paper.results import Results

_NAMES = {
    "1": "easy-and-hard",
    "2": "large-class",
    "3": "scaling",
    "4": "dynamics",
    "5": "reward-functions",
    "6": "in-full",
    "7": "hyper-parameters",
}

CAPTIONS = {
    "1": "Easy and hard problems: mean cumulative regret, shaded by one standard error. Where Corral leaves a panel, "
    "Figure 6 shows it whole.",
    "2": "A large class, M = 165.",
    "3": "Growing M: every method at M = 45 to 91 (own vertical scales), and regret after 100 rounds far beyond.",
    "4": "Dynamics at M = 165: q at t = 20 in the run of ALExp with median regret, models that have played, and q of "
    "the true model.",
    "5": "Reward functions of the first four seeds.",
    "6": "All methods in full on a logarithmic scale, with three readings of Corral and the released code's ALExp; "
    "regret below 0.5 is cut off.",
    "7": "Every hyper-parameter that was tried, on the tuning seeds.",
}
BEYOND = CAPTIONS | {
    "4": "q over the models at t = 20, of ALExp and of the mixture, in the run in which ALExp has median regret; and q "
    "of the true model.",
    "5": "Reward of the first seed, and what was measured in the first 20 rounds: ALExp's below the curve, the "
    "mixture's above it.",
    "6": "The methods of Figures 1 and 2 in full on a logarithmic scale; regret below 0.5 is cut off.",
    "7": "Every hyper-parameter that was tried, on the tuning seeds; dotted, the mixture with its defaults and nothing "
    "stated.",
}


def stem(name: str, beyond: bool = False) -> str:
    """Name of a figure's files, without what they end in.

    >>> stem("2"), stem("2", beyond=True)
    ('figure-2-large-class', 'beyond-2-large-class')
    """
    return f"{'beyond' if beyond else 'figure'}-{name}-{_NAMES[name]}"


def caption(name: str, results: Results) -> str:
    """What stands below a figure, with what its data say of loud curves and of the true model's rank."""
    text = (BEYOND if results.scope.beyond else CAPTIONS)[name]
    if name == "3":
        text = " ".join(
            [text, *(f"{said}." for method in results.scope.methods for said in stands_out(results, method))]
        )
    if name == "4":
        text += f" The true model: {shown_run(results)} (claim 11 is about all runs)."
    return text


def gallery(results: Results) -> str:
    """All figures with their captions, as Markdown."""
    beyond = results.scope.beyond
    lines = ["## Figures", "", "Each figure is also there as SVG, and its numbers as CSV, under the same name."]
    for name in CAPTIONS:
        file = f"figures/{stem(name, beyond)}"
        links = f"[SVG]({file}.svg), [data]({file}.csv)"
        lines += ["", f"![Figure {name}]({file}.png)", "", f"**Figure {name}.** {caption(name, results)} {links}"]
    return "\n".join(lines)


def flow(text: str, indent: str = "") -> str:
    """Text as one paragraph of lines of at most 118 characters."""
    return textwrap.fill(" ".join(text.split()), 118, subsequent_indent=indent, break_on_hyphens=False)


def item(title: str, text: str) -> str:
    """A point of a list, its title in bold."""
    return flow(f"- **{title}** {text}", indent="  ")
