"""docs/contextual-results.md and its figure, from the stored runs of `alexp compare --contextual`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.files import write_text
from alexp.common.style import DASHES, legend_below, method_colour, new_figure, save_figure
from alexp_experiments.contextual.contest import (
    ALONE,
    COBA,
    CONTEXT_ENTRANTS,
    KEY,
    MIXTURE,
    OWN,
    VOWPAL,
    ContextContest,
    ContextSummary,
    against,
    moments,
    summaries,
)
from alexp_experiments.core.cache import keep_runs, stored_runs
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.statistics import mean_and_error
from alexp_experiments.core.tasks import Record, Task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_OURS = (MIXTURE, ALONE, "mixture, ucb", "alexp", "lm-ucb", "linucb, all columns")
_COLOUR_OF = {
    MIXTURE: "evidence-mixture",
    ALONE: "evidence-mixture",
    "mixture, ucb": "evidence-mixture, ucb",
    "linucb, all columns": "naive",
}
_PLACES = (*_OURS, "coba", "VW")  # who has which dashes in all panels


def draw_streams(runs: pd.DataFrame, path: Path) -> None:
    """Mean regret with standard errors of ours, and of the best entrant of each other library on that stream."""
    found = summaries(runs)
    streams = list(dict.fromkeys(scenario for scenario, _ in found))
    columns = min(len(streams), 3)
    figure, axes = new_figure(-(-len(streams) // columns), columns, width=4.2, height=4.0)
    for ax, scenario in zip(axes.ravel(), streams, strict=False):
        own = {entrant: one for (title, entrant), one in found.items() if title == scenario}
        rounds = int(runs.loc[runs["scenario"] == scenario, "rounds"].max())
        _panel(ax, own, rounds)
        ax.set(title=scenario, xlabel="round t", ylabel="cumulative regret")
    for ax in axes.ravel()[len(streams) :]:
        ax.set_visible(False)
    save_figure(figure, path)


def _panel(ax: Axes, own: dict[str, ContextSummary], rounds: int) -> None:
    for label, name, place in _shown(own):
        mean, error = mean_and_error(own[name].curves)
        k = _PLACES.index(place)
        colour = method_colour(_COLOUR_OF.get(place, place))
        ax.plot(moments(rounds), mean, color=colour, ls=DASHES[k % len(DASHES)], label=label)
        ax.fill_between(moments(rounds), mean - error, mean + error, color=colour, alpha=0.15, lw=0)
    ax.set_ylim(bottom=0.0)
    legend_below(ax, 2, 7)


def _shown(own: dict[str, ContextSummary]) -> Iterator[tuple[str, str, str]]:
    """Legend, entrant and place of every curve: ours, and the best learner of each other library."""
    for name in _OURS:
        if name in own:
            yield f"mixture, {own[name].chosen} alone" if name == ALONE else name, name, name
    for place, group in (("coba", COBA), ("VW", VOWPAL)):
        playing = [name for name in group if name in own]
        if playing:
            best = min(playing, key=lambda name: own[name].regret.mean)
            yield best, best, place


PROSE = Prose("alexp_experiments.contextual", "contextual-results.md")
LIMIT = 1.15  # what choosing among feature sets may cost


def context_report(runs: pd.DataFrame, figure: str) -> str:
    """The page as Markdown; `figure` is the path of the figure as the page should link it."""
    found = summaries(runs)
    streams = list(dict.fromkeys(scenario for scenario, _ in found))
    sections = []
    for scenario in streams:
        rows = runs[runs["scenario"] == scenario]
        title, seeds, rounds = scenario[0].upper() + scenario[1:], rows["seed"], int(rows["rounds"].max())
        first, last = int(seeds.min()), int(seeds.max())
        sections.append(
            PROSE("stream", title=title, rounds=rounds, first=first, last=last, table=_stream(found, scenario))
        )
    text = PROSE(
        "page",
        verdict=_verdict(found, streams),
        figure=figure,
        streams="\n\n".join(sections),
        libraries=_libraries(runs),
    )
    return text + "\n"


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


COMMAND = "alexp compare --contextual"
RUNS, FIGURE, PAGE = "contextual-results.csv", "figures/contextual.png", "contextual-results.md"


def add_context_runs(contest: ContextContest, sweep: Callable[[list[Task]], list[Record]], out: Path) -> pd.DataFrame:
    """Run a contest and add its rows to those in `out`."""
    new = contest.run(sweep)
    keep_runs(new, out / RUNS, COMMAND, KEY)
    return new


def write_context_pages(out: Path) -> Iterator[Path]:
    """Page and figure from the runs in `out`; yields what was written."""
    runs = stored_runs(out / RUNS, COMMAND)
    yield out / RUNS
    draw_streams(runs, out / FIGURE)
    yield out / FIGURE
    write_text(out / PAGE, context_report(runs, FIGURE))
    yield out / PAGE
