"""Vowpal Wabbit: action-dependent features as text, and dsjson. It learns costs: cost = -reward."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.common.codec import jsonable
from alexp.common.validation import one_of
from alexp.evaluation.exchange.common import Named, exportable, named, table, unnamed
from alexp.evaluation.log import Log

FORMATS = ("text", "dsjson")
SHARED, ACTION = "c", "a"  # names of the namespaces that are written


@dataclass(frozen=True)
class Labelled:
    """One round as it was read."""

    context: Named
    rows: list[dict[str, float]]
    ids: list[Action]
    index: int
    cost: float
    propensity: float
    probabilities: list[float] | None = None


def to_vw(log: Log, format: str = "text") -> str:
    """The log for `vw --cb_explore_adf` (or --cb_adf), with `--dsjson` for that format; one round after another.

    Rounds without reward or propensity are left out. Contexts (numbers, texts, vectors, flat dicts) are shared features
    in the namespace `c`, rows are in `a`, columns are called 0, 1, ...; ids are tags in text.
    """
    log = exportable(log)
    if one_of("format", format, FORMATS) == "text":
        return "\n".join("\n".join(_lines(log, t)) + "\n" for t in range(len(log)))
    return "".join(json.dumps(_event(log, t)) + "\n" for t in range(len(log)))


def from_vw(source: str | Iterable[str], format: str = "text") -> Log:
    """A log from text or lines in one of the two formats; rounds without a label are left out.

    Features of actions are columns: those called 0, 1, ... in this order, others in the order in which they appear,
    under `namespace^name`. ids come back from text as texts.
    """
    lines = source.splitlines() if isinstance(source, str) else source
    read = _read_text if one_of("format", format, FORMATS) == "text" else _read_dsjson
    examples = list(read(lines))
    if not examples:
        raise ValueError("there is no labelled example in it")
    contexts = [unnamed(one.context) for one in examples]
    probabilities = [one.probabilities for one in examples]
    return Log(
        [-one.cost + 0.0 for one in examples],
        [one.propensity for one in examples],
        [one.index for one in examples],
        [len(one.rows) for one in examples],
        contexts=None if all(context is None for context in contexts) else contexts,
        ids=None if any(name is None for one in examples for name in one.ids) else [one.ids for one in examples],
        features=table([one.rows for one in examples]),
        probabilities=None if any(one is None for one in probabilities) else probabilities,
    )


def _indicators(found: Named) -> dict[str, float]:
    """Texts as columns of their own, 1 where they are."""
    return {
        f"{name}={value}" if isinstance(value, str) else name: 1.0 if isinstance(value, str) else value
        for name, value in found.items()
    }


# -- text --------------------------------------------------------------------------------------------------------


def _lines(log: Log, t: int) -> Iterator[str]:
    if log.contexts is not None and (shared := named(log.contexts[t], t)):
        yield f"shared |{SHARED} " + " ".join(_token(name, value) for name, value in shared.items())
    for k in range(log.n[t]):
        label = f"{k}:{_cost(log, t)!r}:{float(log.propensities[t])!r} " if k == log.index[t] else ""
        tag = "" if log.ids is None else f"'{_quoted(log.ids[t][k])}"
        row = "" if log.features is None else _sparse(log.features[t][k])
        yield f"{label}{tag}|{ACTION} {row}".rstrip()


def _token(name: str, value: float | str) -> str:
    return f"{_quoted(name)}={_quoted(value)}" if isinstance(value, str) else f"{_quoted(name)}:{value!r}"


def _quoted(text: object) -> str:
    return quote(str(text), safe="")


def _sparse(row: FloatArray) -> str:
    """What is not zero, and the last column in any case, so that a reader knows how many there are."""
    return " ".join(f"{k}:{float(row[k])!r}" for k in range(row.size) if row[k] != 0.0 or k == row.size - 1)


def _cost(log: Log, t: int) -> float:
    return -float(log.rewards[t]) + 0.0  # never -0.0


def _read_text(lines: Iterable[str]) -> Iterator[Labelled]:
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line.strip())
        elif block:
            example = _from_block(block)
            if example is not None:
                yield example
            block = []


def _from_block(block: list[str]) -> Labelled | None:
    context: Named = {}
    if block[0].split("|")[0].split(" ")[0] == "shared":
        context, block = _features(block[0]), block[1:]
    labelled = None
    rows: list[dict[str, float]] = []
    ids: list[Action] = []
    for k, line in enumerate(block):
        *label, tag = line.split("|")[0].rstrip().split("'") if "'" in line.split("|")[0] else (line.split("|")[0], "")
        ids.append(unquote(tag) if tag else None)
        rows.append(_indicators(_features(line)))
        words = "".join(label).split()
        if words and ":" in words[0]:
            parts = words[0].split(":")
            if len(parts) != 3:
                raise ValueError(f"a label must be action:cost:probability, got {words[0]!r}")
            if labelled is not None:
                raise ValueError(f"one action of a round is labelled, here are two: {words[0]!r} is the second")
            labelled = (k, float(parts[1]), float(parts[2]))
    return None if labelled is None else Labelled(context, rows, ids, *labelled)


def _features(line: str) -> Named:
    """Features by name; those of namespaces other than ours carry the namespace."""
    found: Named = {}
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


def _event(log: Log, t: int) -> dict[str, Action]:
    index, propensity = int(log.index[t]), float(log.propensities[t])
    played, chances = [index + 1], [propensity]  # played first, numbers from 1 on
    if log.probabilities is not None:
        others = [k for k in range(log.n[t]) if k != index]
        played += [k + 1 for k in others]
        chances += [float(log.probabilities[t][k]) for k in others]
    actions: list[dict[str, Action]] = []
    for k in range(log.n[t]):
        action: dict[str, Action] = {} if log.ids is None else {"_id": jsonable(log.ids[t][k])}
        row = () if log.features is None else log.features[t][k]
        action[ACTION] = {str(i): float(value) for i, value in enumerate(row) if value != 0.0 or i == len(row) - 1}
        actions.append(action)
    shared = {} if log.contexts is None else named(log.contexts[t], t)
    return {
        "_label_cost": _cost(log, t),
        "_label_probability": propensity,
        "_label_Action": index + 1,
        "_labelIndex": index,
        "o": [{"v": float(log.rewards[t])}],
        "Version": "1",
        "EventId": str(t),
        "a": played,
        "p": chances,
        "c": ({SHARED: shared} if shared else {}) | {"_multi": actions},
    }


def _read_dsjson(lines: Iterable[str]) -> Iterator[Labelled]:
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        event = json.loads(line)
        if not isinstance(event, dict) or "_multi" not in event.get("c", {}):
            raise ValueError(f"line {number} is no dsjson event: c._multi, the list of actions, is missing")
        if "_label_cost" not in event:
            continue  # a decision whose outcome is not known
        yield _from_event(event)


def _from_event(event: Mapping[str, Action]) -> Labelled:
    shared = {name: value for name, value in event["c"].items() if name != "_multi"}
    actions = event["c"]["_multi"]
    rows = [_indicators(_flat(action)) for action in actions]
    index = int(event["_labelIndex"]) if "_labelIndex" in event else int(event["_label_Action"]) - 1
    order, chances = event.get("a", ()), event.get("p", ())
    probabilities = None
    if len(order) == len(chances) == len(actions):
        probabilities = np.zeros(len(actions))
        probabilities[np.asarray(order) - 1] = chances
    return Labelled(
        _flat(shared),
        rows,
        [action.get("_id", action.get("_tag")) for action in actions],
        index,
        float(event["_label_cost"]),
        float(event["_label_probability"]),
        None if probabilities is None else probabilities.tolist(),
    )


def _flat(found: Mapping[str, Action], prefix: str = "") -> Named:
    """Nested objects by joined names, as VW reads them: numbers, texts and lists of numbers; no `_...`."""
    flat: Named = {}
    for name, value in found.items():
        if name.startswith("_"):
            continue
        if isinstance(value, Mapping):
            flat |= _flat(value, prefix if not prefix and name in (SHARED, ACTION) else f"{prefix}{name}^")
        elif isinstance(value, list):
            flat |= _flat({str(k): one for k, one in enumerate(value)}, f"{prefix}{name}^")
        else:
            flat[prefix + name] = value if isinstance(value, str) else float(value)
    return flat
