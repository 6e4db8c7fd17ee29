"""JSON data of a service as what a study returns: trials, recommendations, reports, views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import inf, nan

import numpy as np

from alexp.algorithms import AssumptionWarning, Recommendation, Trial
from alexp.algorithms.certified import ModelCheck, StopReport
from alexp.common.arrays import Action, FloatArray
from alexp.common.codec import Packable, State
from alexp.common.warning import caution
from alexp.estimation.lasso.group_lasso import ConvergenceWarning
from alexp.study.errors import StorageWarning
from alexp.study.view import HeldTrial

_CATEGORIES: Mapping[str, type[Warning]] = {
    kind.__name__: kind for kind in (AssumptionWarning, ConvergenceWarning, StorageWarning, RuntimeWarning)
}


def warn_of(told: object) -> None:
    """Issue the warnings that came with an answer, at the line that called the library."""
    for one in told if isinstance(told, list) else ():
        is_named = isinstance(one, dict)
        category = _CATEGORIES.get(str(one.get("category")), UserWarning) if is_named else AssumptionWarning
        caution(str(one.get("message", "")) if is_named else str(one), category)


def action(x: Packable, domain: str) -> Action:
    """An action as a domain of that kind has it: points of a box are arrays, all else is plain data."""
    return np.array(x, dtype=np.float64) if domain == "Box" else x


def trial(told: State, domain: str) -> Trial:
    """A trial, as `Trial.to_dict` has told it."""
    return Trial(**_facts(told, domain))


def held(told: State, domain: str) -> HeldTrial:
    """A pending trial with who has it."""
    lease = told.get("lease")
    return HeldTrial(**_facts(told, domain), worker=told["worker"], age=told["age"], lease=lease)


def _facts(told: State, domain: str) -> State:
    scores = told.get("scores")
    return {
        "id": told["id"],
        "x": action(told["x"], domain),
        "index": told["index"],
        "model": told["model"],
        "explored": told["explored"],
        "propensity": number(told["propensity"]),
        "context": told.get("context"),
        "n_candidates": told.get("n_candidates"),
        "scores": None if scores is None else numbers(scores),
    }


def recommendation(told: State, domain: str) -> Recommendation:
    """A recommendation."""
    return Recommendation(action(told["x"], domain), told["index"], number(told["value"]), told["model"])


def stop_report(told: State, domain: str) -> StopReport:
    """A statement about stopping; an epsilon that JSON could not say is infinite."""
    known = {field.name: told[field.name] for field in fields(StopReport) if field.name in told}
    known |= {name: np.array(told[name], dtype=np.int64) for name in ("plausible", "disagreeing")}
    return StopReport(**known | {"x": action(told["x"], domain), "epsilon": number(told["epsilon"], inf)})


def model_check(told: State) -> ModelCheck:
    """An alarm, or none."""
    known = {field.name: told[field.name] for field in fields(ModelCheck) if field.name in told}
    arrays = {"rejected": np.array(told["rejected"], dtype=np.int64), "speaks_against": tuple(told["speaks_against"])}
    return ModelCheck(**known | arrays | {"e_value": number(told["e_value"], inf)})


def number(value: float | None, missing: float = nan) -> float:
    """A number, where None stands for one that JSON has not."""
    return missing if value is None else float(value)


def numbers(values: Packable) -> FloatArray:
    """An array of numbers, with NaN for None."""
    return np.array(values, dtype=np.float64)
