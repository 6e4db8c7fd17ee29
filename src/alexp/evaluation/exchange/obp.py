"""Open Bandit Pipeline: one dict of arrays, a fixed number of actions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.evaluation.exchange.common import exportable, vector
from alexp.evaluation.log import Log

NEEDED = ("n_rounds", "n_actions", "action", "reward", "pscore")


def to_obp(log: Log) -> dict[str, Action]:
    """The log as Open Bandit Pipeline's `bandit_feedback`; rounds without reward or propensity are left out.

    `context` are the contexts, which must be vectors of one length; without contexts it is the features of all
    candidates of a round one after another, or zeros. `action_context` are the features, if these are the same in all
    rounds.
    """
    log = exportable(log)
    sizes = np.unique(log.n)
    if sizes.size > 1:
        raise ValueError(
            f"Open Bandit Pipeline needs the same number of actions in every round, and rounds have {sizes.min()} to "
            f"{sizes.max()} candidates; use to_vw or to_coba"
        )
    n, actions = len(log), int(sizes[0])
    rows = None if log.features is None else log.features.values.reshape(n, actions, -1)
    same = rows is not None and bool(np.all(rows == rows[0]))
    return {
        "n_rounds": n,
        "n_actions": actions,
        "context": _contexts(log, None if same else rows),
        "action_context": rows[0] if rows is not None and same else None,
        "action": log.index.copy(),
        "position": np.zeros(n, dtype=np.int64),
        "reward": log.rewards.copy(),
        "pscore": log.propensities.copy(),
    }


def from_obp(feedback: Mapping[str, Action], position: int | None = None) -> Log:
    """A log from `bandit_feedback`; of lists with several positions, that of one `position`."""
    missing = [name for name in NEEDED if name not in feedback]
    if missing:
        raise ValueError(f"feedback needs {', '.join(NEEDED)}; {', '.join(missing)} are missing")
    n = int(feedback["n_rounds"])
    places = feedback.get("position")
    places = np.zeros(n, dtype=np.int64) if places is None else np.asarray(places)
    if position is None and np.unique(places).size > 1:
        raise ValueError(
            f"feedback has {np.unique(places).size} positions in its lists, each a problem of its own: pass position="
        )
    keep = np.ones(n, dtype=bool) if position is None else places == position
    if not keep.any():
        raise ValueError(f"feedback has no round at position {position}")
    context = feedback.get("context")
    return Log(
        np.asarray(feedback["reward"], dtype=np.float64)[keep],
        np.asarray(feedback["pscore"], dtype=np.float64)[keep],
        np.asarray(feedback["action"])[keep],
        int(feedback["n_actions"]),
        contexts=None if context is None else list(np.asarray(context, dtype=np.float64)[keep]),
    )


def _contexts(log: Log, rows: FloatArray | None) -> FloatArray:
    if log.contexts is None:
        return np.zeros((len(log), 1)) if rows is None else rows.reshape(len(log), -1)
    found = [vector(context) for context in log.contexts]
    lengths = {None if one is None else one.size for one in found}
    if None in lengths or len(lengths) > 1:
        raise ValueError("Open Bandit Pipeline needs contexts that are vectors of one length; use to_vw or to_coba")
    return np.stack([one for one in found if one is not None])
