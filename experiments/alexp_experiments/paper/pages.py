"""docs/reproduction.md and docs/beyond.md: tables, verdicts, figures with their captions, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.files import write_text
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.scenarios import SCALING_DEGREES
from alexp_experiments.core.statistics import STUCK, estimate, is_stuck
from alexp_experiments.core.tasks import Record
from alexp_experiments.paper import claims
from alexp_experiments.paper.claims import Claim, shown_run, stands_out
from alexp_experiments.paper.results import Results
from alexp_experiments.paper.tuning import (
    BETA,
    LASSO_SCALES,
    MAIN_SCENARIOS,
    METHODS,
    MIXTURES,
    SIGNS,
    WIDTHS,
    Attempt,
    Values,
    choose,
)

PROSE = Prose("alexp_experiments.paper", "reproduction.md")
_NAMES = {
    "1": "easy-and-hard",
    "2": "large-class",
    "3": "scaling",
    "4": "dynamics",
    "5": "reward-functions",
    "6": "in-full",
    "7": "hyper-parameters",
}


def stem(name: str, beyond: bool = False) -> str:
    """Name of a figure's files, without what they end in.

    >>> stem("2"), stem("2", beyond=True)
    ('figure-2-large-class', 'beyond-2-large-class')
    """
    return f"{'beyond' if beyond else 'figure'}-{name}-{_NAMES[name]}"


def caption(name: str, results: Results) -> str:
    """What stands below a figure, with what its data say of loud curves and of the true model's rank."""
    own = f"beyond figure {name}"
    passage = own if results.scope.beyond and own in PROSE.names else f"figure {name}"
    text = PROSE.line(passage, shown=shown_run(results) if name == "4" else "")
    if name == "3":
        return " ".join([text, *(f"{said}." for m in results.scope.methods for said in stands_out(results, m))])
    return text


def gallery(results: Results) -> str:
    """All figures with their captions, as Markdown."""
    beyond = results.scope.beyond
    lines = ["## Figures", "", "Each figure is also there as SVG, and its numbers as CSV, under the same name."]
    for name in _NAMES:
        file = f"figures/{stem(name, beyond)}"
        links = f"[SVG]({file}.svg), [data]({file}.csv)"
        lines += ["", f"![Figure {name}]({file}.png)", "", f"**Figure {name}.** {caption(name, results)} {links}"]
    return "\n".join(lines)


HANGS = 0.2  # a mean hangs on stuck runs if leaving them out changes it by more than this share

HEADER = ("| method | mean [95%] | median | worst | stuck | best model found |", "|---|---|---|---|---|---|")


def _curves(records: Sequence[Record]) -> FloatArray:
    return np.array([record.regret for record in records])


class Hanging(NamedTuple):
    """A mean that stuck runs make: how many there are, the mean, and the mean of the other runs."""

    stuck: int
    mean: float
    without: float


def hanging(records: Sequence[Record]) -> Hanging | None:
    """What the mean hangs on, or None if it does not; neither does one of runs that are mostly stuck."""
    curves = _curves(records)
    bad, final = is_stuck(curves), curves[:, -1]
    if not 0 < bad.sum() <= final.size / 2:
        return None
    mean, without = float(final.mean()), float(final[~bad].mean())
    return Hanging(int(bad.sum()), mean, without) if abs(mean - without) > HANGS * mean else None


def row(label: str, records: Sequence[Record]) -> str:
    """One line of a table."""
    curves = _curves(records)
    final = curves[:, -1]
    knows = any(record.recommended >= 0 for record in records)
    found = f"{sum(r.recommended == r.true_model for r in records)}/{len(records)}" if knows else "-"
    return (
        f"| {label} | {estimate(final)} | {np.median(final):.2f} | {final.max():.1f} "
        f"| {int(is_stuck(curves).sum())}/{len(curves)} | {found} |"
    )


def regret_table(runs: Mapping[str, Sequence[Record]]) -> str:
    """Regret by label, and a sentence on every mean that hangs on stuck runs."""
    lines = [*HEADER, *(row(label, records) for label, records in runs.items())]
    weak = {label: found for label, records in runs.items() if (found := hanging(records)) is not None}
    if weak:
        parts = [f"{label} {one.mean:.2f} ({one.without:.2f} without {one.stuck})" for label, one in weak.items()]
        n = len(next(iter(runs.values())))
        lines += ["", PROSE.flow("hanging", n=n, means=", ".join(parts))]
    return "\n".join(lines)


def shown(values: Values) -> str:
    """Constants as text.

    >>> shown({"gamma": 0.01234, "eta": 12.0}), shown({"n0": 14.0, "beta": 0.5})
    ('gamma_0 = 0.0123, eta_0 = 12', 'n_0 = 14, beta = 0.5')
    """
    return ", ".join(f"{SIGNS[name]} = {value:.3g}" for name, value in values.items())


def choices(results: Results) -> str:
    """The section on tuning."""
    by_mean, by_median = choose(results.attempts), choose(results.attempts, lambda one: one.median)
    other = sum(by_median[key] != tried for key, tried in by_mean.items())
    grid = results.scope.grid
    lines = [
        PROSE.flow(
            "choices",
            first=grid.seeds[0],
            last=grid.seeds[-1],
            settings=grid.size,
            widths=grid.n_widths,
            narrow=WIDTHS[0],
            wide=WIDTHS[-1],
            weak=LASSO_SCALES[0],
            strong=LASSO_SCALES[-1],
            seeds=len(grid.seeds),
            other=other,
            made=len(by_mean),
        ),
        "",
        "| problem | method | chosen | mean | median | stuck | width chosen as well | mean | median | stuck |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    found = {(one.key, tuple(one.tried.values.items())): one for one in results.attempts}

    def cells(stage: str, name: str, method: str) -> str:
        tried = by_mean.get((stage, name, method))
        if tried is None:
            return "- | - | - | -"
        one: Attempt = found[(stage, name, method), tuple(tried.values.items())]
        own = tried.values if stage == "grid" else dict(list(tried.values.items())[-1:])
        return f"{shown(own)} | {one.regret.mean:.2f} | {one.median:.2f} | {one.stuck}"

    for name in grid.scenarios:
        for method in grid.methods(name):
            both = f"{cells('grid', name, method)} | {cells('width', name, method)}"
            lines.append(f"| {name} | {METHODS[method].label} | {both} |")
    return "\n".join(lines)


def chosen_width(results: Results, name: str, method: str) -> str:
    """The constant that the second stage chose, as a label says it."""
    values = results.tuned.values(method, name, wide=True)
    key = "lambda" if method == "etc" else "beta"
    return shown({key: values[key]}) if key in values and name in MAIN_SCENARIOS else ""


def why(results: Results) -> str:
    """What the measured figures come from."""
    methods = {method for _, method in results.runs}
    stuck = {
        m: np.concatenate([is_stuck(results.curves(name, m)) for name in MAIN_SCENARIOS])
        for m in ("alexp", "alexp-released", "naive", "oracle", "corral")
    }
    curves = np.concatenate([results.curves(name, "alexp") for name in MAIN_SCENARIOS])
    bad, mixed = stuck["alexp"], bool(stuck["alexp"].any() and not stuck["alexp"].all())
    easy, large = (results.scope.scenario(name) for name in ("easy", "large"))
    released = results.curves("large", "alexp-released")
    lengths = {name: min(int(results.tuned.values("etc", name)["n0"]), released.shape[1]) for name in MAIN_SCENARIOS}
    paid = {name: results.curves(name, "etc")[:, n - 1].mean() for name, n in lengths.items()}
    explored = [100 * (paid[name] / results.final(name, "etc").mean()) for name in MAIN_SCENARIOS]
    per_round = [paid[name] / n for name, n in lengths.items()]
    records = results.runs["large", "alexp"]
    return PROSE.flow(
        "why",
        stuck={method: f"{int(runs.sum())} of {runs.size}" for method, runs in stuck.items()},
        stuck_mean=curves[bad, -1].mean() if mixed else None,
        free=curves[~bad, -1].mean() if mixed else None,
        seeds=len(results.scope.seeds),
        means=len(results.runs),
        weak=sum(hanging(runs) is not None for runs in results.runs.values()),
        hangs=100 * HANGS,
        mean={
            name: {m: _mean(results, name, m) for m in methods if (name, m) in results.runs}
            for name in ("easy", "large")
        },
        easy=easy,
        large=large,
        each=easy.steps / easy.n_models,
        tried=_tried(results),
        released_median=np.median(released[:, -1]),
        released_stuck=int(is_stuck(released).sum()),
        least_paid=min(per_round),
        most_paid=max(per_round),
        least_explored=min(explored),
        most_explored=max(explored),
        polynomials=easy.degree + 1,
        settled=_settled(results),
        beta=BETA,
        naive_both=_both(results, "naive"),
        alexp_both=_both(results, "alexp"),
        near=np.median([int(np.sum(r.snapshot >= 0.5 * r.snapshot.max())) for r in records]),
        models=records[0].snapshot.size,
    )


def _mean(results: Results, name: str, method: str) -> str:
    return f"{results.final(name, method).mean():.1f}"


def _tried(results: Results) -> str | None:
    """What all settings of eta_0 gave on the tuning seeds, if they were run."""
    tried = [[one.regret.mean for one in results.tried("corral", scenario=name)] for name in ("easy", "large")]
    return " and ".join(f"{min(means):.1f} to {max(means):.1f}" for means in tried) if all(tried) else None


def _settled(results: Results) -> int:
    """The round from which Naive UCB's mean regret is 99% of its last, at the latest of the four problems."""
    means = [results.curves(name, "naive").mean(axis=0) for name in MAIN_SCENARIOS]
    return max(int(np.argmax(mean >= 0.99 * mean[-1])) + 1 for mean in means)


def _both(results: Results, method: str) -> str:
    """Mean regret on the main problems, as printed and with the width chosen as well."""
    wide = results.widened()
    return ", ".join(f"{_mean(results, name, method)} -> {_mean(wide, name, method)}" for name in MAIN_SCENARIOS)


class Judged(NamedTuple):
    """A claim with every UCB as wide as in the paper, and, where it is about regret, with widths chosen as well."""

    printed: Claim
    wide: Claim | None = None


def all_claims(results: Results) -> list[Judged]:
    """Every claim, in the order of the paper."""
    wide = results.widened()
    both = [
        *(lambda r, rival=rival: claims.beats(r, rival) for rival in ("etc", "ets", "corral", "naive")),
        claims.competitive,
        claims.correlation,
        claims.lasso_baselines,
    ]
    flat = "Increasing M hardly affects ALExp and Oracle UCB."
    steep = "The other methods become less sample efficient as M grows."
    return [
        *(Judged(rule(results), rule(wide)) for rule in both),
        Judged(claims.scaling(results, ("alexp", "oracle"), flat, grows=False)),
        Judged(claims.scaling(results, ("naive", "etc", "ets", "corral"), steep, grows=True)),
        *(Judged(rule(results)) for rule in (claims.ruled_out, claims.leads, claims.below_quarter)),
        *(Judged(rule(results)) for rule in (claims.best_exploration, claims.robust, claims.transfer)),
    ]


def write_report(results: Results, path: Path) -> Path:
    """Write the report and return its path."""
    found = all_claims(results)
    parts = [_head(results), _summary(found), _regret_tables(results), why(results), _details(found), gallery(results)]
    write_text(path, "\n\n".join([*parts, choices(results), PROSE.flow("deviations")]) + "\n")
    return path


def _head(results: Results, passage: str = "head") -> str:
    scope, grid = results.scope, results.scope.grid
    return PROSE.flow(
        passage,
        seeds=len(scope.seeds),
        first=scope.seeds[0],
        last=scope.seeds[-1],
        example=scope.scenario("easy"),
        tuning_seeds=len(grid.seeds),
        first_tuning=grid.seeds[0],
        last_tuning=grid.seeds[-1],
        settings=grid.size,
        stuck=STUCK,
    )


def _summary(found: Sequence[Judged]) -> str:
    rows = [
        f"| {i} | {one.printed.statement} | **{one.printed.verdict}** | {one.wide.verdict if one.wide else ''} |"
        for i, one in enumerate(found, 1)
    ]
    return "\n".join(["| | claim | as printed | width chosen |", "|---|---|---|---|", *rows])


def _regret_tables(results: Results) -> str:
    lines = [f"## Regret after {results.scope.scenario('easy').steps} rounds"]
    for name in MAIN_SCENARIOS:
        methods = [method for method in METHODS if (name, method) in results.runs]
        plain = {METHODS[method].label: results.runs[name, method] for method in methods}
        wide = {
            f"{METHODS[method].label}, {chosen_width(results, name, method)}": results.wide_runs[name, method]
            for method in methods
            if (name, method) in results.wide_runs
        }
        lines += ["", f"**{name}** (M = {results.scope.scenario(name).n_models}), every width as printed", ""]
        lines += [regret_table(plain), "", f"**{name}**, width chosen as well", "", regret_table(wide)]
    return "\n".join(lines)


def _details(found: Sequence[Judged]) -> str:
    lines = ["## Claim by claim"]
    for i, (claim, wide) in enumerate(found, 1):
        lines += ["", f"### {i}. {claim.statement}", "", f"*{claim.verdict}* - rule: {claim.rule}.", ""]
        lines += [f"- {line}" for line in claim.evidence]
        if wide is not None:
            lines += [
                "",
                f"With widths chosen as well: *{wide.verdict}*.",
                "",
                *(f"- {line}" for line in wide.evidence),
            ]
    return "\n".join(lines)


RIVALS = ("alexp", "naive", "oracle")  # what the mixture is held against seed by seed


def write_beyond(results: Results, path: Path) -> Path:
    """Write the page and return its path."""
    parts = [_head(results, "beyond"), _tables(results), _differences(results), _scaling(results), gallery(results)]
    write_text(path, "\n\n".join(parts) + "\n")
    return path


def _rows(results: Results, name: str) -> dict[str, list[Record]]:
    out = {METHODS[m].label: results.runs[name, m] for m in (*MIXTURES, *RIVALS)}
    for method in RIVALS:
        if (name, method) in results.wide_runs:
            label = f"{METHODS[method].label}, {chosen_width(results, name, method)}"
            out[label] = results.wide_runs[name, method]
    return out


def _tables(results: Results) -> str:
    lines = [f"## Regret after {results.scope.scenario('easy').steps} rounds"]
    for name in MAIN_SCENARIOS:
        title = f"**{name}** (M = {results.scope.scenario(name).n_models})"
        lines += ["", title, "", regret_table(_rows(results, name))]
    return "\n".join(lines)


def _differences(results: Results) -> str:
    ours = METHODS["mixture"].label
    lines = ["## Seed by seed", "", f"{ours} minus each rival, paired by seed, with 95% intervals.", ""]
    lines += ["| problem | rival | difference in mean | ahead in | difference in median |", "|---|---|---|---|---|"]
    for name in MAIN_SCENARIOS:
        mixture = results.final(name, "mixture")
        for label, records in _rows(results, name).items():
            if label in [METHODS[m].label for m in MIXTURES]:
                continue
            theirs = np.array([record.regret[-1] for record in records])
            gap, ahead = estimate(mixture - theirs), int(np.sum(mixture < theirs))
            middle = float(np.median(mixture) - np.median(theirs))
            lines.append(f"| {name} | {label} | {gap} | {ahead}/{mixture.size} | {middle:+.2f} |")
    return "\n".join(lines)


def _scaling(results: Results) -> str:
    names = list(results.sizes)[len(SCALING_DEGREES) :] or list(results.sizes)[-1:]
    methods = ("mixture", "alexp", "naive", "oracle")
    lines = ["## Far larger classes", "", "Mean (median) regret; constants of the others as chosen at p = 13.", ""]
    lines += ["| M | " + " | ".join(METHODS[m].label for m in methods) + " |", "|---|" + "---|" * len(methods)]
    for name in names:
        cells = [f"{(r := results.final(name, m)).mean():.2f} ({np.median(r):.2f})" for m in methods]
        lines.append(f"| {results.sizes[name]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
