"""The HTML report of a study, self-contained: it includes Plotly's script."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from math import inf
from pathlib import Path

import numpy as np

from alexp.common.files import write_text
from alexp.study.figures import MISFIT, figures, standardised
from alexp.study.view import Certificates, Explanation, PendingTrial, Standing, StudyView

_MOST_ROWS = 200
_DECISIVE = 6  # experiments listed
_LEAST_SHIFT = 0.05  # decades of the odds below which an experiment decided nothing
_MEANING_OF_Q = {
    "followed": "q: how often each model's agent is followed.",
    "posterior": "How probable it is, given the rewards and if one of the models is true, that it is this one.",
    "aggregate": "How much each model counts in the estimate.",
}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#222;background:#f4f5f7;margin:0}
main{max-width:1080px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:26px;margin:0 0 2px}h2{font-size:18px;margin:0 0 6px}
section{background:#fff;border:1px solid #e2e4e8;border-radius:8px;padding:16px 20px;margin-top:16px}
.muted{color:#667;font-size:13px}.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px}
.tile{background:#fff;border:1px solid #e2e4e8;border-radius:8px;padding:10px 14px}
.tile b{display:block;font-size:22px;font-weight:600;overflow-wrap:anywhere}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:16px}.two>div{min-width:0}
.two p.muted{min-height:3em;margin:4px 0}
table{border-collapse:collapse;width:100%;font-size:14px;margin-top:8px}
th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid #eceef1;vertical-align:top}
th{font-weight:600;color:#445}td.n,th.n{text-align:right;padding-right:24px;font-variant-numeric:tabular-nums}
h3{font-size:15px;margin:12px 0 0}summary{cursor:pointer;color:#445}
"""
_SCRIPT = """
const figures = JSON.parse(document.getElementById("figures").textContent);
for (const [name, figure] of Object.entries(figures)) {
  Plotly.newPlot("figure-" + name, figure.data, figure.layout, {responsive: true, displayModeBar: false});
}
"""


def write_report(view: StudyView, path: Path) -> Path:
    """Write the page atomically."""
    write_text(path, render(view, time.time()))
    return path


def render(view: StudyView, now: float) -> str:
    """The page as HTML text; ages of pending trials refer to `now`, in seconds since 1970."""
    from plotly.offline import get_plotlyjs  # slow to import, and needed here only

    drawn = figures(view)
    # "</" would end the script element; "\\/" means the same to JSON.
    data = json.dumps(drawn, allow_nan=False).replace("</", "<\\/")
    sections = [
        _compromises(view),
        _models(view),
        _explanation(view),
        _rewards(view),
        _rounds(view),
        _curve(view),
        _notes(view),
    ]
    sections.append(_pending(view, now))
    sections.append(_settings(view))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(view.name)}: study report</title><style>{_STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body><main>{_header(view, now)}{''.join(sections)}</main>"
        f'<script type="application/json" id="figures">{data}</script><script>{_SCRIPT}</script></body></html>\n'
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _confidence(certificates: Certificates) -> str:
    return f"{100 * (1 - certificates.delta):g} %"


def _header(view: StudyView, now: float) -> str:
    counts, best, certificates = view.counts, view.best, view.certificates
    tiles = [(str(counts["told"]), "rewards"), (str(counts["pending"]), "pending")]
    if counts["abandoned"]:
        tiles.append((str(counts["abandoned"]), "abandoned"))
    if "failed" in counts:
        tiles.append((str(counts["failed"]), "failed"))
    if best is not None:
        by = "" if best.model_name is None else f" by {best.model_name}"
        tiles.append((best.label, f"recommended (candidate {best.index})"))
        tiles.append((f"{best.value:.4g}", f"its reward as estimated{by}"))
    bound = inf if "noise" in view.settings else 2.0 * view.reward_bound
    if certificates is not None and certificates.epsilon <= bound:  # else it says nothing
        words = f"at most this far from the best, certified at {_confidence(certificates)} {certificates.rests_on}"
        tiles.append((f"{certificates.epsilon:.3g}", words))
    if view.money is not None:
        tiles.append((f"{view.money.spent:.6g}", "spent"))
        if view.money.left is not None:
            tiles.append((f"{view.money.left:.6g}", f"left of a budget of {view.money.budget:.6g}"))
    stopping = "" if view.stopping is None else f"<p>{escape(view.stopping)}.</p>"
    cells = "".join(
        f'<div class="tile"><b>{escape(big)}</b><span class="muted">{escape(small)}</span></div>'
        for big, small in tiles
    )
    return (
        f"<h1>{escape(view.name)}</h1><p class='muted'>{escape(view.algorithm)}, {view.direction}; "
        f"{view.n_models} models, {_candidates(view)}; created {_time(view.created_at)} UTC, "
        f"report of {_time(now)} UTC</p><div class='tiles'>{cells}</div>{stopping}"
    )


def compromise_sentences(view: StudyView) -> list[str]:
    """What was found for several objectives, and what it has cost, a sentence each; empty where there is neither."""
    out, found, money = [], view.pareto, view.money
    if found is not None and found.trial:
        n, best = len(found.trial), []
        for name, direction in found.directions.items():
            at = int(np.argmax(found.values[name]) if direction == "maximize" else np.argmin(found.values[name]))
            best.append(f"{name} {found.values[name][at]:.4g} ({found.label[at]})")
        which = "One measured candidate is" if n == 1 else f"{n} measured candidates are"
        out.append(f"{which} beaten by no other in all of {', '.join(found.directions)}; best: {'; '.join(best)}.")
    if money is not None:
        left = "" if money.left is None else f" of a budget of {money.budget:.6g}; {money.left:.6g} are left"
        out.append(f"Spent: {money.spent:.6g}{left}.")
    return out


def _compromises(view: StudyView) -> str:
    """Several objectives: the figure and the table of the best compromises."""
    found = view.pareto
    if found is None or not found.trial:
        return ""
    names = list(found.directions)
    rows = [
        [trial, what, *(f"{found.values[name][k]:.4g}" for name in names)]
        for k, (trial, what) in enumerate(zip(found.trial, found.label, strict=True))
    ][:_MOST_ROWS]
    note = f"Models below are judged by {names[0]}." if names[0] in view.trials.values else ""
    table = _table(["trial", "candidate", *names], rows, {0, *range(2, 2 + len(names))})
    return _section(
        "Best compromises", f"<p>{escape(compromise_sentences(view)[0])}</p>", _figure("pareto", note=note), table
    )


def _candidates(view: StudyView) -> str:
    if not view.is_contextual:
        return f"{view.n_candidates} candidates"
    return f"{view.n_candidates} arms" if view.n_candidates else "candidates differ by round"


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _figure(name: str, heading: str = "", note: str = "") -> str:
    top = f"<h3>{escape(heading)}</h3>" if heading else ""
    return f'<div>{top}<p class="muted">{escape(note)}</p><div id="figure-{name}"></div></div>'


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]], numeric: set[int]) -> str:
    def cells(tag: str, values: Sequence[object]) -> str:
        return "".join(
            f"<{tag}{' class=n' if k in numeric else ''}>{escape(str(value))}</{tag}>" for k, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', headings)}</tr></thead><tbody>{body}</tbody></table>"


def _models(view: StudyView) -> str:
    standing, title = view.standing, "Which model is winning, and why"
    if standing is None:
        name = escape(repr(view.algorithm))
        return _section(title, f"<p>The algorithm {name} keeps no probabilities over models.</p>")
    if view.counts["told"] == 0:
        return _section(title, "<p>There is no reward yet: all models are equal.</p>")
    drawn = ""
    if standing.history is not None:
        drawn = _figure("probabilities", "Probability of the leading models", _MEANING_OF_Q[standing.meaning])
        if standing.history.behind is not None:
            note = "Sum of what the agents' policies would have earned by the estimate, minus that of the best model."
            drawn += _figure("returns", "Hallucinated returns behind the leader", note)
        drawn = f'<div class="two">{drawn}</div>'
    tables = _leaders(standing) + _ruled_out(view, standing)
    past = "".join(f"<p>{escape(memory.sentence)}</p>" for memory in standing.memories)
    return _section(title, f"<p>{_verdict(standing)}</p>{past}", drawn, tables)


def _verdict(standing: Standing) -> str:
    first, *others = standing.leaders
    if standing.n_level > 2:
        return (
            f"<b>{escape(first.name)}</b> and {standing.n_level - 1} other models share the lead with q = "
            f"{first.q:.3g}: no reward so far tells them apart."
        )
    what = "a probability of" if standing.meaning == "posterior" else "q ="
    text = f"<b>{escape(first.name)}</b> leads with {what} {first.q:.3f}"
    if others:
        second = others[0]
        text += f", before {escape(second.name)} with {second.q:.3f}"
        if second.behind == 0.0:
            text += "; both have earned the same by the estimate"
        elif second.behind is not None and second.q > 0.0:
            text += (
                f". The runner-up's agent would have earned {-second.behind:.3g} less in all, "
                f"which the learning rate turns into odds of {first.q / second.q:.3g} to 1"
            )
    return text + "."


def _leaders(standing: Standing) -> str:
    sums = standing.returns is not None
    certified = any(leader.plausible is not None for leader in standing.leaders)
    chose = any(leader.chosen is not None for leader in standing.leaders)
    headings = ["model", "probability" if standing.meaning == "posterior" else "q"] + ["trials it chose"] * chose
    headings += ["return behind the leader"] * sums + ["still plausible"] * certified
    rows = []
    for leader in standing.leaders:
        row = [leader.name, f"{leader.q:.4f}"] + ([] if leader.chosen is None else [str(leader.chosen)])
        row += [] if leader.behind is None else [f"{leader.behind:.4g}"]
        row += [] if leader.plausible is None else ["yes" if leader.plausible else "no"]
        rows.append(row)
    return _table(
        headings, rows, {k for k, heading in enumerate(headings) if heading not in ("model", "still plausible")}
    )


def _ruled_out(view: StudyView, standing: Standing) -> str:
    m, n, named = view.n_models, standing.n_ruled_out, standing.ruled_out
    small = f"each is followed in less than one of {100 * m} rounds"
    if standing.meaning != "followed":
        small = f"each has a probability below 1 / {100 * m}"
    text = f"<p>{n} of {m} models are effectively ruled out: {small}."
    if view.certificates is not None:
        text += (
            f" Independently of q, {m - view.certificates.n_plausible} of them contradict the rewards with confidence "
            f"{_confidence(view.certificates)} at every moment, {view.certificates.rests_on}."
        )
    if named:
        listed = ", ".join(map(escape, named)) + (f" and {n - len(named)} more" if n > len(named) else "")
        return f"{text}</p><details><summary>Which ones</summary><p>{listed}</p></details>"
    return f"{text}</p>"


def _explanation(view: StudyView) -> str:
    seen = view.explanation
    if seen is None:
        return ""
    parts = []
    if seen.odds is not None:
        note = "How strongly the rewards speak for the leading model over the runner-up; zero is undecided."
        parts.append(f"<p>{odds_sentence(seen)}</p>{_figure('odds', 'Odds of the two leading models', note)}")
        if rows := decisive(seen):
            headings = ["trial", "candidate", "measured", f"expected by {seen.leader}", f"by {seen.runner_up}", "odds"]
            table = _table(headings, rows, {0, 2, 3, 4})
            parts.append(f"<h3>Which experiments decided between the two</h3>{table}")
    if np.isfinite(seen.expected).any():
        note = "Every reward against what was expected of it given the rewards before."
        figures = _figure("predictions", "Predicted and measured", note)
        note = "Rewards outside the band are surprising; a pattern suggests that no model is right."
        figures += _figure("residuals", "Residuals", note)
        parts.append(f'<p>{fit_sentence(seen)}</p><div class="two">{figures}</div>')
    return _section("Why this model, and do the models fit", *parts)


# -- sentences of the explanation, shared with the dashboard ----------------------------------------------------


def fit_sentence(seen: Explanation) -> str:
    """A sentence on how well the rewards were predicted."""
    scaled = standardised(seen)
    scaled = scaled[np.isfinite(scaled)]
    if scaled.size < 5:
        return "Too few rewards to say how well they were predicted."
    missed = int(np.sum(np.abs(scaled) > MISFIT))
    fair = 0.05 * scaled.size
    verdict = (
        "about as many as expected"
        if missed <= fair + 2.0 * np.sqrt(fair) + 1.0
        else "more than the expected 1 in 20: the models may lack something"
    )
    return f"{missed} of {scaled.size} rewards lay outside the band of two standard deviations, {verdict}."


def decisive(seen: Explanation) -> list[list[str]]:
    """The experiments that moved the odds most: trial, candidate, measured, expected by both, and the factor."""
    if seen.odds is None or seen.by_runner_up is None:
        return []
    shift = np.diff(seen.odds)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    ranked = [int(k) for k in np.argsort(-np.abs(shift), kind="stable")[:_DECISIVE] if abs(shift[k]) > _LEAST_SHIFT]
    return [
        [
            str(seen.trial[k]),
            seen.label[k],
            f"{seen.reward[k]:.4g}",
            _number(seen.by_leader[k]),
            _number(seen.by_runner_up[k]),
            f"{10.0 ** min(abs(shift[k]), 99.0):.3g} : 1 for {seen.leader if shift[k] > 0.0 else seen.runner_up}",
        ]
        for k in ranked
    ]


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "-"


def odds_sentence(seen: Explanation) -> str:
    """What the rewards say of the two leading models, as HTML."""
    if seen.odds is None or seen.runner_up is None:
        return ""
    now, leader, second = float(seen.odds[-1]), f"<b>{escape(seen.leader)}</b>", f"<b>{escape(seen.runner_up)}</b>"
    if not np.isfinite(now):
        return f"{leader} is ahead of {second} with certainty, given these models."
    if abs(now) < np.log10(3.0):
        return f"The rewards do not yet tell {leader} and {second} apart: odds of {10.0**now:.2g} to 1."
    return f"The rewards favour {leader} over {second} by {_factor(now)} to 1."


def _factor(decades: float) -> str:
    return f"{10.0**decades:.3g}" if decades < 6.0 else f"10^{decades:.0f}"


# -- other sections --------------------------------------------------------------------------------------------


def _rewards(view: StudyView) -> str:
    if view.counts["told"] == 0:
        return _section("Rewards", "<p>There is no reward yet.</p>")
    what = "the mean so far" if view.is_contextual else "the best so far"
    note = f"Every reward, in the order of the trials, and {what}."
    return _section("Rewards", _figure("rewards", note=note))


def _rounds(view: StudyView) -> str:
    """Contextual rounds: propensities, and rewards by arm."""
    if not view.is_contextual or not len(view.trials.id):
        return ""
    note = "Probability with which each action was played in its round; off-policy evaluation needs values below 1."
    drawn = _figure("propensities", "Propensities", note) if view.counts["told"] else ""
    sentence = "<p>There is no table of candidates: recommendation, bound and curve depend on the round.</p>"
    return _section("Rounds", sentence, drawn, _arms(view) if view.domain == "Arms" else "")


def _arms(view: StudyView) -> str:
    label, reward = np.array(view.trials.label, dtype=object), view.trials.reward
    rows = []
    for name in dict.fromkeys(view.trials.label):
        told = reward[(label == name) & ~np.isnan(reward)]
        rows.append([name, int(np.sum(label == name)), told.size, f"{told.mean():.4g}" if told.size else ""])
    return _table(["arm", "trials", "rewards", "mean reward"], rows, {1, 2, 3})


def _curve(view: StudyView) -> str:
    curve = view.curve
    if curve is None:
        return ""
    parts = ["The algorithm's estimate"] if curve.estimate is not None else []
    parts += ["two standard deviations of it to both sides"] if curve.spread is not None else []
    parts += ["the certified band over all plausible models"] if curve.lower is not None else []
    words = ", ".join([*parts, "and the played points" if parts else "The played points"]) + "."
    if view.certificates is not None:
        words += f" The band is certified {view.certificates.rests_on}."
    return _section("Estimated reward", _figure("curve", note=words))


def _notes(view: StudyView) -> str:
    """Failures, corrections, and rewards with notes."""
    if not view.noted:
        return ""
    rows = [
        ["" if one.trial is None else one.trial, one.label, one.what, one.note, one.worker, _time(one.at)]
        for one in view.noted[-_MOST_ROWS:]
    ]
    more = f"<p>and {len(view.noted) - _MOST_ROWS} earlier ones</p>" if len(view.noted) > _MOST_ROWS else ""
    headings = ["trial", "candidate", "entry", "note", "by", "at (UTC)"]
    return _section("Failures, corrections and notes", _table(headings, rows, {0}), more)


def _pending(view: StudyView, now: float) -> str:
    if not view.pending:
        return _section("Pending", "<p>Nothing is pending.</p>")
    rows = [
        [trial.id, trial.label, _time(trial.at), f"{(now - trial.at) / 3600.0:.1f}", trial.worker, _lease(trial, now)]
        for trial in view.pending[:_MOST_ROWS]
    ]
    more = f"<p>and {len(view.pending) - _MOST_ROWS} more</p>" if len(view.pending) > _MOST_ROWS else ""
    headings = ["trial", "candidate", "asked at (UTC)", "hours pending", "measured by", "lease"]
    return _section("Pending", _table(headings, rows, {0, 3}), more)


def _lease(trial: PendingTrial, now: float) -> str:
    if trial.until is None:
        return "without end"
    return f"expired {_time(trial.until)} UTC" if trial.until <= now else f"until {_time(trial.until)} UTC"


def _settings(view: StudyView) -> str:
    rows = [(setting.name, setting.formula, setting.value) for setting in view.explained]
    rows += [("storage", "", view.where), ("created with version", "", view.library)]
    return _section("Settings", _table(["setting", "formula", "value"], rows, set()))
