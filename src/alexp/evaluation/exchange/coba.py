"""coba: one dict per logged interaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.common.validation import one_of
from alexp.evaluation.exchange.common import exportable, vector
from alexp.evaluation.log import Log

KINDS = ("features", "ids", "index")


def to_coba(log: Log, actions: str | None = None) -> list[dict[str, Action]]:
    """The log as `context, action, reward, probability, actions`, one dict per round with a reward and a propensity.

    Actions are rows of "features" (tuples), "ids", or "index", the position in the round; by default the first of these
    that is there and tells all candidates of every round apart.
    """
    log = exportable(log)
    kinds = KINDS if actions is None else (one_of("actions", actions, KINDS),)
    for kind in kinds:
        found = _actions(log, kind)
        if found is not None:
            break
    else:
        raise ValueError(f"actions={actions!r}: the log has none, or some that do not tell candidates of a round apart")
    contexts = [None] * len(log) if log.contexts is None else [_plain(context) for context in log.contexts]
    return [
        {
            "context": contexts[t],
            "action": found[t][log.index[t]],
            "reward": float(log.rewards[t]),
            "probability": float(log.propensities[t]),
            "actions": found[t],
        }
        for t in range(len(log))
    ]


def from_coba(interactions: Sequence[Mapping[str, Action]]) -> Log:
    """A log from logged interactions with `context, action, reward, probability, actions`.

    Actions that are vectors of numbers become features; all others are ids.
    """
    interactions = list(interactions)
    for t, one in enumerate(interactions):
        missing = [name for name in ("action", "reward", "probability", "actions") if one.get(name) is None]
        if missing:
            raise ValueError(f"interaction {t} lacks {', '.join(missing)}; evaluation needs all of them")
        if one["action"] not in one["actions"]:
            raise ValueError(f"interaction {t}: the action {one['action']!r} is not among its actions")
    rows = [_rows(one["actions"]) for one in interactions]
    have_rows = bool(rows) and all(block is not None for block in rows)
    contexts = [one.get("context") for one in interactions]
    return Log(
        [float(one["reward"]) for one in interactions],
        [float(one["probability"]) for one in interactions],
        [list(one["actions"]).index(one["action"]) for one in interactions],
        [len(one["actions"]) for one in interactions],
        contexts=None if all(context is None for context in contexts) else contexts,
        ids=None if have_rows or _positions(interactions) else [list(one["actions"]) for one in interactions],
        features=rows if have_rows else None,
    )


def _actions(log: Log, kind: str) -> list[list[Action]] | None:
    if kind == "index":
        return [list(range(n)) for n in log.n]
    if kind == "ids":
        found = None if log.ids is None else [list(names) for names in log.ids]
    else:
        blocks = log.features
        found = None if blocks is None else [[tuple(row) for row in blocks[t].tolist()] for t in range(len(log))]
    if found is None or any(len(set(names)) < len(names) for names in found):
        return None
    return found


def _plain(context: Action) -> Action:
    """Vectors as tuples, which coba takes for dense features; all else as it is."""
    found = vector(context)
    return context if found is None or np.ndim(context) == 0 else tuple(found.tolist())


def _rows(actions: Sequence[Action]) -> FloatArray | None:
    found = [None if np.ndim(action) == 0 else vector(action) for action in actions]
    rows = [row for row in found if row is not None]
    return np.stack(rows) if rows and len(rows) == len(found) and len({row.size for row in rows}) == 1 else None


def _positions(interactions: Sequence[Mapping[str, Action]]) -> bool:
    return all(list(one["actions"]) == list(range(len(one["actions"]))) for one in interactions)
