"""docs/contextual-results.md, from the stored runs of `alexp compare --contextual`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alexp_experiments.contextual.contest import ContextSummary, against, summaries
from alexp_experiments.contextual.entrants import COBA, CONTEXT_ENTRANTS, MIXTURE, OWN, VOWPAL
from alexp_experiments.contextual.text import ENTRANTS, MADE_BY, PROTOCOL

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
    return "\n\n".join([*parts, "## How this page is made", MADE_BY, _libraries(runs)]) + "\n"


def _libraries(runs: pd.DataFrame) -> str:
    """Versions of the other libraries behind the rows."""
    said = []
    for title, group in (("coba", COBA), ("Vowpal Wabbit", VOWPAL)):
        own = runs[runs["entrant"].isin(list(group))]
        versions = sorted({str(one) for one in own["library"].dropna()} - {""}) if "library" in own else []
        if len(own):
            said.append(f"{title}: {', '.join(versions) or 'version not recorded'}")
    return f"Other libraries: {'; '.join(said)}." if said else "No other library has played."


def _verdict(found: dict[tuple[str, str], ContextSummary], streams: list[str]) -> str:
    """One row per stream and rule: what choosing among the sets costs, and how far others are."""
    head = f"| stream | who | regret | best set in hindsight | ratio | within {LIMIT} | best of coba / this | "
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
                "" if alone is None else f"{alone.regret.mean:.4g} ({alone.chosen}, of {alone.n_sets})",
                "" if price is None else str(price),
                "" if price is None else "yes" if price.mean <= LIMIT else "**no**",
                *(_best_of(found, scenario, list(group), name) for group in (COBA, VOWPAL)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    note = "Mean regret; ratios of means with 95% intervals."
    said = [_in_words(found, streams, name) for name in (MIXTURE, "mixture, ucb")]
    return "\n\n".join([*(one for one in said if one), "\n".join(lines), note])


def _in_words(found: dict[tuple[str, str], ContextSummary], streams: list[str], name: str) -> str:
    """What the rows of one rule say: the price of choosing among sets, and who is ahead of whom by the intervals."""
    playing = [scenario for scenario in streams if (scenario, name) in found]
    prices = {s: price for s in playing if (price := against(found, s, name, f"{name}, one set")) is not None}
    parts = []
    if prices:
        over = [f"{s} ({price.mean:.2f})" for s, price in prices.items() if price.mean > LIMIT]
        worst = max(prices, key=lambda s: prices[s].mean)
        text = (
            f"choosing among feature sets costs at most {100 * (LIMIT - 1):.0f}% against the best set in hindsight on "
            f"{len(prices) - len(over)} of {len(prices)} streams"
        )
        parts.append(
            text + (f", more on {', '.join(over)}" if over else f" (most on {worst}, {prices[worst].mean:.2f})")
        )
    for title, group in (("coba", COBA), ("Vowpal Wabbit", VOWPAL)):
        verdicts: dict[str, list[str]] = {"ahead of": [], "behind": [], "not distinguishable from": []}
        for scenario in playing:
            best = _best_learner(found, scenario, list(group))
            times = None if best is None else against(found, scenario, best, name)
            if times is not None:
                word = "ahead of" if times.low > 1.0 else "behind" if times.high < 1.0 else "not distinguishable from"
                verdicts[word].append(scenario)
        said = [f"{word} {title}'s best learner on {', '.join(where)}" for word, where in verdicts.items() if where]
        if said:
            parts.append("it is " + ", ".join(said))
    return f"**{name}**: {'; '.join(parts)}." if parts else ""


def _best_learner(found: dict[tuple[str, str], ContextSummary], scenario: str, names: list[str]) -> str | None:
    """Who of some entrants has the smallest mean regret on a stream."""
    playing = [name for name in names if (scenario, name) in found]
    return min(playing, key=lambda name: found[scenario, name].regret.mean) if playing else None


def _best_of(found: dict[tuple[str, str], ContextSummary], scenario: str, names: list[str], other: str) -> str:
    best = _best_learner(found, scenario, names)
    return "" if best is None else f"{against(found, scenario, best, other)} ({best})"


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
