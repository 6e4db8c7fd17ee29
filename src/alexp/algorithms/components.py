"""Settings that are objects (agents, oracles, designs, schedules) as JSON-safe dicts, without pickle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter
from typing import Any

from alexp.common.arguments import Accepted, check_keywords
from alexp.common.codec import Packable
from alexp.common.extensions import class_stored_as, stored_name
from alexp.common.schema import MOST, a_dict, record, text
from alexp.decision import agents, designs, schedules
from alexp.estimation.lasso import group_lasso, post_lasso
from alexp.estimation.mixture import evidence
from alexp.rules import IDS, UCB, ExpectedImprovement, HypervolumeImprovement, Matching, Rule, Thompson

_KNOWN: dict[str, type[Any]] = {
    **agents.BUILT_IN,
    **{kind.__name__: kind for kind in (designs.Uniform, designs.EOptimal, designs.DOptimal, designs.HOptimal)},
    "Schedules": schedules.Schedules,
    "ReleasedSchedules": schedules.ReleasedSchedules,
    "GroupLasso": group_lasso.GroupLasso,
    "PostLasso": post_lasso.PostLasso,
    "Evidence": evidence.Evidence,
    "rules.IDS": IDS,
    "rules.UCB": UCB,
    "rules.ExpectedImprovement": ExpectedImprovement,
    "rules.HypervolumeImprovement": HypervolumeImprovement,
    "rules.Thompson": Thompson,
    "rules.Matching": Matching,
}
# Classes of objects that arguments take, by the types in their annotations; what users write, the usual one first.
_PARTS: dict[str, tuple[str, ...]] = {
    "Rule": ("rules.UCB", "rules.IDS", "rules.ExpectedImprovement", "rules.Thompson", "rules.Matching"),
    "Agent": ("UCB", "EpsilonGreedy", "ThompsonSampling", "Greedy"),
    "Agents": ("UCB", "EpsilonGreedy", "ThompsonSampling", "Greedy"),
    "Exploration": ("EOptimal", "DOptimal", "HOptimal"),
    "Schedules": ("Schedules",),
    "Oracle": ("GroupLasso", "Evidence"),
    "GroupLasso": ("GroupLasso",),
}
_NAMES = {kind: name for name, kind in _KNOWN.items()}


def parts_of(parameters: Iterable[Parameter]) -> list[Accepted]:
    """The objects that arguments of a constructor take, with their own keywords."""
    return [
        Accepted(one.name, f"alexp.{name}", [field.name for field in fields(_KNOWN[name])])
        for one in parameters
        for word in re.findall(r"\w+", str(one.annotation))
        for name in _PARTS.get(word, ())
    ]


def check_arguments(what: str, given: Mapping[str, object], takes: Mapping[str, Parameter], *more: str) -> None:
    """Raise TypeError for a keyword that is none of the parameters, nor of `more`, with the nearest right one."""
    if not given.keys() <= takes.keys():
        check_keywords(what, given, [*takes, *more], parts_of(takes.values()))


def component_to_dict(value: object) -> Packable:
    """Numbers and text as they are, known dataclasses and rules by name and fields, others marked as the user's own."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {"kind": "dict", "items": {str(k): component_to_dict(v) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        return [component_to_dict(item) for item in value]
    kind = type(value)
    if is_dataclass(value) and (kind in _NAMES or isinstance(value, Rule)):
        values = {f.name: component_to_dict(getattr(value, f.name)) for f in fields(value)}
        return {"kind": _NAMES.get(kind) or stored_name(kind)} | values
    return {"kind": "own", "type": kind.__name__}


def component_from_dict(value: Packable, name: str, whole: bool = True) -> Packable:
    """Invert `component_to_dict`; `name` is the setting, for the error when the user must pass it again.

    What was written by hand need not be `whole`: fields that are missing have their defaults. So do fields that were
    `added` (metadata) since runs were first stored.
    """
    if isinstance(value, list):
        return [component_from_dict(item, name, whole) for item in value]
    if isinstance(value, int) and abs(value) > MOST:
        raise ValueError(f"settings[{name!r}] must be at most {MOST} in size")
    if not isinstance(value, dict):
        return value
    kind = record(f"settings[{name!r}]", value, {"kind": text()})["kind"]
    if kind == "dict":
        items = record(f"settings[{name!r}]", value, {"items": a_dict})["items"]
        return {key: component_from_dict(item, name, whole) for key, item in items.items()}
    if kind == "own":
        raise ValueError(f"{name} was an object of your own ({value.get('type')}); pass {name}= again to from_dict")
    own = class_stored_as(Rule, kind) if kind not in _KNOWN and "." in kind else None
    if kind not in _KNOWN and own is None:
        remedy = f"import the module that defines it, or pass {name}= again; " if "." in kind else ""
        raise ValueError(f"settings[{name!r}] is of an unknown kind, {kind!r:.80}; {remedy}known are {sorted(_KNOWN)}")
    made: type[Any] = own or _KNOWN[kind]
    arguments = {key: component_from_dict(item, name, whole) for key, item in value.items() if key != "kind"}
    missing = {field.name for field in fields(made) if not field.metadata.get("added")} - set(arguments)
    if missing and whole:
        raise ValueError(f"settings[{name!r}] lacks {', '.join(map(repr, sorted(missing)))}")
    for field in fields(made):
        if isinstance(arguments.get(field.name), bool) and "bool" not in str(field.type):
            raise ValueError(f"settings[{name!r}][{field.name!r}] must be {field.type}, got {arguments[field.name]}")
    try:
        return made(**arguments)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"settings[{name!r}] cannot be a {kind}: {error}") from error
