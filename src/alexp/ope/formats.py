"""Logs in the formats of coba, Open Bandit Pipeline and Vowpal Wabbit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import quote, unquote

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.common.codec import jsonable
from alexp.common.validation import one_of
from alexp.ope.log import Log

_Named = dict[str, float | str]


def _exportable(log: Log) -> Log:
    """The rounds with a reward and a propensity."""
    if not isinstance(log, Log):
        raise TypeError(f"log must be an alexp.ope.Log, got {type(log).__name__}; use Log.from_frame(run.log_frame())")
    if not log.usable.any():
        raise ValueError("the log has no round with both a reward and a propensity: there is nothing to export")
    return log if log.usable.all() else log.part(log.usable)


def _vector(context: Action) -> FloatArray | None:
    """A context as a vector of numbers, (d,), or None if it is something else."""
    if isinstance(context, str | Mapping) or context is None:
        return None
    try:
        found = np.atleast_1d(np.asarray(context, dtype=np.float64))
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def _named(context: Action, number: int) -> _Named:
    """A context as numbers and texts by name; those of a vector are called "0", "1", ..."""
    if context is None:
        return {}
    if isinstance(context, Mapping):
        return {str(name): _scalar(value, name, number) for name, value in context.items()}
    found = _vector(context)
    if found is not None:
        return {str(k): float(value) for k, value in enumerate(found)}
    if isinstance(context, Sequence) and not isinstance(context, str):
        return {str(k): _scalar(value, k, number) for k, value in enumerate(context)}
    return {"context": _scalar(context, "context", number)}


def _unnamed(found: Mapping[str, float | str]) -> Action:
    """The inverse of `_named`: a list if the names count from 0, else a dict; None if empty."""
    if not found:
        return None
    if list(found) == [str(k) for k in range(len(found))]:
        return list(found.values())
    return dict(found)


def _scalar(value: object, name: object, number: int) -> float | str:
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return float(value)
    if isinstance(value, str):
        return value
    raise TypeError(
        f"the context of round {number} has {name!r}: {type(value).__name__}; only numbers, texts, vectors and flat "
        "dicts of these can be exported"
    )


def _table(rows: Sequence[Sequence[Mapping[str, float]]]) -> list[FloatArray] | None:
    """Features by name, per round and candidate, as rows; None if there are none.

    Columns that are called "0", "1", ... are in that order, all others in the order in which they appear.
    """
    names = list(dict.fromkeys(name for round_ in rows for row in round_ for name in row))
    if not names:
        return None
    if all(name.isascii() and name.isdigit() for name in names):
        names = [str(k) for k in range(max(map(int, names)) + 1)]
    column = {name: k for k, name in enumerate(names)}
    found = []
    for round_ in rows:
        block = np.zeros((len(round_), len(names)))
        for k, row in enumerate(round_):
            for name, value in row.items():
                block[k, column[name]] = value
        found.append(block)
    return found


CobaActions = Literal["features", "ids", "index"]
COBA_ACTIONS: tuple[CobaActions, ...] = get_args(CobaActions)


def to_coba(log: Log, actions: CobaActions | None = None) -> list[dict[str, Action]]:
    """The log as `context, action, reward, probability, actions`, one dict per round with a reward and a propensity.

    Actions are rows of "features" (tuples), "ids", or "index", the position in the round; by default the first of these
    that the log has and that differs between all candidates of every round.
    """
    log = _exportable(log)
    kinds = COBA_ACTIONS if actions is None else (one_of("actions", actions, COBA_ACTIONS),)
    for kind in kinds:
        found = _coba_actions(log, kind)
        if found is not None:
            break
    else:
        raise ValueError(f"actions={actions!r}: the log has none, or they are not distinct within a round")
    contexts = [None] * len(log) if log.contexts is None else [_coba_context(context) for context in log.contexts]
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
    rows = [_coba_rows(one["actions"]) for one in interactions]
    have_rows = bool(rows) and all(block is not None for block in rows)
    contexts = [one.get("context") for one in interactions]
    return Log(
        [float(one["reward"]) for one in interactions],
        [float(one["probability"]) for one in interactions],
        [list(one["actions"]).index(one["action"]) for one in interactions],
        [len(one["actions"]) for one in interactions],
        contexts=None if all(context is None for context in contexts) else contexts,
        ids=None if have_rows or _are_positions(interactions) else [list(one["actions"]) for one in interactions],
        features=rows if have_rows else None,
    )


def _coba_actions(log: Log, kind: str) -> list[list[Action]] | None:
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


def _coba_context(context: Action) -> Action:
    """Vectors as tuples, which are dense features in coba; others unchanged."""
    found = _vector(context)
    return context if found is None or np.ndim(context) == 0 else tuple(found.tolist())


def _coba_rows(actions: Sequence[Action]) -> FloatArray | None:
    found = [None if np.ndim(action) == 0 else _vector(action) for action in actions]
    rows = [row for row in found if row is not None]
    return np.stack(rows) if rows and len(rows) == len(found) and len({row.size for row in rows}) == 1 else None


def _are_positions(interactions: Sequence[Mapping[str, Action]]) -> bool:
    return all(list(one["actions"]) == list(range(len(one["actions"]))) for one in interactions)


OBP_KEYS = ("n_rounds", "n_actions", "action", "reward", "pscore")


def to_obp(log: Log) -> dict[str, Action]:
    """The log as Open Bandit Pipeline's `bandit_feedback`; rounds without reward or propensity are left out.

    `context` are the contexts, which must be vectors of one length; without contexts it is the features of all
    candidates of a round one after another, or zeros. `action_context` are the features, if these are the same in all
    rounds.
    """
    log = _exportable(log)
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
        "context": _obp_contexts(log, None if same else rows),
        "action_context": rows[0] if rows is not None and same else None,
        "action": log.index.copy(),
        "position": np.zeros(n, dtype=np.int64),
        "reward": log.rewards.copy(),
        "pscore": log.propensities.copy(),
    }


def from_obp(feedback: Mapping[str, Action], position: int | None = None) -> Log:
    """A log from `bandit_feedback`; of lists with several positions, that of one `position`."""
    missing = [name for name in OBP_KEYS if name not in feedback]
    if missing:
        raise ValueError(f"feedback needs {', '.join(OBP_KEYS)}; {', '.join(missing)} are missing")
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


def _obp_contexts(log: Log, rows: FloatArray | None) -> FloatArray:
    if log.contexts is None:
        return np.zeros((len(log), 1)) if rows is None else rows.reshape(len(log), -1)
    found = [_vector(context) for context in log.contexts]
    lengths = {None if one is None else one.size for one in found}
    if None in lengths or len(lengths) > 1:
        raise ValueError("Open Bandit Pipeline needs contexts that are vectors of one length; use to_vw or to_coba")
    return np.stack([one for one in found if one is not None])


VwFormat = Literal["text", "dsjson"]
VW_FORMATS: tuple[VwFormat, ...] = get_args(VwFormat)
SHARED, ACTION = "c", "a"  # names of the namespaces that are written


@dataclass(frozen=True)
class _VwRound:
    """One labelled round of a file."""

    context: _Named
    rows: list[dict[str, float]]
    ids: list[Action]
    index: int
    cost: float
    propensity: float
    probabilities: list[float] | None = None


def to_vw(log: Log, format: VwFormat = "text") -> str:
    """The log for `vw --cb_explore_adf` (or --cb_adf), with `--dsjson` for that format; one round after another.

    Rounds without reward or propensity are left out. Contexts (numbers, texts, vectors, flat dicts) are shared features
    in the namespace `c`, rows are in `a`, columns are called 0, 1, ...; ids are tags in text.
    """
    log = _exportable(log)
    if one_of("format", format, VW_FORMATS) == "text":
        return "\n".join("\n".join(_vw_lines(log, t)) + "\n" for t in range(len(log)))
    return "".join(json.dumps(_dsjson_event(log, t)) + "\n" for t in range(len(log)))


def from_vw(source: str | Iterable[str], format: VwFormat = "text") -> Log:
    """A log from text or lines in one of the two formats; rounds without a label are left out.

    Features of actions are columns: those called 0, 1, ... in this order, others in the order in which they appear,
    under `namespace^name`. ids come back from text as texts.
    """
    lines = source.splitlines() if isinstance(source, str) else source
    read = _read_text if one_of("format", format, VW_FORMATS) == "text" else _read_dsjson
    examples = list(read(lines))
    if not examples:
        raise ValueError("source has no labelled example")
    contexts = [_unnamed(one.context) for one in examples]
    probabilities = [one.probabilities for one in examples]
    return Log(
        [-one.cost + 0.0 for one in examples],
        [one.propensity for one in examples],
        [one.index for one in examples],
        [len(one.rows) for one in examples],
        contexts=None if all(context is None for context in contexts) else contexts,
        ids=None if any(name is None for one in examples for name in one.ids) else [one.ids for one in examples],
        features=_table([one.rows for one in examples]),
        probabilities=None if any(one is None for one in probabilities) else probabilities,
    )


def _indicators(found: _Named) -> dict[str, float]:
    """Texts as indicator columns."""
    return {
        f"{name}={value}" if isinstance(value, str) else name: 1.0 if isinstance(value, str) else value
        for name, value in found.items()
    }


# -- text --------------------------------------------------------------------------------------------------------


def _vw_lines(log: Log, t: int) -> Iterator[str]:
    if log.contexts is not None and (shared := _named(log.contexts[t], t)):
        yield f"shared |{SHARED} " + " ".join(_vw_token(name, value) for name, value in shared.items())
    for k in range(log.n[t]):
        label = f"{k}:{_vw_cost(log, t)!r}:{float(log.propensities[t])!r} " if k == log.index[t] else ""
        tag = "" if log.ids is None else f"'{_vw_quoted(log.ids[t][k])}"
        row = "" if log.features is None else _sparse(log.features[t][k])
        yield f"{label}{tag}|{ACTION} {row}".rstrip()


def _vw_token(name: str, value: float | str) -> str:
    return f"{_vw_quoted(name)}={_vw_quoted(value)}" if isinstance(value, str) else f"{_vw_quoted(name)}:{value!r}"


def _vw_quoted(text: object) -> str:
    return quote(str(text), safe="")


def _sparse(row: FloatArray) -> str:
    """Non-zero columns, and always the last one, from which a reader sees the number of columns."""
    return " ".join(f"{k}:{float(row[k])!r}" for k in range(row.size) if row[k] != 0.0 or k == row.size - 1)


def _vw_cost(log: Log, t: int) -> float:
    return -float(log.rewards[t]) + 0.0  # never -0.0


def _read_text(lines: Iterable[str]) -> Iterator[_VwRound]:
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line.strip())
        elif block:
            example = _from_block(block)
            if example is not None:
                yield example
            block = []


def _from_block(block: list[str]) -> _VwRound | None:
    context: _Named = {}
    if block[0].split("|")[0].split(" ")[0] == "shared":
        context, block = _vw_features(block[0]), block[1:]
    labelled = None
    rows: list[dict[str, float]] = []
    ids: list[Action] = []
    for k, line in enumerate(block):
        *label, tag = line.split("|")[0].rstrip().split("'") if "'" in line.split("|")[0] else (line.split("|")[0], "")
        ids.append(unquote(tag) if tag else None)
        rows.append(_indicators(_vw_features(line)))
        words = "".join(label).split()
        if words and ":" in words[0]:
            parts = words[0].split(":")
            if len(parts) != 3:
                raise ValueError(f"a label must be action:cost:probability, got {words[0]!r}")
            if labelled is not None:
                raise ValueError(f"only one action of a round may be labelled; {words[0]!r} is a second label")
            labelled = (k, float(parts[1]), float(parts[2]))
    return None if labelled is None else _VwRound(context, rows, ids, *labelled)


def _vw_features(line: str) -> _Named:
    """Features by name; those of namespaces other than ours carry the namespace."""
    found: _Named = {}
    for part in line.split("|")[1:]:
        space, *tokens = part.split() if part[:1] not in (" ", "\t") else ("", *part.split())
        space, _, factor = space.partition(":")
        prefix = "" if space in ("", SHARED, ACTION) else f"{space}^"
        for token in tokens:
            name, colon, value = token.partition(":")
            if not colon and "=" in name:
                key, _, text = name.partition("=")
                found[prefix + unquote(key)] = unquote(text)
            else:
                found[prefix + unquote(name)] = float(factor or 1.0) * (float(value) if colon else 1.0)
    return found


# -- dsjson ------------------------------------------------------------------------------------------------------


def _dsjson_event(log: Log, t: int) -> dict[str, Action]:
    index, propensity = int(log.index[t]), float(log.propensities[t])
    played, probabilities = [index + 1], [propensity]  # played first, numbers from 1 on
    if log.probabilities is not None:
        others = [k for k in range(log.n[t]) if k != index]
        played += [k + 1 for k in others]
        probabilities += [float(log.probabilities[t][k]) for k in others]
    actions: list[dict[str, Action]] = []
    for k in range(log.n[t]):
        action: dict[str, Action] = {} if log.ids is None else {"_id": jsonable(log.ids[t][k])}
        row = () if log.features is None else log.features[t][k]
        action[ACTION] = {str(i): float(value) for i, value in enumerate(row) if value != 0.0 or i == len(row) - 1}
        actions.append(action)
    shared = {} if log.contexts is None else _named(log.contexts[t], t)
    return {
        "_label_cost": _vw_cost(log, t),
        "_label_probability": propensity,
        "_label_Action": index + 1,
        "_labelIndex": index,
        "o": [{"v": float(log.rewards[t])}],
        "Version": "1",
        "EventId": str(t),
        "a": played,
        "p": probabilities,
        "c": ({SHARED: shared} if shared else {}) | {"_multi": actions},
    }


def _read_dsjson(lines: Iterable[str]) -> Iterator[_VwRound]:
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        event = json.loads(line)
        if not isinstance(event, dict) or "_multi" not in event.get("c", {}):
            raise ValueError(f"line {number} is no dsjson event: c._multi, the list of actions, is missing")
        if "_label_cost" not in event:
            continue  # a decision without an outcome
        yield _from_event(event)


def _from_event(event: Mapping[str, Action]) -> _VwRound:
    shared = {name: value for name, value in event["c"].items() if name != "_multi"}
    actions = event["c"]["_multi"]
    rows = [_indicators(_dsjson_features(action)) for action in actions]
    index = int(event["_labelIndex"]) if "_labelIndex" in event else int(event["_label_Action"]) - 1
    order, listed = event.get("a", ()), event.get("p", ())
    probabilities = None
    if len(order) == len(listed) == len(actions):
        probabilities = np.zeros(len(actions))
        probabilities[np.asarray(order) - 1] = listed
    return _VwRound(
        _dsjson_features(shared),
        rows,
        [action.get("_id", action.get("_tag")) for action in actions],
        index,
        float(event["_label_cost"]),
        float(event["_label_probability"]),
        None if probabilities is None else probabilities.tolist(),
    )


def _dsjson_features(found: Mapping[str, Action], prefix: str = "") -> _Named:
    """Features of nested objects by joined names, as VW reads them; names with a leading `_` are skipped."""
    flat: _Named = {}
    for name, value in found.items():
        if name.startswith("_"):
            continue
        if isinstance(value, Mapping):
            flat |= _dsjson_features(value, prefix if not prefix and name in (SHARED, ACTION) else f"{prefix}{name}^")
        elif isinstance(value, list):
            flat |= _dsjson_features({str(k): one for k, one in enumerate(value)}, f"{prefix}{name}^")
        else:
            flat[prefix + name] = value if isinstance(value, str) else float(value)
    return flat
