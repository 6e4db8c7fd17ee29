"""docs/contextual-results.md and its figure, from the stored runs of `alexp compare --contextual`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.files import write_text
from alexp.common.style import DASHES, method_colour, new_figure, save_figure
from alexp_experiments.contextual.contest import (
    ALONE,
    COBA,
    CONTEXT_ENTRANTS,
    KEY,
    MIXTURE,
    OWN,
    VOWPAL,
    VOWPAL_DEFAULTS,
    ContextContest,
    ContextSummary,
    against,
    moments,
    summaries,
)
from alexp_experiments.contextual.streams import TABLES
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


_LABELS = {
    MIXTURE: "EvidenceMixture",
    ALONE: "EvidenceMixture, best set in hindsight",
    "mixture, ucb": 'EvidenceMixture, rule="ucb"',
    "mixture, ucb, one set": 'EvidenceMixture, rule="ucb", best set in hindsight',
    "mixture-thompson": "MixtureThompson",
    "alexp": "ALExp",
    "lm-ucb": "LM-UCB",
    "linucb, all columns": "LinUCB, all columns",
    "linucb, one set": "LinUCB, best set in hindsight",
    "uniform": "random play",
    "coba": "best of coba",
    "VW": "best of VW",
}


def draw_streams(runs: pd.DataFrame, path: Path) -> None:
    """Mean regret with standard errors of ours, and of the best entrant of each other library on that stream."""
    found = summaries(runs)
    streams = list(dict.fromkeys(scenario for scenario, _ in found))
    columns = min(len(streams), 4)
    figure, axes = new_figure(-(-len(streams) // columns), columns, width=3.6, height=3.1)
    for ax, scenario in zip(axes.ravel(), streams, strict=False):
        own = {entrant: one for (title, entrant), one in found.items() if title == scenario}
        rounds = int(runs.loc[runs["scenario"] == scenario, "rounds"].max())
        _panel(ax, own, rounds)
        ax.set(title=scenario, xlabel="round t", ylabel="cumulative regret")
    for ax in axes.ravel()[len(streams) :]:
        ax.set_visible(False)
    seen = {label: handle for ax in axes.ravel() for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(seen.values(), seen.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def _panel(ax: Axes, own: dict[str, ContextSummary], rounds: int) -> None:
    for name, place in _shown(own):
        mean, error = mean_and_error(own[name].curves)
        k = _PLACES.index(place)
        colour = method_colour(_COLOUR_OF.get(place, place))
        ax.plot(moments(rounds), mean, color=colour, ls=DASHES[k % len(DASHES)], label=_LABELS[place])
        ax.fill_between(moments(rounds), mean - error, mean + error, color=colour, alpha=0.15, lw=0)
    ax.set_ylim(bottom=0.0)


def _shown(own: dict[str, ContextSummary]) -> Iterator[tuple[str, str]]:
    """Entrant and place of every curve: ours, and the best learner of each other library."""
    yield from ((name, name) for name in _OURS if name in own)
    for place, group in (("coba", COBA), ("VW", VOWPAL)):
        playing = [name for name in group if name in own]
        if playing:
            yield min(playing, key=lambda name: own[name].regret.mean), place


PROSE = Prose("alexp_experiments.contextual", "contextual-results.md")
LIMIT = 1.15  # what choosing among feature sets may cost


def context_report(runs: pd.DataFrame, figure: str) -> str:
    """The page as Markdown; `figure` is the path of the figure as the page should link it."""
    found = summaries(runs)
    streams = list(dict.fromkeys(scenario for scenario, _ in found))
    said = [_in_words(found, streams, name) for name in RULES]
    text = PROSE.line(
        "page",
        verdict="\n".join(f"- {one}" for one in said if one),
        figure=figure,
        n_coba=len(COBA),
        n_vw=len(VOWPAL),
        prices=_prices(found, streams),
        settings=_beside_settings(found, [one for one in TABLES if one in streams]),
        table=_table(runs, found, streams),
        first=int(runs["seed"].min()),
        last=int(runs["seed"].max()),
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


RULES = (MIXTURE, "mixture, ucb")


def _prices(found: dict[tuple[str, str], ContextSummary], streams: list[str]) -> str:
    """One row per stream: what choosing among the sets costs, and how far others are, for both rules."""
    titles = [f"{what}{rule}" for what in ("cost of choosing", "coba / ours", "VW / ours") for rule in ("", ", ucb")]
    lines = ["| stream | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    for scenario in streams:
        cells = [against(found, scenario, name, f"{name}, one set") for name in RULES]
        for group in (COBA, VOWPAL):
            best = _best_learner(found, scenario, list(group))
            cells += [None if best is None else against(found, scenario, best, name) for name in RULES]
        lines.append(f"| {scenario} | " + " | ".join("" if one is None else str(one) for one in cells) + " |")
    return "\n".join(lines)


def _beside_settings(found: dict[tuple[str, str], ContextSummary], streams: list[str]) -> str:
    """Regret of both rules over that of the best default of coba and VW, and of VW's best setting; geometric means."""
    groups = {"best default": [*COBA, *VOWPAL_DEFAULTS], "best setting of VW": list(VOWPAL)}
    titles = [f"{_LABELS[name]} / {title}" for title in groups for name in RULES]
    lines = ["| stream | best default | best setting of VW | " + " | ".join(titles) + " |", "|---" * 7 + "|"]
    logs: dict[tuple[str, str], list[float]] = {}
    for scenario in streams:
        best = {title: _best_learner(found, scenario, names) for title, names in groups.items()}
        cells = [name or "" for name in best.values()]
        for title, other in best.items():
            for name in RULES:
                times = None if other is None else against(found, scenario, name, other)
                cells.append("" if times is None else str(times))
                if times is not None:
                    logs.setdefault((title, name), []).append(log(times.mean))
        lines.append(f"| {scenario} | " + " | ".join(cells) + " |")
    means = [logs.get((title, name), []) for title in groups for name in RULES]
    shown = [f"{exp(sum(own) / len(own)):.2f}" if own else "" for own in means]
    return "\n".join([*lines, "| geometric mean | | | " + " | ".join(shown) + " |"])


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
        verdicts: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
        for scenario in playing:
            best = _best_learner(found, scenario, list(group))
            times = None if best is None else against(found, scenario, best, name)
            if times is not None:
                word = "ahead" if times.low > 1.0 else "behind" if times.high < 1.0 else "level"
                verdicts[word].append(scenario)
        total = sum(map(len, verdicts.values()))
        said = [f"{word} on {len(where)}" for word, where in verdicts.items() if where]
        lost = f" ({'; '.join(verdicts['behind'])})" if verdicts["behind"] else ""
        if said:
            parts.append(f"beside {title}'s best learner it is {', '.join(said)} of {total} streams{lost}")
    return f"**{_LABELS[name]}**: {'; '.join(parts)}." if parts else ""


def _best_learner(found: dict[tuple[str, str], ContextSummary], scenario: str, names: list[str]) -> str | None:
    """Who of some entrants has the smallest mean regret on a stream."""
    playing = [name for name in names if (scenario, name) in found]
    return min(playing, key=lambda name: found[scenario, name].regret.mean) if playing else None


def _table(runs: pd.DataFrame, found: dict[tuple[str, str], ContextSummary], streams: list[str]) -> str:
    """Mean regret of ours, and of the best of other libraries, on every stream; headings have the number of rounds."""
    rounds = {scenario: int(runs.loc[runs["scenario"] == scenario, "rounds"].max()) for scenario in streams}
    titles = [f"{scenario} ({rounds[scenario]:,})" for scenario in streams]
    lines = ["| method | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    best = {_best_learner(found, scenario, list(group)) for scenario in streams for group in (COBA, VOWPAL)}
    for name in (one for one in CONTEXT_ENTRANTS if one in OWN or one in best):
        cells = [found.get((scenario, name)) for scenario in streams]
        if any(one is not None for one in cells):
            means = ["" if one is None else f"{one.regret.mean:.4g}" for one in cells]
            lines.append(f"| {_LABELS[name] if name in OWN else name} | " + " | ".join(means) + " |")
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
