"""docs/contextual-results.md, from the stored runs of `alexp compare --contextual`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alexp.experiments.contextual.contest import ContextSummary, against, summaries
from alexp.experiments.contextual.entrants import COBA, CONTEXT_ENTRANTS, MIXTURE, OWN, VOWPAL
from alexp.experiments.contextual.text import ENTRANTS, MADE_BY, PROTOCOL

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 1.15  # what choosing among feature sets may cost


def context_report(runs: pd.DataFrame, figure: str) -> str:
    """The page as Markdown; `figure` is the path of the figure as the page should link it."""
    found = summaries(runs)
    streams = list(dict.fromkeys(scenario for scenario, _ in found))
    parts = ["# Rounds with contexts: results", _verdict(found, streams), f"![Regret on each stream]({figure})"]
    parts += ["## The streams", PROTOCOL, "## Who plays", ENTRANTS]
    for scenario in streams:
        rows = runs[runs["scenario"] == scenario]
        seeds = rows["seed"]
        title = f"## {scenario[0].upper()}{scenario[1:]}"
        note = f"{int(rows['rounds'].max()):,} rounds, seeds {int(seeds.min())} to {int(seeds.max())}."
        parts += [title, note, _stream(found, scenario)]
    return "\n\n".join([*parts, "## How this page is made", MADE_BY]) + "\n"


def _verdict(found: dict[tuple[str, str], ContextSummary], streams: list[str]) -> str:
    """One row per stream and rule: what choosing among the sets costs, and how far others are."""
    head = "| stream | who | regret | best set in hindsight | ratio | within 1.15 | best of coba / this | "
    lines = [head + "best of VW / this |", "|---" * 8 + "|"]
    for scenario in streams:
        for name in (MIXTURE, "mixture, ucb"):
            own, alone = found.get((scenario, name)), found.get((scenario, f"{name}, one set"))
            if own is None:
                continue
            price = against(found, scenario, name, f"{name}, one set")
            cells = [
                scenario,
                name,
                f"{own.regret.mean:.4g}",
                "" if alone is None else f"{alone.regret.mean:.4g} ({alone.chosen})",
                "" if price is None else str(price),
                "" if price is None else "yes" if price.mean <= LIMIT else "**no**",
                *(_best_of(found, scenario, list(group), name) for group in (COBA, VOWPAL)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\nMean regret; ratios of means with 95% intervals."


def _best_of(found: dict[tuple[str, str], ContextSummary], scenario: str, names: list[str], other: str) -> str:
    playing = [name for name in names if (scenario, name) in found]
    if not playing:
        return ""
    best = min(playing, key=lambda name: found[scenario, name].regret.mean)
    return f"{against(found, scenario, best, other)} ({best})"


def _stream(found: dict[tuple[str, str], ContextSummary], scenario: str) -> str:
    lines = ["| | regret | × mixture | regret per round, last quarter | ms | set |", "|---" * 6 + "|"]
    for name in CONTEXT_ENTRANTS:
        own = found.get((scenario, name))
        if own is None:
            continue
        times = against(found, scenario, name)
        cells = [
            name if name in OWN else f"*{name}*",
            f"{own.regret.mean:.4g} ± {own.regret.error:.2g}",
            "" if times is None or name == MIXTURE else str(times),
            f"{own.late:.3f}",
            f"{own.ms:.2g}",
            own.chosen,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
