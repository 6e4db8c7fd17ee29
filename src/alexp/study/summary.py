"""A view in a paragraph: what a colleague would ask."""

from __future__ import annotations

from html import escape, unescape
from re import sub

import numpy as np

from alexp.study.report import fit_sentence, odds_sentence
from alexp.study.view import StudyView


def summary(view: StudyView) -> str:
    """How many, which model leads with what odds, best measured, recommended, when to stop, what to worry about."""
    return " ".join(sentence for sentence in _sentences(view) if sentence)


def html(view: StudyView, title: str) -> str:
    """The same for a notebook."""
    return f"<p><b>{escape(title)}</b></p><p>{escape(summary(view))}</p>"


def _sentences(view: StudyView) -> list[str]:
    counts = view.counts
    known = f" of {view.n_candidates:,} candidates" if view.n_candidates and not view.is_contextual else ""
    measured = np.unique(view.trials.index[~np.isnan(view.trials.reward)]).size if known else counts["told"]
    waiting = f"; {counts['pending']} pending" if counts["pending"] else ""
    repeated = f", {counts['told']} rewards in all" if known and counts["told"] > measured else ""
    out = [f"{measured}{known or ' rounds'} measured{repeated}{waiting}."]
    if counts["told"] == 0:
        return [*out, "Next: ask() for a trial, and tell() its reward."]
    return [*out, _leader(view), _found(view), "" if view.stopping is None else f"{view.stopping}.", _worry(view)]


def _leader(view: StudyView) -> str:
    standing, seen = view.standing, view.explanation
    if standing is None or view.n_models == 1:
        return ""
    if standing.n_level > 1:
        return f"{standing.n_level} of {view.n_models:,} models share the lead: the rewards do not tell them apart yet."
    first = standing.leaders[0]
    what = "probability" if standing.meaning == "posterior" else "weight"
    text = f"Of {view.n_models:,} models {first.name} leads with {what} {first.q:.3f}."
    odds = "" if seen is None else unescape(sub("<[^>]*>", "", odds_sentence(seen)))
    return f"{text} {odds}".strip()


def _found(view: StudyView) -> str:
    reward = view.trials.reward
    if view.is_contextual:
        return f"Mean reward {np.nanmean(reward):.4g}."
    at = int(np.nanargmax(reward) if view.direction == "maximize" else np.nanargmin(reward))
    text = f"Best measured: {reward[at]:.4g} ({view.trials.label[at]})."
    if view.best is not None and view.best.index != view.trials.index[at]:
        text += f" Recommended: {view.best.label}, expected {view.best.value:.4g}."
    return text


def _worry(view: StudyView) -> str:
    seen = view.explanation
    if seen is None:
        return ""
    fit = fit_sentence(seen)
    return fit if "may lack" in fit else ""
