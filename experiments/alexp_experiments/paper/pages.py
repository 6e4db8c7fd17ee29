"""docs/reproduction.md and docs/beyond.md: verdicts, every claim with its figure and numbers, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from alexp.common.arrays import FloatArray
from alexp.common.files import write_text
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.scenarios import SCALING_DEGREES
from alexp_experiments.core.statistics import (
    STUCK,
    MeanEstimate,
    difference,
    estimate,
    growth_exponent,
    is_stuck,
    ratio,
)
from alexp_experiments.core.tasks import Record
from alexp_experiments.paper import claims
from alexp_experiments.paper.claims import Claim, stands_out
from alexp_experiments.paper.results import Results
from alexp_experiments.paper.tuning import (
    LONGER,
    MAIN_SCENARIOS,
    METHODS,
    MIXTURES,
    PAPER,
    SIGNS,
    Values,
    choose,
)

PROSE = Prose("alexp_experiments.paper", "reproduction.md")
TITLES = {"easy": "easy", "hard-printed": "hard as printed", "hard-meant": "hard as meant", "large": "large"}
_NAMES = {
    "1": "easy-and-hard",
    "2": "large-class",
    "3": "scaling",
    "4": "dynamics",
    "5": "reward-functions",
    "6": "in-full",
    "7": "hyper-parameters",
    "8": "longer-runs",
}


def stem(name: str, beyond: bool = False) -> str:
    """Name of a figure's files, without what they end in.

    >>> stem("2"), stem("2", beyond=True)
    ('figure-2-large-class', 'beyond-2-large-class')
    """
    return f"{'beyond' if beyond else 'figure'}-{name}-{_NAMES[name]}"


def picture(name: str, results: Results, about: str) -> str:
    """A figure of the page; its words say what is in it."""
    return f"![{about}](figures/{stem(name, results.scope.beyond)}.png)"


HANGS = 0.2  # a mean hangs on stuck runs if leaving them out changes it by more than this share


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


def cell(records: Sequence[Record]) -> str:
    """Mean with its interval, median and stuck runs."""
    curves = _curves(records)
    return f"{estimate(curves[:, -1])}, {np.median(curves[:, -1]):.2f}, {int(is_stuck(curves).sum())}"


def regret_grid(rows: Mapping[str, Sequence[Sequence[Record] | None]], names: Sequence[str] = MAIN_SCENARIOS) -> str:
    """Methods by problems; a problem that a method has not played is left empty."""
    lines = [f"| method | {' | '.join(TITLES[name] for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for label, runs in rows.items():
        lines.append(f"| {label} | " + " | ".join("" if one is None else cell(one) for one in runs) + " |")
    return "\n".join(lines)


def regret_table(results: Results) -> pd.DataFrame:
    """Every method on the four problems, as printed and with its width tuned: one row each."""
    rows = []
    for width, runs in (("as printed", results.runs), ("tuned", results.wide_runs)):
        for (name, method), records in runs.items():
            if name not in MAIN_SCENARIOS:
                continue
            final, found = _curves(records)[:, -1], estimate(_curves(records)[:, -1])
            weak = hanging(records)
            rows.append(
                {
                    "problem": name,
                    "width": width,
                    "method": METHODS[method].label,
                    "constants": shown(results.tuned.values(method, name, wide=width == "tuned")),
                    "mean": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "median": np.median(final),
                    "worst": final.max(),
                    "stuck": int(is_stuck(_curves(records)).sum()),
                    "mean without stuck runs": final.mean() if weak is None else weak.without,
                    "true model recommended": sum(r.recommended == r.true_model for r in records),
                    "runs": len(records),
                }
            )
    return pd.DataFrame(rows)


def shown(values: Values) -> str:
    """Constants as text.

    >>> shown({"gamma": 0.01234, "eta": 12.0}), shown({"n0": 14.0, "beta": 0.5})
    ('gamma_0 = 0.0123, eta_0 = 12', 'n_0 = 14, beta = 0.5')
    """
    return ", ".join(f"{SIGNS[name]} = {value:.3g}" for name, value in values.items())


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
    short = {pair: runs for pair, runs in results.runs.items() if not pair[0].endswith(LONGER)}
    return PROSE.line(
        "why",
        stuck={method: f"{int(runs.sum())} of {runs.size}" for method, runs in stuck.items()},
        stuck_mean=curves[bad, -1].mean() if mixed else None,
        free=curves[~bad, -1].mean() if mixed else None,
        seeds=len(results.scope.seeds),
        means=len(short),
        weak=sum(hanging(runs) is not None for runs in short.values()),
        hangs=100 * HANGS,
        mean={
            name: {m: _mean(results, name, m) for m in methods if (name, m) in results.runs}
            for name in ("easy", "large")
        },
        large=large,
        least_paid=min(per_round),
        most_paid=max(per_round),
        least_explored=min(explored),
        most_explored=max(explored),
        polynomials=easy.degree + 1,
        naive_both=_both(results, "naive"),
        alexp_both=_both(results, "alexp"),
        near=np.median([int(np.sum(r.snapshot >= 0.5 * r.snapshot.max())) for r in records]),
        models=records[0].snapshot.size,
    )


def _mean(results: Results, name: str, method: str) -> str:
    return f"{results.final(name, method).mean():.1f}"


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


def write_report(results: Results, out: Path) -> list[Path]:
    """Write the page and its tables, and return their paths."""
    found = all_claims(results)
    claims_file, regret_file, page = (
        out / name for name in ("reproduction-claims.csv", "reproduction-regret.csv", "reproduction.md")
    )
    write_text(claims_file, _claims_table(found).to_csv(index=False, lineterminator="\n"))
    table = regret_table(results)
    write_text(regret_file, table.to_csv(index=False, float_format="%.5g", lineterminator="\n"))
    parts = [
        _head(results, found),
        _summary(found),
        _regret(results),
        _scaling(results, found),
        _dynamics(results, found),
    ]
    parts += [_parameters(results, found), _longer(results), why(results), _measured(results)]
    write_text(page, "\n\n".join(parts) + "\n")
    return [claims_file, regret_file, page]


def _claims_table(found: Sequence[Judged]) -> pd.DataFrame:
    """Every claim with its rule and all that was measured, a row per piece of evidence."""
    rows = []
    for number, judged in enumerate(found, 1):
        for width, claim in (("as printed", judged.printed), ("tuned", judged.wide)):
            for line in claim.evidence if claim is not None else ():
                assert claim is not None
                rows.append((number, claim.statement, width, claim.verdict, claim.rule, line))
    return pd.DataFrame(rows, columns=["claim", "statement", "width", "verdict", "rule", "evidence"])


def _head(results: Results, found: Sequence[Judged]) -> str:
    verdicts = Counter(one.printed.verdict for one in found)
    stuck = np.concatenate([is_stuck(results.curves(name, "alexp")) for name in MAIN_SCENARIOS])
    wins = {rival: _wins(results, rival) for rival in RIVALS_OF_ALEXP}
    better = [rival for rival, won in wins.items() if won == len(MAIN_SCENARIOS)]
    unclear = [rival for rival in wins if rival not in better]
    parts = [f"less regret than {_labels(better)} on all four problems"] if better else []
    parts += [f"less than {METHODS[one].label} on {wins[one]}" for one in unclear]
    return PROSE.line(
        "head",
        seeds=len(results.scope.seeds),
        claims=len(found),
        holds=verdicts[claims.HOLDS],
        partly=verdicts[claims.PARTLY],
        open=f"{verdicts[claims.OPEN]} are not shown, " if verdicts[claims.OPEN] else "",
        fails=verdicts[claims.FAILS],
        short=", and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts),
        stuck_runs=f"{int(stuck.sum())} of {stuck.size}",
    )


RIVALS_OF_ALEXP = ("etc", "ets", "corral", "naive")


def _wins(results: Results, rival: str) -> int:
    """On how many of the four problems ALExp has less regret, by the interval of the paired difference."""
    gaps = [estimate(results.final(name, "alexp") - results.final(name, rival)) for name in MAIN_SCENARIOS]
    return sum(gap.high < 0.0 for gap in gaps)


def _labels(methods: Sequence[str]) -> str:
    return " and ".join(METHODS[method].label for method in methods)


def _summary(found: Sequence[Judged]) -> str:
    rows = [
        f"| {i} | {one.printed.statement} | **{one.printed.verdict}** | {one.wide.verdict if one.wide else ''} |"
        for i, one in enumerate(found, 1)
    ]
    return "\n".join(["| | claim | as printed | width tuned |", "|---|---|---|---|", *rows])


def _bold(gap: MeanEstimate) -> str:
    """A difference; bold where its interval excludes zero."""
    return f"**{gap}**" if gap.high < 0.0 or gap.low > 0.0 else str(gap)


def differences(pairs: Mapping[str, tuple[Results, str, str]]) -> str:
    """One method minus another, paired by seed: rows by label, columns by problem."""
    titles = " | ".join(TITLES[name] for name in MAIN_SCENARIOS)
    lines = [f"| minus | {titles} |", "|---" * (len(MAIN_SCENARIOS) + 1) + "|"]
    for label, (results, ours, theirs) in pairs.items():
        gaps = [estimate(results.final(name, ours) - results.final(name, theirs)) for name in MAIN_SCENARIOS]
        lines.append(f"| {label} | " + " | ".join(_bold(gap) for gap in gaps) + " |")
    return "\n".join(lines)


def _regret(results: Results) -> str:
    wide = results.widened()
    methods = [method for method in METHODS if method in PAPER]
    rows = {METHODS[m].label: [results.runs.get((name, m)) for name in MAIN_SCENARIOS] for m in methods}
    lasso = [
        f"{METHODS[rival].label} {_excess(results, rival, name)} on {TITLES[name]}"
        for rival in ("etc", "ets")
        for name in claims.HARD
    ]
    lines = [f"| ALExp / Oracle UCB | {' | '.join(TITLES[name] for name in MAIN_SCENARIOS)} |", "|---" * 5 + "|"]
    for title, of, centre in (
        ("means", results, np.mean),
        ("medians", results, np.median),
        ("means, width tuned", wide, np.mean),
        ("medians, width tuned", wide, np.median),
    ):
        both = [(of.final(name, "alexp"), of.final(name, "oracle")) for name in MAIN_SCENARIOS]
        lines.append(f"| {title} | " + " | ".join(str(ratio(a, b, centre=centre)) for a, b in both) + " |")
    return PROSE.line(
        "regret",
        figures=picture("1", results, "Regret of six methods on the easy and the hard problems")
        + "\n\n"
        + picture("2", results, "Regret of six methods on the large class"),
        n=results.scope.scenario("easy").steps,
        seeds=len(results.scope.seeds),
        table=regret_grid(rows),
        differences=differences({METHODS[one].label: (results, "alexp", one) for one in RIVALS_OF_ALEXP}),
        ratios="\n".join(lines),
        lasso="; ".join(lasso),
    )


def _excess(results: Results, rival: str, name: str) -> MeanEstimate:
    """By how much the distance to the oracle is larger on a problem than on the easy one."""
    here, easy = (results.final(one, rival) - results.final(one, "oracle") for one in (name, "easy"))
    return difference(here, easy)


def _sizes_table(results: Results, methods: Sequence[str], names: Sequence[str]) -> str:
    sizes = results.sizes
    head = " | ".join(f"M = {sizes[name]}" for name in names)
    lines = [f"| mean (median) | {head} | exponent in M |", "|---" * (len(names) + 2) + "|"]
    for method in methods:
        finals = {name: results.final(name, method) for name in sizes}
        cells = [f"{finals[name].mean():.2f} ({np.median(finals[name]):.2f})" for name in names]
        exponent = growth_exponent(list(sizes.values()), list(finals.values()))
        lines.append(f"| {METHODS[method].label} | {' | '.join(cells)} | {exponent} |")
    return "\n".join(lines)


def _loud(results: Results, methods: Sequence[str]) -> str:
    """A sentence on every method and M that stands out, and one where none does."""
    said = [f"{one}." for method in methods for one in stands_out(results, method)]
    return " ".join(said) or "No size stands out."


def _scaling(results: Results, found: Sequence[Judged]) -> str:
    near = list(results.sizes)[: len(SCALING_DEGREES)]
    names = list(dict.fromkeys([near[0], near[-1], *list(results.sizes)[len(near) :][-1:]]))
    return PROSE.line(
        "scaling",
        figure=picture("3", results, "Regret of six methods as the number of models grows"),
        loud=_loud(results, results.scope.methods),
        n=results.scope.scenario("easy").steps,
        table=_sizes_table(results, results.scope.methods, names),
        flat=found[7].printed.verdict,
        steep=found[8].printed.verdict,
    )


def _dynamics(results: Results, found: Sequence[Judged]) -> str:
    own = {number: found[number - 1].printed for number in (10, 11, 12)}
    points = [f"- **Claim {k}** *{one.verdict}*: {'; '.join(one.evidence)}." for k, one in own.items()]
    return PROSE.line(
        "dynamics",
        figure=picture("4", results, "Probabilities of the models at round 20 and over time"),
        claims="\n".join(points),
    )


def _parameters(results: Results, found: Sequence[Judged]) -> str:
    exploration, _, transfer = (found[number - 1].printed for number in (13, 14, 15))
    found_shares = claims.robust_shares(results).items()
    titles = {name: TITLES.get(name, f"s = 2, M = {results.scope.scenario(name).n_models}") for name, _ in found_shares}
    shares = ", ".join(f"{titles[name]} {100 * share:.0f}%" for name, share in found_shares)
    return PROSE.line(
        "parameters",
        figure=picture("7", results, "Mean regret for every hyper-parameter that was tried"),
        exploration=f"*{exploration.verdict}*: {exploration.evidence[-1]}",
        robust=f"{shares}: *{found[13].printed.verdict}*",
        transfer=f"*{transfer.verdict}*: {transfer.evidence[-1]}",
    )


def _longer_table(results: Results, methods: Sequence[str]) -> str:
    short, long = (results.scope.scenario(name).steps for name in ("easy", f"easy{LONGER}"))
    titles = " | ".join(f"{TITLES[name]}: {short}, {long}" for name in MAIN_SCENARIOS)
    lines = [f"| mean (median) after | {titles} |", "|---" * (len(MAIN_SCENARIOS) + 1) + "|"]
    for method in methods:
        cells = []
        for name in MAIN_SCENARIOS:
            curves = results.curves(f"{name}{LONGER}", method)
            both = [f"{curves[:, n - 1].mean():.1f} ({np.median(curves[:, n - 1]):.1f})" for n in (short, long)]
            cells.append(", ".join(both) + f", {int(is_stuck(curves).sum())} stuck")
        lines.append(f"| {METHODS[method].label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _passed(results: Results) -> str:
    """From which round on ALExp's mean is above that of Naive UCB, where it ends there."""
    rounds = []
    for name in MAIN_SCENARIOS:
        ours, theirs = (results.curves(f"{name}{LONGER}", m).mean(axis=0) for m in ("alexp", "naive"))
        if ours[-1] > theirs[-1]:
            rounds.append(int(np.max(np.flatnonzero(ours <= theirs), initial=-1)) + 2)
    if not rounds:
        return ""
    when = f"round {rounds[0]}" if len(set(rounds)) == 1 else f"rounds {min(rounds)} to {max(rounds)}"
    return f"ALExp's mean passes that of Naive UCB on {len(rounds)} of {len(MAIN_SCENARIOS)} problems, at {when}. "


def _longer(results: Results) -> str:
    n = results.scope.scenario("easy").steps
    curves = np.concatenate([results.curves(f"{name}{LONGER}", "alexp") for name in MAIN_SCENARIOS])
    stuck, rise = is_stuck(curves[:, :n]), curves[:, -1] - curves[:, n - 1]
    return PROSE.line(
        "longer",
        figure=picture("8", results, "Regret over four times as many rounds"),
        n=n,
        passed=_passed(results),
        share=100.0 * rise[stuck].sum() / max(rise.sum(), 1e-9),
        stuck=int(stuck.sum()),
        recovered=int(np.sum(stuck & ~is_stuck(curves))),
        long=results.scope.scenario(f"easy{LONGER}").steps,
        table=_longer_table(results, results.scope.anytime),
    )


def _measured(results: Results) -> str:
    scope, grid = results.scope, results.scope.grid
    by_mean, by_median = choose(results.attempts), choose(results.attempts, lambda one: one.median)
    return PROSE.line(
        "measured",
        first=scope.seeds[0],
        last=scope.seeds[-1],
        example=scope.scenario("easy"),
        stuck=STUCK,
        first_tuning=grid.seeds[0],
        last_tuning=grid.seeds[-1],
        settings=grid.size,
        widths=grid.n_widths,
        other=sum(by_median[key] != tried for key, tried in by_mean.items()),
        made=len(by_mean),
    )


RIVALS = ("alexp", "naive", "oracle")  # what the mixture is compared with seed by seed


def write_beyond(results: Results, out: Path) -> list[Path]:
    """Write the page and return its path."""
    scope, grid, wide = results.scope, results.scope.grid, results.widened()
    ours = [(results.final(name, "mixture"), results.final(name, "alexp")) for name in MAIN_SCENARIOS]
    ratios = [float(a.mean() / b.mean()) for a, b in ours]
    ahead, runs = sum(int(np.sum(a < b)) for a, b in ours), sum(a.size for a, _ in ours)
    rows = {METHODS[m].label: [results.runs.get((name, m)) for name in MAIN_SCENARIOS] for m in (*MIXTURES, *RIVALS)}
    rows |= {
        f"{METHODS[m].label}, tuned": [results.wide_runs.get((name, m)) for name in MAIN_SCENARIOS] for m in RIVALS
    }
    pairs = {METHODS[m].label: (results, "mixture", m) for m in RIVALS}
    pairs |= {f"{METHODS[m].label}, tuned": (wide, "mixture", m) for m in RIVALS}
    far = list(results.sizes)[len(SCALING_DEGREES) :] or list(results.sizes)[-1:]
    text = PROSE.line(
        "beyond",
        ours=f"{min(ratios):.2f} to {max(ratios):.2f}",
        ahead=f"{ahead} of {runs}",
        first=scope.seeds[0],
        last=scope.seeds[-1],
        settings=grid.size,
        first_tuning=grid.seeds[0],
        last_tuning=grid.seeds[-1],
        figures=picture("1", results, "Regret with EvidenceMixture on the easy and the hard problems")
        + "\n\n"
        + picture("2", results, "Regret with EvidenceMixture on the large class"),
        n=scope.scenario("easy").steps,
        seeds=len(scope.seeds),
        table=regret_grid(rows),
        differences=differences(pairs),
        scaling_figure=picture("3", results, "Regret as the number of models grows"),
        loud=_loud(results, [m for m in results.scope.methods if m not in RIVALS]),
        scaling=_sizes_table(results, ("mixture", *RIVALS), far),
        dynamics=picture("4", results, "Probabilities of the models, ALExp and EvidenceMixture"),
        longer=picture("8", results, "Regret over four times as many rounds"),
        longer_table=_longer_table(results, [m for m in results.scope.anytime if m not in ("naive", "oracle")]),
    )
    write_text(out / "beyond.md", text + "\n")
    return [out / "beyond.md"]
