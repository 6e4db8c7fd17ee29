"""The report: what a study says, gathered from its log and written as one HTML page that needs no network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import Certifies, offers
from alexp.algorithms.trials import Recommendation
from alexp.common.arrays import FloatArray, IntArray
from alexp.estimation.estimate import predict
from alexp.problem.domains import Interval
from alexp.study.report.labels import label

if TYPE_CHECKING:
    import pandas as pd

    from alexp.study.study import Study


LEADERS = 6  # models drawn as lines
DELTA = 0.1  # certified statements hold with probability 1 - DELTA
_CERTIFIED_WORK = 20_000_000  # models x candidates up to which certificates are computed for the page


@dataclass(frozen=True)
class Standing:
    """How the models stand.

    Attributes
    ----------
    q : (M,) probabilities now.
    behind : (M,) hallucinated return behind the best model (<= 0); None where the algorithm has no returns.
    leaders : numbers of the leading models, best first.
    ruled_out : models now played less than once in 100 M rounds.
    plausible : models not ruled out with confidence 1 - DELTA; None where there is no certificate.
    told : (K,) number of rewards at the recorded asks.
    q_history, behind_history : (K, leaders) at these asks, NaN where not recorded.
    """

    q: FloatArray
    behind: FloatArray | None
    leaders: list[int]
    ruled_out: IntArray
    plausible: IntArray | None
    told: IntArray
    q_history: FloatArray
    behind_history: FloatArray


@dataclass(frozen=True)
class Curve:
    """Reward on a one-dimensional domain: points (N,), estimate (N,) and certified band, each if known."""

    points: FloatArray
    estimate: FloatArray | None
    lower: FloatArray | None
    upper: FloatArray | None


@dataclass(frozen=True)
class Report:
    """Everything the page shows."""

    name: str
    where: str
    created_at: float
    library: str
    algorithm: Algorithm
    counts: dict[str, int]
    trials: pd.DataFrame
    labels: list[str]
    pending: pd.DataFrame
    best: Recommendation | None
    epsilon: float | None
    standing: Standing | None
    curve: Curve | None


def gather(study: Study) -> Report:
    """Collect the content of a report."""
    algorithm, frame = study.algorithm, study.trials_dataframe()
    certified = _certified(algorithm)
    return Report(
        name=study.name,
        where=study.storage.describe(),
        created_at=study.created_at,
        library=study.library,
        algorithm=algorithm,
        counts=study.counts,
        trials=frame.drop(columns="x"),
        labels=[label(algorithm.domain, int(index)) for index in frame["index"]],
        pending=_pending(study),
        best=algorithm.best() if algorithm.n_told else None,
        epsilon=float(algorithm.stop_report(DELTA).epsilon) if certified else None,  # type: ignore[attr-defined]
        standing=_standing(study, algorithm),
        curve=_curve(algorithm),
    )


def write_report(study: Study, path: Path) -> Path:
    """Write the page; a half-written file never takes the place of an older one."""
    from alexp.study.report.page import render

    text = render(gather(study))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    return path


def _affordable(algorithm: Algorithm) -> bool:
    return algorithm.models.n_models * algorithm.domain.n_candidates <= _CERTIFIED_WORK


def _certified(algorithm: Algorithm) -> bool:
    able = offers(algorithm, Certifies) and algorithm.certifies
    return able and algorithm.n_told > 0 and _affordable(algorithm)


def _pending(study: Study) -> pd.DataFrame:
    """Trials without a reward: id, candidate, when and by whom they were asked for."""
    import pandas as pd

    pending = study.pending()
    events = study.events_dataframe()
    asked = events[events["kind"] == "ask"].set_index("trial")
    ids = [trial.id for trial in pending]
    domain = study.algorithm.domain
    return pd.DataFrame(
        {
            "id": ids,
            "candidate": [label(domain, trial.index) for trial in pending],
            "asked at": asked.loc[ids, "at"].to_numpy() if ids else [],
            "worker": asked.loc[ids, "worker"].to_numpy() if ids else [],
        }
    )


def _standing(study: Study, algorithm: Any) -> Standing | None:
    q = getattr(algorithm, "probabilities", None)
    if q is None:
        return None
    returns = getattr(algorithm, "cumulative_returns", None)
    leaders = [int(j) for j in np.argsort(-q, kind="stable")[:LEADERS]]
    records = [belief for _, belief in study.beliefs()]
    told = np.array([record["told"] for record in records] + [algorithm.n_told], dtype=np.int64)
    q_history = np.array([_of(record, "q", leaders) for record in records] + [q[leaders]])
    behind = None if returns is None else returns - returns.max()
    behind_history = np.full(q_history.shape, np.nan)
    if behind is not None:
        for k, record in enumerate(records):
            behind_history[k] = _of(record, "returns", leaders) - record["returns"].max()
        behind_history[-1] = behind[leaders]
    certified = _certified(algorithm)
    return Standing(
        q=q,
        behind=behind,
        leaders=leaders,
        ruled_out=np.flatnonzero(q < 0.01 / q.size),
        plausible=algorithm.plausible_models(DELTA) if certified else None,
        told=told,
        q_history=q_history,
        behind_history=behind_history,
    )


def _of(record: dict[str, Any], key: str, models: list[int]) -> FloatArray:
    """Recorded values of some models, NaN for those that were not recorded."""
    if "models" not in record:
        return np.asarray(record[key][models], dtype=np.float64)
    place = {int(j): k for k, j in enumerate(record["models"])}
    return np.array([record[key][place[j]] if j in place else np.nan for j in models], dtype=np.float64)


def _curve(algorithm: Any) -> Curve | None:
    domain = algorithm.domain
    if not isinstance(domain, Interval) or algorithm.n_told == 0:
        return None
    sign = 1.0 if algorithm.direction == "maximize" else -1.0
    fit, lower, upper = getattr(algorithm, "fit", None), None, None
    estimate = None if fit is None else sign * predict(fit, algorithm.features().T)
    if _certified(algorithm):
        lower, upper = algorithm.confidence(domain.points, DELTA)
        if not np.all(np.isfinite(lower) & np.isfinite(upper)):
            lower = upper = None
    return Curve(domain.points, estimate, lower, upper)
