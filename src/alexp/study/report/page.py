"""The page of the report: plain HTML around Plotly's own script, so that it opens without a network."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np

from alexp.study.report.figures import figures
from alexp.study.report.labels import label
from alexp.study.report.report import DELTA, Report, Standing
from alexp.study.report.settings import settings_rows

_MOST_ROWS = 200
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


def render(report: Report) -> str:
    """The whole page as text."""
    from plotly.offline import get_plotlyjs  # slow to import, and needed here only

    drawn = figures(report)
    # "</" would end the script element; "\\/" means the same to JSON.
    data = json.dumps(drawn, allow_nan=False).replace("</", "<\\/")
    sections = [_models(report), _rewards(report), _curve(report), _pending(report), _settings(report)]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.name)}: study report</title><style>{_STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body><main>{_header(report)}{''.join(sections)}</main>"
        f'<script type="application/json" id="figures">{data}</script><script>{_SCRIPT}</script></body></html>\n'
    )


def _header(report: Report) -> str:
    algorithm, counts = report.algorithm, report.counts
    created = datetime.fromtimestamp(report.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    names = algorithm.models.names
    tiles = [(str(counts["told"]), "rewards told"), (str(counts["pending"]), "pending")]
    if counts["abandoned"]:
        tiles.append((str(counts["abandoned"]), "abandoned"))
    if report.best is not None:
        by = "" if report.best.model is None else f" by {names[report.best.model]}"
        tiles.append((label(algorithm.domain, report.best.index), f"recommended (candidate {report.best.index})"))
        tiles.append((f"{report.best.value:.4g}", f"its reward as estimated{by}"))
    if report.epsilon is not None and report.epsilon <= 2.0 * algorithm.reward_bound:  # else it says nothing
        tiles.append((f"{report.epsilon:.3g}", f"at most this far from the best, certified at {100 * (1 - DELTA):g} %"))
    cells = "".join(
        f'<div class="tile"><b>{escape(big)}</b><span class="muted">{escape(small)}</span></div>'
        for big, small in tiles
    )
    return (
        f"<h1>{escape(report.name)}</h1><p class='muted'>{escape(algorithm.name)}, {algorithm.direction}; "
        f"{algorithm.models.n_models} models, {algorithm.domain.n_candidates} candidates; created {created}, "
        f"report of {written}</p><div class='tiles'>{cells}</div>"
    )


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _figure(name: str, heading: str = "", note: str = "") -> str:
    top = f"<h3>{escape(heading)}</h3>" if heading else ""
    return f'<div>{top}<p class="muted">{escape(note)}</p><div id="figure-{name}"></div></div>'


def _table(headings: list[str], rows: list[list[Any]], numeric: set[int]) -> str:
    def cells(tag: str, values: list[Any]) -> str:
        return "".join(
            f"<{tag}{' class=n' if k in numeric else ''}>{escape(str(value))}</{tag}>" for k, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', headings)}</tr></thead><tbody>{body}</tbody></table>"


def _models(report: Report) -> str:
    standing, title = report.standing, "Which model is winning, and why"
    if standing is None:
        name = escape(repr(report.algorithm.name))
        return _section(title, f"<p>The algorithm {name} keeps no probabilities over models.</p>")
    if report.counts["told"] == 0:
        return _section(title, "<p>No reward has been told yet: all models stand alike.</p>")
    left = _figure("probabilities", "Probability of the leading models", "q: how often each model's agent is followed.")
    right = ""
    if standing.behind is not None:
        note = "Sum of what the agents' policies would have earned by the estimate, minus that of the best model."
        right = _figure("returns", "Hallucinated returns behind the leader", note)
    figures_ = f'<div class="two">{left}{right}</div>'
    tables = _leaders(report, standing) + _ruled_out(report, standing)
    return _section(title, f"<p>{_verdict(report, standing)}</p>", figures_, tables)


def _verdict(report: Report, standing: Standing) -> str:
    names, first = report.algorithm.models.names, standing.leaders[0]
    level = int(np.sum(np.isclose(standing.q, standing.q[first], rtol=1e-9, atol=0.0)))
    if level > 2:
        return (
            f"<b>{escape(str(names[first]))}</b> and {level - 1} other models share the lead with q = "
            f"{standing.q[first]:.3g}: no reward so far tells them apart."
        )
    text = f"<b>{escape(str(names[first]))}</b> leads with q = {standing.q[first]:.3f}"
    if len(standing.leaders) > 1:
        second = standing.leaders[1]
        text += f", before {escape(str(names[second]))} with {standing.q[second]:.3f}"
        if standing.behind is not None and standing.behind[second] == 0.0:
            text += "; both have earned the same by the estimate"
        elif standing.behind is not None and standing.q[second] > 0.0:
            text += (
                f". The runner-up's agent would have earned {-standing.behind[second]:.3g} less in all, "
                f"which the learning rate turns into odds of {standing.q[first] / standing.q[second]:.3g} to 1"
            )
    return text + "."


def _leaders(report: Report, standing: Standing) -> str:
    played = report.trials["model"].value_counts()
    headings, rows = ["model", "q", "trials it chose"], []
    headings += ["return behind the leader"] if standing.behind is not None else []
    headings += ["still plausible"] if standing.plausible is not None else []
    for j in standing.leaders:
        row = [report.algorithm.models.names[j], f"{standing.q[j]:.4f}", int(played.get(j, 0))]
        row += [f"{standing.behind[j]:.4g}"] if standing.behind is not None else []
        row += ["yes" if j in standing.plausible else "no"] if standing.plausible is not None else []
        rows.append(row)
    return _table(headings, rows, {1, 2, 3} if standing.behind is not None else {1, 2})


def _ruled_out(report: Report, standing: Standing) -> str:
    names, m = report.algorithm.models.names, standing.q.size
    out = standing.ruled_out
    text = (
        f"<p>{out.size} of {m} models are effectively ruled out: each is followed in less than one of {100 * m} rounds."
    )
    if standing.plausible is not None:
        text += (
            f" Independently of q, {m - standing.plausible.size} of them contradict the rewards with confidence "
            f"{100 * (1 - DELTA):g} % at every moment, if the noise and the bound are stated rightly."
        )
    if out.size:
        listed = ", ".join(escape(str(names[int(j)])) for j in out[:_MOST_ROWS])
        more = f" and {out.size - _MOST_ROWS} more" if out.size > _MOST_ROWS else ""
        return f"{text}</p><details><summary>Which ones</summary><p>{listed}{more}</p></details>"
    return f"{text}</p>"


def _rewards(report: Report) -> str:
    if report.counts["told"] == 0:
        return _section("Rewards", "<p>No reward has been told yet.</p>")
    note = "Every reward told, in the order of the trials, and the best so far."
    return _section("Rewards", _figure("rewards", note=note))


def _curve(report: Report) -> str:
    if report.curve is None:
        return ""
    note = "The estimate behind the hallucinated returns, the band over all plausible models, and the played points."
    return _section("Estimated reward", _figure("curve", note=note))


def _pending(report: Report) -> str:
    frame = report.pending
    if frame.empty:
        return _section("Pending", "<p>Nothing is pending.</p>")
    now = datetime.now(UTC)
    rows = [
        [row[0], row[1], f"{row[2]:%Y-%m-%d %H:%M}", f"{(now - row[2]).total_seconds() / 3600.0:.1f}", row[3]]
        for row in frame.head(_MOST_ROWS).itertuples(index=False, name=None)
    ]
    more = f"<p>and {len(frame) - _MOST_ROWS} more</p>" if len(frame) > _MOST_ROWS else ""
    headings = ["trial", "candidate", "asked at (UTC)", "hours waiting", "asked by"]
    return _section("Pending", _table(headings, rows, {0, 3}), more)


def _settings(report: Report) -> str:
    rows: list[list[Any]] = [list(row) for row in settings_rows(report.algorithm)]
    rows += [["storage", "", report.where], ["created with version", "", report.library]]
    return _section("Settings", _table(["setting", "formula", "value"], rows, set()))
